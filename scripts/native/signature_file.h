// The signature a replay looks for: JSON made by triage from function names,
//   {"kind": "fault", "clause": "", "frames": [["libjvm.so", begin, end], ...]}
// with the functions as address ranges of their module.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/engine/finding.h"
#include "harness/jvm/modules.h"

namespace framestorm {

class SignatureFile {
 public:
  // Throws SetupError saying what is wrong with the file.
  explicit SignatureFile(const std::filesystem::path& path);

  // Kind and clause are equal and the finding's stack has an address in each range, in that order.
  bool matches(const Finding& finding) const;

 private:
  struct Range {
    uintptr_t begin, end;
  };
  std::string kind_;
  std::string clause_;
  std::vector<Range> frames_;
};

}  // namespace framestorm
