// Reads a folder of seeds, or any corpus: text forms and binary artifacts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/input/input.h"

namespace framestorm {

// Appends the Inputs of *.txt (text.h) and *.bin (binary.h) in `folder`, not in its subfolders, in
// the order of their file names; other files are left alone. Returns false and fills *error, naming
// the file and what is wrong with it, when the folder cannot be read, holds no such file, or one of
// them is not an Input; *out is unspecified then. Any thread.
bool load_seed_folder(const std::filesystem::path& folder, std::vector<Input>* out,
                      std::string* error);

// The same for one file; by its content: text when it begins with "framestorm-input" or '#'.
bool load_input_file(const std::filesystem::path& file, Input* out, std::string* error);

}  // namespace framestorm
