#include "harness/executor/run_files.h"

#include <signal.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "harness/executor/signature.h"
#include "harness/guard/arch.h"
#include "harness/input/json_form.h"

namespace framestorm {
namespace {

using nlohmann::json;

// The linker's build id of an ELF file, as hex; empty when it has none.
std::string build_id(const std::filesystem::path& path) {
  // A GNU note is name size 4, description size, type 3, "GNU\0", description.
  std::ifstream file(path, std::ios::binary);
  std::vector<char> head(4096);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  const std::string_view bytes(head.data(), static_cast<size_t>(file.gcount()));
  const size_t at = bytes.find(std::string_view("\3\0\0\0GNU\0", 8));
  if (at == std::string_view::npos || at < 4 || at + 8 + 20 > bytes.size()) return {};
  uint32_t size = 0;
  std::memcpy(&size, bytes.data() + at - 4, 4);
  return hex_bytes(reinterpret_cast<const uint8_t*>(bytes.data()) + at + 8,
                   std::min<size_t>(size, 20));
}

// With what the address of a sanitizer's report is near, which a walk has no time to find out.
std::string detail_of(const Finding& finding) {
  if (finding.kind != FindingKind::sanitizer || finding.fault.address == 0) return finding.detail;
  const std::string place = sanitizer::describe_address(finding.fault.address);
  const bool known = place.empty() || finding.detail.find("-byte region") != std::string::npos;
  return known ? finding.detail : finding.detail + ", " + place;
}

void open_for_writing(std::ofstream* file, const std::filesystem::path& path) {
  file->open(path, std::ios::trunc);
  if (!*file) throw std::system_error(errno, std::generic_category(), "writing " + path.string());
}

}  // namespace

json not_judged_record(std::span<const OracleSet::NotJudged> oracles) {
  json record = json::object();
  for (const OracleSet::NotJudged& left : oracles) {
    record[std::string(left.oracle)] = left.why;
  }
  return record;
}

std::string hex_bytes(const uint8_t* bytes, size_t size) {
  std::string text;
  char two[3];
  for (size_t i = 0; i < size; ++i) {
    std::snprintf(two, sizeof two, "%02x", bytes[i]);
    text += two;
  }
  return text;
}

std::string key_text(uint64_t key) {
  char text[24];
  std::snprintf(text, sizeof text, "%016lx", key);
  return text;
}

void JsonLines::open(const std::filesystem::path& path) {
  open_for_writing(&file_, path);
  path_ = path;
}

void JsonLines::append(const json& line) {
  if (path_.empty()) return;
  file_ << line.dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
  file_.flush();
  if (!file_) throw std::system_error(ENOSPC, std::generic_category(), "writing " + path_.string());
}

void write_file(const std::filesystem::path& path, std::string_view content) {
  std::ofstream file;
  open_for_writing(&file, path);
  file << content;
  file.flush();
  if (!file) throw std::system_error(errno, std::generic_category(), "writing " + path.string());
}

void write_file(const std::filesystem::path& path, std::span<const uint8_t> content) {
  write_file(path, std::string_view(reinterpret_cast<const char*>(content.data()), content.size()));
}

void write_identity(const std::filesystem::path& folder, const Jvm& jvm) {
  const json identity = {{"version", jvm.version()},
                         {"vendor", jvm.vendor()},
                         {"feature", jvm.feature()},
                         {"home", jvm.options().home.string()},
                         {"libjvm", jvm.library_path().string()},
                         {"libjvm_build_id", build_id(jvm.library_path())},
                         {"args", jvm.arguments()},
                         {"arch", "x86_64"}};
  write_file(folder / "jvm.json", identity.dump(2) + "\n");
  json paths = json::object();
  const Modules modules = Modules::snapshot();
  for (const Module& module : modules.all()) paths[module.name] = module.path;
  write_file(folder / "modules.json", paths.dump(2) + "\n");
}

json finding_line(const Finding& finding, uint64_t key, double time, const std::string& artifact,
                  const Input& input, const Modules& modules,
                  const std::vector<NamedFrame>& trace) {
  const FaultRecord& fault = finding.fault;
  json stack = json::array();
  for (uint32_t i = 0; i < fault.stack_size; ++i) stack.push_back(modules.describe(fault.stack[i]));
  json registers = json::object();
  if (finding.kind != FindingKind::unsafe_call) {
    const auto names = arch::register_names();
    for (size_t i = 0; i < names.size(); ++i) {
      registers[names[i]] = hex(static_cast<uint64_t>(fault.registers[i]));
    }
  }
  json frames = json::array();
  for (const auto& frame : trace) {
    if (frames.size() == 64) break;
    frames.push_back({{"method", frame.method}, {"bci", frame.bci}});
  }
  json line = input_record(input);
  line.update({
      {"type", "finding"},
      {"key", key_text(key)},
      {"t", time},
      {"kind", std::string(name_of(finding.kind))},
      {"clause", finding.clause},
      {"detail", detail_of(finding)},
      {"detail_class", detail_class(finding)},
      {"oracle", finding.oracle},
      {"mutant", finding.mutant},
      {"victim", name_of(input.scenario)},
      {"artifact", artifact},
      {"signal", fault.signo == 0 ? "" : std::string("SIG") + sigabbrev_np(fault.signo)},
      {"si_code", fault.si_code},
      {"address", hex(fault.address)},
      {"access", fault.is_write ? "write" : "read"},
      {"pc", modules.describe(fault.pc)},
      {"registers", registers},
      {"stack", stack},
      {"code_start", hex(fault.pc - kCodeBytesBefore)},
      {"code", hex_bytes(fault.code, fault.code_size)},
      {"code_pc_offset", kCodeBytesBefore},
      {"function", fault.function == nullptr ? "" : fault.function},
      {"locks_held", fault.locks_held},
      {"trace", frames},
  });
  return line;
}

void append_counts(JsonLines* file, uint64_t key, KeyCounts* counts) {
  if (counts->count == counts->written) return;
  counts->written = counts->count;
  file->append({{"type", "count"},
                {"key", key_text(key)},
                {"count", counts->count},
                {"rechecks", counts->rechecks},
                {"rechecks_hit", counts->rechecks_hit},
                {"victims", counts->victims}});
}

}  // namespace framestorm
