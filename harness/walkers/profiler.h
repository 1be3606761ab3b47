// Profilers as shipped: an agent library, or the JVM's own, whose walk begins in the signal handler
// that it installs. Nobody has its trace but the profiler; what tells whether it walked is its own
// count of samples.
//
//   JVM starts with -agentpath ──> profiler: sigaction(SIGPROF, handler), timers
//     or start_from_java()
//   Profiler::find()               handler found, its signal muted (signals::mute)
//   walk()                         handler(signal, siginfo as the kernel gave it, context)
//   stored()                       what the profiler counted meanwhile
//
// One that stops threads by its signal and walks them from a thread of its own, as JFR does before
// JDK 25, is called in the same way: its thread is held between walks (guard/sampler_thread.h).
#pragma once

#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/guard/signal_table.h"
#include "harness/walkers/walker.h"

namespace framestorm {

// Which profiler, on command lines: FILE[=OPTIONS], or `jvm` for the handler that JVM options
// install.
struct ProfilerSpec {
  std::filesystem::path library;  // empty: the JVM's own
  std::string options;

  static constexpr std::string_view kJvm = "jvm";
  static ProfilerSpec parse(std::string_view text);
  // What the JVM has to be started with.
  std::vector<std::string> jvm_arguments() const;
  // Loads and starts a profiler that the JVM has not: java-profiler, whose agent loads its library
  // from Java. Returns the library's handle. Control thread, JVM running. Throws SetupError.
  void* start_from_java(const Jvm& jvm) const;
};

// Signals that profilers sample by, the usual ones first, and the one by which HotSpot stops threads.
std::vector<int> sampling_signals();

// A trace that a profiler has stored, as it says.
struct RecordedTrace {
  int tid = 0;
  int64_t java_id = 0;               // Thread.getId(); 0: not told
  std::vector<std::string> methods;  // Java's, innermost first: "framestorm/C1.spin"
};

// Where a profiler keeps its samples. Control thread, outside walks, world released.
class SampleStore {
 public:
  virtual ~SampleStore() = default;
  // Samples since the profiler's start.
  virtual uint64_t count() = 0;
  // Whether count() reads all that was ever stored: worth it once, at a run's end.
  virtual bool counts_slowly() const { return false; }
  // Those since the call before, in the order of the samples where the profiler tells it.
  virtual std::vector<RecordedTrace> new_traces() { return {}; }
};

// The store of a profiler whose library is loaded; null when framestorm can read none.
std::unique_ptr<SampleStore> find_sample_store(const Jvm& jvm, void* library);

class Profiler final : public Walker {
 public:
  // Control thread, JVM running, Guard::install not needed. Finds the handler and mutes its signal,
  // so that from now on only walk() calls it. Throws SetupError when no handler is found.
  static std::unique_ptr<Profiler> find(const Jvm& jvm, const ProfilerSpec& spec);

  int signal_number() const { return signo_; }
  // Whether siginfo is what the kernel gave with a signal of the profiler's own; else it is made
  // up, and a profiler that looks for its mark in it drops every sample.
  bool has_own_siginfo() const { return has_own_siginfo_; }
  // Whether it walks from a thread of its own, and stores what it could walk.
  bool has_own_thread() const { return has_own_thread_; }
  bool counts() const { return store_ != nullptr; }
  // Samples that it says it has stored since it was found; nothing when it has no count that
  // framestorm can read, or none for so little as now. Control thread, world released.
  std::optional<uint64_t> stored(bool at_the_end);
  // SampleStore::new_traces; none without a store.
  std::vector<RecordedTrace> new_traces() {
    return counts() ? store_->new_traces() : std::vector<RecordedTrace>();
  }

  bool contains_faults() const override { return true; }
  bool keeps_state_in_thread() const override { return is_jvms_ && !has_own_thread_; }
  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override;

 private:
  Profiler(const Jvm& jvm, int signo, bool is_jvms, std::unique_ptr<SampleStore> store);
  void get_siginfo();
  bool hold_thread(const Jvm& jvm);
  int32_t walk_from_its_thread(const WalkTarget& target, siginfo_t* info,
                               void* ucontext) const noexcept;

  const int signo_;
  const bool is_jvms_;
  const signals::Handler handler_;
  siginfo_t info_ = {};
  bool has_own_siginfo_ = false;
  std::unique_ptr<SampleStore> store_;
  const bool has_own_thread_;
  const size_t thread_state_;  // where it is in a JavaThread
  uint64_t stored_before_ = 0;
};

}  // namespace framestorm
