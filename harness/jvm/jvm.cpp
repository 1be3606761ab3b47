#include "harness/jvm/jvm.h"

#include <dlfcn.h>

#include <algorithm>

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
  layout.anchor = vm.required_offset("JavaThread", "_anchor");
  layout.last_java_sp = layout.anchor + vm.required_offset("JavaFrameAnchor", "_last_Java_sp");
  layout.last_java_pc = layout.anchor + vm.required_offset("JavaFrameAnchor", "_last_Java_pc");
  layout.last_java_fp = layout.anchor + vm.required_offset("JavaFrameAnchor", "_last_Java_fp");
  layout.stack_base = vm.required_offset("JavaThread", "_stack_base");
  layout.stack_size = vm.required_offset("JavaThread", "_stack_size");
  layout.osthread =
      vm.offset("JavaThread", "_osthread").value_or(vm.offset("Thread", "_osthread").value_or(0));
  layout.osthread_id = vm.required_offset("OSThread", "_thread_id");
  layout.java_thread_size = vm.size_of("JavaThread");
  if (layout.osthread == 0 || layout.java_thread_size == 0) {
    throw SetupError("this HotSpot's VM structures lack Thread::_osthread or sizeof(JavaThread)");
  }
  return layout;
}

}  // namespace

Jvm& Jvm::get() {
  static Jvm jvm;
  return jvm;
}

void* Jvm::symbol(const char* name) const { return dlsym(library_, name); }

Jvm& Jvm::start(const JvmOptions& options) {
  Jvm& jvm = get();
  if (jvm.vm_ != nullptr) throw SetupError("a JVM is already running in this process");
  jvm.options_ = options;
  jvm.library_path_ = options.home / "lib" / "server" / "libjvm.so";
  if (!std::filesystem::exists(jvm.library_path_)) {
    throw SetupError(options.home.string() +
                     " is no JDK: it has no lib/server/libjvm.so; give a JDK's folder with --jdk");
  }
  jvm.library_ = dlopen(jvm.library_path_.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (jvm.library_ == nullptr) {
    const char* reason = dlerror();
    throw SetupError("cannot load " + jvm.library_path_.string() + ": " +
                     (reason == nullptr ? "unknown reason" : reason));
  }
  jvm.structs_ = std::make_unique<VmStructs>(jvm.library_);
  jvm.layout_ = read_layout(*jvm.structs_);
  jvm.code_map_ = std::make_unique<CodeMap>(*jvm.structs_);
  jvm.handle_signal_ =
      reinterpret_cast<int (*)(int, siginfo_t*, void*, int)>(jvm.symbol("JVM_handle_linux_signal"));
  const auto create =
      reinterpret_cast<jint (*)(JavaVM**, void**, void*)>(jvm.symbol("JNI_CreateJavaVM"));
  if (jvm.handle_signal_ == nullptr || create == nullptr) {
    throw SetupError(jvm.library_path_.string() +
                     " does not export JNI_CreateJavaVM and JVM_handle_linux_signal: not a HotSpot "
                     "for Linux of version 16 or later");
  }

  std::string boot_path;
  for (const auto& folder : options.class_path) {
    boot_path += (boot_path.empty() ? "" : ":") + folder.string();
  }
  // Foreground compilation and no periodic safepoints, so that a victim's code and the world around
  // it change only when a scenario makes them change.
  jvm.arguments_ = {"-agentlib:" + std::string(kAgentName), "-Xbootclasspath/a:" + boot_path,
                    "-XX:+UnlockDiagnosticVMOptions", "-XX:+WhiteBoxAPI",
                    "-XX:-BackgroundCompilation", "-XX:GuaranteedSafepointInterval=0",
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
  for (std::string& argument : jvm.arguments_) vm_options.push_back({argument.data(), nullptr});
  JavaVMInitArgs init = {JNI_VERSION_10, static_cast<jint>(vm_options.size()), vm_options.data(),
                         JNI_FALSE};
  const jint result = create(&jvm.vm_, reinterpret_cast<void**>(&jvm.env_), &init);
  if (result != JNI_OK) {
    throw SetupError("the JVM in " + options.home.string() + " did not start (JNI error " +
                     std::to_string(result) + "); its own message stands above. Check --jvm-arg.");
  }
  jvm.version_ = string_property(jvm.jvmti_, "java.vm.version");
  jvm.vendor_ = string_property(jvm.jvmti_, "java.vm.vendor");
  try {
    jvm.feature_ = std::stoi(string_property(jvm.jvmti_, "java.vm.specification.version"));
  } catch (const std::exception&) {
    throw SetupError("the JVM does not say its version (java.vm.specification.version)");
  }

  jclass thread_class = jvm.env_->FindClass("java/lang/Thread");
  const jfieldID eetop = jvm.env_->GetFieldID(thread_class, "eetop", "J");
  jvm.check_exception("reading Thread.eetop");
  jthread current = nullptr;
  jvm.jvmti_->GetCurrentThread(&current);
  auto* java_thread = reinterpret_cast<std::byte*>(jvm.env_->GetLongField(current, eetop));
  jvm.identity_ = std::make_unique<ThreadIdentity>(ThreadIdentity::find(java_thread));
  jvm.layout_.jni_env = reinterpret_cast<std::byte*>(jvm.env_) - java_thread;
  jvm.code_map_->absorb();
  jvm.methods_.absorb();
  return jvm;
}

bool Jvm::claim_fault(int signo, siginfo_t* info, void* ucontext) {
  Jvm& jvm = get();
  // Without a current thread HotSpot's handler does nothing but SafeFetch (signals_posix.cpp): no
  // stack banging, no implicit checks, no crash protection of its own.
  void* const thread = jvm.identity_->exchange_key(nullptr);
  const bool claimed = jvm.handle_signal_(signo, info, ucontext, /*abort_if_unrecognized=*/0) != 0;
  jvm.identity_->exchange_key(thread);
  return claimed;
}

void Jvm::set_thread_end_callback(std::function<void(jvmtiEnv*, JNIEnv*)> callback) {
  on_thread_end_ = std::move(callback);
}

std::vector<Jvm::ThreadEntry> Jvm::java_threads() const {
  std::vector<ThreadEntry> result;
  const auto* list_static = structs_->static_address("ThreadsSMRSupport", "_java_thread_list");
  if (list_static == nullptr) return result;
  const auto* list = read_at<const std::byte*>(list_static);
  const auto length = read_at<uint32_t>(list, structs_->required_offset("ThreadsList", "_length"));
  const auto* threads =
      read_at<const std::byte*>(list, structs_->required_offset("ThreadsList", "_threads"));
  for (uint32_t i = 0; i < length; ++i) {
    auto* thread = read_at<std::byte*>(threads, i * sizeof(void*));
    const auto* os_thread = read_at<const std::byte*>(thread, layout_.osthread);
    if (os_thread == nullptr) continue;
    result.push_back({thread, read_at<int32_t>(os_thread, layout_.osthread_id)});
  }
  return result;
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
