// The existing code a mutator picks from, as a list: the driver fills it from the live code map,
// and AFL++'s custom mutator, which runs in a process without a JVM, from a file the driver wrote.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "fuzz/mutator_values.h"

namespace framestorm {

// In the output folder of AFL++'s targets.
inline constexpr const char* kCodeNamesFile = "code-names";

class CodeNameList final : public CodeNames {
 public:
  void clear();
  void add(NamedCode code);
  bool empty() const { return blobs_.empty() && nmethods_.empty(); }

  // Nmethods are few among thousands of blobs: half of the picks are theirs. One in sixteen is of the few
  // blobs that HotSpot knows return addresses by.
  const NamedCode* pick(Rng& rng) const override;

  // Replaces the file as a whole, so that a reader never sees a part. Throws std::system_error.
  void save(const std::filesystem::path& file) const;
  // Replaces the list. False, and the list is as it was, when there is no such file or it is not
  // one that save() wrote.
  bool load(const std::filesystem::path& file);

 private:
  std::vector<NamedCode> blobs_;
  std::vector<size_t> returned_to_;  // of blobs_
  std::vector<NamedCode> nmethods_;
};

}  // namespace framestorm
