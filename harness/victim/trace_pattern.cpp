// Matching of traces against patterns: the pattern is a small automaton whose states are its
// positions, so a trace of any length takes one pass.
#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <stdexcept>
#include <vector>

#include "harness/jvm/methods.h"
#include "harness/victim/scenario.h"

namespace framestorm {
namespace {

enum class Repeat : uint8_t { once, optional, any_number };

struct Name {
  std::string text;
  bool is_glob;
};

struct Position {
  std::string_view text;    // empty: any frame
  std::vector<Name> names;  // the alternatives in it
  Repeat repeat;
};

constexpr size_t kMaxPositions = 63;
constexpr size_t kMostTooMany = 16;  // frames that a trace has beside the right ones

// Frames of Scenario.enter and Scenario.leave, which call the natives of the same name. That of enter calls
// Java again.
constexpr std::string_view kRegistering =
    "java/lang/Thread.currentThread? "
    "framestorm/Harness.enter|framestorm/Harness.leave? "
    "framestorm/Scenario.enter|framestorm/Scenario.leave? ";

bool accepts(const Position& position, const std::string& frame) {
  if (position.text.empty() || frame == kUnnamedNative) return true;
  // Few are globs, and these take many times as long: fnmatch() goes by the locale's characters.
  return std::ranges::any_of(position.names, [&](const Name& name) {
    return name.is_glob ? fnmatch(name.text.c_str(), frame.c_str(), FNM_NOESCAPE) == 0
                        : name.text == frame;
  });
}

std::vector<Name> alternatives(std::string_view names) {
  std::vector<Name> all;
  for (const auto part : std::views::split(names, '|')) {
    std::string name(part.begin(), part.end());
    const bool is_glob = name.find_first_of("*?[") != std::string::npos;
    all.push_back({std::move(name), is_glob});
  }
  return all;
}

std::vector<Position> parse(std::string_view pattern) {
  std::vector<Position> positions;
  while (!pattern.empty()) {
    const size_t end = std::min(pattern.find(' '), pattern.size());
    std::string_view token = pattern.substr(0, end);
    pattern.remove_prefix(std::min(end + 1, pattern.size()));
    if (token.empty()) {
      continue;
    }
    Repeat repeat = Repeat::once;
    if (token == "...") {
      positions.push_back({{}, {}, Repeat::any_number});
      continue;
    }
    if (token.ends_with("+?")) {
      token.remove_suffix(2);
      repeat = Repeat::any_number;
    } else if (token.ends_with('+')) {
      token.remove_suffix(1);
      positions.push_back({token, alternatives(token), Repeat::once});
      repeat = Repeat::any_number;
    } else if (token.ends_with('?')) {
      token.remove_suffix(1);
      repeat = Repeat::optional;
    }
    positions.push_back({token, alternatives(token), repeat});
  }
  if (positions.size() > kMaxPositions) {
    throw std::invalid_argument("trace pattern has too many tokens");
  }
  return positions;
}

// Adds the positions reached by leaving out what need not be there. Bit i: before position i.
uint64_t close_over(uint64_t states, const std::vector<Position>& positions) {
  for (size_t i = 0; i < positions.size(); ++i) {
    if ((states >> i & 1) != 0 && positions[i].repeat != Repeat::once) {
      states |= uint64_t{2} << i;
    }
  }
  return states;
}

std::string expected_at(uint64_t states, const std::vector<Position>& positions) {
  std::string expected;
  for (size_t i = 0; i <= positions.size(); ++i) {
    if ((states >> i & 1) == 0) {
      continue;
    }
    if (!expected.empty()) {
      expected += " or ";
    }
    if (i == positions.size()) {
      expected += "the end";
    } else {
      expected += positions[i].text.empty() ? "any frame" : positions[i].text;
    }
  }
  return expected;
}

// How far frames were followed, and where in the pattern that was.
struct Run {
  size_t depth;
  uint64_t states;

