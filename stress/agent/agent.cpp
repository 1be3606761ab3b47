// The agent's way in and out: Agent_OnLoad, Agent_OnAttach, Agent_OnUnload, and what it is told by
// JVMTI in between.
#include <jvmti.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>

#include "harness/guard/guard.h"
#include "harness/guard/unsafe_calls.h"
#include "harness/guard/vm_error.h"
#include "harness/input/walker_table.h"
#include "stress/agent/judge.h"
#include "stress/agent/learn_residue.h"
#include "stress/agent/truth.h"

namespace framestorm::stress {
namespace {

// Lives until the process ends: threads of its own and signal handlers use it.
class Agent {
 public:
  explicit Agent(Options options) : options_(std::move(options)) {}

  void live(JNIEnv* env) {
    Jvm& jvm = Jvm::get();
    sanitizer::install(-1);
    Guard::install({&Jvm::claim_fault}, {});
    jvm.set_hook("framestorm_ubsan_hook", &sanitizer::on_ubsan);
    jvm.set_hook("framestorm_error_hook", &vm_error::on_error);
    std::filesystem::create_directories(options_.out);
    residue_ = learn_residue(jvm);
    if (options_.truth) Truth::get().begin(env, jvm.jvmti());
    parts_ = std::make_unique<Parts>(options_, jvm, oracles_, setup(jvm));
    live_.store(parts_.get(), std::memory_order_release);
    parts_->judge.start();
    enter_all(jvm, env, *parts_);
    if (options_.truth) {
      Sampler& sampler = *parts_->sampler;
      Truth::get().attach(sampler.registry(), [&sampler, &jvm](SampledThread& record) {
        sampler.check(record, jvm.jvmti());
      });
    }
    parts_->sampler->start();
  }

  void thread_start(JNIEnv* env, jthread thread) {
    Parts* const parts = live_.load(std::memory_order_acquire);
    const int tid = gettid();
    if (parts == nullptr || tid == parts->judge.tid()) return;
    parts->sampler->enter_thread(env, thread, tid, Jvm::get().identity().current());
  }

  void thread_end(JNIEnv* env, jthread) {
    Parts* const parts = live_.load(std::memory_order_acquire);
    if (parts != nullptr) parts->sampler->leave_thread(env, gettid());
  }

  void death(JNIEnv*) {
    Parts* const parts = live_.load(std::memory_order_acquire);
    if (parts == nullptr) return;
    parts->sampler->stop();
    parts->judge.finish("vm-death");
  }

 private:
  struct Parts {
    Parts(const Options& options, Jvm& jvm, OracleSet& oracles, WalkSetup setup)
        : sampler(make_sampler(options, jvm, std::move(setup))),
          judge(options, jvm, oracles, *sampler) {}
    std::unique_ptr<Sampler> sampler;
    Judge judge;
  };

  WalkSetup setup(Jvm& jvm) {
    WalkSetup setup;
    setup.jvm = &jvm;
    setup.oracles = &oracles_;
    setup.residue = &residue_;
    setup.walkers = options_.walkers;
    setup.mode = options_.mode;
    setup.depth = options_.depth;
    setup.strict = options_.strict;
    setup.truth = options_.truth;
    if (!options_.plugin.empty()) {
      setup.plugin = Plugin::load(PluginSpec::parse(options_.plugin));
      if (!setup.plugin->traits().walks_in(input_mode(options_.mode))) {
        throw SetupError(options_.plugin + " does not walk in mode " +
                         std::string(name_of(options_.mode)));
      }
      setup.plugin->init(jvm);
    }
    // A walker that was asked for has to be there; make_walker says why it is not.
    for (const WalkerId id : kFuzzedWalkers) {
      const bool asked = std::ranges::count(options_.walkers, id) > 0;
      const WalkerTraits& traits = traits_of(id);
      if (!asked && (!traits.is_compared() || !traits.walks_in(input_mode(options_.mode)))) {
        continue;
      }
      try {
        make_walker(id, jvm);
        setup.comparable.push_back(id);
      } catch (const SetupError&) {
        if (asked) throw;
      }
    }
    return setup;
  }

  // Threads that were there before ThreadStart could be heard.
  static void enter_all(const Jvm& jvm, JNIEnv* env, Parts& parts) {
    jint count = 0;
    jthread* threads = nullptr;
    if (jvm.jvmti()->GetAllThreads(&count, &threads) != JVMTI_ERROR_NONE) return;
    for (jint i = 0; i < count; ++i) {
      void* const java_thread = jvm.java_thread_of(env, threads[i]);
      const int tid = jvm.tid_of(java_thread);
      if (tid != 0 && tid != parts.judge.tid()) {
        parts.sampler->enter_thread(env, threads[i], tid, java_thread);
      }
      env->DeleteLocalRef(threads[i]);
    }
    jvm.jvmti()->Deallocate(reinterpret_cast<unsigned char*>(threads));
  }

  Options options_;
  OracleSet oracles_{offered_needs()};
  WalkResidue residue_;
  std::unique_ptr<Parts> parts_;
  // Where the JVM runs already, threads start and end while the parts are being made.
  std::atomic<Parts*> live_{nullptr};
};

// Never freed: see Agent.
Agent* agent = nullptr;

jint join(JavaVM* vm, const char* text, bool running) {
  try {
    if (agent != nullptr) throw SetupError("framestorm's agent is in this JVM already");
    if (sanitizer::has_asan() && !interposer::is_active()) {
      throw SetupError(
          "this JDK was built with AddressSanitizer: load the agent ahead of its runtime, "
          "LD_PRELOAD=/path/to/libframestorm.so:/path/to/libclang_rt.asan-x86_64.so");
    }
    agent = std::make_unique<Agent>(parse_options(text == nullptr ? "" : text)).release();
    Jvm::join(vm,
              {[](JNIEnv* env) { agent->live(env); },
               [](JNIEnv* env, jthread thread) { agent->thread_start(env, thread); },
               [](JNIEnv* env, jthread thread) { agent->thread_end(env, thread); },
               [](JNIEnv* env) { agent->death(env); }},
              running);
    return JNI_OK;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "framestorm: %s\n", error.what());
    return JNI_ERR;
  }
}

// Before anything else when the library is preloaded: the program's threads are its own.
[[gnu::constructor]] void leave_threads_alone() { interposer::leave_threads_alone(); }

}  // namespace
}  // namespace framestorm::stress

extern "C" JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char* options, void*) {
  return framestorm::stress::join(vm, options, /*running=*/false);
}

extern "C" JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM* vm, char* options, void*) {
  return framestorm::stress::join(vm, options, /*running=*/true);
}

extern "C" JNIEXPORT void JNICALL Agent_OnUnload(JavaVM*) {}
