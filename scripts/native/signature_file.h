// The signature a replay looks for: JSON made by triage from function names,
//   {"kind": "fault", "clause": "", "frames": [["libjvm.so", [begin, end], ...], ...]}
//   {"kind": "contract", "clause": "bci-out-of-range", "detail_class": "...", "walker": "asgct",
//    "frames": []}
// with each function as one or more address ranges of its module: overloads share a name, and a
// function's cold part lies elsewhere.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/jvm/modules.h"
#include "harness/oracles/finding.h"

namespace framestorm {

class SignatureFile {
 public:
  // Throws SetupError saying what is wrong with the file.
  explicit SignatureFile(const std::filesystem::path& path);

  // Kind and clause are equal, detail class and walker too where the file has them, and the finding's stack has an address in one of each frame's ranges,
  // in the frames' order.
  bool matches(const Finding& finding) const;

 private:
  struct Range {
    uintptr_t begin, end;
  };
  using Frame = std::vector<Range>;
  std::string kind_;
  std::string clause_;
  std::optional<std::string> detail_class_;
  std::optional<std::string> walker_;
  std::vector<Frame> frames_;
};

}  // namespace framestorm
