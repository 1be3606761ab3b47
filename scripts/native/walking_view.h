// walking.bin (stress/agent/walking_file.h), which a process under the stress agent leaves behind: the
// walks that it was making when it died.
#pragma once

#include <filesystem>
#include <iosfwd>

namespace framestorm {

// A JSON array, the oldest sample's walk first; empty when none was being made:
//   {"number", "tid", "walker", "mode", "depth", "rewalks", "thread_state": "_thread_in_Java",
//    "java_thread", "real_pc", "real_sp", "real_fp", "stack_base", "stack_end", "last_java_sp",
//    "last_java_pc", "last_java_fp"}
// with addresses as "0x1f". Exit codes: 0 shown, 2 the file cannot be read (with a message on
// `errors`).
int show_walking(const std::filesystem::path& file, std::ostream& out, std::ostream& errors);

}  // namespace framestorm
