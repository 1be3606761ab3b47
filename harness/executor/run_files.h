// The files that every run leaves behind, whoever drives it: what the JVM was, and findings line by
// line (recorder.h lists them all). Any thread; allocates.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "harness/executor/finding.h"
#include "harness/jvm/jvm.h"
#include "harness/jvm/modules.h"

namespace framestorm {

// A frame by name, for reports.
struct NamedFrame {
  std::string method;
  int32_t bci = 0;
};

// Opens a new file. These throw std::system_error naming the file that could not be written.
void open_for_writing(std::ofstream* file, const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, std::string_view content);
// jvm.json and modules.json.
void write_identity(const std::filesystem::path& folder, const Jvm& jvm);

// One object of findings.jsonl, without what is known of the victim ("context"). `time`: seconds of
// the run. `artifact`: file name in the run's folder. `text`: the input, if there is one.
nlohmann::json finding_line(const Finding& finding, uint64_t key, double time,
                            const std::string& artifact, const std::string& text,
                            const Modules& modules, const std::vector<NamedFrame>& trace);

// "0x1f".
std::string hex(uint64_t value);
std::string hex_bytes(const uint8_t* bytes, size_t size);
// Of a HotSpot thread state: "_thread_in_Java".
const char* thread_state_name(uint32_t state);
std::string key_text(uint64_t key);

}  // namespace framestorm
