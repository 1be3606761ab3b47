#include "harness/jvm/jvm.h"

#include <dlfcn.h>

#include <fstream>
#include <new>

#include "harness/jvm/agent.h"

namespace framestorm {
namespace {

std::string string_property(jvmtiEnv* jvmti, const char* name) {
  char* value = nullptr;
  if (jvmti->GetSystemProperty(name, &value) != JVMTI_ERROR_NONE) return {};
  std::string result = value;
  jvmti->Deallocate(reinterpret_cast<unsigned char*>(value));
  return result;
}

ThreadLayout read_layout(const VmStructs& vm) {
  ThreadLayout layout;
  layout.state = vm.required_offset("JavaThread", "_thread_state");
  const size_t anchor = vm.required_offset("JavaThread", "_anchor");
  layout.last_java_sp = anchor + vm.required_offset("JavaFrameAnchor", "_last_Java_sp");
  layout.last_java_pc = anchor + vm.required_offset("JavaFrameAnchor", "_last_Java_pc");
  layout.last_java_fp = anchor + vm.required_offset("JavaFrameAnchor", "_last_Java_fp");
  layout.stack_base = vm.required_offset("JavaThread", "_stack_base");
  layout.stack_size = vm.required_offset("JavaThread", "_stack_size");
  layout.osthread =
      vm.offset("JavaThread", "_osthread").value_or(vm.offset("Thread", "_osthread").value_or(0));
  layout.osthread_id = vm.required_offset("OSThread", "_thread_id");
  const auto saved_anchor = vm.offset("JavaCallWrapper", "_anchor");
  const auto call_wrapper = vm.int_constant("frame::entry_frame_call_wrapper_offset");
  if (saved_anchor && call_wrapper) {
    layout.saved_anchor = *saved_anchor;
    layout.call_wrapper = *call_wrapper * static_cast<ptrdiff_t>(sizeof(uintptr_t));
  }
  const auto not_terminated = vm.int_constant("JavaThread::_not_terminated");
  if (not_terminated) {
    layout.terminated = vm.offset("JavaThread", "_terminated").value_or(0);
    layout.not_terminated = *not_terminated;
  }
  layout.java_thread_size = vm.size_of("JavaThread");
  if (layout.osthread == 0 || layout.java_thread_size == 0) {
    throw SetupError("this HotSpot's VM structures lack Thread::_osthread or sizeof(JavaThread)");
  }
  return layout;
}

}  // namespace

Jvm& Jvm::get() {
  // Never destroyed: the JVM's threads tell it of code and methods until the process is gone.
  alignas(Jvm) static std::byte memory[sizeof(Jvm)];
  static Jvm* const jvm = new (memory) Jvm;
  return *jvm;
}

void* Jvm::symbol(const char* name) const { return dlsym(library_, name); }

void Jvm::open(void* library, const std::filesystem::path& path) {
  library_ = library;
  library_path_ = path;
  structs_ = std::make_unique<VmStructs>(library_);
  layout_ = read_layout(*structs_);
  methods_.set_mark(structs_->required_offset("Method", "_constMethod"));
  code_map_ = std::make_unique<CodeMap>(*structs_);
  // Before the JVM starts: a profiler's handler that allocates may interrupt the reading of the symbols.
  constexpr int kIdsPointAtMethods = 25;
  const auto* const release = structs_->static_address("Abstract_VM_Version", "_vm_major_version");
  if (release != nullptr && read_at<int32_t>(release) > kIdsPointAtMethods) {
    const auto look_up = code_map_->resolve(
        {CodeKind::function, 0, CodeAnchor::entry, "_ZN6Method18resolve_jmethod_idEP10_jmethodID"});
    methods_.set_look_up(reinterpret_cast<MethodTable::LookUp>(look_up.value_or(0)));
  }
  collections_ = std::make_unique<Collections>(*structs_);
  handle_signal_ =
      reinterpret_cast<int (*)(int, siginfo_t*, void*, int)>(symbol("JVM_handle_linux_signal"));
  if (handle_signal_ == nullptr || symbol("JNI_CreateJavaVM") == nullptr) {
    throw SetupError(path.string() +
                     " does not export JNI_CreateJavaVM and JVM_handle_linux_signal: not a HotSpot "
                     "for Linux of version 16 or later");
  }
}

Jvm& Jvm::start(const JvmOptions& options) {
  Jvm& jvm = get();
  if (jvm.library_ != nullptr) throw SetupError("a JVM is already running in this process");
  jvm.options_ = options;
  const std::filesystem::path path = options.home / "lib" / "server" / "libjvm.so";
  if (!std::filesystem::exists(path)) {
    throw SetupError(options.home.string() +
                     " is no JDK: it has no lib/server/libjvm.so; give a JDK's folder with --jdk");
  }
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    throw SetupError("cannot load " + path.string() + ": " +
                     (reason == nullptr ? "unknown reason" : reason));
  }
  jvm.open(library, path);
  const auto create =
      reinterpret_cast<jint (*)(JavaVM**, void**, void*)>(jvm.symbol("JNI_CreateJavaVM"));

