// Reads a folder of seeds, or any corpus: text forms and binary artifacts.
#pragma once

#include <filesystem>
#include <vector>

#include "harness/input/input.h"

namespace framestorm {

// The Inputs of *.txt (text.h) and *.bin (binary.h) in each folder, not in its subfolders, in the
// order of their file names; other files are left alone. Throws SetupError, naming the file and what
// is wrong with it, when a folder cannot be read, holds no such file, or one of them is not an
// Input. Any thread.
std::vector<Input> load_seed_folders(const std::vector<std::filesystem::path>& folders);

// The same for one file; by its content: text when it begins with "framestorm-input" or '#'.
Input load_input_file(const std::filesystem::path& file);

}  // namespace framestorm
