#include "harness/jvm/agent.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "harness/jvm/bytecodes.h"
#include "harness/jvm/jvm.h"

namespace framestorm {
namespace {

// JVMTI strings and arrays are freed with Deallocate.
template <typename T>
class JvmtiMemory {
 public:
  explicit JvmtiMemory(jvmtiEnv* jvmti) : jvmti_(jvmti) {}
  ~JvmtiMemory() {
    if (memory_ != nullptr) jvmti_->Deallocate(reinterpret_cast<unsigned char*>(memory_));
  }
  JvmtiMemory(const JvmtiMemory&) = delete;
  JvmtiMemory& operator=(const JvmtiMemory&) = delete;
  T** out() { return &memory_; }
  T* get() const { return memory_; }

 private:
  jvmtiEnv* jvmti_;
  T* memory_ = nullptr;
};

// "Ljava/lang/Thread;" -> "java/lang/Thread"
std::string class_name(jvmtiEnv* jvmti, jclass klass) {
  JvmtiMemory<char> signature(jvmti);
  if (jvmti->GetClassSignature(klass, signature.out(), nullptr) != JVMTI_ERROR_NONE) return {};
  std::string name = signature.get();
  if (name.size() > 2 && name.front() == 'L') name = name.substr(1, name.size() - 2);
  return name;
}

// Without its last bci.
MethodInfo named_method(jvmtiEnv* jvmti, jmethodID method, const std::string& klass) {
  JvmtiMemory<char> name(jvmti);
  JvmtiMemory<char> descriptor(jvmti);
  if (jvmti->GetMethodName(method, name.out(), descriptor.out(), nullptr) != JVMTI_ERROR_NONE) {
    return {klass + ".?"};
  }
  return {klass + "." + name.get(), 0, descriptor.get()};
}

}  // namespace

struct AgentCallbacks {
  static void JNICALL class_load(jvmtiEnv*, JNIEnv*, jthread, jclass) {}

  static void JNICALL class_prepare(jvmtiEnv* jvmti, JNIEnv*, jthread, jclass klass) {
    prime(jvmti, klass);
  }

  static void JNICALL vm_init(jvmtiEnv* jvmti, JNIEnv* env, jthread) {
    try {
      begin(jvmti, env);
    } catch (const std::exception& error) {
      // Asked for at the start, and not to be had: the program does not go on as if it were.
      std::fprintf(stderr, "framestorm: %s\n", error.what());
      std::_Exit(2);
    }
  }