  std::string boot_path;
  for (const auto& folder : options.class_path) {
    boot_path += (boot_path.empty() ? "" : ":") + folder.string();
  }
  // Foreground compilation and no periodic safepoints, so that a victim's code and the world around
  // it change only when a scenario makes them change.
  jvm.arguments_ = {"-agentlib:" + std::string(kAgentName), "-Xbootclasspath/a:" + boot_path,
                    "-XX:+UnlockDiagnosticVMOptions", "-XX:+WhiteBoxAPI",
                    "-XX:-BackgroundCompilation", "-XX:GuaranteedSafepointInterval=0",
                    // One that has a core for itself (AFL++) gets the collector that others get.
                    "-XX:ActiveProcessorCount=2",
                    // A failing assertion does not fault first, to show registers.
                    "-XX:-ShowRegistersOnAssert", "-XX:+AllowUserSignalHandlers",
                    "-XX:-UsePerfData",
                    // Its complaints about WhiteBox methods that the victims do not declare.
                    "-XX:-DisplayVMOutput",
                    // Stop signals are the driver's.
                    "-Xrs", "-Xshare:auto",
                    // The foreign-function victims' calls are meant.
                    "--enable-native-access=ALL-UNNAMED", "-Xmx512m"};
  jvm.arguments_.insert(jvm.arguments_.end(), options.extra_args.begin(), options.extra_args.end());
  std::vector<JavaVMOption> vm_options;
  vm_options.reserve(jvm.arguments_.size());
  for (std::string& argument : jvm.arguments_) vm_options.push_back({argument.data(), nullptr});
  JavaVMInitArgs init = {JNI_VERSION_10, static_cast<jint>(vm_options.size()), vm_options.data(),
                         JNI_FALSE};
  const jint result = create(&jvm.vm_, reinterpret_cast<void**>(&jvm.env_), &init);
  if (result != JNI_OK) {
    throw SetupError("the JVM in " + options.home.string() + " did not start (JNI error " +
                     std::to_string(result) + "); its own message stands above. Check --jvm-arg.");
  }
  jvm.read_running(jvm.env_);
  return jvm;
}

Jvm& Jvm::join(JavaVM* vm, JvmEvents events, bool running) {
  Jvm& jvm = get();
  if (jvm.library_ != nullptr) throw SetupError("framestorm's agent is in this JVM already");
  // The functions of a JavaVM are libjvm's own.
  Dl_info where = {};
  if (dladdr(reinterpret_cast<void*>(vm->functions->GetEnv), &where) == 0) {
    throw SetupError("the library of the JVM that loaded framestorm's agent was not found");
  }
  void* const library = dlopen(where.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) {
    throw SetupError(std::string(where.dli_fname) + ": the JVM's own library cannot be opened");
  }
  jvm.vm_ = vm;
  jvm.open(library, where.dli_fname);
  jvm.events_ = std::move(events);
  std::ifstream command_line("/proc/self/cmdline");
  for (std::string argument; std::getline(command_line, argument, '\0');) {
    jvm.arguments_.push_back(argument);
  }
  if (load_agent(vm) != JNI_OK) {
    throw SetupError("this JVM does not give framestorm's agent the JVMTI events it needs");
  }
  if (running) announce_running(vm);
  return jvm;
}

void Jvm::read_running(JNIEnv* env) {
  env_ = env;
  version_ = string_property(jvmti_, "java.vm.version");
  vendor_ = string_property(jvmti_, "java.vm.vendor");
  if (options_.home.empty()) options_.home = string_property(jvmti_, "java.home");
  try {
    feature_ = std::stoi(string_property(jvmti_, "java.vm.specification.version"));
  } catch (const std::exception&) {
    throw SetupError("the JVM does not say its version (java.vm.specification.version)");
  }

  jclass thread_class = env_->FindClass("java/lang/Thread");
  eetop_ = env_->GetFieldID(thread_class, "eetop", "J");
  check_exception("reading Thread.eetop");
  jthread current = nullptr;
  jvmti_->GetCurrentThread(&current);
  auto* java_thread = static_cast<std::byte*>(java_thread_of(env_, current));
  identity_ = std::make_unique<ThreadIdentity>(ThreadIdentity::find(java_thread));
  layout_.jni_env = reinterpret_cast<std::byte*>(env_) - java_thread;
  code_map_->absorb();
  methods_.absorb();
}

void* Jvm::java_thread_of(JNIEnv* env, jthread thread) const {
  return reinterpret_cast<void*>(env->GetLongField(thread, eetop_));
}

int Jvm::tid_of(const void* java_thread) const {
  if (java_thread == nullptr) return 0;
  const auto* os_thread = read_at<const std::byte*>(java_thread, layout_.osthread);
  return os_thread == nullptr ? 0 : read_at<int32_t>(os_thread, layout_.osthread_id);
}

bool Jvm::claim_fault(int signo, siginfo_t* info, void* ucontext) {
  Jvm& jvm = get();
  // Without a current thread HotSpot's handler does nothing but SafeFetch (signals_posix.cpp): no
  // stack banging, no implicit checks, no crash protection of its own.
  void* const thread = jvm.identity_->exchange_key(nullptr);
  const bool claimed = jvm.handle_fault(signo, info, ucontext);
  jvm.identity_->exchange_key(thread);
  return claimed;
}

void Jvm::set_thread_end_callback(std::function<void(jvmtiEnv*, JNIEnv*)> callback) {
  on_thread_end_ = std::move(callback);
}

void Jvm::check_exception(const std::string& doing) const {
  const jthrowable exception = env_->ExceptionOccurred();
  if (exception == nullptr) return;
  env_->ExceptionClear();
  std::string text = "unknown exception";
  const jmethodID to_string =
      env_->GetMethodID(env_->GetObjectClass(exception), "toString", "()Ljava/lang/String;");
  if (auto string = static_cast<jstring>(env_->CallObjectMethod(exception, to_string));
      string != nullptr && env_->ExceptionCheck() == JNI_FALSE) {
    const char* chars = env_->GetStringUTFChars(string, nullptr);
    text = chars;
    env_->ReleaseStringUTFChars(string, chars);
  }
  env_->ExceptionClear();
  throw SetupError(doing + ": " + text);
}

}  // namespace framestorm
