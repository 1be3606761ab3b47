#include "harness/input/binary.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <new>

#include "harness/input/canonical.h"
#include "harness/input/random_input.h"
#include "harness/input/text.h"

namespace {
size_t allocations = 0;
}  // namespace

// Counted, for the promise that decode() does not allocate when warm.
void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) {
    return memory;
  }
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace framestorm {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes encoded(const Input& input) {
  Bytes bytes;
  encode(input, &bytes);
  return bytes;
}

Input decoded(std::span<const uint8_t> bytes) {
  Input input;
  decode(bytes, &input);
  return input;
}

// Legal means: nothing left to canonicalise, and enumerators in range.
void expect_legal(const Input& input) {
  Input canonical = input;
  canonicalise(&canonical);
  ASSERT_EQ(canonical, input);
  ASSERT_LT(input.scenario, ScenarioId::count);
  ASSERT_LT(input.mode, Mode::count);
  ASSERT_LT(input.walker, WalkerId::count);
  ASSERT_LT(input.call.depth, DepthKind::count);
  ASSERT_LT(input.call.context, ContextArg::count);
  ASSERT_LT(input.call.env, EnvArg::count);
  ASSERT_LE(input.iterator_calls.size(), kMaxIteratorCalls);
  ASSERT_LE(input.queue_calls.size(), kMaxQueueCalls);
  for (const QueueCall& call : input.queue_calls) ASSERT_LT(call.kind, QueueCallKind::count);
  for (const IteratorCall& call : input.iterator_calls) {
    ASSERT_LT(call.kind, IteratorCallKind::count);
  }
  for (const Mutation& mutation : input.mutations) {
    ASSERT_LT(mutation.kind, MutationKind::count);
    ASSERT_LT(mutation.reg, Register::count);
    ASSERT_LT(mutation.anchor, StackAnchor::count);
    ASSERT_LT(mutation.field, ThreadField::count);
    ASSERT_LT(mutation.value.kind, ValueKind::count);
    ASSERT_LT(mutation.value.code.kind, CodeKind::count);
    ASSERT_LT(mutation.value.code.anchor, CodeAnchor::count);
  }
}

TEST(Binary, RoundTripOfRandomLegalInputs) {
  TestRng rng(1);
  Input reused;
  for (int i = 0; i < 20'000; ++i) {
    const Input input = random_input(rng);
    const Bytes bytes = encoded(input);
    ASSERT_LE(bytes.size(), kMaxEncodedInput);
    decode(bytes, &reused);
    ASSERT_EQ(reused, input) << "input " << i;
    ASSERT_EQ(check_artifact(bytes), ArtifactCheck::ok) << "input " << i;
  }
}

TEST(Binary, EveryByteStringDecodesToALegalInput) {
  TestRng rng(2);
  Input reused;
  for (int i = 0; i < 100'000; ++i) {
    Bytes bytes(rng() % 200);
    for (uint8_t& byte : bytes) {
      byte = static_cast<uint8_t>(rng());
    }
    decode(bytes, &reused);
    expect_legal(reused);
    ASSERT_EQ(decoded(encoded(reused)), reused);
    ASSERT_EQ(decoded(bytes), reused) << "depends on what the Input held before";
  }
}

TEST(Binary, EveryTruncationDecodesToALegalInput) {
  TestRng rng(3);
  for (int i = 0; i < 200; ++i) {
    const Bytes bytes = encoded(random_input(rng));
    for (size_t size = 0; size <= bytes.size(); ++size) {
      const Input input = decoded(std::span(bytes).first(size));
      expect_legal(input);
      Bytes padded(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      padded.resize(size + 300, 0);
      ASSERT_EQ(decoded(padded), input) << "missing bytes read as zero";
    }
  }
}

TEST(Binary, SurplusBytesAreIgnored) {
  TestRng rng(4);
  const Input input = random_input(rng);
  Bytes bytes = encoded(input);
  bytes.insert(bytes.end(), {1, 2, 3});
  EXPECT_EQ(decoded(bytes), input);
}

TEST(Binary, EmptyStringIsTheDefault) { EXPECT_EQ(decoded({}), Input{}); }

// Each field alone, away from its default: it survives, and it is in the bytes.
TEST(Binary, EachFieldSurvivesAndItsBytesMatter) {
  Input base;
  base.halt.any = false;
  base.halt.has_frame_offset = true;
  base.halt.occurrence = 1;
  base.halt.code.kind = CodeKind::nmethod;
  base.call.depth = DepthKind::raw;
  base.mutations.resize(5);
  base.mutations[1].kind = MutationKind::set_stack_word;
  base.mutations[2].kind = MutationKind::set_thread_field;
  base.mutations[3].value.kind = ValueKind::code;
  base.mutations[3].value.code.kind = CodeKind::nmethod;
  base.mutations[4].value.kind = ValueKind::raw;
  Mutation slot;
  slot.value.kind = ValueKind::slot;
  base.mutations.push_back(slot);
  base.iterator_calls = {{IteratorCallKind::next, 1}};
  const std::vector<std::function<void(Input*)>> changes = {
      [](Input* in) { in->scenario = ScenarioId::vm_thread; },
      [](Input* in) { in->mode = Mode::separate_thread; },
      [](Input* in) { in->walker = WalkerId::plugin; },
      [](Input* in) { in->walker = WalkerId::asgst_frame; },
      [](Input* in) { in->halt.code.kind = CodeKind::codelet; },
      [](Input* in) { in->halt.code.tier = 4; },
      [](Input* in) { in->halt.code.anchor = CodeAnchor::end; },
      [](Input* in) { in->halt.code.name = "x"; },
      [](Input* in) { in->halt.delta = -1; },
      [](Input* in) { in->halt.frame_offset = 0xffffffff; },
      [](Input* in) { in->halt.occurrence = 2; },
      [](Input* in) { in->halt.event = StepEvent::unload; },
      [](Input* in) { in->call.depth = DepthKind::huge; },
      [](Input* in) { in->call.raw_depth = -2; },
      [](Input* in) { in->call.context = ContextArg::misaligned; },
      [](Input* in) { in->call.env = EnvArg::other_victim; },
      [](Input* in) { in->call.options = 0x80000000; },
      [](Input* in) { in->call.accepted_kinds = 0x80; },
      [](Input* in) { in->call.accepted_states = 0x80000000; },
      [](Input* in) { in->iterator_calls[0].kind = IteratorCallKind::open_null; },
      [](Input* in) { in->iterator_calls[0].argument = kMaxIteratorArgument; },
      [](Input* in) { in->iterator_calls.push_back({IteratorCallKind::leave}); },
      [](Input* in) { in->mutations.pop_back(); },
      [](Input* in) { in->mutations[0].kind = MutationKind::set_thread_field; },
      [](Input* in) { in->mutations[0].reg = Register::flags; },
      [](Input* in) { in->mutations[1].anchor = StackAnchor::last_java_sp; },
      [](Input* in) { in->mutations[1].offset = -32768; },
      [](Input* in) { in->mutations[2].field = ThreadField::last_java_fp; },
      [](Input* in) { in->mutations[0].value.kind = ValueKind::unmapped; },
      [](Input* in) { in->mutations[0].value.delta = 1; },
      [](Input* in) { in->mutations[0].value.delta = -129; },
      [](Input* in) { in->mutations[0].value.delta = 32768; },
      [](Input* in) { in->mutations[3].value.code.kind = CodeKind::codelet; },
      [](Input* in) { in->mutations[3].value.code.tier = 1; },
      [](Input* in) { in->mutations[3].value.code.anchor = CodeAnchor::verified_entry; },
      [](Input* in) { in->mutations[3].value.code.name = "framestorm/C1.spin"; },
      [](Input* in) { in->mutations[4].value.raw = 256; },
      [](Input* in) { in->mutations[4].value.raw = 0xffffffffffffffff; },
      [](Input* in) { in->mutations[5].value.index = 65535; },
  };
  const Bytes base_bytes = encoded(base);
  for (size_t i = 0; i < changes.size(); ++i) {
    Input changed = base;
    changes[i](&changed);
    canonicalise(&changed);
    ASSERT_NE(changed, base) << "change " << i;
    EXPECT_EQ(decoded(encoded(changed)), changed) << "change " << i;
    EXPECT_NE(encoded(changed), base_bytes) << "change " << i;
  }
}

// No byte of an artifact is dead, so that a byte mutator wastes nothing. The version is the
// exception.
TEST(Binary, EveryByteOfAnArtifactMatters) {
  TestRng rng(5);
  for (int i = 0; i < 500; ++i) {
    const Input input = random_input(rng);
    const Bytes bytes = encoded(input);
    for (size_t at = 1; at < bytes.size(); ++at) {
      bool matters = false;
      for (unsigned bit = 0; bit < 8 && !matters; ++bit) {
        Bytes changed = bytes;
        changed[at] = static_cast<uint8_t>(changed[at] ^ 1U << bit);
        matters = decoded(changed) != input;
      }
      ASSERT_TRUE(matters) << "byte " << at << " of input " << i;
    }
  }
}

// What an earlier framestorm wrote, before there were masks and iterator calls.
TEST(Binary, OldArtifactsMeanTheSame) {
  const Bytes bytes = {0x01, 0x02, 0x21, 0x0f, 0x90, 0x19, 'f',  'r',  'a',  'm',  'e',  's',
                       't',  'o',  'r',  'm',  '/',  'C',  '2',  'I',  'n',  'l',  'i',  'n',
                       'e',  'd',  '.',  'l',  'e',  'a',  'f',  0x6a, 0xa0, 0x03, 0xb7, 0x22,
                       0x03, 0x00, 0x4a, 0x07, 0x01, 0x09, 'c',  'a',  'l',  'l',  '_',  's',
                       't',  'u',  'b',  0x40, 0x06, 0x4b, 0x10, 0x80, 0x10, 0x08};
  EXPECT_EQ(check_artifact(bytes), ArtifactCheck::ok);
  EXPECT_EQ(to_text(decoded(bytes)), R"(framestorm-input 1
scenario c2-inlined
mode separate-thread
walker plugin
halt nmethod "framestorm/C2Inlined.leaf" tier 4 entry + 0x35 frame-offset 416
depth 17
context misaligned
env null
options 0x3
register pc = stub "call_stub" entry + 7
stack sp + 3 = libc-text + 16
thread state = raw 0x8
)");
}

TEST(Binary, IsCompact) {
  Input input;
  EXPECT_EQ(encoded(input).size(), 4U);
  Mutation mutation;
  mutation.reg = Register::sp;
  mutation.value.kind = ValueKind::real_sp;
  input.mutations = {mutation};
  EXPECT_EQ(encoded(input).size(), 6U);
  mutation.value.delta = -64;
  input.mutations.assign(4, mutation);
  mutation.value = {};
  mutation.value.kind = ValueKind::code;
  mutation.value.code.name = "call_stub";
  input.mutations.push_back(mutation);
  EXPECT_LE(encoded(input).size(), 40U);
}

TEST(Binary, LargestInputFits) {
  Input input;
  input.halt.any = false;
  input.halt.code.name.assign(kMaxSymbolName, 'n');
  Mutation mutation;
  mutation.kind = MutationKind::set_stack_word;
  mutation.offset = -32768;
  mutation.value.kind = ValueKind::code;
  mutation.value.delta = INT32_MIN;
  mutation.value.code.name.assign(kMaxSymbolName, 'n');
  input.mutations.assign(kMaxMutations, mutation);
  input.call = {DepthKind::raw, INT32_MIN, ContextArg::null, EnvArg::null,
                UINT32_MAX,     0xff,      UINT32_MAX};
  input.iterator_calls.assign(kMaxIteratorCalls, {IteratorCallKind::drain});
  EXPECT_LE(encoded(input).size(), kMaxEncodedInput);
  EXPECT_EQ(decoded(encoded(input)), input);
}

TEST(Binary, CallsToQueuesSurviveAndTheirBytesMatter) {
  Input base;
  base.walker = WalkerId::asgst_queue;
  base.queue_calls = {{QueueCallKind::register_queue, 5}, {QueueCallKind::exit}};
  ASSERT_EQ(decoded(encoded(base)), base);
  Input other = base;
  other.queue_calls[0].argument = kMaxIteratorArgument;
  EXPECT_EQ(decoded(encoded(other)), other);
  EXPECT_NE(encoded(other), encoded(base));
  other = base;
  other.queue_calls[1].kind = QueueCallKind::poll;
  EXPECT_EQ(decoded(encoded(other)), other);
  EXPECT_NE(encoded(other), encoded(base));
}

// As artifacts from before there were more kinds than 15 have them.
TEST(Binary, TheFirstKindsOfCallsToQueuesTakeOneByte) {
  Input input;
  input.walker = WalkerId::asgst_queue;
  const size_t none = encoded(input).size();
  input.queue_calls = {{QueueCallKind::exit}};
  EXPECT_EQ(encoded(input).size(), none + 2);
  EXPECT_EQ(encoded(input).back(), 14);
  input.queue_calls = {{QueueCallKind::register_mark}, {QueueCallKind::throw_frozen}};
  EXPECT_EQ(encoded(input).size(), none + 5);
  EXPECT_EQ(decoded(encoded(input)), input);
}

TEST(Binary, BytesThatNamesMayNotHaveAreMapped) {
  Input input;
  input.mutations.resize(1);
  input.mutations[0].value.kind = ValueKind::code;
  input.mutations[0].value.code.name = "call\"stub";
  EXPECT_EQ(decoded(encoded(input)).mutations[0].value.code.name, "call_stub");
}

TEST(Binary, DecodeDoesNotAllocateWhenWarm) {
  TestRng rng(6);
  std::vector<Bytes> inputs;
  Input full;
  Mutation longest;
  longest.value.kind = ValueKind::code;
  longest.value.code.name.assign(kMaxSymbolName, 'n');
  full.mutations.assign(kMaxMutations, longest);
  full.halt.any = false;
  full.halt.code = longest.value.code;
  full.iterator_calls.resize(kMaxIteratorCalls);
  inputs.push_back(encoded(full));
  Input queues;
  queues.walker = WalkerId::asgst_queue;
  queues.queue_calls.resize(kMaxQueueCalls);
  inputs.push_back(encoded(queues));
  for (int i = 0; i < 2000; ++i) {
    inputs.push_back(encoded(random_input(rng)));
  }
  Input input;
  decode(inputs[0], &input);
  decode(inputs[1], &input);
  const size_t before = allocations;
  for (int round = 0; round < 2; ++round) {
    for (const Bytes& bytes : inputs) {
      decode(bytes, &input);
    }
  }
  EXPECT_EQ(allocations, before);
}

TEST(CheckArtifact, SaysWhatIsWrong) {
  const Bytes good = encoded(Input{});
  EXPECT_EQ(check_artifact(good), ArtifactCheck::ok);
  EXPECT_EQ(check_artifact({}), ArtifactCheck::empty);
  EXPECT_EQ(check_artifact(Bytes(kMaxEncodedInput + 1, kInputVersion)), ArtifactCheck::too_large);
  Bytes bytes = good;
  bytes[0] = kInputVersion + 1;
  EXPECT_EQ(check_artifact(bytes), ArtifactCheck::foreign_version);
  bytes = good;
  bytes.push_back(0);
  EXPECT_EQ(check_artifact(bytes), ArtifactCheck::not_canonical) << "surplus byte";
  bytes = good;
  bytes.pop_back();
  EXPECT_EQ(check_artifact(bytes), ArtifactCheck::not_canonical) << "missing byte";
  bytes = good;
  bytes[1] = static_cast<uint8_t>(ScenarioId::count);
  EXPECT_EQ(check_artifact(bytes), ArtifactCheck::not_canonical) << "scenario out of range";
  EXPECT_EQ(explain(ArtifactCheck::ok), "");
  EXPECT_NE(explain(ArtifactCheck::empty), "");
}

// Merely changed bytes are mostly still artifacts; plain garbage must not be.
TEST(CheckArtifact, RefusesGarbage) {
  TestRng rng(7);
  int accepted = 0;
  for (int i = 0; i < 10'000; ++i) {
    Bytes bytes(64);
    for (uint8_t& byte : bytes) {
      byte = static_cast<uint8_t>(rng());
    }
    bytes[0] = kInputVersion;
    accepted += check_artifact(bytes) == ArtifactCheck::ok ? 1 : 0;
  }
  EXPECT_LT(accepted, 10);
}

}  // namespace
}  // namespace framestorm
