#include "scripts/native/sample_view.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "harness/base/test_folder.h"

namespace framestorm {
namespace {

constexpr char kSample[] = R"({"framestorm-sample": 1, "number": 7, "walker": "asgct",
  "mode": "same-thread", "depth": 128, "end": "fault", "result": 0, "walk_ns": 1200,
  "thread": {"tid": 12, "state": "_thread_in_Java", "java_thread": "0x7f00", "last_java_sp": "0x0",
             "last_java_pc": "0x0", "last_java_pc_is": "", "last_java_fp": "0x0",
             "stack_base": "0x9000", "stack_end": "0x1000"},
  "registers": {"pc": {"value": "0x50", "is": "stub \"call_stub\" entry + 0x7"}},
  "stack": {"begin": "0x8000", "bytes": "50000000000000000000000000000000",
            "words": [{"at": 0, "value": "0x50", "is": "stub \"call_stub\" entry + 0x7"}]},
  "code": [], "trace": [{"method": "a/B.c", "bci": 4}],
  "finding": {"kind": "fault", "clause": "", "detail": "read of 0x8", "stack": ["libjvm.so+0x1"]}})";

int show(const std::string& content, std::string* out, std::string* errors) {
  const TestFolder folder;
  std::ofstream(folder / "1.sample") << content;
  std::ostringstream shown;
  std::ostringstream complaints;
  const int code = show_sample(folder / "1.sample", shown, complaints);
  *out = shown.str();
  *errors = complaints.str();
  return code;
}

TEST(SampleView, ShowsWhatWasThere) {
  std::string out;
  std::string errors;
  ASSERT_EQ(show(kSample, &out, &errors), 0) << errors;
  for (const char* part :
       {"sample 7, same-thread asgct", "fault: read of 0x8", "walker at libjvm.so+0x1",
        "_thread_in_Java", "call_stub", "a/B.c @ 4", "16 bytes from 0x8000", "sp + 0"}) {
    EXPECT_NE(out.find(part), std::string::npos) << part << " in\n" << out;
  }
}

TEST(SampleView, RefusesWhatIsNone) {
  std::string out;
  std::string errors;
  EXPECT_EQ(show("{}", &out, &errors), 2);
  EXPECT_NE(errors.find("is no sample"), std::string::npos);
  EXPECT_EQ(show("not json", &out, &errors), 2);
  EXPECT_EQ(show(R"({"framestorm-sample": 1})", &out, &errors), 2);
  std::ostringstream complaints;
  EXPECT_EQ(show_sample("/nonexistent/1.sample", complaints, complaints), 2);
}

}  // namespace
}  // namespace framestorm
