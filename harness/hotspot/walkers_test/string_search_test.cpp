// C2's search in strings (String.indexOf), called by a halted thread that is interpreted and executed by it,
// one instruction after the other, far below its frames. Each is walked.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <iterator>
#include <set>

#include "harness/hotspot/walkers_test/iterator_fixture.h"
#include "harness/victim/context.h"

namespace framestorm {
namespace {

using iterator_test::IteratorTest;
using iterator_test::same_place;

class StringSearchTest : public IteratorTest {
 protected:
  struct Searched {
    size_t length, sought;       // characters
    bool at_end, sought_at_end;  // of a page, behind which nothing can be read
  };
  static constexpr size_t kPage = 4096;

  void SetUp() override {
    begin(ScenarioId::interpreted_recursion, {"-XX:-BackgroundCompilation"}, [this] { compile(); });
    ASSERT_FALSE(HasFatalFailure());
    callers_ = all();
    ASSERT_GT(callers_.size(), 3U);
    callers_.erase(callers_.begin());
    for (const CodeEntry& entry : session().jvm().code_map().entries()) {
      if (entry.tier == 4 && entry.name.find("String.indexOf") != std::string::npos) code_ = &entry;
    }
    ASSERT_NE(code_, nullptr) << "C2 has not compiled it";
    const uint8_t keep[] = {0x48, 0x8b, 0xcc};  // mov rcx, rsp
    const auto* const end = reinterpret_cast<const uint8_t*>(code_->end);
    for (const auto* at = reinterpret_cast<const uint8_t*>(code_->begin);
         (at = std::search(at, end, std::begin(keep), std::end(keep))) != end; ++at) {
      begins_.push_back(reinterpret_cast<uintptr_t>(at));
    }
    ASSERT_FALSE(begins_.empty());
    for (auto*& page : pages_) {
      page = static_cast<char*>(
          mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      ASSERT_NE(page, MAP_FAILED);
      std::memset(page, 'a', kPage);
      ASSERT_EQ(mprotect(page + kPage, kPage, PROT_NONE), 0);
    }
  }

  // With either encoding.
  void compile() {
    JNIEnv* const env = session().jvm().env();
    const jclass string = env->FindClass("java/lang/String");
    const jmethodID search = env->GetMethodID(string, "indexOf", "(Ljava/lang/String;)I");
    const jstring in[] = {env->NewStringUTF("ababcab"), env->NewStringUTF("ab\u20acbcab")};
    const jstring of[] = {env->NewStringUTF("abc"), env->NewStringUTF("bca")};
    constexpr int kCalls = 60'000;
    for (int i = 0; i < kCalls; ++i) env->CallIntMethod(in[i / 7 % 2], search, of[i / 7 % 2]);
    session().jvm().code_map().absorb();
  }

  // Its frame, from the lowest word on, and nothing but `stale` in what it does not use yet.
  uintptr_t make_frame(uintptr_t below, const std::array<void*, 2>& stale) const {
    const size_t words = code_->frame_bytes / sizeof(void*);
    auto** const frame = reinterpret_cast<void**>(below);
    for (size_t i = 0; i < words; ++i) frame[words - 1 - i] = stale[i % 2];
    frame[words - 1] = callers_.front().pc;
    frame[words - 2] = callers_.front().fp;
    return below;
  }

  // `check`: what is walked with all registers, and with three.
  void search(uintptr_t from, const Searched& searched, const std::array<void*, 2>& stale,
              const std::function<void(bool has_registers)>& check) {
    ThreadSlot* const slot = victim(scenario_).slot;
    gregset_t saved;
    std::memcpy(&saved, &slot->context->uc_mcontext.gregs, sizeof(saved));
    constexpr uintptr_t kBelow = uintptr_t{32} * 1024;
    const uintptr_t sp =
        make_frame((get_register(*slot->context, Register::sp) - kBelow) & ~uintptr_t{15}, stale);
    const auto place = [&](size_t page, size_t length, bool at_end) {
      constexpr size_t kSizeOfChar = 2;
      return reinterpret_cast<greg_t>(pages_[page]) +
             static_cast<greg_t>(at_end ? kPage - kSizeOfChar * length : kPage / 2);
    };
    greg_t* const registers = slot->context->uc_mcontext.gregs;
    set_register(slot->context, Register::pc, from);
    set_register(slot->context, Register::sp, sp);
    registers[REG_RDI] = place(0, searched.length, searched.at_end);
    registers[REG_RSI] = place(1, searched.sought, searched.sought_at_end);
    registers[REG_RDX] = static_cast<greg_t>(searched.length);
    registers[REG_RAX] = static_cast<greg_t>(searched.sought);
    constexpr int kMostSteps = 2000;
    for (int i = 0; i < kMostSteps; ++i) {
      const uintptr_t pc = get_register(*slot->context, Register::pc);
      ASSERT_TRUE(World::get().step(slot, {.steps = 1}));
      ucontext_t& context = *slot->context;
      words_.insert((sp - get_register(context, Register::sp)) / sizeof(sp));
      run_context(&context, [&](ASGST_Iterator* it) { take(it); });
      check(true);
      run_from(registers_of(context), [&](ASGST_Iterator* it) { take(it); });
      check(false);
      const uint8_t pop_sp = 0x5c;
      if (read_at<uint8_t>(reinterpret_cast<void*>(pc)) == pop_sp) break;
      ASSERT_LT(i, kMostSteps - 1) << "no end";
    }
    std::memcpy(&slot->context->uc_mcontext.gregs, &saved, sizeof(saved));
  }
  void take(ASGST_Iterator* iterator) {
    walked_ = rest(iterator);
    end_ = state_(iterator);
    pc_ = walked_.empty() ? 0 : reinterpret_cast<uintptr_t>(walked_.front().pc) - code_->begin;
  }

  // The method, with what is inlined in it, then its callers.
  bool is_whole() {
    const auto method = std::ranges::find_if(walked_, [this](const ASGST_Frame& frame) {
      return method_of(frame) == "java/lang/String.indexOf" &&
             frame.type != ASGST_FRAME_JAVA_INLINED;
    });
    return method != walked_.end() &&
           std::equal(method + 1, walked_.end(), callers_.begin(), callers_.end(), same_place);
  }

  static constexpr Searched kSearched[] = {{5, 3, false, false}, {5, 3, false, true},
                                           {5, 3, true, false},  {5, 3, true, true},
                                           {7, 7, true, true},   {60, 20, false, false}};

  const CodeEntry* code_ = nullptr;
  std::vector<uintptr_t> begins_;
  std::array<char*, 2> pages_ = {};
  std::vector<ASGST_Frame> callers_, walked_;
  int end_ = 0;
  uintptr_t pc_ = 0;           // of the walk, in the code
  std::set<uintptr_t> words_;  // on top of the frame
};

TEST_F(StringSearchTest, IsAboveItsCallerAtEachInstruction) {
  for (const uintptr_t from : begins_) {
    for (const Searched& searched : kSearched) {
      search(from, searched, {callers_.front().pc, callers_.front().pc}, [&](bool has_registers) {
        EXPECT_TRUE(is_whole()) << "at +" << pc_ << (has_registers ? "" : ", of three registers")
                                << ": " << walked_.size() << " frames, then " << end_;
      });
      ASSERT_FALSE(HasFatalFailure());
    }
  }
  EXPECT_EQ(words_, (std::set<uintptr_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

// Of three registers there may be two places that look like the caller's. Neither is guessed then.
TEST_F(StringSearchTest, IsNotAboveWhatLooksLikeACaller) {
  const ASGST_Frame other = callers_[1];
  size_t stopped = 0;
  for (const Searched& searched : kSearched) {
    search(begins_.front(), searched, {other.pc, other.fp}, [&](bool has_registers) {
      const bool whole = is_whole();
      const bool stops = end_ == ASGST_STOPPED_BAD_FRAME && walked_.back().method != nullptr &&
                         method_of(walked_.back()) == "java/lang/String.indexOf";
      stopped += stops ? 1 : 0;
      EXPECT_TRUE(whole || (stops && !has_registers))
          << "at +" << pc_ << (has_registers ? "" : ", of three registers") << ": "
          << walked_.size() << " frames, then " << end_;
    });
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_GT(stopped, 0U);
}

}  // namespace
}  // namespace framestorm
