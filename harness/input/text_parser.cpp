#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <string>

#include "harness/input/canonical.h"
#include "harness/input/text.h"

namespace framestorm {
namespace {

// Thrown inside parse_text only.
struct LineError {
  std::string message;
};

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

template <typename Enum>
std::string names_of() {
  std::string list;
  for (const Enum one : all_of<Enum>())
    list += (list.empty() ? "" : ", ") + std::string(name_of(one));
  return list;
}

struct Token {
  enum class Kind : uint8_t { end, word, quoted, sign };
  Kind kind = Kind::end;
  std::string_view text;  // without the quotes
};

// Words, quoted names, and the signs = + -. A '-' is a sign only where a word does not go on with
// it.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) { advance(); }

  const Token& token() const { return token_; }
  bool at_end() const { return token_.kind == Token::Kind::end; }
  bool at_sign(std::string_view sign) const {
    return token_.kind == Token::Kind::sign && token_.text == sign;
  }
  bool at_word(std::string_view word) const {
    return token_.kind == Token::Kind::word && token_.text == word;
  }

  Token take() {
    const Token taken = token_;
    advance();
    return taken;
  }

  bool skip_word(std::string_view word) {
    const bool found = at_word(word);
    if (found) {
      advance();
    }
    return found;
  }

  void fail(const std::string& expected) const {
    throw LineError{
        (at_end() ? "the line ends too early" : "unexpected " + in_quotes(token_.text)) +
        "; expected " + expected};
  }

  std::string_view word(const std::string& expected) {
    if (token_.kind != Token::Kind::word) {
      fail(expected);
    }
    return take().text;
  }

  void expect_end() const {
    if (!at_end()) {
      throw LineError{"unexpected " + in_quotes(token_.text) + " after the end of the statement"};
    }
  }

  // A number from 0 to `max`, decimal or 0x hex.
  template <typename Int>
  Int number(Int max = std::numeric_limits<Int>::max()) {
    const std::string range = "a number from 0 to " + std::to_string(max) + " (decimal or 0x...)";
    const std::string_view all = word(range);
    const bool is_hex = all.starts_with("0x");
    const std::string_view digits = is_hex ? all.substr(2) : all;
    uint64_t value = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, is_hex ? 16 : 10);
    if (error == std::errc::result_out_of_range || (error == std::errc{} && value > max)) {
      throw LineError{"number " + in_quotes(all) + " is out of range; expected " + range};
    }
    if (error != std::errc{} || end != digits.data() + digits.size()) {
      throw LineError{in_quotes(all) + " is not a number; expected " + range};
    }
    return static_cast<Int>(value);
  }

  // `[+|-] number`, with the bounds of Int.
  template <typename Int>
  Int signed_number() {
    const bool negative = at_sign("-");
    if (negative || at_sign("+")) {
      take();
    }
    constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<Int>::max());
    const auto size = static_cast<int64_t>(number<uint64_t>(negative ? kMax + 1 : kMax));
    return static_cast<Int>(negative ? -size : size);
  }

  template <typename Int>
  Int optional_offset() {
    return at_sign("+") || at_sign("-") ? signed_number<Int>() : Int{0};
  }

  template <typename Enum>
  Enum name(const char* what) {
    const std::string_view text = word(std::string("one of ") + names_of<Enum>());
    Enum value{};
    if (!parse_name(text, &value)) {
      throw LineError{"unknown " + std::string(what) + " " + in_quotes(text) +
                      "; allowed: " + names_of<Enum>()};
    }
    return value;
  }

 private:
  void advance() {
    const size_t start = rest_.find_first_not_of(" \t\r");
    if (start == std::string_view::npos || rest_[start] == '#') {
      token_ = Token{};
      rest_ = {};
      return;
    }
    rest_.remove_prefix(start);
    const char first = rest_.front();
    size_t length = 1;
    if (first == '"') {
      const size_t close = rest_.find('"', 1);
      if (close == std::string_view::npos) {
        throw LineError{"no closing double quote after " + in_quotes(rest_.substr(1))};
      }
      token_ = {Token::Kind::quoted, rest_.substr(1, close - 1)};
      length = close + 1;
    } else if (first == '=' || first == '+' || first == '-') {
      token_ = {Token::Kind::sign, rest_.substr(0, 1)};
    } else {
      length = std::min(rest_.find_first_of(" \t\r=+\"#"), rest_.size());
      token_ = {Token::Kind::word, rest_.substr(0, length)};
    }
    rest_.remove_prefix(length);
  }

  std::string_view rest_;
  Token token_;
};

