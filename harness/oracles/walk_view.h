// A finished walk as oracles see it: what happened, and what was walked.
#pragma once

#include <algorithm>

#include "harness/input/input.h"
#include "harness/input/walker_table.h"
#include "harness/jvm/jvm.h"
#include "harness/victim/undo_log.h"
#include "harness/victim/victims.h"
#include "harness/walk/walk_record.h"
#include "harness/walkers/walker.h"

namespace framestorm {

struct Subject {
  // Says what the walk was. Its scenario is ScenarioId::count in a program that is none of them.
  const Input* input = nullptr;
  const Victim* victim = nullptr;
  // Whom the call names; null: nobody, or it is not known who suspends threads.
  const Victim* asked = nullptr;
  const Walker* walker = nullptr;  // to ask about its API, not to walk with
  const Jvm* jvm = nullptr;
  const MethodTable* methods = nullptr;
  const UndoLog* undo = nullptr;
  bool unmutated = false;  // no mutation and no unusual call argument
  bool mutated = false;    // some mutation is in effect
};

// In method entries and in bytecodes that return, an interpreted frame may be partly built or taken down.
inline bool may_be_partly_there(const CodeEntry& codelet) {
  return codelet.name.starts_with("method entry point") || codelet.name.ends_with("return") ||
         codelet.name == "return_register_finalizer";
}

struct WalkView {
  const WalkRecord& record;
  const Subject& subject;

  Frame frame(size_t index) const {
    return read_frame(subject.walker->layout(), record.frames, index, subject.jvm->code_map());
  }
  // Null for a frame without a method, or with one that no class has.
  const MethodInfo* method_of(const Frame& frame) const {
    return frame.method == nullptr ? nullptr : subject.methods->find(frame.method);
  }
  // Whether the thread is in Java code that has a frame, its own. Where compiled code has none, its return
  // address is on top of the stack, or its caller's frame pointer and then that.
  bool frame_stands() const {
    const CodeMap& code = subject.jvm->code_map();
    const CodeEntry* const entry = code.find(subject.victim->pc);
    if (entry == nullptr) return false;
    if (entry->kind == CodeKind::codelet) return !may_be_partly_there(*entry);
    if (entry->kind != CodeKind::nmethod || subject.victim->pc < entry->frame_complete) {
      return false;
    }
    const auto* const top = reinterpret_cast<const std::byte*>(subject.victim->sp);
    const auto is_code = [&](size_t word) {
      return code.find(read_at<uintptr_t>(top, word * sizeof(uintptr_t))) != nullptr;
    };
    return !is_code(0) && !is_code(1);
  }
  // What the victim is in, without a number: what goes wrong there seldom has the cause that it has elsewhere.
  std::string_view place() const {
    const CodeEntry* const entry = subject.jvm->code_map().find(subject.victim->pc);
    if (entry == nullptr) return "native code";
    if (entry->kind == CodeKind::stub) return "stub";
    if (entry->kind == CodeKind::codelet) {
      return frame_stands() ? "interpreter" : "interpreter between frames";
    }
    return frame_stands() ? "compiled code" : "compiled code between frames";
  }
  // Whether frames of C, C++ and stubs are in the trace.
  bool gives_c_frames() const {
    const WalkerTraits& walker = subject.walker->traits();
    if (walker.options != 0) return (record.options & walker.options & kIncludeCFrames) != 0;
    const auto& types = walker.layout.types;
    return walker.is_added() && std::ranges::find(types, FrameType::cpp) != types.end();
  }
  // Whether the trace ends where a continuation is entered since its options say that it shall.
  bool ends_as_asked() const {
    if ((record.options & subject.walker->traits().options & kEndAtContinuation) == 0 ||
        record.frame_count() == 0) {
      return false;
    }
    const MethodInfo* const last = method_of(frame(record.frame_count() - 1));
    return last != nullptr && last->name == kEntersContinuation;
  }
  // A walker that finds its thread by the context's sp may be led to another one, and one that is told
  // its thread may be told of another one, or of none, which is the calling one. These say whom they
  // walked, with errors too; state and anchor of the record and the victim are not that thread's.
  bool walked_another_thread() const {
    const WalkFacts* const facts = record.facts_if_any();
    return subject.walker->traits().tells_whose_trace && facts != nullptr &&
           facts->env != subject.victim->jni_env;
  }
  // Whether the walk may have read frames of its own and of its signal handler, which stand right
  // below the victim's sp in same-thread mode and are not the same twice. Nothing that is unmutated
  // leads there: sp, fp, the anchor and the frames' links point up. A mutated word may, at once or
  // through a stale word of the victim's stack that a walk gone astray takes for a link; which
  // words a walk reads is not known here. See FurtherWalk::Place::aside.
  bool may_read_itself() const {
    return subject.mutated && subject.input->mode == Mode::same_thread;
  }
};

}  // namespace framestorm