  bool ends(const std::vector<Position>& positions) const {
    return (states >> positions.size() & 1) != 0;
  }
};

Run follow(std::span<const std::string> frames, const std::vector<Position>& positions,
           uint64_t states) {
  states = close_over(states, positions);
  for (size_t depth = 0; depth < frames.size(); ++depth) {
    uint64_t next = 0;
    for (size_t i = 0; i < positions.size(); ++i) {
      if ((states >> i & 1) != 0 && accepts(positions[i], frames[depth])) {
        next |= positions[i].repeat == Repeat::any_number ? uint64_t{1} << i : uint64_t{2} << i;
      }
    }
    if (next == 0) return {depth, states};
    states = close_over(next, positions);
  }
  return {frames.size(), states};
}

std::string registered(std::string_view pattern) {
  return std::string(kRegistering) + std::string(pattern);
}

// On a carrier's stack alone.
constexpr std::string_view kRunsContinuations = "jdk/internal/vm/Continuation.run";

// What is left of a thawed trace of a walker that stops at the frame in which continuations begin,
// or behind it.
std::string until_continuation(std::string_view thawed) {
  return std::string(thawed.substr(0, thawed.find(kEntersContinuation))) +
         std::string(kEntersContinuation) + "?";
}

}  // namespace

bool matches_pattern(std::span<const std::string> frames, std::string_view pattern, bool truncated,
                     std::string* why) {
  const std::vector<Position> positions = parse(pattern);
  const Run run = follow(frames, positions, 1);
  if (run.depth < frames.size()) {
    if (why != nullptr) {
      *why = "frame " + std::to_string(run.depth) + " is " + frames[run.depth] + ", expected " +
             expected_at(run.states, positions);
    }
    return false;
  }
  if (truncated || run.ends(positions)) {
    return true;
  }
  if (why != nullptr) {
    *why = "the trace ends after " + std::to_string(frames.size()) + " frames, expected " +
           expected_at(run.states, positions);
  }
  return false;
}

std::string_view difference(std::span<const std::string> frames, const ScenarioInfo& info) {
  const std::vector<Position> positions = parse(registered(info.trace));
  const Run run = follow(frames, positions, 1);
  const bool at_top = run.depth == 0;
  const auto goes_on = [&](size_t depth, uint64_t states) {
    const std::span<const std::string> rest = frames.subspan(depth);
    const Run further = follow(rest, positions, states);
    return further.depth == rest.size() && further.ends(positions);
  };
  if (run.depth == frames.size()) return run.ends(positions) ? "is whole" : "ends early";
  // From any later position: some are left out.
  const uint64_t later =
      ~((run.states & -run.states) - 1) & ((uint64_t{1} << positions.size()) - 1);
  if (goes_on(run.depth, later)) {
    return at_top ? "lacks its innermost frames" : "lacks frames further out";
  }
  for (size_t more = 1; more <= kMostTooMany && run.depth + more < frames.size(); ++more) {
    if (goes_on(run.depth + more, run.states)) {
      return at_top ? "has frames above its innermost" : "has frames too many further out";
    }
  }
  return at_top ? "begins with another frame" : "has other frames further out";
}

bool matches(std::span<const std::string> frames, const ScenarioInfo& info,
             const WalkerTraits& walker, std::string* why, bool truncated) {
  if (!info.java) {
    return matches_pattern(frames, "", truncated, why);
  }
  const auto is = [&](std::string_view pattern, std::string* reason) {
    return matches_pattern(frames, registered(pattern), truncated, reason);
  };
  // Of threads that stay mounted: JFR takes one that is being unmounted for its carrier.
  const bool stays_mounted = !info.mounted_trace.empty();
  if (walker.ends_at_a_continuation && stays_mounted) {
    const auto carrier = std::ranges::find(frames, kRunsContinuations);
    if (carrier != frames.end()) {
      if (why != nullptr) {
        *why = "frame " + std::to_string(carrier - frames.begin()) + " is " + *carrier +
               ", of the carrier, expected the end";
      }
      return false;
    }
  }
  const bool may_stop = walker.ends_where_it_distrusts_a_frame;
  if (may_stop && !info.asgct_trace.empty() && is(info.asgct_trace, nullptr)) return true;
  if (walker.walks_carriers && !info.mounted_trace.empty()) return is(info.mounted_trace, why);
  if (info.thawed_trace.empty()) return is(info.trace, why);
  if (walker.stops_at_continuations && is(until_continuation(info.thawed_trace), nullptr)) {
    return true;
  }
  if (walker.may_see_frozen_frames && is(info.thawed_trace, nullptr)) return true;
  const bool thawed_only = !may_stop && !walker.sees_frozen_frames && !walker.may_see_frozen_frames;
  return is(thawed_only ? info.thawed_trace : info.trace, why);
}

}  // namespace framestorm
