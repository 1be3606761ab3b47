#include "harness/input/json_form.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "harness/input/random_input.h"
#include "harness/input/text.h"

namespace framestorm {
namespace {

using nlohmann::json;

Input parsed(const std::string& lines) {
  Input input;
  TextError error;
  EXPECT_TRUE(parse_text("framestorm-input 1\nscenario c1\n" + lines, &input, &error))
      << error.line << ": " << error.message;
  return input;
}

TEST(JsonForm, HasEveryPartOfAnInput) {
  const json got = to_json(parsed(
      "mode separate-thread\nwalker asgst-iterator\n"
      "halt nmethod \"framestorm/C1.spin\" tier 1 entry + 0x35 frame-offset 416\n"
      "depth exact - 1\ncontext misaligned\nenv null\noptions 0x3\n"
      "register pc = nmethod \"framestorm/C1.spin\" tier 1 deopt-handler - 7\n"
      "stack sp + 3 = slot 9 + 8\nthread state = raw 0x8\nthread last-java-sp = real-sp - 64\n"
      "iterator next 3\niterator drain\n"));
  EXPECT_EQ(got, json::parse(R"({
    "scenario": "c1", "mode": "separate-thread", "walker": "asgst-iterator",
    "halt": {"text": "nmethod \"framestorm/C1.spin\" tier 1 entry + 0x35", "frame_offset": 416},
    "call": {"depth": "exact - 1", "context": "misaligned", "env": "null", "options": 3},
    "mutations": [
      {"kind": "register", "place": "pc",
       "value": {"text": "nmethod \"framestorm/C1.spin\" tier 1 deopt-handler - 7",
                 "kind": "code", "delta": -7,
                 "code": {"kind": "nmethod", "name": "framestorm/C1.spin", "tier": 1,
                          "anchor": "deopt-handler"}}},
      {"kind": "stack", "place": "sp + 3",
       "value": {"text": "slot 9 + 8", "kind": "slot", "delta": 8, "index": 9}},
      {"kind": "thread", "place": "state",
       "value": {"text": "raw 0x8", "kind": "raw", "delta": 0, "raw": 8,
                 "thread_state": "_thread_in_Java"}},
      {"kind": "thread", "place": "last-java-sp",
       "value": {"text": "real-sp - 64", "kind": "real-sp", "delta": -64}}],
    "iterator_calls": ["next 3", "drain"]})"));
}

TEST(JsonForm, LeavesOutWhatIsAsByDefault) {
  const json got = to_json(parsed("depth 17\n"));
  EXPECT_FALSE(got.contains("halt"));
  EXPECT_EQ(got["call"], json({{"depth", "17"}}));
  EXPECT_EQ(got["mutations"], json::array());
  EXPECT_EQ(to_json(parsed("accepted-kinds 0x1\naccepted-states 0x5\nwalker asgst\n"))["call"],
            json({{"accepted_kinds", 1}, {"accepted_states", 5}}));
}

// Its pieces are those of the text form: no input has two descriptions.
TEST(JsonForm, SaysWhatTheTextFormSays) {
  TestRng rng(7);
  for (int i = 0; i < 300; ++i) {
    const json record = input_record(random_input(rng));
    const auto text = record["text"].get<std::string>();
    const auto count = [&](const std::string& line) {
      size_t found = 0;
      for (size_t at = text.find("\n" + line); at != std::string::npos; ++found) {
        at = text.find("\n" + line, at + 1);
      }
      return found;
    };
    const json calls = record["input"].value("queue_calls", json::array());
    EXPECT_EQ(calls.size(), count("queue ")) << text;
    for (const json& call : calls) EXPECT_GT(count("queue " + call.get<std::string>()), 0U) << text;
    for (const json& mutation : record["input"]["mutations"]) {
      const std::string line = mutation["kind"].get<std::string>() + " " +
                               mutation["place"].get<std::string>() + " = " +
                               mutation["value"]["text"].get<std::string>() + "\n";
      EXPECT_NE(text.find(line), std::string::npos) << line << text;
    }
    for (const json& call : record["input"]["iterator_calls"]) {
      EXPECT_NE(text.find("iterator " + call.get<std::string>() + "\n"), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace framestorm
