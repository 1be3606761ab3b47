#include "harness/input/binary.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "harness/input/canonical.h"

namespace framestorm {
namespace {

constexpr uint32_t kWhichMask = 0x3f;  // low bits of the bytes that say mutation and value kind
constexpr unsigned kTopShift = 6;
constexpr size_t kMutationCounts = kMaxMutations + 1;
constexpr size_t kIteratorCallCounts = kMaxIteratorCalls + 1;
// In the byte that also has mode (one bit) and walker (the upper four).
constexpr uint32_t kHasMasks = 2;
constexpr uint32_t kHasCalls = 4;
constexpr uint32_t kHasEvent = 8;  // of a halt point with an occurrence
constexpr uint32_t kTiers = 5;
constexpr uint8_t kHighBit = 0x80;

template <typename Enum>
constexpr Enum enum_from(uint32_t number) {
  return static_cast<Enum>(number % static_cast<uint32_t>(Enum::count));
}

template <typename Enum>
constexpr uint32_t number_of(Enum value) {
  return static_cast<uint32_t>(value);
}

// Long names of mutations that decode() dropped, kept so that the next input does not allocate.
class SpareNames {
 public:
  void keep(std::string* name) {
    if (name->capacity() >= kMaxSymbolName && size_ < kMaxMutations) {
      names_[size_++] = std::move(*name);
    }
  }
  void make_room(std::string* name, size_t length) {
    if (length <= name->capacity()) {
      return;
    }
    if (size_ > 0) {
      *name = std::move(names_[--size_]);
    } else {
      name->reserve(kMaxSymbolName);
    }
  }

 private:
  std::array<std::string, kMaxMutations> names_;
  size_t size_ = 0;
};

thread_local SpareNames spare_names;

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes)
      : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  uint8_t byte() { return next_ < end_ ? *next_++ : uint8_t{0}; }

  uint64_t fixed(unsigned width) {
    uint64_t value = 0;
    for (unsigned i = 0; i < width; ++i) {
      value |= static_cast<uint64_t>(byte()) << (8 * i);
    }
    return value;
  }

  uint32_t varint() {
    uint32_t value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
      const uint8_t part = byte();
      value |= static_cast<uint32_t>(static_cast<uint64_t>(part & 0x7fU) << shift);
      if ((part & kHighBit) == 0) {
        break;
      }
    }
    return value;
  }

  int32_t signed_varint() {
    const uint32_t value = varint();
    return static_cast<int32_t>((value >> 1) ^ (0U - (value & 1U)));
  }

  void name(std::string* out) {
    const size_t length = byte() % (kMaxSymbolName + 1);
    spare_names.make_room(out, length);
    const size_t there = std::min(length, static_cast<size_t>(end_ - next_));
    out->assign(reinterpret_cast<const char*>(next_), there);
    out->append(length - there, '\0');
    next_ += there;
    canonicalise_name(out);
  }

 private:
  const uint8_t* next_;
  const uint8_t* end_;
};

// `width` as in the head of a value.
int32_t read_delta(Reader& in, uint32_t width) {
  switch (width) {
    case 0:
      return 0;
    case 1:
      return static_cast<int8_t>(in.fixed(1));
    case 2:
      return static_cast<int16_t>(in.fixed(2));
    default:
      return static_cast<int32_t>(in.fixed(4));
  }
}

void read_code(Reader& in, uint32_t head, CodeRef* out) {
  out->kind = enum_from<CodeKind>(head & 3U);
  out->tier =
      out->kind == CodeKind::nmethod ? static_cast<uint8_t>((head >> 2 & 7U) % kTiers) : uint8_t{0};
  out->anchor = enum_from<CodeAnchor>(head >> 5 & 3U);
  in.name(&out->name);
}

