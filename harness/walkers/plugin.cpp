#include "harness/walkers/plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "harness/walkers/framestorm_walker.h"

namespace framestorm {
namespace {

// As a .so of ABI 1 has them.
namespace abi1 {

struct Frame {
  const void* pc;
  const void* sp;
  void* method;
  int32_t bci;
  int32_t type;
};
struct Trace {
  int32_t num_frames;
  Frame* frames;
};
using Init = int(void* java_vm);
using Walk = void(Trace* trace, int32_t depth, const void* ucontext,
                  const framestorm_thread* thread);

}  // namespace abi1

static_assert(traits_of(WalkerId::plugin).layout ==
              FrameLayout{.stride = sizeof(abi1::Frame),
                          .method = offsetof(abi1::Frame, method),
                          .bci = offsetof(abi1::Frame, bci),
                          .pc = offsetof(abi1::Frame, pc),
                          .sp = offsetof(abi1::Frame, sp)});

constexpr FrameLayout kLayout = {
    .stride = sizeof(framestorm_frame),
    .method = offsetof(framestorm_frame, method),
    .bci = offsetof(framestorm_frame, bci),
    .pc = offsetof(framestorm_frame, pc),
    .sp = offsetof(framestorm_frame, sp),
    .type = offsetof(framestorm_frame, type),
    .name = offsetof(framestorm_frame, name),
    // By FRAMESTORM_FRAME_...; what stands for frames that were not found is no frame of Java's.
    .types = {FrameType::none, FrameType::java, FrameType::interpreted, FrameType::compiled,
              FrameType::inlined, FrameType::native, FrameType::cpp, FrameType::cpp,
              FrameType::cpp}};

constexpr uint32_t kKnownCapabilities =
    FRAMESTORM_WALKS_SAME_THREAD | FRAMESTORM_WALKS_OTHER_THREADS | FRAMESTORM_CONTAINS_FAULTS |
    FRAMESTORM_STOPS_AT_CONTINUATIONS | FRAMESTORM_TRACES_COMPLETE | FRAMESTORM_METHOD_POINTERS |
    FRAMESTORM_NO_JAVA_FRAMES;

WalkerTraits declared_traits(uint32_t capabilities) {
  const auto has = [capabilities](uint32_t capability) { return (capabilities & capability) != 0; };
  WalkerTraits traits = traits_of(WalkerId::plugin);
  traits.layout = kLayout;
  traits.same_thread = has(FRAMESTORM_WALKS_SAME_THREAD);
  traits.separate_thread = has(FRAMESTORM_WALKS_OTHER_THREADS);
  traits.ends_where_it_distrusts_a_frame = false;
  traits.says_when_cut = !has(FRAMESTORM_TRACES_COMPLETE);
  traits.stops_at_continuations = has(FRAMESTORM_STOPS_AT_CONTINUATIONS);
  traits.gives_java_frames = !has(FRAMESTORM_NO_JAVA_FRAMES);
  traits.may_see_frozen_frames = true;
  return traits;
}

framestorm_thread thread_of(const WalkTarget& target) {
  return {target.java_thread,
          target.jni_env,
          target.tid,
          target.same_thread ? 1 : 0,
          reinterpret_cast<const void*>(target.stack_base),
          reinterpret_cast<const void*>(target.stack_end)};
}

class Library {
 public:
  explicit Library(const std::filesystem::path& file) : file_(file) {
    handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return;
    const char* const reason = dlerror();
    throw SetupError("cannot load walker plugin " + file.string() + ": " +
                     (reason == nullptr ? "unknown reason" : reason));
  }

  template <typename Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }
  template <typename Function>
  Function* require(const char* name) const {
    if (Function* const function = find<Function>(name)) return function;
    throw SetupError(file_.string() + " does not export " + name +
                     ": build it against harness/walkers/framestorm_walker.h");
  }
  const std::filesystem::path& file() const { return file_; }
  // What its init returned.
  void check_init(int result) const {
    if (result == 0) return;
    throw SetupError(file_.string() + ": framestorm_walker_init returned " +
                     std::to_string(result));
  }

 private:
  std::filesystem::path file_;
  void* handle_;
};

class Plugin1 final : public Plugin {
 public:
  explicit Plugin1(Library library)
      : Plugin(traits_of(WalkerId::plugin)),
        library_(std::move(library)),
        init_(library_.require<abi1::Init>("framestorm_walker_init")),
        walk_(library_.require<abi1::Walk>("framestorm_walk")) {}

  void init(Jvm& jvm) override { library_.check_init(init_(jvm.vm())); }
  std::unique_ptr<Walker> make_walker() override {
    return std::make_unique<Adapter>(shared_from_this(), walk_);
  }

 private:
  class Adapter final : public Walker {
   public:
    Adapter(std::shared_ptr<const Plugin> plugin, abi1::Walk* walk)
        : Walker(plugin->traits()), plugin_(std::move(plugin)), walk_(walk) {}

