#include "harness/jvm/bytecodes.h"

namespace framestorm {
namespace {

constexpr uint8_t kIinc = 0x84, kTableswitch = 0xaa, kLookupswitch = 0xab, kInvokevirtual = 0xb6,
                  kInvokedynamic = 0xba, kWide = 0xc4, kLast = 0xc9;

// Lengths by the first opcode that has them (JVM specification, chapter 6); 0: see size_at.
struct Run {
  uint8_t first;
  uint8_t size;
};
constexpr Run kRuns[] = {{0x00, 1}, {0x10, 2}, {0x11, 3}, {0x12, 2}, {0x13, 3}, {0x15, 2},
                         {0x1a, 1}, {0x36, 2}, {0x3b, 1}, {0x84, 3}, {0x85, 1}, {0x99, 3},
                         {0xa9, 2}, {0xaa, 0}, {0xac, 1}, {0xb2, 3}, {0xb9, 5}, {0xbb, 3},
                         {0xbc, 2}, {0xbd, 3}, {0xbe, 1}, {0xc0, 3}, {0xc2, 1}, {0xc4, 0},
                         {0xc5, 4}, {0xc6, 3}, {0xc8, 5}};

size_t number_at(std::span<const uint8_t> code, size_t at) {
  size_t number = 0;
  for (size_t i = at; i < at + 4; ++i) number = number << 8 | (i < code.size() ? code[i] : 0U);
  return number;
}

// 0 for an opcode that there is not.
size_t size_at(std::span<const uint8_t> code, size_t at) {
  const uint8_t opcode = code[at];
  const size_t operands = (at + 4) & ~size_t{3};  // of a switch
  if (opcode > kLast) return 0;
  if (opcode == kTableswitch) {
    const size_t low = number_at(code, operands + 4);
    const size_t high = number_at(code, operands + 8);
    return operands + 12 + size_t{4} * static_cast<uint32_t>(high - low + 1) - at;
  }
  if (opcode == kLookupswitch) return operands + 8 + 8 * number_at(code, operands + 4) - at;
  if (opcode == kWide) return at + 1 < code.size() && code[at + 1] == kIinc ? 6 : 4;
  size_t size = 0;
  for (const Run& run : kRuns) {
    if (opcode >= run.first) size = run.size;
  }
  return size;
}

}  // namespace

std::vector<int32_t> invokes_in(std::span<const uint8_t> code) {
  std::vector<int32_t> found;
  for (size_t at = 0, size = 0; at < code.size(); at += size) {
    size = size_at(code, at);
    if (size == 0) break;
    if (code[at] >= kInvokevirtual && code[at] <= kInvokedynamic) {
      found.push_back(static_cast<int32_t>(at));
    }
  }
  return found;
}

}  // namespace framestorm