  static void begin(jvmtiEnv* jvmti, JNIEnv* env) {
    // Classes prepared before the live phase sent no event.
    JvmtiMemory<jclass> classes(jvmti);
    jint count = 0;
    if (jvmti->GetLoadedClasses(&count, classes.out()) == JVMTI_ERROR_NONE) {
      for (jint i = 0; i < count; ++i) {
        prime(jvmti, classes.get()[i]);
        env->DeleteLocalRef(classes.get()[i]);
      }
    }
    jvmti->GenerateEvents(JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
    jvmti->GenerateEvents(JVMTI_EVENT_COMPILED_METHOD_LOAD);
    Jvm& jvm = Jvm::get();
    jvm.code_map_->add_codelets();
    if (!jvm.events_.live) return;
    jvm.read_running(env);
    jvm.events_.live(env);
  }

  static void JNICALL compiled_method_load(jvmtiEnv* jvmti, jmethodID method, jint size,
                                           const void* code, jint, const jvmtiAddrLocationMap*,
                                           const void* compile_info) {
    // A replaced method may get its ID from this event.
    Jvm::get().code_map_->add_nmethod(code, static_cast<size_t>(size), know(jvmti, method), method,
                                      compile_info);
  }

  // A replaced method may get its ID from this event, too.
  static void JNICALL compiled_method_unload(jvmtiEnv* jvmti, jmethodID method, const void* code) {
    know(jvmti, method);
    Jvm::get().code_map_->remove(code);
  }

  static void JNICALL dynamic_code(jvmtiEnv*, const char* name, const void* code, jint size) {
    Jvm::get().code_map_->add_stub(code, static_cast<size_t>(size), name);
  }

  static void JNICALL thread_start(jvmtiEnv*, JNIEnv* env, jthread thread) {
    Jvm::get().events_.thread_start(env, thread);
  }

  static void JNICALL thread_end(jvmtiEnv* jvmti, JNIEnv* env, jthread thread) {
    Jvm& jvm = Jvm::get();
    if (jvm.on_thread_end_) jvm.on_thread_end_(jvmti, env);
    if (jvm.events_.thread_end) jvm.events_.thread_end(env, thread);
  }

  static void JNICALL vm_death(jvmtiEnv*, JNIEnv* env) { Jvm::get().events_.death(env); }

  static jint load(JavaVM* vm) {
    jvmtiEnv* jvmti = nullptr;
    if (vm->GetEnv(reinterpret_cast<void**>(&jvmti), JVMTI_VERSION_11) != JNI_OK) return JNI_ERR;
    Jvm& jvm = Jvm::get();
    jvm.jvmti_ = jvmti;
    jvmtiCapabilities capabilities;
    std::memset(&capabilities, 0, sizeof capabilities);
    capabilities.can_generate_compiled_method_load_events = 1;
    capabilities.can_suspend = 1;
    capabilities.can_get_bytecodes = 1;
    capabilities.can_pop_frame = jvm.options_.can_pop_frames ? 1 : 0;
#ifdef JVMTI_VERSION_21
    jvmtiCapabilities potential;
    if (jvmti->GetPotentialCapabilities(&potential) == JVMTI_ERROR_NONE) {
      capabilities.can_support_virtual_threads = potential.can_support_virtual_threads;
    }
#endif
    if (jvmti->AddCapabilities(&capabilities) != JVMTI_ERROR_NONE) return JNI_ERR;
    jvmtiEventCallbacks callbacks;
    std::memset(&callbacks, 0, sizeof callbacks);
    callbacks.VMInit = &vm_init;
    callbacks.ClassLoad = &class_load;
    callbacks.ClassPrepare = &class_prepare;
    callbacks.CompiledMethodLoad = &compiled_method_load;
    callbacks.CompiledMethodUnload = &compiled_method_unload;
    callbacks.DynamicCodeGenerated = &dynamic_code;
    callbacks.ThreadEnd = &thread_end;
    callbacks.ThreadStart = &thread_start;
    callbacks.VMDeath = &vm_death;
    if (jvmti->SetEventCallbacks(&callbacks, sizeof callbacks) != JVMTI_ERROR_NONE) return JNI_ERR;
    for (const jvmtiEvent event :
         {JVMTI_EVENT_VM_INIT, JVMTI_EVENT_CLASS_LOAD, JVMTI_EVENT_CLASS_PREPARE,
          JVMTI_EVENT_COMPILED_METHOD_LOAD, JVMTI_EVENT_COMPILED_METHOD_UNLOAD,
          JVMTI_EVENT_DYNAMIC_CODE_GENERATED, JVMTI_EVENT_THREAD_END}) {
      if (jvmti->SetEventNotificationMode(JVMTI_ENABLE, event, nullptr) != JVMTI_ERROR_NONE) {
        return JNI_ERR;
      }
    }
    const auto enable_if = [jvmti](bool wanted, jvmtiEvent event) {
      return !wanted ||
             jvmti->SetEventNotificationMode(JVMTI_ENABLE, event, nullptr) == JVMTI_ERROR_NONE;
    };
    if (!enable_if(static_cast<bool>(jvm.events_.thread_start), JVMTI_EVENT_THREAD_START) ||
        !enable_if(static_cast<bool>(jvm.events_.death), JVMTI_EVENT_VM_DEATH)) {
      return JNI_ERR;
    }
    return JNI_OK;
  }

  // Leaves a local reference to the method's class. Returns the method's name; one whose class is
  // gone is not recorded.
  static std::string know(jvmtiEnv* jvmti, jmethodID method) {
    jclass klass = nullptr;
    if (jvmti->GetMethodDeclaringClass(method, &klass) != JVMTI_ERROR_NONE) {
      return named_method(jvmti, method, "?").name;
    }
    return know(jvmti, method, class_name(jvmti, klass));
  }

 private:
  static std::string know(jvmtiEnv* jvmti, jmethodID method, const std::string& klass) {
    jlocation first = 0;
    jlocation last = -1;
    if (jvmti->GetMethodLocation(method, &first, &last) != JVMTI_ERROR_NONE) last = -1;
    MethodInfo info = named_method(jvmti, method, klass);
    info.last_bci = static_cast<int32_t>(last);
    if (info.name.starts_with("framestorm/")) info.invokes = invokes_of(jvmti, method);
    std::string name = info.name;
    Jvm::get().methods_.add(method, std::move(info));
    return name;
  }

  static std::vector<int32_t> invokes_of(jvmtiEnv* jvmti, jmethodID method) {
    JvmtiMemory<unsigned char> code(jvmti);
    jint size = 0;
    if (jvmti->GetBytecodes(method, &size, code.out()) != JVMTI_ERROR_NONE) return {};
    return invokes_in({code.get(), static_cast<size_t>(size)});
  }

  // Creates the jmethodIDs of a class and records their names.
  static void prime(jvmtiEnv* jvmti, jclass klass) {
    JvmtiMemory<jmethodID> methods(jvmti);
    jint count = 0;
    if (jvmti->GetClassMethods(klass, &count, methods.out()) != JVMTI_ERROR_NONE) return;
    const std::string name = class_name(jvmti, klass);
    for (jint i = 0; i < count; ++i) know(jvmti, methods.get()[i], name);
  }
};

void know_method(JNIEnv* env, jmethodID method) {
  if (env->PushLocalFrame(1) != JNI_OK) return;
  AgentCallbacks::know(Jvm::get().jvmti(), method);
  env->PopLocalFrame(nullptr);
}

jint load_agent(JavaVM* vm) { return AgentCallbacks::load(vm); }

void announce_running(JavaVM* vm) {
  JNIEnv* env = nullptr;
  vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_10);
  AgentCallbacks::begin(Jvm::get().jvmti(), env);
}

}  // namespace framestorm

extern "C" JNIEXPORT jint JNICALL Agent_OnLoad_framestorm(JavaVM* vm, char*, void*) {
  return framestorm::load_agent(vm);
}