void read_value(Reader& in, SymbolicValue* out) {
  const uint32_t head = in.byte();
  const uint32_t width = head >> kTopShift;
  out->kind = enum_from<ValueKind>(head & kWhichMask);
  if (out->kind == ValueKind::raw) {
    out->raw = in.fixed(1U << width);
  } else if (out->kind == ValueKind::misaligned) {
    out->delta = static_cast<int32_t>(width);
  } else {
    out->delta = read_delta(in, width);
  }
  if (uses_index(out->kind)) {
    out->index = static_cast<uint16_t>(in.varint());
  } else if (out->kind == ValueKind::code) {
    read_code(in, in.byte(), &out->code);
  }
}

void read_mutation(Reader& in, Mutation* out) {
  const uint32_t head = in.byte();
  const uint32_t which = head & kWhichMask;
  out->kind = enum_from<MutationKind>(head >> kTopShift);
  switch (out->kind) {
    case MutationKind::set_register:
      out->reg = enum_from<Register>(which);
      break;
    case MutationKind::set_stack_word:
      out->anchor = enum_from<StackAnchor>(which);
      out->offset = static_cast<int16_t>(in.signed_varint());
      break;
    default:
      out->field = enum_from<ThreadField>(which);
  }
  read_value(in, &out->value);
}

void read_halt(Reader& in, bool stepped, bool has_event, HaltPoint* out) {
  const uint32_t head = in.byte();
  read_code(in, head, &out->code);
  out->delta = in.signed_varint();
  out->has_frame_offset = (head & kHighBit) != 0;
  out->frame_offset = out->has_frame_offset ? in.varint() : 0;
  out->occurrence = stepped ? std::max(in.varint(), 1U) : 0;
  out->event = stepped && has_event ? enum_from<StepEvent>(in.byte()) : StepEvent::none;
}

void read_call(Reader& in, CallArgs* out) {
  const uint32_t head = in.byte();
  out->depth = enum_from<DepthKind>(head & 7U);
  out->context = enum_from<ContextArg>(head >> 3 & 3U);
  out->env = enum_from<EnvArg>(head >> 5 & 3U);
  out->raw_depth = out->depth == DepthKind::raw ? in.signed_varint() : 0;
  out->options = (head & kHighBit) != 0 ? in.varint() : 0;
  out->accepted_kinds = 0;
  out->accepted_states = 0;
}

void read_masks(Reader& in, CallArgs* out) {
  out->accepted_kinds = in.byte();
  out->accepted_states = in.varint();
}

// In a call's low bits: the rest of its kind follows.
constexpr uint32_t kMoreKinds = 0xf;
template <typename Kind>
constexpr bool has_more_kinds() {
  return static_cast<uint32_t>(Kind::count) > kMoreKinds;
}

template <typename Kind>
void read_calls(Reader& in, std::vector<ApiCall<Kind>>* out) {
  out->resize(in.byte() % kIteratorCallCounts);
  for (ApiCall<Kind>& call : *out) {
    const uint32_t head = in.byte();
    uint32_t kind = head & kMoreKinds;
    if constexpr (has_more_kinds<Kind>()) {
      if (kind == kMoreKinds) kind += in.byte();
    }
    call.kind = enum_from<Kind>(kind);
    call.argument = static_cast<uint8_t>(head >> 4);
    canonicalise(&call);
  }
}

// Into a buffer that any input fits in.
class Writer {
 public:
  explicit Writer(uint8_t* out) : next_(out) {}

  uint8_t* end() const { return next_; }

  void byte(uint32_t value) { *next_++ = static_cast<uint8_t>(value); }

  void fixed(uint64_t value, unsigned width) {
    for (unsigned i = 0; i < width; ++i) {
      byte(static_cast<uint8_t>(value >> (8 * i)));
    }
  }

  void varint(uint32_t value) {
    for (; value >= kHighBit; value >>= 7) {
      byte(value | kHighBit);
    }
    byte(value);
  }

  void signed_varint(int32_t value) {
    varint(static_cast<uint32_t>(value) << 1 ^ static_cast<uint32_t>(value >> 31));
  }

  void name(const std::string& text) {
    const size_t length = std::min(text.size(), kMaxSymbolName);
    byte(static_cast<uint32_t>(length));
    next_ = std::copy_n(text.begin(), length, next_);
  }

