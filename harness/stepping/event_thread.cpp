#include "harness/stepping/event_thread.h"

#include <time.h>

#include <algorithm>
#include <string_view>

#include "harness/base/clock.h"
#include "harness/input/thread_state.h"
#include "harness/victim/victims.h"

namespace framestorm::stepping {
namespace {

// Long against what HotSpot takes to ask for a safepoint.
constexpr uint64_t kPatienceNs = 3'000'000;
constexpr timespec kGlance = {0, 50'000};
constexpr jint kLocals = 32;
// Stubs that compiled code calls in the place of a method, parts of their names (HotSpot's
// SharedRuntime::generate_stubs): the method runs when they have resolved the call.
constexpr std::string_view kResolvers[] = {"resolve_static_call", "resolve_virtual_call",
                                           "resolve_opt_virtual_call", "wrong_method", "ic_miss"};

const char* no_exception(JNIEnv* env, const char* otherwise) {
  if (!env->ExceptionCheck()) return nullptr;
  env->ExceptionClear();
  return otherwise;
}

// Whether nothing but `weak` referred to its object, and it was collected.
bool is_gone(JNIEnv* env, jweak weak) {
  const bool gone = env->IsSameObject(weak, nullptr) == JNI_TRUE;
  env->DeleteWeakGlobalRef(weak);
  return gone;
}

}  // namespace

EventThread::EventThread(Jvm& jvm) : jvm_(jvm) {
  jvmtiCapabilities wanted = {};
  wanted.can_retransform_classes = 1;
  wanted.can_signal_thread = 1;
  if (jvm.jvmti()->AddCapabilities(&wanted) != JVMTI_ERROR_NONE) {
    throw SetupError("this JVM does not let JVMTI agents redefine classes and stop threads");
  }
  jvm.code_map().absorb();
  for (const CodeEntry& entry : jvm.code_map().entries()) {
    const auto is_part = [&](std::string_view part) {
      return entry.name.find(part) != std::string::npos;
    };
    if (entry.kind == CodeKind::stub && std::ranges::any_of(kResolvers, is_part)) {
      resolvers_.emplace_back(entry.begin, entry.end);
    }
  }
  thread_ = std::thread([this] { serve(); });
  World::await(&ready_);
}

EventThread::~EventThread() {
  over_.store(true, std::memory_order_release);
  World::send(&asked_, World::kCommandHost);
  thread_.join();
}

void EventThread::set_thread(JNIEnv* env, jthread thread, const void* java_thread) {
  stepped_thread_ = java_thread;
  env->DeleteGlobalRef(stepped_);
  stepped_ = thread == nullptr ? nullptr : env->NewGlobalRef(thread);
}

void EventThread::ask(StepEvent event, std::span<const jmethodID> methods) {
  event_ = event;
  method_count_ = std::min(methods.size(), kMethods);
  std::copy_n(methods.begin(), method_count_, methods_.begin());
  under_way_.store(true, std::memory_order_release);
  World::send(&asked_, World::kCommandHost);
  const uint64_t deadline = monotonic_ns() + kPatienceNs;
  while (under_way() && monotonic_ns() < deadline) {
    nanosleep(&kGlance, nullptr);
    if (read_at<uint32_t>(own_thread_.load(), jvm_.layout().state) == kThreadBlocked) break;
  }
}

void EventThread::serve() {
  void* env = nullptr;
  jvm_.vm()->AttachCurrentThreadAsDaemon(&env, nullptr);
  own_thread_.store(jvm_.identity().current());
  World::send(&ready_, World::kCommandHost);
  for (;;) {
    World::await(&asked_);
    if (over_.load(std::memory_order_acquire)) break;
    why_not_ = perform(static_cast<JNIEnv*>(env));
    under_way_.store(false, std::memory_order_release);
  }
  jvm_.vm()->DetachCurrentThread();
}

const char* EventThread::perform(JNIEnv* env) {
  if (env->PushLocalFrame(kLocals) != JNI_OK) return "no memory for local references";
  const char* why_not = nullptr;
  switch (event_) {
    case StepEvent::gc:
      why_not = collect(env);
      break;
    case StepEvent::deoptimise:
      why_not = deoptimise(env);
      break;
    case StepEvent::redefine:
      why_not = redefine();
      break;
    case StepEvent::unload:
      why_not = unload(env);
      break;
    case StepEvent::pop_frame:
      why_not = pop_frame();
      break;
    case StepEvent::exit:
      why_not = exit(env);
      break;
    case StepEvent::none:
    case StepEvent::signal:
    case StepEvent::sigsegv:
    case StepEvent::count:
      why_not = "no event of the VM";
      break;
  }
  env->PopLocalFrame(nullptr);
  return why_not;
}

const char* EventThread::collect(JNIEnv* env) {
  jobject object = env->AllocObject(env->FindClass("java/lang/Object"));
  const jweak weak = env->NewWeakGlobalRef(object);
  env->DeleteLocalRef(object);
  jvm_.jvmti()->ForceGarbageCollection();
  return is_gone(env, weak) ? nullptr : "the collector does not collect when it is asked to";
}

// The innermost one whose code is compiled.
const char* EventThread::deoptimise(JNIEnv* env) {
  const jclass white_box = env->FindClass("jdk/test/whitebox/WhiteBox");
  if (white_box == nullptr) return no_exception(env, "WhiteBox is not there");
  const jmethodID deoptimise =
      env->GetMethodID(white_box, "deoptimizeMethod0", "(Ljava/lang/reflect/Executable;Z)I");
  jobject instance = env->AllocObject(white_box);
  for (const jmethodID method : std::span(methods_).first(method_count_)) {
    jclass holder = nullptr;
    jint modifiers = 0;
    if (jvm_.jvmti()->GetMethodDeclaringClass(method, &holder) != JVMTI_ERROR_NONE ||
        jvm_.jvmti()->GetMethodModifiers(method, &modifiers) != JVMTI_ERROR_NONE) {
      continue;
    }
    constexpr jint kStatic = 8;
    const jobject reflected =
        env->ToReflectedMethod(holder, method, (modifiers & kStatic) != 0 ? JNI_TRUE : JNI_FALSE);
    jint count = 0;
    for (const bool osr : {false, true}) {
      count += env->CallIntMethod(instance, deoptimise, reflected, osr ? JNI_TRUE : JNI_FALSE);
      if (const char* const why = no_exception(env, "WhiteBox cannot deoptimise")) return why;
    }
    if (count > 0) return nullptr;
  }
  return "no method that runs has compiled code";
}

// To the same bytes: method, constants and all are made anew, and what was compiled is thrown away.
const char* EventThread::redefine() {
  for (const jmethodID method : std::span(methods_).first(method_count_)) {
    jclass holder = nullptr;
    jboolean can = JNI_FALSE;
    if (jvm_.jvmti()->GetMethodDeclaringClass(method, &holder) != JVMTI_ERROR_NONE ||
        jvm_.jvmti()->IsModifiableClass(holder, &can) != JVMTI_ERROR_NONE || can == JNI_FALSE) {
      continue;
    }
    if (jvm_.jvmti()->RetransformClasses(1, &holder) == JVMTI_ERROR_NONE) return nullptr;
  }
  return "no class that runs can be redefined";
}

// A class of the victims', defined again by a loader of its own, and dropped with that.
const char* EventThread::unload(JNIEnv* env) {
  constexpr const char* kFailed = "no class could be loaded to be unloaded";
  const auto make = [env](const char* name, const char* signature, auto... arguments) {
    const jclass type = env->FindClass(name);
    return env->NewObject(type, env->GetMethodID(type, "<init>", signature), arguments...);
  };
  const std::string folder = jvm_.options().class_path.front().string();
  const jobject file =
      make("java/io/File", "(Ljava/lang/String;)V", env->NewStringUTF(folder.c_str()));
  const jclass file_class = env->GetObjectClass(file);
  const jobject uri =
      env->CallObjectMethod(file, env->GetMethodID(file_class, "toURI", "()Ljava/net/URI;"));
  if (env->ExceptionCheck()) return no_exception(env, kFailed);
  const jobject url = env->CallObjectMethod(
      uri, env->GetMethodID(env->GetObjectClass(uri), "toURL", "()Ljava/net/URL;"));
  if (env->ExceptionCheck()) return no_exception(env, kFailed);
  const jobjectArray urls = env->NewObjectArray(1, env->FindClass("java/net/URL"), url);
  const jobject loader = make("java/net/URLClassLoader", "([Ljava/net/URL;)V", urls);
  if (env->ExceptionCheck()) return no_exception(env, kFailed);
  // Not its parent's.
  const jobject loaded =
      env->CallObjectMethod(loader,
                            env->GetMethodID(env->GetObjectClass(loader), "findClass",
                                             "(Ljava/lang/String;)Ljava/lang/Class;"),
                            env->NewStringUTF("framestorm.Compiler"));
  if (env->ExceptionCheck()) return no_exception(env, kFailed);
  const jweak weak = env->NewWeakGlobalRef(loaded);
  env->PopLocalFrame(nullptr);
  env->PushLocalFrame(kLocals);
  jvm_.jvmti()->ForceGarbageCollection();
  return is_gone(env, weak) ? nullptr : "the collector does not unload classes";
}

bool EventThread::resolves_a_call() const {
  const ThreadLayout& layout = jvm_.layout();
  Victim stepped;
  stepped.java_thread = const_cast<void*>(stepped_thread_);
  stepped.is_java_thread = true;
  stepped.stack_base = read_at<uintptr_t>(stepped_thread_, layout.stack_base);
  const uintptr_t pc = stepped.last_java_pc(layout);
  return std::ranges::any_of(
      resolvers_, [pc](const auto& range) { return pc >= range.first && pc < range.second; });
}

// The caller's call is made again when the thread runs on. Not while compiled code resolves a call:
// JVMTI says that it pops that code's frame, but the thread goes on with the called method, and HotSpot
// pops the first interpreted frame that calls the VM. When that one was called by code that is not
// deoptimised, what it was called with is passed to another method later, and the JVM dies
// (docs/reference/stress-findings.md).
const char* EventThread::pop_frame() {
  if (resolvers_.size() < std::size(kResolvers)) {
    return "this HotSpot's stubs that resolve calls have other names";
  }
  jvmtiEnv* const jvmti = jvm_.jvmti();
  if (jvmti->SuspendThread(stepped_) != JVMTI_ERROR_NONE) return "the thread is over";
  const bool resolves = resolves_a_call();
  const jvmtiError error = resolves ? JVMTI_ERROR_OPAQUE_FRAME : jvmti->PopFrame(stepped_);
  jvmti->ResumeThread(stepped_);
  if (resolves) return "HotSpot cannot pop the frame of a method whose call is being resolved";
  switch (error) {
    case JVMTI_ERROR_NONE:
      return nullptr;
    case JVMTI_ERROR_OPAQUE_FRAME:
    case JVMTI_ERROR_NO_MORE_FRAMES:
      return "the two innermost frames are not both of Java methods that can be popped";
    case JVMTI_ERROR_MUST_POSSESS_CAPABILITY:
      return "the JVM was started without JVMTI's PopFrame";
    default:
      return "JVMTI does not pop a frame of this thread";
  }
}

const char* EventThread::exit(JNIEnv* env) {
  const jobject death = env->AllocObject(env->FindClass("java/lang/ThreadDeath"));
  if (const char* const why = no_exception(env, "there is no ThreadDeath")) return why;
  return jvm_.jvmti()->StopThread(stepped_, death) == JVMTI_ERROR_NONE
             ? nullptr
             : "JVMTI does not stop this thread";
}

}  // namespace framestorm::stepping
