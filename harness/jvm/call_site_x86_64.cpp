#include "harness/jvm/call_site.h"

namespace framestorm {
namespace {

// Of `call r/m64` from its opcode on, by its ModRM and SIB bytes (Intel SDM, volume 2, 2.1.5).
uintptr_t size_of_indirect_call(const uint8_t* opcode) {
  const unsigned mode = opcode[1] >> 6, base = opcode[1] & 7;
  constexpr unsigned kHasSib = 4, kNoBase = 5;
  if (mode == 3) return 2;
  const uintptr_t size = base == kHasSib ? 3 : 2;
  if (mode == 1) return size + 1;
  const bool displaced =
      mode == 2 || base == kNoBase || (base == kHasSib && (opcode[2] & 7) == kNoBase);
  return displaced ? size + 4 : size;
}

}  // namespace

bool follows_call(uintptr_t pc, uintptr_t begin) {
  const uintptr_t before = pc - begin;
  const auto* const end = reinterpret_cast<const uint8_t*>(pc);
  if (before >= 5 && end[-5] == 0xe8) return true;
  for (uintptr_t size = 2; size <= 7 && size <= before; ++size) {
    const uint8_t* const opcode = end - size;
    if (*opcode == 0xff && (opcode[1] >> 3 & 7) == 2 && size_of_indirect_call(opcode) == size) {
      return true;
    }
  }
  return false;
}

}  // namespace framestorm