 private:
  uint8_t* next_;
};

void write_code(Writer& out, const CodeRef& code, uint32_t high_bit) {
  const uint32_t tier = code.kind == CodeKind::nmethod ? code.tier : 0U;
  out.byte(high_bit | number_of(code.anchor) << 5 | tier << 2 | number_of(code.kind));
  out.name(code.name);
}

template <typename Small>
bool fits(int32_t value) {
  return value >= std::numeric_limits<Small>::min() && value <= std::numeric_limits<Small>::max();
}

uint32_t delta_width(int32_t delta) {
  if (delta == 0) {
    return 0;
  }
  if (fits<int8_t>(delta)) {
    return 1;
  }
  return fits<int16_t>(delta) ? 2 : 3;
}

uint32_t raw_width(uint64_t raw) {
  if (raw <= std::numeric_limits<uint8_t>::max()) {
    return 0;
  }
  if (raw <= std::numeric_limits<uint16_t>::max()) {
    return 1;
  }
  return raw <= std::numeric_limits<uint32_t>::max() ? 2 : 3;
}

void write_value(Writer& out, const SymbolicValue& value) {
  const uint32_t kind = number_of(value.kind);
  if (value.kind == ValueKind::raw) {
    const uint32_t width = raw_width(value.raw);
    out.byte(width << kTopShift | kind);
    out.fixed(value.raw, 1U << width);
  } else if (value.kind == ValueKind::misaligned) {
    out.byte((static_cast<uint32_t>(value.delta) & 3U) << kTopShift | kind);
  } else {
    const uint32_t width = delta_width(value.delta);
    out.byte(width << kTopShift | kind);
    out.fixed(static_cast<uint32_t>(value.delta), width == 0 ? 0 : 1U << (width - 1));
  }
  if (uses_index(value.kind)) {
    out.varint(value.index);
  } else if (value.kind == ValueKind::code) {
    write_code(out, value.code, 0);
  }
}

void write_mutation(Writer& out, const Mutation& mutation) {
  const uint32_t kind = number_of(mutation.kind) << kTopShift;
  switch (mutation.kind) {
    case MutationKind::set_register:
      out.byte(kind | number_of(mutation.reg));
      break;
    case MutationKind::set_stack_word:
      out.byte(kind | number_of(mutation.anchor));
      out.signed_varint(mutation.offset);
      break;
    default:
      out.byte(kind | number_of(mutation.field));
  }
  write_value(out, mutation.value);
}

template <typename Call>
void write_calls(Writer& to, const std::vector<Call>& calls) {
  if (calls.empty()) return;
  to.byte(static_cast<uint32_t>(std::min(calls.size(), kMaxIteratorCalls)));
  for (const Call& call : std::span(calls).first(std::min(calls.size(), kMaxIteratorCalls))) {
    const uint32_t kind = number_of(call.kind);
    to.byte(static_cast<uint32_t>(call.argument) << 4 | std::min(kind, kMoreKinds));
    if (kind >= kMoreKinds) to.byte(kind - kMoreKinds);
  }
}

}  // namespace

void decode(std::span<const uint8_t> bytes, Input* out) {
  Reader in(bytes);
  in.byte();  // version: there is only one layout so far
  out->scenario = enum_from<ScenarioId>(in.byte());
  const uint32_t mode_walker = in.byte();
  out->mode = enum_from<Mode>(mode_walker & 1U);
  out->walker = enum_from<WalkerId>(mode_walker >> 4);
  const uint32_t parts = in.byte();
  out->halt.any = (parts & 1U) == 0;
  if (out->halt.any) {
    canonicalise(&out->halt);
  } else {
    read_halt(in, (parts & kHighBit) != 0, (mode_walker & kHasEvent) != 0, &out->halt);
  }
  if ((parts & 2U) != 0) {
    read_call(in, &out->call);
  } else {
    out->call = CallArgs{};
  }
  if ((mode_walker & kHasMasks) != 0) {
    read_masks(in, &out->call);
  }
  out->iterator_calls.clear();
  out->queue_calls.clear();
  if ((mode_walker & kHasCalls) != 0) {
    if (traits_of(out->walker).queue_calls) {
      read_calls(in, &out->queue_calls);
    } else {
      read_calls(in, &out->iterator_calls);
    }
  }
  const size_t count = ((parts & ~uint32_t{kHighBit}) >> 2) % kMutationCounts;
  for (size_t i = count; i < out->mutations.size(); ++i) {
    spare_names.keep(&out->mutations[i].value.code.name);
  }
  out->mutations.resize(count);
  for (Mutation& mutation : out->mutations) {
    reset(&mutation);
    read_mutation(in, &mutation);
  }
}

