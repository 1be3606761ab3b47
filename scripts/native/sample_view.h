// A sample of the stress agent (stress/agent/README.md, "samples") as a person reads it.
#pragma once

#include <filesystem>
#include <iosfwd>

namespace framestorm {

// Registers, thread, trace and the stack words that refer to something. Exit codes: 0 shown, 2 the
// file is no sample (with a message on `errors`).
int show_sample(const std::filesystem::path& file, std::ostream& out, std::ostream& errors);

}  // namespace framestorm
