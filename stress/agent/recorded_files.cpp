#include "stress/agent/recorded_files.h"

#include <jvmti.h>
#include <jvmticmlr.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <span>
#include <stdexcept>

#include "harness/oracles/reference.h"

namespace framestorm::stress {
namespace {

using Fields = std::vector<std::string_view>;

constexpr std::string_view kNotJava = "-";

Fields split(std::string_view text, char by) {
  Fields fields;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(by, at), text.size());
    fields.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return fields;
}

template <typename Number>
Number number(std::string_view text) {
  Number result = {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::runtime_error("'" + std::string(text) + "' is no number");
  }
  return result;
}

template <typename Function>
void for_each_line(std::istream& file, Function function) {
  for (std::string line; std::getline(file, line);) {
    const Fields fields = split(line, '\t');
    try {
      function(fields);
    } catch (const std::exception& error) {
      throw std::runtime_error("'" + line.substr(0, 200) + "': " + error.what());
    }
  }
}

// As JVMTI names what it is of: a hidden class is T.0x1f there, and T/0x1f or T+0x1f elsewhere.
std::string jvmti_name(std::string_view text) {
  std::string name(text);
  const size_t hidden = name.substr(0, name.find('(')).rfind("0x");
  if (hidden != std::string::npos && hidden > 0 &&
      (name[hidden - 1] == '/' || name[hidden - 1] == '+')) {
    name[hidden - 1] = '.';
  }
  return name;
}

}  // namespace

Shadows::Shadows(std::istream& file) {
  for_each_line(file, [this](const Fields& fields) { read(fields); });
  for (auto* const by : {&by_tid_, &by_owner_}) {
    for (auto& [key, handlers] : *by) put_in_order(&handlers);
  }
}

void Shadows::put_in_order(std::vector<Handler>* handlers) {
  std::ranges::sort(*handlers, {}, &Handler::begin_ns);
  // A call within another one has the same stack: HotSpot's, for one, ends its own by such.
  int64_t until = INT64_MIN;
  std::erase_if(*handlers, [&until](const Handler& one) {
    return one.begin_ns <= std::exchange(until, std::max(until, one.end_ns));
  });
}

void Shadows::read(const Fields& fields) {
  if (fields[0] == "handler") {
    const Handler handler = {.begin_ns = number<int64_t>(fields.at(6)),
                             .end_ns = number<int64_t>(fields.at(7)),
                             .state = static_cast<ShadowState>(number<int>(fields.at(3))),
                             .depth = number<uint32_t>(fields.at(4)),
                             .stack = number<size_t>(fields.at(5)),
                             .may_lack_innermost = fields.at(8) == "1",
                             .kind = std::string(fields.at(9)),
                             .place = std::string(fields.at(10)),
                             .code = number<int64_t>(fields.at(11))};
    by_tid_[number<int>(fields.at(1))].push_back(handler);
    if (handler.state == ShadowState::mounted) {
      by_owner_[number<int64_t>(fields.at(2))].push_back(handler);
    }
  } else if (fields[0] == "stack") {
    std::vector<int32_t> methods;
    for (const std::string_view one : split(fields.at(2), ' ')) {
      if (!one.empty()) methods.push_back(number<int32_t>(one));
    }
    stacks_.push_back(std::move(methods));
  } else if (fields[0] == "name") {
    ids_.push_back(names_.id(fields.at(2)));
  } else if (fields[0] == "code") {
    read_code(fields);
  } else if (fields[0] == "method") {
    read_method(fields);
  } else if (fields[0] == "clock") {
    clock_.emplace_back(number<int64_t>(fields.at(1)), number<int64_t>(fields.at(2)));
  } else if (fields[0] == "lost") {
    lost_ = number<uint64_t>(fields.at(1));
  } else {
    throw std::runtime_error("not a line of shadow stacks");
  }
}