void encode(const Input& input, std::vector<uint8_t>* out) {
  std::array<uint8_t, kMaxEncodedInput> buffer;
  Writer to(buffer.data());
  const size_t count = std::min(input.mutations.size(), kMaxMutations);
  const bool has_masks = input.call.accepted_kinds != 0 || input.call.accepted_states != 0;
  CallArgs without_masks = input.call;
  without_masks.accepted_kinds = 0;
  without_masks.accepted_states = 0;
  const bool has_call = without_masks != CallArgs{};
  to.byte(kInputVersion);
  to.byte(number_of(input.scenario));
  const bool stepped = !input.halt.any && input.halt.occurrence != 0;
  const bool has_event = stepped && input.halt.event != StepEvent::none;
  to.byte(number_of(input.walker) << 4 | (has_event ? kHasEvent : 0U) |
          (input.has_calls() ? kHasCalls : 0U) | (has_masks ? kHasMasks : 0U) |
          number_of(input.mode));
  to.byte((stepped ? kHighBit : 0U) | static_cast<uint32_t>(count) << 2 | (has_call ? 2U : 0U) |
          (input.halt.any ? 0U : 1U));
  if (!input.halt.any) {
    write_code(to, input.halt.code, input.halt.has_frame_offset ? kHighBit : 0U);
    to.signed_varint(input.halt.delta);
    if (input.halt.has_frame_offset) {
      to.varint(input.halt.frame_offset);
    }
    if (stepped) to.varint(input.halt.occurrence);
    if (has_event) to.byte(number_of(input.halt.event));
  }
  if (has_call) {
    const CallArgs& call = input.call;
    to.byte((call.options != 0 ? kHighBit : 0U) | number_of(call.env) << 5 |
            number_of(call.context) << 3 | number_of(call.depth));
    if (call.depth == DepthKind::raw) {
      to.signed_varint(call.raw_depth);
    }
    if (call.options != 0) {
      to.varint(call.options);
    }
  }
  if (has_masks) {
    to.byte(input.call.accepted_kinds);
    to.varint(input.call.accepted_states);
  }
  write_calls(to, input.iterator_calls);
  write_calls(to, input.queue_calls);
  for (size_t i = 0; i < count; ++i) {
    write_mutation(to, input.mutations[i]);
  }
  out->assign(buffer.data(), to.end());
}

ArtifactCheck check_artifact(std::span<const uint8_t> bytes) {
  if (bytes.empty()) {
    return ArtifactCheck::empty;
  }
  if (bytes.size() > kMaxEncodedInput) {
    return ArtifactCheck::too_large;
  }
  if (bytes[0] != kInputVersion) {
    return ArtifactCheck::foreign_version;
  }
  Input input;
  decode(bytes, &input);
  std::vector<uint8_t> canonical;
  encode(input, &canonical);
  return std::ranges::equal(canonical, bytes) ? ArtifactCheck::ok : ArtifactCheck::not_canonical;
}

std::string_view explain(ArtifactCheck check) {
  constexpr std::string_view kWrong[] = {
      "", "empty file: an artifact has at least 4 bytes",
      "longer than 4096 bytes: not an artifact of framestorm",
      "first byte is not 1: not an artifact of framestorm, or of another version",
      "damaged or not written by framestorm: decoding and encoding it gives other bytes"};
  return name_in(kWrong, check);
}

}  // namespace framestorm
