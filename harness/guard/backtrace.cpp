#include "harness/guard/arch.h"
#include "harness/guard/guard.h"

namespace framestorm {

// A frame is two words at fp: the caller's fp and the return address (x86-64 and aarch64 alike).
size_t frame_pointer_backtrace(uintptr_t pc, uintptr_t sp, uintptr_t fp, uintptr_t limit,
                               uintptr_t* out, size_t size) {
  constexpr uintptr_t kWord = sizeof(uintptr_t);
  if (size == 0) {
    return 0;
  }
  size_t count = 0;
  out[count++] = pc;
  uintptr_t lowest = sp;
  while (count < size && fp % kWord == 0 && fp >= lowest && fp < limit && limit - fp >= 2 * kWord) {
    uintptr_t caller_fp = 0;
    uintptr_t return_address = 0;
    if (!arch::safe_load(fp, &caller_fp) || !arch::safe_load(fp + kWord, &return_address) ||
        return_address == 0) {
      break;
    }
    out[count++] = return_address;
    lowest = fp + 2 * kWord;
    fp = caller_fp;
  }
  return count;
}

}  // namespace framestorm
