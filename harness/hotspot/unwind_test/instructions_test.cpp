// What the walk reads of instructions is inside the code: here code ends where nothing is readable.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "asyncInstructions_x86.hpp"
#include "asyncPushedWords_x86.hpp"
#include "asyncTransitions_x86.hpp"

namespace {

constexpr size_t kPage = 4096;

class AtTheEnd : public testing::Test {
 protected:
  void SetUp() override {
    pages_ = static_cast<u1*>(
        mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(pages_, MAP_FAILED);
    ASSERT_EQ(mprotect(pages_ + kPage, kPage, PROT_NONE), 0);
    end_ = pages_ + kPage;
  }
  void TearDown() override { munmap(pages_, 2 * kPage); }
  // Code that ends with these bytes.
  const u1* put(const std::vector<u1>& bytes) {
    std::fill(pages_, pages_ + kPage, 0x90);
    std::copy(bytes.begin(), bytes.end(), end_ - bytes.size());
    return end_ - bytes.size();
  }

  u1* pages_ = nullptr;
  u1* end_ = nullptr;
};

TEST_F(AtTheEnd, NothingIsBeyondIt) {
  const u1* const ret = put({0xc3});
  EXPECT_TRUE(bytes_are(ret, end_, kRet));
  EXPECT_FALSE(bytes_are(ret, end_, kRetThenJump));
  // As behind an instruction that is cut off, whose length is believed.
  EXPECT_FALSE(bytes_are(ret, ret, kRet));
  EXPECT_FALSE(bytes_are(ret, ret - 4, kRet));
  EXPECT_EQ(find_bytes(end_ + 3, end_, kRet), end_);
}

TEST_F(AtTheEnd, CutOffInstructionsAreNotReadOn) {
  const std::vector<std::vector<u1>> codes = {
      {0x48, 0x81, 0xec},
      {0x48, 0x83, 0xec},
      {0x66},
      {0x0f, 0x1f},
      {0x0f, 0x87},
      {0xe9},
      {0x50, 0x50, 0xe8},
      {0x48, 0xbb},
      {0xc9},
      {0x41},
      {0xff},
      {0xc5, 0xf8},
      {0x49, 0x3b, 0xa7, 0, 0, 0, 0, 0x0f, 0x82},
      {0x48, 0x8d, 0x04},
      {0x5a, 0x48, 0x85, 0xc0, 0x0f, 0x85},
      {0xff, 0xe3, 0x4c, 0x8d, 0x6c, 0x24, 0x08, 0x41, 0xf6, 0xc5, 0x0f, 0x0f, 0x84},
      {0x55, 0x48, 0x8b, 0xec, 0x48, 0x8b, 0xc4, 0x48, 0x83, 0xec, 0x70, 0x48, 0x83, 0xe4, 0xe0,
       0x48, 0x89, 0x44, 0x24},
      {0x55, 0x48, 0x8b, 0xec, 0x48, 0x8b, 0xc4, 0x48, 0x83, 0xec, 0x70, 0x48,
       0x83, 0xe4, 0xe0, 0x48, 0x89, 0x44, 0x24, 0x38, 0x48, 0x8b, 0x64, 0x24}};
  for (const auto& bytes : codes) {
    const u1* const begin = put(bytes);
    for (const u1* pc = begin; pc <= end_; ++pc) {
      how_far(begin, pc, end_);
      is_taken_down(pc, pages_, end_);
      is_left(pc, pages_, end_);
      words_pushed_for_barrier(pc, pages_, end_);
      words_pushed_for_check(pc, pages_, end_);
      is_static_call_stub(pc, pages_, end_);
      is_after_fp_restored(pc, pages_, end_);
      is_after_return_address_popped(pc, pages_, end_);
      is_saving_registers(pc, pages_, end_);
      Leaving().find(pc, pages_, end_);
      KeptSp().find(pc, begin, end_);
      const CodeBlob blob = {pages_, end_};
      AdapterDepth(pc, &blob);
      if (pc < end_) is_tail_jump(&blob, pc);
    }
  }
}

// Debug builds check between the steps of these, and jump over what stops HotSpot.
TEST_F(AtTheEnd, ChecksAreOnTheWay) {
  // pop rdx; test rax, rax; jne; two bytes that stop; mov rax, [r15 + 8]; jmp rbx
  const u1* const popped = put({0x5a, 0x48, 0x85, 0xc0, 0x0f, 0x85, 0x02, 0x00, 0x00, 0x00, 0xf4,
                                0xf4, 0x49, 0x8b, 0x47, 0x08, 0xff, 0xe3});
  for (const int at : {1, 4, 12, 16}) {
    EXPECT_TRUE(is_after_return_address_popped(popped + at, pages_, end_)) << at;
  }
  EXPECT_FALSE(is_after_return_address_popped(popped, pages_, end_));
  EXPECT_FALSE(is_after_return_address_popped(popped + 10, pages_, end_));

  // jmp r11; lea r13, [rsp + 8]; test r13b, 15; je; one byte; pop rax; sub rsp, 16; push rax; ret
  const u1* const adapter =
      put({0x41, 0xff, 0xe3, 0x4c, 0x8d, 0x6c, 0x24, 0x08, 0x41, 0xf6, 0xc5, 0x0f, 0x0f,
           0x84, 0x01, 0x00, 0x00, 0x00, 0xf4, 0x58, 0x48, 0x83, 0xec, 0x10, 0x50, 0xc3});
  const CodeBlob blob = {pages_, end_};
  const auto sp_of_caller = [&](int at) { return AdapterDepth(adapter + at, &blob).caller_sp; };
  EXPECT_EQ(sp_of_caller(19), 8);
  EXPECT_EQ(sp_of_caller(20), 0);
  EXPECT_EQ(sp_of_caller(24), 16);
  EXPECT_EQ(sp_of_caller(25), 24);
}

}  // namespace
