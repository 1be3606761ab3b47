#include "harness/input/text.h"

#include <gtest/gtest.h>

#include "harness/input/binary.h"
#include "harness/input/random_input.h"

namespace framestorm {
namespace {

constexpr std::string_view kExample = R"(framestorm-input 1
scenario c2-inlined
mode same-thread
walker asgct
halt nmethod "framestorm/C2Inlined.leaf" tier 4 entry + 0x35 frame-offset 416
depth exact - 1                     # also: normal zero one huge 17 -3
context misaligned
env null
options 0x3
accepted-kinds 0x1
accepted-states 0x5
register pc = stub "call_stub" entry + 7
register sp = real-sp - 64
stack sp + 3 = libc-text + 16       # offsets of stack words are in words
thread state = raw 0x8
thread last-java-sp = stack-base - 8
iterator next 3                     # also: drain, rewind, state, thread-state, open,
iterator jump 1                     # open-frame, open-to-java, leave, select 0, next-null, open-null
)";

Mutation set_register(Register reg, ValueKind kind, int32_t delta) {
  Mutation mutation;
  mutation.reg = reg;
  mutation.value.kind = kind;
  mutation.value.delta = delta;
  return mutation;
}

Input example_input() {
  Input input;
  input.scenario = ScenarioId::c2_inlined;
  input.halt = {.any = false,
                .code = {CodeKind::nmethod, 4, CodeAnchor::entry, "framestorm/C2Inlined.leaf"},
                .delta = 0x35,
                .has_frame_offset = true,
                .frame_offset = 416};
  input.call = {.depth = DepthKind::exact_minus_1,
                .context = ContextArg::misaligned,
                .env = EnvArg::null,
                .options = 3,
                .accepted_kinds = 1,
                .accepted_states = 5};
  Mutation pc = set_register(Register::pc, ValueKind::code, 7);
  pc.value.code = {CodeKind::stub, 0, CodeAnchor::entry, "call_stub"};
  Mutation word = set_register(Register::pc, ValueKind::libc_text, 16);
  word.kind = MutationKind::set_stack_word;
  word.offset = 3;
  Mutation state = set_register(Register::pc, ValueKind::raw, 0);
  state.kind = MutationKind::set_thread_field;
  state.value.raw = 8;
  Mutation last_java_sp = set_register(Register::pc, ValueKind::stack_base, -8);
  last_java_sp.kind = MutationKind::set_thread_field;
  last_java_sp.field = ThreadField::last_java_sp;
  input.mutations = {pc, set_register(Register::sp, ValueKind::real_sp, -64), word, state,
                     last_java_sp};
  input.iterator_calls = {{IteratorCallKind::next, 2}, {IteratorCallKind::jump, 0}};
  return input;
}

Input parsed(std::string_view text) {
  Input input;
  TextError error;
  EXPECT_TRUE(parse_text(text, &input, &error)) << error.line << ": " << error.message << '\n'
                                                << text;
  return input;
}

TEST(Text, ExampleOfTheHeaderParses) { EXPECT_EQ(parsed(kExample), example_input()); }

TEST(Text, CanonicalFormOfTheExample) {
  EXPECT_EQ(to_text(example_input()), R"(framestorm-input 1
scenario c2-inlined
halt nmethod "framestorm/C2Inlined.leaf" tier 4 entry + 0x35 frame-offset 416
depth exact - 1
context misaligned
env null
options 0x3
accepted-kinds 0x1
accepted-states 0x5
register pc = stub "call_stub" entry + 7
register sp = real-sp - 64
stack sp + 3 = libc-text + 16
thread state = raw 0x8
thread last-java-sp = stack-base - 8
iterator next 3
iterator jump 1
)");
}

TEST(Text, CallsToQueuesSayWhatTheyMean) {
  const std::string text =
      "framestorm-input 1\nscenario c1\nwalker asgst-queue\nqueue register 4\n"
      "queue enqueue 0\nqueue element -1\nqueue resize -1\nqueue poll\nqueue select 3\n"
      "queue register-mark\nqueue move-mark 2\nqueue return 16\nqueue unwind 1\n";
  const Input input = parsed(text);
  const std::vector<QueueCall> expected = {{QueueCallKind::register_queue, 5},
                                           {QueueCallKind::enqueue, 0},
                                           {QueueCallKind::element, 7},
                                           {QueueCallKind::resize, 0},
                                           {QueueCallKind::poll},
                                           {QueueCallKind::select, 3},
                                           {QueueCallKind::register_mark},
                                           {QueueCallKind::move_mark, 2},
                                           {QueueCallKind::return_frame, 15},
                                           {QueueCallKind::unwind, 0}};
  EXPECT_EQ(input.queue_calls, expected);
  EXPECT_EQ(to_text(input), text);
}

TEST(Text, DefaultsAreLeftOut) {
  EXPECT_EQ(to_text(Input{}), "framestorm-input 1\nscenario interpreted-recursion\n");
  EXPECT_EQ(parsed("framestorm-input 1\nscenario interpreted-recursion\n"), Input{});
}

TEST(Text, TextToBinaryToTextIsTheIdentity) {
  TestRng rng(21);
  for (int i = 0; i < 5000; ++i) {
    const Input input = random_input(rng);
    const std::string text = to_text(input);
    const Input from_text = parsed(text);
    ASSERT_EQ(from_text, input) << text;
    std::vector<uint8_t> bytes;
    encode(from_text, &bytes);
    Input from_bytes;
    decode(bytes, &from_bytes);
    ASSERT_EQ(to_text(from_bytes), text);
  }
}

TEST(Text, LayoutIsFree) {
  EXPECT_EQ(parsed("# a comment\n\n  framestorm-input 1 # version\r\n\tscenario   c1\r\n"
                   "register sp=real-sp +0x10\nregister fp = slot 3 - 8\nhalt any\n"
                   "context victim"),
            parsed("framestorm-input 1\nscenario c1\nregister sp = real-sp + 16\n"
                   "register fp = slot 3 - 8\n"));
}

TEST(Text, HashInsideANameIsNoComment) {
  const Input input = parsed("framestorm-input 1\nscenario c1\nregister pc = stub \"a # b\" end\n");
  EXPECT_EQ(input.mutations.at(0).value.code.name, "a # b");
}

TEST(Text, DepthTakesWordsAndNumbers) {
  const auto depth = [](const std::string& text) {
    return parsed("framestorm-input 1\nscenario c1\ndepth " + text + "\n").call;
  };
  EXPECT_EQ(depth("exact").depth, DepthKind::exact);
  EXPECT_EQ(depth("exact + 1").depth, DepthKind::exact_plus_1);
  EXPECT_EQ(depth("huge").depth, DepthKind::huge);
  EXPECT_EQ(depth("17").raw_depth, 17);
  EXPECT_EQ(depth("-3").raw_depth, -3);
  EXPECT_EQ(depth("-2147483648").raw_depth, INT32_MIN);
  EXPECT_EQ(depth("-3").depth, DepthKind::raw);
}

struct BadText {
  std::string_view line;  // third line, after a good beginning
  std::string_view what;  // part of the message
  std::string_view allowed = "";
};

class TextErrors : public testing::TestWithParam<BadText> {};

TEST_P(TextErrors, NameTheLineWhatIsWrongAndWhatIsAllowed) {
  const std::string text =
      "framestorm-input 1\nscenario c1\n" + std::string(GetParam().line) + "\ndepth one\n";
  Input input;
  TextError error;
  ASSERT_FALSE(parse_text(text, &input, &error));
  EXPECT_EQ(error.line, 3);
  EXPECT_NE(error.message.find(GetParam().what), std::string::npos) << error.message;
  EXPECT_NE(error.message.find(GetParam().allowed), std::string::npos) << error.message;
}

INSTANTIATE_TEST_SUITE_P(
    Lines, TextErrors,
    testing::Values(
        BadText{"scenario c2-inlined", "a second 'scenario' line"},
        BadText{"frob 1", "unknown statement 'frob'", "register, stack, thread, iterator, queue"},
        BadText{"mode sideways", "unknown mode 'sideways'", "same-thread, separate-thread"},
        BadText{"walker", "ends too early", "asgct, gst, plugin, asgst"},
        BadText{"walker asgct gst", "unexpected 'gst' after the end"},
        BadText{"depth two", "unknown depth 'two'", "exact - 1"},
        BadText{"depth exact - 2", "unknown depth 'exact - 2'", "exact + 1"},
        BadText{"depth raw", "unknown depth 'raw'", "or a number"},
        BadText{"depth 2147483648", "out of range", "0 to 2147483647"},
        BadText{"context maybe", "unknown context argument 'maybe'", "victim, null, misaligned"},
        BadText{"env 3", "unknown env argument '3'", "other-victim"},
        BadText{"options 0x1ffffffff", "out of range", "4294967295"},
        BadText{"options abc", "'abc' is not a number", "0x..."},
        BadText{"options 0x", "'0x' is not a number"},
        BadText{"accepted-kinds 0x100", "out of range", "0 to 255"},
        BadText{"iterator jump", "ends too early", "0 to 16"},
        BadText{"iterator jump 0", "from 1 to 16"},
        BadText{"iterator select 16", "out of range", "0 to 15"},
        BadText{"iterator rewind 1", "unexpected '1' after the end"},
        BadText{"queue register 15", "takes a number from -1 to 14", "'register'"},
        BadText{"queue element -9", "takes a number from -8 to 7", "'element'"},
        BadText{"iterator skip", "unknown call of an iterator 'skip'", "next, drain, rewind"},
        BadText{"halt real-pc", "unexpected 'real-pc'", "any, nmethod, stub, codelet"},
        BadText{"halt nmethod C1.spin entry", "unexpected 'C1.spin'", "double quotes"},
        BadText{"halt stub \"call_stub\" middle", "unknown place in the code 'middle'",
                "verified-entry"},
        BadText{"halt stub \"call_stub\" tier 4 entry", "only an nmethod has a tier"},
        BadText{"halt nmethod \"m\" tier 5 entry", "out of range", "0 to 4"},
        BadText{"halt stub \"call_stub", "no closing double quote"},
        BadText{"halt stub \"a\\b\" entry", "not allowed", "printable ASCII"},
        BadText{"register eax = raw 0", "unknown register 'eax'", "rax, rbx"},
        BadText{"register pc raw 0", "unexpected 'raw'", "'='"},
        BadText{"register pc = ", "ends too early", "real-sp"},
        BadText{"register pc = code", "unknown value 'code'", "nmethod, stub, codelet"},
        BadText{"register pc = real-sp + 2147483648", "out of range", "2147483647"},
        BadText{"register pc = raw 0x10000000000000000", "out of range"},
        BadText{"register pc = raw 1 + 2", "unexpected '+' after the end"},
        BadText{"register pc = misaligned + 4", "offset from 0 to 3"},
        BadText{"register pc = slot", "ends too early", "0 to 65535"},
        BadText{"stack heap + 1 = raw 0", "unknown place on the stack 'heap'", "stack-base"},
        BadText{"stack sp + 40000 = raw 0", "out of range", "32767"},
        BadText{"thread name = raw 0", "unknown thread field 'name'", "last-java-fp"}));

TEST(TextErrors, MissingParts) {
  Input input;
  TextError error;
  EXPECT_FALSE(parse_text("", &input, &error));
  EXPECT_EQ(error.line, 1);
  EXPECT_NE(error.message.find("framestorm-input 1"), std::string::npos);
  EXPECT_FALSE(parse_text("scenario c1\n", &input, &error));
  EXPECT_NE(error.message.find("framestorm-input 1"), std::string::npos);
  EXPECT_FALSE(parse_text("framestorm-input 2\nscenario c1\n", &input, &error));
  EXPECT_NE(error.message.find("version 1"), std::string::npos) << error.message;
  EXPECT_FALSE(parse_text("framestorm-input 1\nmode same-thread\n", &input, &error));
  EXPECT_EQ(error.line, 2);
  EXPECT_NE(error.message.find("no scenario line"), std::string::npos);
}

TEST(TextErrors, TooManyMutationsOrCalls) {
  std::string text = "framestorm-input 1\nscenario c1\n";
  for (size_t i = 0; i <= kMaxMutations; ++i) {
    text += "register pc = raw 0\n";
  }
  Input input;
  TextError error;
  EXPECT_FALSE(parse_text(text, &input, &error));
  EXPECT_EQ(error.line, 2 + static_cast<int>(kMaxMutations) + 1);
  EXPECT_NE(error.message.find("more than 16"), std::string::npos);

  text = "framestorm-input 1\nscenario c1\n";
  for (size_t i = 0; i <= kMaxIteratorCalls; ++i) {
    text += "iterator drain\n";
  }
  EXPECT_FALSE(parse_text(text, &input, &error));
  EXPECT_EQ(error.line, 2 + static_cast<int>(kMaxIteratorCalls) + 1);
}

TEST(TextErrors, CallsOfAnotherWalkersKindAreRefused) {
  Input input;
  TextError error;
  EXPECT_FALSE(parse_text("framestorm-input 1\nscenario c1\nqueue poll\n", &input, &error));
  EXPECT_NE(error.message.find("asgct makes no such calls"), std::string::npos) << error.message;
  EXPECT_FALSE(parse_text("framestorm-input 1\nscenario c1\nwalker asgst-queue\niterator drain\n",
                          &input, &error));
  EXPECT_NE(error.message.find("asgst-queue makes no such calls"), std::string::npos);
}

// Total too: whatever it is given, an error or an Input.
TEST(TextErrors, GarbageIsRefusedWithALine) {
  TestRng rng(22);
  const std::string good(kExample);
  for (int i = 0; i < 20'000; ++i) {
    std::string text = good;
    for (size_t changes = 1 + rng() % 4; changes > 0; --changes) {
      text[rng() % text.size()] = static_cast<char>(rng());
    }
    Input input;
    TextError error;
    if (parse_text(text, &input, &error)) {
      ASSERT_EQ(parsed(to_text(input)), input);
    } else {
      ASSERT_GE(error.line, 1);
      ASSERT_FALSE(error.message.empty());
    }
  }
}

}  // namespace
}  // namespace framestorm