    int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
                 void* ucontext) noexcept override {
      abi1::Trace trace = {0, reinterpret_cast<abi1::Frame*>(frames)};
      const framestorm_thread thread = thread_of(target);
      walk_(&trace, depth, ucontext, &thread);
      return trace.num_frames;
    }

   private:
    std::shared_ptr<const Plugin> plugin_;
    abi1::Walk* walk_;
  };

  Library library_;
  abi1::Init* init_;
  abi1::Walk* walk_;
};

class Plugin2 final : public Plugin {
 public:
  Plugin2(Library library, const std::string& options, uint32_t capabilities)
      : Plugin(declared_traits(capabilities)),
        library_(std::move(library)),
        options_(options),
        capabilities_(capabilities),
        init_(library_.require<decltype(framestorm_walker_init)>("framestorm_walker_init")),
        walk_(library_.require<decltype(framestorm_walk)>("framestorm_walk")),
        thread_start_(library_.find<decltype(framestorm_walker_thread_start)>(
            "framestorm_walker_thread_start")),
        thread_end_(
            library_.find<decltype(framestorm_walker_thread_end)>("framestorm_walker_thread_end")),
        abandoned_(
            library_.find<decltype(framestorm_walker_abandoned)>("framestorm_walker_abandoned")) {}

  void init(Jvm& jvm) override {
    if (has(FRAMESTORM_METHOD_POINTERS) && !jvm.methods().finds_methods()) {
      throw SetupError(library_.file().string() + " gives Method*: on JDK " +
                       std::to_string(jvm.feature()) +
                       " no ID is found by these without libjvm.so's symbol table");
    }
    jvm_ = &jvm;
    library_.check_init(init_(jvm.vm(), options_.c_str()));
    if (thread_start_ != nullptr || thread_end_ != nullptr) hear_of_threads();
  }
  std::unique_ptr<Walker> make_walker() override { return std::make_unique<Adapter>(*this); }

 private:
  class Adapter final : public Walker {
   public:
    explicit Adapter(Plugin2& plugin)
        : Walker(plugin.traits()), kept_(plugin.shared_from_this()), plugin_(plugin) {}

    bool contains_faults() const override { return plugin_.has(FRAMESTORM_CONTAINS_FAULTS); }
    const WalkFacts* facts() const override { return &facts_; }

    int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
                 void* ucontext) noexcept override {
      facts_.clear();
      framestorm_trace trace = {.num_frames = 0,
                                .status = FRAMESTORM_TRACE_COMPLETE,
                                .frames = reinterpret_cast<framestorm_frame*>(frames),
                                .reason = nullptr,
                                .contained_faults = 0};
      const framestorm_thread thread = thread_of(target);
      plugin_.walk_(&trace, depth, ucontext, &thread);
      note_end(trace, depth);
      return trace.num_frames;
    }

    void abandoned(const WalkTarget& target) noexcept override {
      const framestorm_thread thread = thread_of(target);
      if (plugin_.abandoned_ != nullptr) plugin_.abandoned_(&thread);
    }

    void resolve_methods(std::byte* frames, size_t count) const override {
      if (!plugin_.has(FRAMESTORM_METHOD_POINTERS)) return;
      for (size_t i = 0; i < count; ++i) {
        framestorm_frame& frame = reinterpret_cast<framestorm_frame*>(frames)[i];
        // What is none stays what it is, and no ID either.
        if (const jmethodID id = plugin_.jvm_->methods().id_of(frame.method)) {
          frame.method = reinterpret_cast<void*>(id);
        }
      }
    }

   private:
    // In the walk: what the plugin points at is looked at here, so that a pointer which cannot be
    // read is its fault.
    void note_end(const framestorm_trace& trace, int32_t depth) {
      if (trace.status < FRAMESTORM_TRACE_COMPLETE || trace.status > FRAMESTORM_TRACE_ERROR) {
        complain("status-out-of-range", "the trace has a status that the API does not have");
      }
      if (trace.status == FRAMESTORM_TRACE_ERROR && trace.num_frames > 0) {
        complain("status-disagrees", "the trace is said to be an error and has frames");
      }
      if (trace.contained_faults > 0 && !contains_faults()) {
        complain("contained-faults-undeclared",
                 "the walker recovered from faults, and does not declare that it does");
      }
      if (trace.num_frames <= 0 || trace.num_frames > depth) return;
      const framestorm_frame& last = trace.frames[trace.num_frames - 1];
      if (trace.status == FRAMESTORM_TRACE_TRUNCATED) {
        facts_.stopped = readable(trace.reason, "truncated");
      } else if (last.type == FRAMESTORM_FRAME_ERROR) {
        facts_.stopped = readable(last.name, "an error frame");
      }
    }

    void complain(std::string_view clause, std::string_view what) {
      if (facts_.complaint_count >= facts_.complaints.size()) return;
      Complaint& complaint = facts_.complaints[facts_.complaint_count++];
      complaint.clause = clause;
      complaint.scope = ComplaintScope::always;
      complaint.detail = {};
      what.copy(complaint.detail.data(), complaint.detail.size() - 1);
    }

