#include "stress/agent/options.h"

#include <charconv>
#include <stdexcept>

#include "harness/input/walker_table.h"

namespace framestorm::stress {
namespace {

constexpr std::string_view kModes[] = {"same-thread", "separate-thread", "queued", "unstopped"};
constexpr std::string_view kThreads[] = {"all", "running", "random"};

[[noreturn]] void fail(std::string_view key, std::string_view value, const std::string& wanted) {
  throw std::invalid_argument(std::string(key) + "=" + std::string(value) + ": " + wanted);
}

template <typename Number>
bool parse_number(std::string_view text, Number* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

// What one key is given. Its functions throw what is wrong with that.
struct Given {
  std::string_view key, value;

  [[noreturn]] void refuse(const std::string& wanted) const { fail(key, value, wanted); }

  template <typename Number>
  Number number(Number least, Number most) const {
    Number result = {};
    if (!parse_number(value, &result) || result < least || result > most) {
      refuse("give a number from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return result;
  }

  double seconds() const {
    double result = 0;
    if (!parse_number(value, &result) || !(result >= 0)) refuse("give seconds");
    return result;
  }

  std::chrono::nanoseconds interval() const {
    const size_t digits = value.find_first_not_of("0123456789");
    const std::string_view unit = digits == std::string_view::npos ? "" : value.substr(digits);
    constexpr std::pair<std::string_view, int64_t> kUnits[] = {
        {"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
    int64_t count = 0;
    for (const auto& [name, factor] : kUnits) {
      if (unit != name || !parse_number(value.substr(0, digits), &count)) continue;
      if (count < 1 || count > 3'600'000'000'000 / factor) break;
      return std::chrono::nanoseconds(count * factor);
    }
    refuse("give a time like 100us (ns, us, ms, s), at most an hour");
  }

  std::vector<WalkerId> walkers() const {
    std::vector<WalkerId> result;
    for (size_t at = 0; at <= value.size();) {
      const size_t end = std::min(value.find('+', at), value.size());
      WalkerId id = WalkerId::count;
      if (!parse_name(value.substr(at, end - at), &id) || traits_of(id).needs_running_vm) {
        std::string known;
        for (const WalkerTraits& walker : kWalkers) {
          if (!walker.needs_running_vm) known += " " + std::string(walker.name);
        }
        refuse("give walkers joined by '+', of:" + known);
      }
      result.push_back(id);
      at = end + 1;
    }
    return result;
  }

  // What %XX stands for: commas separate the agent's options.
  std::string unquoted() const {
    std::string result;
    for (size_t at = 0; at < value.size(); ++at) {
      result.push_back(value[at]);
      if (value[at] != '%') continue;
      const std::string_view digits = value.substr(at + 1, 2);
      unsigned char byte = 0;
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
      if (error != std::errc() || end != value.data() + at + 3) {
        refuse("% begins two hex digits; itself it is %25");
      }
      result.back() = static_cast<char>(byte);
      at += digits.size();
    }
    return result;
  }

  bool flag() const {
    if (value != "0" && value != "1") refuse("give 0 or 1");
    return value == "1";
  }

  template <typename Enum, size_t N>
  Enum choice(const std::string_view (&names)[N]) const {
    std::string known;
    for (size_t i = 0; i < N; ++i) {
      if (names[i] == value) return static_cast<Enum>(i);
      known += (i == 0 ? "" : ", ") + std::string(names[i]);
    }
    refuse("give one of " + known);
  }

  void threads(Options* options) const {
    constexpr std::string_view kRandom = "random:";
    if (value.starts_with(kRandom)) {
      options->threads = ThreadChoice::random;
      const Given number_of = {key, value.substr(kRandom.size())};
      options->random_threads = number_of.number<uint32_t>(1, 100'000);
    } else if (value == "random") {
      refuse("say how many: random:8");
    } else {
      options->threads = choice<ThreadChoice>(kThreads);
    }
  }
};

struct Key {
  std::string_view name;
  void (*set)(const Given& given, Options* options);
};

constexpr std::string_view kOnFinding[] = {"survey", "strict"};
constexpr Key kKeys[] = {
    {"walker", [](const Given& g, Options* o) { o->walkers = g.walkers(); }},
    {"mode", [](const Given& g, Options* o) { o->mode = g.choice<SamplingMode>(kModes); }},
    {"interval", [](const Given& g, Options* o) { o->interval = g.interval(); }},
    {"threads", [](const Given& g, Options* o) { g.threads(o); }},
    {"out", [](const Given& g, Options* o) { o->out = g.value; }},
    {"seed", [](const Given& g, Options* o) { o->seed = g.number<uint64_t>(0, UINT64_MAX); }},
    {"depth", [](const Given& g, Options* o) { o->depth = g.number(1, kMaxSampleDepth); }},
    {"costly", [](const Given& g, Options* o) { o->costly = g.number<uint32_t>(0, UINT32_MAX); }},
    {"duration", [](const Given& g, Options* o) { o->duration = g.seconds(); }},
    {"warmup", [](const Given& g, Options* o) { o->warmup = g.seconds(); }},
    {"plugin", [](const Given& g, Options* o) { o->plugin = g.unquoted(); }},
    {"on-finding", [](const Given& g, Options* o) { o->strict = g.choice<int>(kOnFinding) == 1; }},
    {"keep", [](const Given& g, Options* o) { o->keep = g.number<uint32_t>(0, 1000); }},
    {"seeds", [](const Given& g, Options* o) { o->seeds = g.number<uint32_t>(0, 100'000); }},
    {"flames", [](const Given& g, Options* o) { o->flames = g.flag(); }},
    {"compiled", [](const Given& g, Options* o) { o->compiled = g.flag(); }},
    {"truth", [](const Given& g, Options* o) { o->truth = g.flag(); }},
    {"checks", [](const Given& g, Options* o) { o->checks = g.number<uint32_t>(0, UINT32_MAX); }},
};

void check(const Options& options) {
  if (options.out.empty()) {
    throw std::invalid_argument("out=DIR is required: where stats and findings are written");
  }
  bool has_plugin = false;
  for (const WalkerId walker : options.walkers) {
    has_plugin = has_plugin || traits_of(walker).origin == WalkerOrigin::shared_object;
    if (traits_of(walker).at_polls_only || !traits_of(walker).gives_traces()) {
      fail("walker", name_of(walker), "is one of halted worlds: fuzz it");
    }
    if (!traits_of(walker).walks_in(input_mode(options.mode))) {
      fail("walker", name_of(walker),
           "does not walk in mode=" + std::string(name_of(options.mode)));
    }
  }
  if (options.strict && options.mode == SamplingMode::unstopped) {
    fail("on-finding", "strict",
         "mode=unstopped walks threads that run, and such walks have to be contained: take "
         "on-finding=survey, or mode=separate-thread");
  }
  if (options.truth && options.mode == SamplingMode::unstopped) {
    fail("truth", "1", "mode=unstopped walks threads that run: there is no one moment to compare");
  }
  if (has_plugin != !options.plugin.empty()) {
    throw std::invalid_argument("walker=plugin and plugin=PATH go together");
  }
}

}  // namespace

std::string_view name_of(SamplingMode mode) { return name_in(kModes, mode); }

Mode input_mode(SamplingMode mode) {
  return mode == SamplingMode::same_thread ? Mode::same_thread : Mode::separate_thread;
}

std::string threads_text(const Options& options) {
  std::string text(name_in(kThreads, options.threads));
  if (options.threads == ThreadChoice::random) text += ":" + std::to_string(options.random_threads);
  return text;
}

Options parse_options(std::string_view text) {
  Options options;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string_view pair = text.substr(at, end - at);
    at = end + 1;
    const size_t equals = pair.find('=');
    const std::string_view name = pair.substr(0, equals);
    bool known = false;
    for (const Key& key : kKeys) {
      if (key.name != name) continue;
      known = true;
      if (equals == std::string_view::npos) fail(name, "", "needs a value");
      key.set({name, pair.substr(equals + 1)}, &options);
    }
    if (!known) {
      std::string names;
      for (const Key& key : kKeys) names += " " + std::string(key.name);
      throw std::invalid_argument("unknown option '" + std::string(name) + "', known are:" + names);
    }
  }
  check(options);
  return options;
}

}  // namespace framestorm::stress
