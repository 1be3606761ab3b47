#include "harness/input/text.h"

#include "harness/base/hex.h"
#include "harness/input/canonical.h"

namespace framestorm {
namespace {

constexpr int64_t kLargestDecimalCodeOffset = 9;

class Text {
 public:
  Text& word(std::string_view text) {
    if (!text_.empty() && text_.back() != '\n') {
      text_ += ' ';
    }
    text_ += text;
    return *this;
  }
  Text& decimal(int64_t value) { return word(std::to_string(value)); }
  Text& hex(uint64_t value) { return word(framestorm::hex(value)); }
  // Code is read in hex, as in a disassembly; everything else in decimal.
  Text& offset(int64_t value, bool of_code) {
    if (value == 0) {
      return *this;
    }
    const int64_t size = value < 0 ? -value : value;
    word(value < 0 ? "-" : "+");
    return of_code && size > kLargestDecimalCodeOffset ? hex(static_cast<uint64_t>(size))
                                                       : decimal(size);
  }
  Text& code(const CodeRef& ref, int32_t delta) {
    word(name_of(ref.kind)).word("\"" + ref.name + "\"");
    if (ref.tier != 0) {
      word("tier").decimal(ref.tier);
    }
    return word(name_of(ref.anchor)).offset(delta, true);
  }
  void end_line() { text_ += '\n'; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void put_value(Text& out, const SymbolicValue& value) {
  if (value.kind == ValueKind::code) {
    out.code(value.code, value.delta);
    return;
  }
  out.word(name_of(value.kind));
  if (value.kind == ValueKind::raw) {
    out.hex(value.raw);
  }
  if (uses_index(value.kind)) {
    out.decimal(value.index);
  }
  out.offset(value.delta, false);
}

void put_call(Text& out, const CallArgs& call) {
  if (call.depth != DepthKind::normal) {
    out.word("depth").word(depth_text(call)).end_line();
  }
  if (call.context != ContextArg::victim) {
    out.word("context").word(name_of(call.context)).end_line();
  }
  if (call.env != EnvArg::victim) {
    out.word("env").word(name_of(call.env)).end_line();
  }
  if (call.options != 0) {
    out.word("options").hex(call.options).end_line();
  }
  if (call.accepted_kinds != 0) {
    out.word("accepted-kinds").hex(call.accepted_kinds).end_line();
  }
  if (call.accepted_states != 0) {
    out.word("accepted-states").hex(call.accepted_states).end_line();
  }
}

}  // namespace

std::string to_text(const CodeRef& code, int32_t delta) { return Text().code(code, delta).take(); }

std::string to_text(const SymbolicValue& value) {
  Text out;
  put_value(out, value);
  return out.take();
}

template <typename Kind>
static std::string call_text(const ApiCall<Kind>& call) {
  Text out;
  out.word(name_of(call.kind));
  if (uses_argument(call.kind)) {
    out.decimal(call.argument + first_argument(call.kind));
  }
  return out.take();
}
std::string to_text(const IteratorCall& call) { return call_text(call); }
std::string to_text(const QueueCall& call) { return call_text(call); }

std::string place_text(const Mutation& mutation) {
  switch (mutation.kind) {
    case MutationKind::set_register:
      return std::string(name_of(mutation.reg));
    case MutationKind::set_stack_word:
      return Text().word(name_of(mutation.anchor)).offset(mutation.offset, false).take();
    default:
      return std::string(name_of(mutation.field));
  }
}

std::string depth_text(const CallArgs& call) {
  return call.depth == DepthKind::raw ? std::to_string(call.raw_depth)
                                      : std::string(name_of(call.depth));
}

std::string to_text(const Input& input) {
  const Input defaults;
  Text out;
  out.word("framestorm-input").decimal(kInputVersion).end_line();
  out.word("scenario").word(name_of(input.scenario)).end_line();
  if (input.mode != defaults.mode) {
    out.word("mode").word(name_of(input.mode)).end_line();
  }
  if (input.walker != defaults.walker) {
    out.word("walker").word(name_of(input.walker)).end_line();
  }
  if (!input.halt.any) {
    out.word("halt").word(to_text(input.halt.code, input.halt.delta));
    if (input.halt.has_frame_offset) {
      out.word("frame-offset").decimal(input.halt.frame_offset);
    }
    if (input.halt.occurrence != 0) out.word("occurrence").decimal(input.halt.occurrence);
    if (input.halt.event != StepEvent::none) out.word("event").word(name_of(input.halt.event));
    out.end_line();
  }
  put_call(out, input.call);
  for (const Mutation& mutation : input.mutations) {
    out.word(name_of(mutation.kind)).word(place_text(mutation)).word("=");
    put_value(out, mutation.value);
    out.end_line();
  }
  for (const IteratorCall& call : input.iterator_calls) {
    out.word("iterator").word(to_text(call)).end_line();
  }
  for (const QueueCall& call : input.queue_calls) {
    out.word("queue").word(to_text(call)).end_line();
  }
  return out.take();
}

}  // namespace framestorm
