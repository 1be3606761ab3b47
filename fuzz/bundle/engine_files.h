// No engine: the files that were given, one after the other.
#pragma once

#include <filesystem>
#include <vector>

namespace framestorm {

// Before the target is run.
void set_files(std::vector<std::filesystem::path> files);

}  // namespace framestorm