// `nmethod "name" tier 4 entry`, without the offset.
CodeRef take_code(Line& line) {
  constexpr uint8_t kMaxTier = 4;
  CodeRef code;
  code.kind = line.name<CodeKind>("kind of code");
  if (line.token().kind != Token::Kind::quoted) {
    line.fail("the name of the code in double quotes");
  }
  code.name = line.take().text;
  if (code.name.size() > kMaxSymbolName) {
    throw LineError{"the name has " + std::to_string(code.name.size()) + " bytes; at most " +
                    std::to_string(kMaxSymbolName) + " are allowed"};
  }
  for (const char c : code.name) {
    if (!is_symbol_char(c)) {
      throw LineError{"the name " + in_quotes(code.name) +
                      " has a byte that is not allowed; allowed: printable ASCII without double "
                      "quotes and backslashes"};
    }
  }
  if (line.skip_word("tier")) {
    if (code.kind != CodeKind::nmethod) {
      throw LineError{"only an nmethod has a tier"};
    }
    code.tier = line.number<uint8_t>(kMaxTier);
  }
  code.anchor = line.name<CodeAnchor>("place in the code");
  return code;
}

bool at_code(const Line& line) {
  CodeKind kind{};
  return line.token().kind == Token::Kind::word && parse_name(line.token().text, &kind);
}

std::string value_names() {
  std::string list = names_of<CodeKind>();
  for (const ValueKind kind : all_of<ValueKind>()) {
    if (kind != ValueKind::code) {
      list += ", " + std::string(name_of(kind));
    }
  }
  return list;
}

SymbolicValue take_value(Line& line) {
  constexpr int32_t kMaxMisaligned = 3;
  SymbolicValue value;
  if (at_code(line)) {
    value.kind = ValueKind::code;
    value.code = take_code(line);
  } else {
    const std::string_view text = line.word("a value: " + value_names());
    // Code is said by its kind of code, not by the word "code".
    if (!parse_name(text, &value.kind) || value.kind == ValueKind::code) {
      throw LineError{"unknown value " + in_quotes(text) + "; allowed: " + value_names()};
    }
  }
  if (value.kind == ValueKind::raw) {
    value.raw = line.number<uint64_t>();
    return value;
  }
  if (uses_index(value.kind)) {
    value.index = line.number<uint16_t>();
  }
  value.delta = line.optional_offset<int32_t>();
  if (value.kind == ValueKind::misaligned && (value.delta < 0 || value.delta > kMaxMisaligned)) {
    throw LineError{"misaligned takes an offset from 0 to 3, not " + std::to_string(value.delta)};
  }
  return value;
}

Mutation take_mutation(Line& line, MutationKind kind) {
  Mutation mutation;
  mutation.kind = kind;
  switch (kind) {
    case MutationKind::set_register:
      mutation.reg = line.name<Register>("register");
      break;
    case MutationKind::set_stack_word:
      mutation.anchor = line.name<StackAnchor>("place on the stack");
      mutation.offset = line.optional_offset<int16_t>();
      break;
    default:
      mutation.field = line.name<ThreadField>("thread field");
  }
  if (!line.at_sign("=")) {
    line.fail("'='");
  }
  line.take();
  mutation.value = take_value(line);
  return mutation;
}

void take_depth(Line& line, CallArgs* call) {
  const Token& token = line.token();
  const bool is_number =
      line.at_sign("-") || line.at_sign("+") ||
      (token.kind == Token::Kind::word && token.text.front() >= '0' && token.text.front() <= '9');
  if (is_number) {
    call->depth = DepthKind::raw;
    call->raw_depth = line.signed_number<int32_t>();
    return;
  }
  const std::string allowed = "normal, zero, one, exact, exact - 1, exact + 1, huge or a number";
  std::string text(line.word(allowed));
  if (line.at_sign("-") || line.at_sign("+")) {
    text += " " + std::string(line.take().text) + " ";
    text += line.word("1");
  }
  if (!parse_name(text, &call->depth) || call->depth == DepthKind::raw) {
    throw LineError{"unknown depth " + in_quotes(text) + "; allowed: " + allowed};
  }
}

void take_halt(Line& line, HaltPoint* halt) {
  halt->any = line.skip_word("any");
  if (halt->any) {
    return;
  }
  if (!at_code(line)) {
    line.fail("one of any, " + names_of<CodeKind>());
  }
  halt->code = take_code(line);
  halt->delta = line.optional_offset<int32_t>();
  halt->has_frame_offset = line.skip_word("frame-offset");
  if (halt->has_frame_offset) {
    halt->frame_offset = line.number<uint32_t>();
  }
  if (line.skip_word("occurrence")) halt->occurrence = line.number<uint32_t>();
  if (line.skip_word("event")) halt->event = line.name<StepEvent>("event");
}

IteratorCall take_iterator_call(Line& line) {
  IteratorCall call;
  call.kind = line.name<IteratorCallKind>("call of an iterator");
  if (uses_argument(call.kind)) {
    const uint8_t first = first_argument(call.kind);
    const auto number = line.number<uint64_t>(uint64_t{kMaxIteratorArgument} + first);
    if (number < first) {
      throw LineError{in_quotes(name_of(call.kind)) + " takes a number from 1 to " +
                      std::to_string(kMaxIteratorArgument + 1)};
    }
    call.argument = static_cast<uint8_t>(number - first);
  }
  return call;
}

