#include <algorithm>
#include <cstring>

#include "harness/guard/walk_state.h"

namespace framestorm {

namespace {

constexpr uintptr_t kWord = sizeof(uintptr_t);

// Whole aligned words, so that no load crosses into a page that is not there.
void record_code(FaultRecord* record) {
  record->code_size = 0;
  std::memset(record->code, 0, sizeof(record->code));
  uintptr_t word = 0;
  if (!arch::safe_load(record->pc & ~(kWord - 1), &word)) {
    return;
  }
  const uintptr_t start = record->pc - kCodeBytesBefore;
  const uintptr_t end = start + kCodeBytes;
  for (uintptr_t at = start & ~(kWord - 1); at < end; at += kWord) {
    const bool readable = arch::safe_load(at, &word);
    if (!readable && at + kWord > record->pc) {
      break;
    }
    const uintptr_t from = std::max(at, start);
    const uintptr_t to = std::min(at + kWord, end);
    if (readable) {
      std::memcpy(record->code + (from - start), reinterpret_cast<const char*>(&word) + (from - at),
                  to - from);
    }
    record->code_size = static_cast<uint32_t>(to - start);
  }
}

uint32_t locks_of(const WalkState& walk) {
  // An abandoned malloc may hold its arena's lock, an abandoned report the sanitizer's.
  return static_cast<uint32_t>(std::max(walk.locks_held, 0)) +
         (walk.allocator_depth != 0 ? 1U : 0U) + (walk.reporting ? 1U : 0U);
}

void record_stack(const WalkState& walk, bool jumped_to_pc, FaultRecord* record) {
  const bool in_claim = walk.claim.sp != 0;
  const uintptr_t limit = backtrace_limit(in_claim ? walk.claim : walk.recovery);
  record->stack[0] = record->pc;
  size_t count = 1;
  uintptr_t return_address = 0;
  if (walk.libc_entry_frame != 0 && !in_claim) {
    count +=
        backtrace_from_interposer(walk.libc_entry_frame, limit, record->stack + 1, kMaxStack - 1);
  } else if (jumped_to_pc && record->sp % kWord == 0 && record->sp < limit &&
             arch::safe_load(record->sp, &return_address)) {
    // Nothing ran at pc, so the call that went there has just pushed its return address.
    count += frame_pointer_backtrace(return_address, record->sp + kWord, record->fp, limit,
                                     record->stack + 1, kMaxStack - 1);
  } else {
    count = frame_pointer_backtrace(record->pc, record->sp, record->fp, limit, record->stack,
                                    kMaxStack);
  }
  record->stack_size = static_cast<uint32_t>(count);
}

}  // namespace

size_t backtrace_from_interposer(uintptr_t frame, uintptr_t limit, uintptr_t* out, size_t size) {
  uintptr_t caller_fp = 0;
  uintptr_t caller_pc = 0;
  if (frame == 0 || !arch::safe_load(frame, &caller_fp) ||
      !arch::safe_load(frame + kWord, &caller_pc)) {
    return 0;
  }
  return frame_pointer_backtrace(caller_pc, frame + 2 * kWord, caller_fp, limit, out, size);
}

void record_interrupted(WalkState* walk, WalkEnd end, int signo, const siginfo_t* info,
                        const ucontext_t* context) {
  FaultRecord* record = walk->fault;
  record->end = end;
  record->signo = end == WalkEnd::fault ? signo : 0;
  record->si_code = end == WalkEnd::fault ? info->si_code : 0;
  record->address = end == WalkEnd::fault ? reinterpret_cast<uintptr_t>(info->si_addr) : 0;
  record->is_write = end == WalkEnd::fault && arch::is_write_fault(context, signo);
  record->pc = arch::pc_of(context);
  record->sp = arch::sp_of(context);
  record->fp = arch::fp_of(context);
  std::memcpy(record->registers, context->uc_mcontext.gregs, sizeof(record->registers));
  record->function = end == WalkEnd::terminal_call ? "abort" : nullptr;
  record->locks_held = locks_of(*walk);
  record_code(record);
  const bool jumped_to_pc =
      end == WalkEnd::fault && (record->code_size == 0 || arch::is_fetch_fault(context, signo));
  record_stack(*walk, jumped_to_pc, record);
}

void record_terminal_call(WalkState* walk, const char* function, uintptr_t frame) {
  FaultRecord* record = walk->fault;
  record->end = WalkEnd::terminal_call;
  record->signo = 0;
  record->si_code = 0;
  record->address = 0;
  record->function = function;
  record->locks_held = locks_of(*walk);
  record->stack_size = static_cast<uint32_t>(
      backtrace_from_interposer(frame, backtrace_limit(walk->recovery), record->stack, kMaxStack));
  record->pc = record->stack_size == 0 ? 0 : record->stack[0];
  record->sp = frame + 2 * kWord;
  record->fp = 0;
  arch::safe_load(frame, &record->fp);
  arch::set_frame(record->registers, record->pc, record->sp, record->fp);
  record_code(record);
}

}  // namespace framestorm