void Shadows::read_method(const Fields& fields) {
  const std::string_view whole = fields.at(4);
  const size_t dot = whole.rfind('.');
  const int32_t made =
      methods_.number_of(whole.substr(0, dot), whole.substr(dot + 1), fields.at(5));
  if (made != number<int32_t>(fields.at(1))) throw std::runtime_error("not in its order");
  const auto versions = number<uint32_t>(fields.at(3));
  std::map<int32_t, std::string> calls;
  for (const std::string_view call : split(fields.at(6), ' ')) {
    const size_t colon = call.find(':');
    if (colon != std::string_view::npos) {
      calls[number<int32_t>(call.substr(0, colon))] = call.substr(colon + 1);
    }
  }
  const auto push = number<int32_t>(fields.at(2));
  // Of several versions nothing is known of the calls.
  if (versions > 1) methods_.describe(made, push, {});
  if (versions > 0) methods_.describe(made, push, std::move(calls));
}

void Shadows::read_code(const Fields& fields) {
  std::vector<std::vector<jmethodID>> methods;
  std::vector<std::vector<jint>> bcis;
  for (const std::string_view place : std::span(fields).subspan(3)) {
    methods.emplace_back();
    bcis.emplace_back();
    for (const std::string_view frame : split(place, ' ')) {
      if (frame.empty()) continue;
      const size_t at = frame.find('@');
      methods.back().push_back(ids_.at(number<size_t>(frame.substr(0, at))));
      bcis.back().push_back(number<jint>(frame.substr(at + 1)));
    }
  }
  // As JVMTI tells it.
  std::vector<PCStackInfo> places;
  places.reserve(methods.size());
  for (size_t i = 0; i < methods.size(); ++i) {
    places.push_back({reinterpret_cast<void*>(i + 1), static_cast<jint>(methods[i].size()),
                      methods[i].data(), bcis[i].data()});
  }
  const jvmtiCompiledMethodLoadInlineRecord record = {
      {JVMTI_CMLR_INLINE_INFO, JVMTI_CMLR_MAJOR_VERSION_1, JVMTI_CMLR_MINOR_VERSION_0, nullptr},
      static_cast<jint>(places.size()),
      places.data()};
  codes_.emplace_back(ids_.at(number<size_t>(fields.at(2))), &record);
}

Recorded::Recorded(std::istream& file, const InstrumentedMethods& methods, MethodNames& names)
    : methods_(methods), names_(names) {
  for_each_line(file, [this](const Fields& fields) { read(fields); });
}

void Recorded::read(const Fields& fields) {
  if (fields[0] == "sample") {
    samples_.push_back({number<int>(fields.at(1)), number<int64_t>(fields.at(2)),
                        number<int64_t>(fields.at(3)), number<int64_t>(fields.at(4)),
                        fields.size() > 5 && fields[5] == "1"});
    return;
  }
  if (fields[0] != "trace" || number<size_t>(fields.at(1)) != traces_.size()) {
    throw std::runtime_error("not a line of traces, or not in its order");
  }
  Trace& trace = traces_.emplace_back();
  trace.cut = fields.at(2) == "1";
  std::vector<NamedFrame> frames;
  bool is_adjacent = false;
  trace.names.reserve(fields.size());
  for (size_t i = 3; i < fields.size(); ++i) {
    const std::string_view text = fields[i];
    trace.texts.emplace_back(text);
    if (text != kNotJava) frames.push_back(frame_of(text, is_adjacent, &trace));
    is_adjacent = text != kNotJava;
  }
  trace.instrumented = instrumented_frames(frames, methods_);
  trace.frames = std::move(frames);
}

NamedFrame Recorded::frame_of(std::string_view text, bool is_adjacent, Trace* trace) {
  const size_t descriptor = text.find('(');
  const size_t at = text.rfind('@');
  if (descriptor == std::string_view::npos || at == std::string_view::npos || at < descriptor) {
    throw std::runtime_error("'" + std::string(text) + "' is no frame");
  }
  const std::string whole = jvmti_name(text.substr(0, at));
  const std::string& name = trace->names.emplace_back(whole.substr(0, descriptor));
  trace->of_continuation = trace->of_continuation || is_of_continuation(name);
  const auto known = methods_.find(name, text.substr(descriptor, at - descriptor));
  const auto bci = number<int32_t>(text.substr(at + 1));
  trace->plain.push_back({names_.id(whole), bci});
  return {name, known.value_or(-1), bci, is_adjacent};
}

}  // namespace framestorm::stress
