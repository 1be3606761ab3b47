// The shadow stacks of the very moments that a profiler samples at. The profiler's signals are taken
// over: each time its handler is called, the thread's shadow stack is noted, and when the handler began
// and ended. A sample that the profiler records has the time at which its handler was at work
// (recorded_truth.h), so each sample has the one stack that it has to show.
//
//   signal ──> handle(): shadow stack, begin ──> the profiler's own handler ──> end, ring ──> shadows.tsv
//
// Nothing is preloaded, and the profiler is not asked: its handlers are those of sampling_signals() that
// somebody has installed.
#pragma once

#include <jni.h>
#include <signal.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "harness/jvm/jvm.h"
#include "stress/agent/registry.h"
#include "stress/agent/sample_ring.h"
#include "stress/agent/truth.h"

namespace framestorm::stress {

class Observer {
 public:
  // One per process, for good. Throws std::system_error, SetupError.
  Observer(Jvm& jvm, std::filesystem::path folder);

  // VM running: threads are known and handlers are looked for from here on.
  void start(JNIEnv* env, Truth& truth);
  // On the thread itself.
  void enter_thread(JNIEnv* env, jthread thread);
  void leave_thread();
  // Writes what is left; returns when that is done.
  void finish();

 private:
  struct Times {
    uint64_t begin_ns = 0, end_ns = 0;
  };
  static constexpr size_t kCells = 8192;
  static constexpr size_t kEntries = 128;  // of a shadow stack, the innermost

  static void handle(int signo, siginfo_t* info, void* context);
  void take_over_handlers();

  // The observer's thread.
  void run();
  void write_new();
  void write(const SampleRing::Entry& entry);
  void write_clocks(JNIEnv* env);
  void write_methods();
  size_t stack_of(const std::vector<ShadowEntry>& entries);
  // Number of the compiled code there, whose places are written; -1 without.
  int64_t code_at(uintptr_t pc);
  size_t name_of(jmethodID method);

  Jvm& jvm_;
  const std::filesystem::path folder_;
  Truth* truth_ = nullptr;
  Registry threads_;
  SampleRing ring_;
  std::atomic<uint64_t> lost_{0};
  std::vector<int> owned_;  // signals
  std::ofstream out_;
  std::map<std::vector<int32_t>, size_t> stacks_;
  std::map<std::shared_ptr<const DebugInfo>, int64_t> codes_;
  std::unordered_map<jmethodID, size_t> names_;
  std::thread thread_;
  std::atomic<bool> ended_{false};
  std::atomic<bool> closed_{false};
};

}  // namespace framestorm::stress
