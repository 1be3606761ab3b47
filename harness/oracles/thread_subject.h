// The subject of a walk of a thread that is no halted victim of a scenario, unmutated: of a program
// under stress, or one that is stepped.
#pragma once

#include "harness/oracles/walk_view.h"

namespace framestorm {

class ThreadSubject {
 public:
  struct Thread {
    int tid = 0;
    void* java_thread = nullptr;
    void* jni_env = nullptr;
    uintptr_t pc = 0, sp = 0, fp = 0;
    uintptr_t stack_base = 0, stack_end = 0;
  };

  // Borrows `jvm`.
  ThreadSubject(Jvm& jvm, Mode mode);
  ThreadSubject(const ThreadSubject&) = delete;
  ThreadSubject& operator=(const ThreadSubject&) = delete;

  // Whose walks follow; with its registers at the walk. Async-signal-safe, as is the next.
  void set(const Thread& thread);
  // Until it is called again. `walker`: the adapter of the walk.
  const Subject& of(const Walker& walker, int32_t depth, uint32_t options);
  const Victim& victim() const { return victim_; }

 private:
  Input input_;
  Victim victim_;
  UndoLog no_mutations_;
  Subject subject_;
};

}  // namespace framestorm
