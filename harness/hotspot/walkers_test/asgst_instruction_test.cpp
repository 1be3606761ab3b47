// AsyncGetStackTrace at single instructions of methods and stubs, where sp or fp are not yet, or no
// longer, those of the frame.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "harness/base/poke.h"
#include "harness/hotspot/walkers_test/asgst_fixture.h"
#include "harness/input/thread_state.h"
#include "harness/victim/context.h"

namespace framestorm {
namespace {

using asgst_test::AsgstTest;
using asgst_test::Traced;

// While locals are pushed the return address is in rax, and the frame pointer the caller's.
TEST_F(AsgstTest, AMethodBeingEnteredIsAboveItsCaller) {
  start({ScenarioId::interpreted_recursion});
  halt_in_java(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  const Victim& walked = victim(ScenarioId::interpreted_recursion);
  const auto caller_fp = get_register(*walked.slot->context, Register::fp);
  // A caller with next to nothing on its expression stack.
  const uintptr_t sp = caller_fp - 9 * sizeof(sp);
  ucontext_t context;
  copy_context(*walked.slot->context, &context);
  set_register(&context, Register::sp, sp);
  const Traced caller = walk_context(&context, 0);
  ASSERT_GT(caller.methods().size(), 2U) << caller.why();
  // An ID is the address of a Method's.
  const auto* const method = *reinterpret_cast<const std::byte* const*>(caller.methods().front());
  const VmStructs& structs = session().jvm().structs();
  const auto entry = read_at<uintptr_t>(method, structs.required_offset("Method", "_i2i_entry"));
  set_register(&context, Register::pc, entry + 0x20);
  greg_t* const registers = context.uc_mcontext.gregs;
  registers[REG_RBX] = reinterpret_cast<greg_t>(method);
  registers[REG_R13] = static_cast<greg_t>(sp);
  registers[REG_RAX] = read_at<greg_t>(reinterpret_cast<void*>(caller_fp), sizeof(uintptr_t));
  const Traced entered = walk_context(&context, 0);
  std::vector<jmethodID> expected = caller.methods();
  expected.insert(expected.begin(), caller.methods().front());
  EXPECT_EQ(entered.methods(), expected) << entered.why();
}

// HotSpot's signal handler has the stub of a poll begin where the thread polled, with nothing pushed.
TEST_F(AsgstTest, AStubThatAPollWasSentToIsAboveThePollsFrame) {
  start({ScenarioId::c1});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const std::vector<jmethodID> whole = walk(ScenarioId::c1, 0).methods();
  const Victim& walked = victim(ScenarioId::c1);
  ucontext_t context;
  copy_context(*walked.slot->context, &context);
  // A caller, as if it had called a poll.
  uintptr_t sp = get_register(context, Register::sp);
  uintptr_t returns_to = 0;
  std::vector<jmethodID> expected;
  const auto is_part = [&] {
    return expected.size() > 1 && expected.size() < whole.size() &&
           std::equal(expected.rbegin(), expected.rend(), whole.rbegin());
  };
  do {
    ASSERT_LT(sp, walked.stack_base) << "no caller";
    returns_to = read_at<uintptr_t>(reinterpret_cast<void*>(sp), 0);
    sp += sizeof(sp);
    set_register(&context, Register::pc, returns_to);
    set_register(&context, Register::sp, sp);
    expected = walk_context(&context, 0).methods();
  } while (!is_part());

  const auto stubs = session().jvm().code_map().entries();
  const auto is_sent_to = [](const CodeEntry& code) {
    constexpr uint8_t kPushBx = 0x53;
    return code.name == "SafepointBlob" && *reinterpret_cast<const uint8_t*>(code.begin) == kPushBx;
  };
  const auto stub = std::ranges::find_if(stubs, is_sent_to);
  ASSERT_NE(stub, stubs.end());
  const VmStructs& structs = session().jvm().structs();
  const Poke polled_at(static_cast<char*>(walked.java_thread) +
                           structs.required_offset("JavaThread", "_saved_exception_pc"),
                       returns_to);
  // What an earlier call has left there.
  const Poke stale(reinterpret_cast<void*>(sp), returns_to);
  set_register(&context, Register::pc, (*stub).begin);
  const Traced traced = walk_context(&context, 0);
  EXPECT_EQ(traced.methods(), expected) << traced.why();
}

// The stub that replaces a deoptimised frame saves all registers first, in three ways: behind a return, or to
// execute a bytecode again, with the return address on the stack; for an exception without, which it has from
// the thread only when all are saved. Here it is entered in each, by the frame's callee.
TEST_F(AsgstTest, ADeoptimisedFrameIsBelowTheStubThatSavesRegisters) {
  start({ScenarioId::deoptimized_caller});
  halt_in_java(ScenarioId::deoptimized_caller);
  ASSERT_FALSE(HasFatalFailure());
  const Victim& walked = victim(ScenarioId::deoptimized_caller);
  std::vector<jmethodID> expected = walk(ScenarioId::deoptimized_caller, 0).methods();
  const auto is_callee = [&](jmethodID method) {
    return !session().jvm().methods().find(method)->name.ends_with("inlinedCaller");
  };
  expected.erase(expected.begin(), std::ranges::find_if_not(expected, is_callee));
  ASSERT_GT(expected.size(), 2U);
  // Where its callee would return to.
  const CodeMap& codes = session().jvm().code_map();
  uintptr_t slot = get_register(*walked.slot->context, Register::sp);
  uintptr_t returned_to = 0;
  const auto is_deoptimised = [&] {
    returned_to = read_at<uintptr_t>(reinterpret_cast<void*>(slot));
    const CodeEntry* const code = codes.find(returned_to);
    return code != nullptr && code->kind == CodeKind::nmethod && code->deopt_handler == returned_to;
  };
  while (slot < walked.stack_base && !is_deoptimised()) slot += sizeof(slot);
  ASSERT_LT(slot, walked.stack_base);
  const uintptr_t sp = slot + sizeof(slot);

  const auto entries = codes.entries();
  const auto stub = std::ranges::find(entries, "DeoptimizationBlob", &CodeEntry::name);
  ASSERT_NE(stub, entries.end());
  const auto* const begin = reinterpret_cast<const uint8_t*>((*stub).begin);
  const auto* const end = reinterpret_cast<const uint8_t*>((*stub).end);
  const uint8_t saves[] = {0x55, 0x48, 0x8b, 0xec};        // push rbp; mov rbp, rsp
  const uint8_t has_saved[] = {0x41, 0xbe};                // mov r14d, ..
  const uint8_t makes_room[] = {0x68, 0, 0, 0, 0};         // push 0
  const uint8_t has_address[] = {0x48, 0x89, 0x55, 0x08};  // mov [rbp + 8], rdx
  const auto find = [end](const uint8_t* from, const auto& bytes) {
    return std::search(from, end, std::begin(bytes), std::end(bytes));
  };

  const VmStructs& structs = session().jvm().structs();
  auto* const exception_pc =
      reinterpret_cast<uintptr_t*>(static_cast<char*>(walked.java_thread) +
                                   structs.required_offset("JavaThread", "_exception_pc"));
  auto* const words = reinterpret_cast<uintptr_t*>(sp);
  const auto fp = get_register(*walked.slot->context, Register::fp);
  const std::array<uintptr_t, 2> below = {words[-2], words[-1]};
  const Poke words_below(static_cast<void*>(words - 2), std::array{below[0], returned_to});
  const Poke without_exception(exception_pc, uintptr_t{0});
  const auto expect = [&](const uint8_t* pc, size_t pushed, uintptr_t has_fp, uintptr_t rdx = 0) {
    ucontext_t context;
    copy_context(*walked.slot->context, &context);
    set_register(&context, Register::pc, reinterpret_cast<uintptr_t>(pc));
    set_register(&context, Register::sp, sp - pushed * sizeof(sp));
    set_register(&context, Register::fp, has_fp);
    context.uc_mcontext.gregs[REG_RDX] = static_cast<greg_t>(rdx);
    const Traced traced = walk_context(&context, 0);
    EXPECT_EQ(traced.methods(), expected) << "+" << pc - begin << ": " << traced.why();
  };
  const auto expect_while_saving = [&](const uint8_t* from, const uint8_t* to) {
    expect(from, 1, fp);
    words[-2] = fp;
    expect(from + 1, 2, fp);
    for (const uint8_t* pc = from + sizeof(saves); pc <= to; ++pc) {
      expect(pc, 2, sp - 2 * sizeof(sp));
    }
  };
  const uint8_t* next = begin;
  for (int i = 0; i < 2; ++i) {
    const uint8_t* const entry = find(next, saves);
    next = find(entry, has_saved);
    ASSERT_LT(next - entry, 1024);
    expect_while_saving(entry, next);
  }
  const uint8_t* const room = find(next, makes_room);
  ASSERT_EQ(find(room, saves), room + sizeof(makes_room));
  const uint8_t* const stored = find(room, has_address);
  ASSERT_LT(stored - room, 1024);
  // It is entered with the address in rdx, which it notes first, then the exception.
  const uint8_t* const entry = room - 14;
  ASSERT_EQ(entry[1], 0x89);
  ASSERT_EQ(entry[2], 0x97);
  words[-1] = below[1];
  expect(entry, 0, fp, returned_to);
  *exception_pc = returned_to;
  expect(entry + 7, 0, fp);
  expect(room, 0, fp);
  words[-1] = 0;
  expect_while_saving(room + sizeof(makes_room), stored);
  // C1's stub for an exception goes there as if it returned.
  const auto c1 = std::ranges::find_if(entries, [](const CodeEntry& code) {
    return code.name.find("handle_exception_from_callee") != std::string::npos;
  });
  ASSERT_NE(c1, entries.end());
  const uint8_t leaves[] = {0xc9, 0x59, 0xff, 0xe1};  // leave; pop rcx; jmp rcx
  const auto* const end_of_c1 = reinterpret_cast<const uint8_t*>((*c1).end);
  const auto* const leave = std::search(reinterpret_cast<const uint8_t*>((*c1).begin), end_of_c1,
                                        std::begin(leaves), std::end(leaves));
  ASSERT_NE(leave, end_of_c1);
  words[-1] = reinterpret_cast<uintptr_t>(room);
  words[-2] = fp;
  expect(leave, 2, sp - 2 * sizeof(sp));
  expect(leave + 1, 1, fp);
  expect(leave + 2, 0, fp);
}

// C1's code for it has a prologue of its own, behind that for calls.
TEST_F(AsgstTest, AnOsrMethodThatIsBeingEnteredIsAboveItsCaller) {
  start({ScenarioId::osr}, {}, {"-XX:TieredStopAtLevel=1"});
  ASSERT_FALSE(HasFatalFailure());
  const Victim& walked = victim(ScenarioId::osr);
  const CodeEntry* code = nullptr;
  const auto is_in_loop = [&] { return code != nullptr && code->name == "framestorm/Osr.loop"; };
  for (int i = 0; i < 200 && !is_in_loop(); ++i) {
    halt(ScenarioId::osr);
    ASSERT_FALSE(HasFatalFailure());
    code = session().jvm().code_map().find(walked.pc);
  }
  ASSERT_TRUE(is_in_loop());
  const Traced whole = walk(ScenarioId::osr, 0);
  ASSERT_GT(whole.methods().size(), 1U) << whole.why();
  const auto* const end = reinterpret_cast<const uint8_t*>(code->end);
  const auto entry_from = [end](const uint8_t* from) {
    const uint8_t bangs[] = {0x89, 0x84, 0x24};  // mov [rsp - ..], eax
    return std::search(from, end, std::begin(bangs), std::end(bangs));
  };
  const uint8_t* const entry =
      entry_from(entry_from(reinterpret_cast<const uint8_t*>(code->verified_entry)) + 1);
  ASSERT_NE(entry, end);
  ucontext_t context;
  copy_context(*walked.slot->context, &context);
  const uintptr_t slot = walked.sp + code->frame_bytes - sizeof(slot);
  set_register(&context, Register::pc, reinterpret_cast<uintptr_t>(entry));
  set_register(&context, Register::sp, slot);
  set_register(&context, Register::fp,
               read_at<uintptr_t>(reinterpret_cast<void*>(slot - sizeof(slot))));
  const Traced entered = walk_context(&context, 0);
  EXPECT_EQ(entered.methods(), whole.methods()) << entered.why();
}

// After its leave a native method's code still looks for an exception.
TEST_F(AsgstTest, ANativeMethodWhoseFrameIsGoneHasItsCaller) {
  start({ScenarioId::native_method});
  halt(ScenarioId::native_method);
  ASSERT_FALSE(HasFatalFailure());
  const Traced whole = walk(ScenarioId::native_method, 0);
  ASSERT_GT(whole.methods().size(), 2U) << whole.why();
  const Victim& walked = victim(ScenarioId::native_method);
  const CodeMap& codes = session().jvm().code_map();
  const auto last_sp = read_at<uintptr_t>(walked.java_thread, layout().last_java_sp);
  const CodeEntry* const wrapper =
      codes.find(read_at<uintptr_t>(walked.java_thread, layout().last_java_pc));
  ASSERT_NE(wrapper, nullptr);
  ASSERT_EQ(wrapper->kind, CodeKind::nmethod);
  const auto is_caller = [&](uintptr_t slot) {
    const CodeEntry* const code = codes.find(read_at<uintptr_t>(reinterpret_cast<void*>(slot), 0));
    return code != nullptr && code != wrapper && code->kind == CodeKind::nmethod;
  };
  uintptr_t slot = last_sp;
  while (slot < walked.stack_base - sizeof(slot) && !is_caller(slot)) slot += sizeof(slot);
  ASSERT_TRUE(is_caller(slot));

  // From behind leave to the jump behind ret, by the instructions' lengths.
  const uint8_t end_of_frame[] = {0xc9, 0x41, 0xf6, 0x47};
  const auto* const begin = reinterpret_cast<const uint8_t*>(wrapper->begin);
  const auto* const end = reinterpret_cast<const uint8_t*>(wrapper->end);
  const auto* const leave =
      std::search(begin, end, std::begin(end_of_frame), std::end(end_of_frame));
  ASSERT_NE(leave, end);
  ASSERT_EQ(leave[41], 0xc3) << "another shape of the end";
  ASSERT_EQ(leave[42], 0xe9);
  auto* const thread = static_cast<char*>(walked.java_thread);
  const Poke state(thread + layout().state, uint32_t{kThreadInJava});
  const Poke anchor(thread + layout().last_java_sp, uintptr_t{0});
  for (const int place : {1, 6, 8, 18, 25, 30, 35, 41, 42}) {
    ucontext_t context;
    copy_context(*walked.slot->context, &context);
    set_register(&context, Register::pc, reinterpret_cast<uintptr_t>(leave + place));
    set_register(&context, Register::sp, slot);
    set_register(&context, Register::fp,
                 read_at<uintptr_t>(reinterpret_cast<void*>(slot - sizeof(slot)), 0));
    const Traced traced = walk_context(&context, 0);
    EXPECT_EQ(traced.methods(), whole.methods()) << "leave + " << place << ": " << traced.why();
  }
  // Where a link seems to have been pushed, a return address above it says whether one has.
  const uint8_t begin_of_frame[] = {0x55, 0x48, 0x8b, 0xec};
  const auto* const push =
      std::search(begin, end, std::begin(begin_of_frame), std::end(begin_of_frame));
  ASSERT_NE(push, end);
  const Poke above(reinterpret_cast<uintptr_t*>(slot) + 1, uintptr_t{0});
  ucontext_t unpushed;
  copy_context(*walked.slot->context, &unpushed);
  set_register(&unpushed, Register::pc, reinterpret_cast<uintptr_t>(push + sizeof(begin_of_frame)));
  set_register(&unpushed, Register::sp, slot);
  const Traced traced = walk_context(&unpushed, 0);
  EXPECT_EQ(traced.methods(), whole.methods()) << traced.why();
}

}  // namespace
}  // namespace framestorm
