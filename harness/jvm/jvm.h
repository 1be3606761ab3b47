// The one JVM of the process, any HotSpot's, with framestorm's JVMTI agent inside: started by the
// harness, or another program's that loaded the agent and is joined.
#pragma once

#include <jni.h>
#include <jvmti.h>
#include <signal.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/jvm/code_map.h"
#include "harness/jvm/collections.h"
#include "harness/jvm/methods.h"
#include "harness/jvm/thread_identity.h"
#include "harness/jvm/vm_structs.h"

namespace framestorm {

struct JvmOptions {
  std::filesystem::path home;                     // a JDK's folder
  std::vector<std::filesystem::path> class_path;  // folders with the victims' classes
  std::vector<std::string> extra_args;            // appended to framestorm's own
  bool can_pop_frames = false;  // JVMTI's capability, which only a JVM that starts gives
};

// HotSpot's offsets that the harness reads or writes in victims' threads.
struct ThreadLayout {
  size_t state = 0;         // JavaThread::_thread_state
  size_t last_java_sp = 0;  // from the start of JavaThread, as are the next two
  size_t last_java_pc = 0;
  size_t last_java_fp = 0;
  size_t stack_base = 0;  // Thread::_stack_base, _stack_size
  size_t stack_size = 0;
  size_t osthread = 0;     // Thread::_osthread
  size_t osthread_id = 0;  // OSThread::_thread_id
  size_t terminated = 0;   // JavaThread::_terminated; 0: not known, as is then what it has at first
  int32_t not_terminated = 0;
  ptrdiff_t jni_env = 0;  // JNIEnv of a JavaThread
  size_t java_thread_size = 0;
  // A call of C++ into Java. From the fp of call_stub's frame to its JavaCallWrapper; 0: not known.
  ptrdiff_t call_wrapper = 0;
  size_t saved_anchor = 0;  // JavaCallWrapper::_anchor
};

// What the driver of a joined JVM wants to hear of. Each is called where JVMTI calls it: on the
// thread that it is about, VM running.
struct JvmEvents {
  std::function<void(JNIEnv*)> live;  // once: the JVM runs Java, and everything below is known
  std::function<void(JNIEnv*, jthread)> thread_start;
  std::function<void(JNIEnv*, jthread)> thread_end;
  std::function<void(JNIEnv*)> death;  // no Java runs any more
};

class Jvm {
 public:
  // Starts the JVM on the calling thread, which stays attached and is the one that may call the
  // methods below. Once per process. Throws SetupError.
  static Jvm& start(const JvmOptions& options);
  // Joins the JVM that has loaded the calling code as an agent: in Agent_OnLoad (events.live comes
  // later) or, with `running`, in Agent_OnAttach (events.live is called before it returns). env()
  // is then that of the thread that is told `live`, and of use only there. Once per process. Throws
  // SetupError.
  static Jvm& join(JavaVM* vm, JvmEvents events, bool running);
  static Jvm& get();

  JavaVM* vm() const { return vm_; }
  JNIEnv* env() const { return env_; }
  jvmtiEnv* jvmti() const { return jvmti_; }
  void* library() const { return library_; }
  const std::filesystem::path& library_path() const { return library_path_; }
  const JvmOptions& options() const { return options_; }
  const std::vector<std::string>& arguments() const { return arguments_; }
  int feature() const { return feature_; }                 // 17, 25, ...
  const std::string& version() const { return version_; }  // "25.0.3+9-LTS"
  const std::string& vendor() const { return vendor_; }

  const VmStructs& structs() const { return *structs_; }
  const ThreadLayout& layout() const { return layout_; }
  CodeMap& code_map() { return *code_map_; }
  const CodeMap& code_map() const { return *code_map_; }
  MethodTable& methods() { return methods_; }
  const ThreadIdentity& identity() const { return *identity_; }
  const Collections& collections() const { return *collections_; }

  // Address of an exported function; null when the JVM has none of that name.
  void* symbol(const char* name) const;
  // Has a libjvm with the additions call it, by its exported variable of that name.
  template <typename Function>
  void set_hook(const char* name, Function* hook) const {
    if (auto* const place = static_cast<Function**>(symbol(name))) *place = hook;
  }

  // HotSpot's answer to a fault inside a walk, see HotSpotHooks::claim. Signal context.
  static bool claim_fault(int signo, siginfo_t* info, void* ucontext);

  // HotSpot's handler of a fault, as if the calling thread had it at `ucontext`, which is changed to
  // where that goes on; what it does not know it leaves alone. Whether it knew. Signal context.
  bool handle_fault(int signo, siginfo_t* info, void* ucontext) const {
    return handle_signal_(signo, info, ucontext, /*abort_if_unrecognized=*/0) != 0;
  }

  void set_thread_end_callback(std::function<void(jvmtiEnv*, JNIEnv*)> callback);

  // HotSpot's Thread* of a live java.lang.Thread; null when it has none (any more). `env` is the
  // calling thread's.
  void* java_thread_of(JNIEnv* env, jthread thread) const;
  // OS thread id of HotSpot's Thread*; 0 when it is null, or has no OS thread (yet).
  int tid_of(const void* java_thread) const;

  // Throws SetupError with the pending Java exception's text, if there is one.
  void check_exception(const std::string& doing) const;

 private:
  Jvm() = default;
  friend struct AgentCallbacks;

  // Reads what a loaded libjvm exports.
  void open(void* library, const std::filesystem::path& path);
  // Reads what only a running JVM has, on an attached thread.
  void read_running(JNIEnv* env);

  JvmOptions options_;
  std::vector<std::string> arguments_;
  std::filesystem::path library_path_;
  void* library_ = nullptr;
  JavaVM* vm_ = nullptr;
  JNIEnv* env_ = nullptr;
  jvmtiEnv* jvmti_ = nullptr;
  int feature_ = 0;
  std::string version_;
  std::string vendor_;
  std::unique_ptr<VmStructs> structs_;
  ThreadLayout layout_;
  std::unique_ptr<CodeMap> code_map_;
  std::unique_ptr<Collections> collections_;
  MethodTable methods_;
  std::unique_ptr<ThreadIdentity> identity_;
  int (*handle_signal_)(int, siginfo_t*, void*, int) = nullptr;
  std::function<void(jvmtiEnv*, JNIEnv*)> on_thread_end_;
  JvmEvents events_;
  jfieldID eetop_ = nullptr;
};

}  // namespace framestorm