    static const char* readable(const char* text, const char* otherwise) {
      constexpr size_t kLongest = 256;
      return text == nullptr || strnlen(text, kLongest) == kLongest ? otherwise : text;
    }

    std::shared_ptr<Plugin> kept_;
    Plugin2& plugin_;
    WalkFacts facts_;
  };

  bool has(uint32_t capability) const { return (capabilities_ & capability) != 0; }

  // By a JVMTI environment of its own, which no driver has to know of.
  void hear_of_threads() {
    jvmtiEnv* jvmti = nullptr;
    if (jvm_->vm()->GetEnv(reinterpret_cast<void**>(&jvmti), JVMTI_VERSION_11) != JNI_OK) {
      throw SetupError("the JVM gives no JVMTI environment to hear of threads with");
    }
    heard_by = this;
    jvmtiEventCallbacks callbacks = {};
    callbacks.ThreadStart = [](jvmtiEnv*, JNIEnv* env, jthread) {
      tell(heard_by->thread_start_, env);
    };
    callbacks.ThreadEnd = [](jvmtiEnv*, JNIEnv* env, jthread) { tell(heard_by->thread_end_, env); };
    if (jvmti->SetEventCallbacks(&callbacks, sizeof callbacks) != JVMTI_ERROR_NONE ||
        jvmti->SetEventNotificationMode(JVMTI_ENABLE, JVMTI_EVENT_THREAD_START, nullptr) !=
            JVMTI_ERROR_NONE ||
        jvmti->SetEventNotificationMode(JVMTI_ENABLE, JVMTI_EVENT_THREAD_END, nullptr) !=
            JVMTI_ERROR_NONE) {
      throw SetupError("JVMTI does not tell of threads");
    }
  }

  // On the thread that it is about.
  static void tell(void (*of)(const framestorm_thread*), JNIEnv* env) {
    void* const java_thread = heard_by->jvm_->identity().current();
    if (of == nullptr || java_thread == nullptr) return;
    const ThreadLayout& layout = heard_by->jvm_->layout();
    const auto base = read_at<uintptr_t>(java_thread, layout.stack_base);
    const framestorm_thread thread = {
        java_thread,
        env,
        gettid(),
        1,
        reinterpret_cast<const void*>(base),
        reinterpret_cast<const void*>(base - read_at<size_t>(java_thread, layout.stack_size))};
    of(&thread);
  }

  // JVMTI's callbacks have no argument for it.
  static constinit inline Plugin2* heard_by = nullptr;

  Library library_;
  const std::string options_;
  const uint32_t capabilities_;
  Jvm* jvm_ = nullptr;
  decltype(&framestorm_walker_init) init_;
  decltype(&framestorm_walk) walk_;
  // Null where the plugin has none.
  decltype(&framestorm_walker_thread_start) thread_start_;
  decltype(&framestorm_walker_thread_end) thread_end_;
  decltype(&framestorm_walker_abandoned) abandoned_;
};

}  // namespace

PluginSpec PluginSpec::parse(const std::string& text) {
  std::error_code error;
  const size_t equals = text.find('=');
  if (equals == std::string::npos || std::filesystem::is_regular_file(text, error)) {
    return {text, ""};
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::shared_ptr<Plugin> Plugin::load(const PluginSpec& spec) {
  Library library(spec.file);
  const std::string file = spec.file.string();
  const int abi = library.require<decltype(framestorm_walker_abi)>("framestorm_walker_abi")();
  if (abi == 1) {
    if (!spec.options.empty()) {
      throw SetupError(
          file + " speaks walker ABI 1, which has no options: give it without =" + spec.options);
    }
    return std::make_shared<Plugin1>(std::move(library));
  }
  if (abi != FRAMESTORM_WALKER_ABI) {
    throw SetupError(file + " speaks walker ABI " + std::to_string(abi) +
                     ", this framestorm speaks 1 and " + std::to_string(FRAMESTORM_WALKER_ABI));
  }
  const uint32_t capabilities = library.require<decltype(framestorm_walker_capabilities)>(
      "framestorm_walker_capabilities")(spec.options.c_str());
  if ((capabilities & ~kKnownCapabilities) != 0) {
    throw SetupError(file + " declares a capability that framestorm_walker.h does not have");
  }
  if ((capabilities & (FRAMESTORM_WALKS_SAME_THREAD | FRAMESTORM_WALKS_OTHER_THREADS)) == 0) {
    throw SetupError(file + " declares no mode that it walks in (FRAMESTORM_WALKS_...)");
  }
  return std::make_shared<Plugin2>(std::move(library), spec.options, capabilities);
}

std::unique_ptr<Walker> make_adapter(AdapterOf<WalkerId::plugin>, const Exports&) {
  throw SetupError("no walker in a shared object was given");
}

std::unique_ptr<Walker> make_plugin(Jvm& jvm, const std::string& text) {
  const std::shared_ptr<Plugin> plugin = Plugin::load(PluginSpec::parse(text));
  plugin->init(jvm);
  return plugin->make_walker();
}

}  // namespace framestorm