QueueCall take_queue_call(Line& line) {
  QueueCall call;
  call.kind = line.name<QueueCallKind>("call of a queue");
  if (uses_argument(call.kind)) {
    const int first = first_argument(call.kind);
    const auto number = line.signed_number<int>();
    if (number < first || number > first + kMaxIteratorArgument) {
      throw LineError{in_quotes(name_of(call.kind)) + " takes a number from " +
                      std::to_string(first) + " to " +
                      std::to_string(first + kMaxIteratorArgument)};
    }
    call.argument = static_cast<uint8_t>(number - first);
  }
  return call;
}

class Parser {
 public:
  explicit Parser(Input* input) : input_(input) {}

  void statement(Line& line) {
    if (!has_version_) {
      take_version(line);
      return;
    }
    const std::string_view word = line.word("a statement: " + std::string(kStatements));
    MutationKind kind{};
    if (parse_name(word, &kind)) {
      if (input_->mutations.size() == kMaxMutations) {
        throw LineError{"more than " + std::to_string(kMaxMutations) +
                        " register, stack and thread lines"};
      }
      input_->mutations.push_back(take_mutation(line, kind));
    } else if (word == "iterator") {
      if (input_->iterator_calls.size() == kMaxIteratorCalls) {
        throw LineError{"more than " + std::to_string(kMaxIteratorCalls) + " iterator lines"};
      }
      input_->iterator_calls.push_back(take_iterator_call(line));
    } else if (word == "queue") {
      if (input_->queue_calls.size() == kMaxQueueCalls) {
        throw LineError{"more than " + std::to_string(kMaxQueueCalls) + " queue lines"};
      }
      input_->queue_calls.push_back(take_queue_call(line));
    } else {
      field(line, word);
    }
    line.expect_end();
  }

  // What is missing at the end of the text, or empty.
  std::string missing() const {
    if (!has_version_) {
      return "empty text; expected 'framestorm-input 1'";
    }
    if (!(traits_of(input_->walker).queue_calls ? input_->iterator_calls.empty()
                                                : input_->queue_calls.empty())) {
      return std::string(name_of(input_->walker)) + " makes no such calls: queue lines are for " +
             "walkers of queues, and iterator lines for others";
    }
    return seen_.contains("scenario") ? "" : "no scenario line; expected 'scenario NAME'";
  }

 private:
  static constexpr std::string_view kStatements =
      "scenario, mode, walker, halt, depth, context, env, options, accepted-kinds, "
      "accepted-states, register, stack, thread, iterator, queue";

  void take_version(Line& line) {
    const std::string expected = "'framestorm-input 1' as the first line";
    if (!line.skip_word("framestorm-input")) {
      line.fail(expected);
    }
    if (!line.skip_word(std::to_string(kInputVersion))) {
      line.fail("version 1: " + expected);
    }
    line.expect_end();
    has_version_ = true;
  }

  void field(Line& line, std::string_view word) {
    if (!seen_.insert(word).second) {
      throw LineError{"a second " + in_quotes(word) + " line; one is allowed"};
    }
    CallArgs& call = input_->call;
    if (word == "scenario") {
      input_->scenario = line.name<ScenarioId>("scenario");
    } else if (word == "mode") {
      input_->mode = line.name<Mode>("mode");
    } else if (word == "walker") {
      input_->walker = line.name<WalkerId>("walker");
    } else if (word == "halt") {
      take_halt(line, &input_->halt);
    } else if (word == "depth") {
      take_depth(line, &call);
    } else if (word == "context") {
      call.context = line.name<ContextArg>("context argument");
    } else if (word == "env") {
      call.env = line.name<EnvArg>("env argument");
    } else if (word == "options") {
      call.options = line.number<uint32_t>();
    } else if (word == "accepted-kinds") {
      call.accepted_kinds = line.number<uint8_t>();
    } else if (word == "accepted-states") {
      call.accepted_states = line.number<uint32_t>();
    } else {
      throw LineError{"unknown statement " + in_quotes(word) +
                      "; allowed: " + std::string(kStatements)};
    }
  }

  Input* input_;
  bool has_version_ = false;
  std::set<std::string_view> seen_;  // fields, in the text
};

}  // namespace

bool parse_text(std::string_view text, Input* out, TextError* error) {
  *out = Input{};
  Parser parser(out);
  int number = 0;
  try {
    while (!text.empty()) {
      ++number;
      const size_t end = std::min(text.find('\n'), text.size());
      Line line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      if (!line.at_end()) {
        parser.statement(line);
      }
    }
    if (const std::string missing = parser.missing(); !missing.empty()) {
      throw LineError{missing};
    }
  } catch (const LineError& problem) {
    *error = {std::max(number, 1), problem.message};
    return false;
  }
  return true;
}

}  // namespace framestorm
