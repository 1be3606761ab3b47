#include "harness/executor/run_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "harness/input/binary.h"
#include "harness/input/json_form.h"
#include "harness/input/thread_state.h"
#include "harness/walkers/profiler.h"

namespace framestorm {
namespace {

using nlohmann::json;

constexpr size_t kCurrentSize = 8 + kMaxEncodedInput;

uint64_t resident_kb() {
  std::ifstream statm("/proc/self/statm");
  uint64_t total = 0;
  uint64_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

}  // namespace

RunWriter::RunWriter(const std::filesystem::path& folder, Session& session, const RunCounts& counts)
    : folder_(folder), session_(session), counts_(counts) {
  if (folder.empty()) return;
  std::filesystem::create_directories(folder / "artifacts");
  findings_.open(folder / "findings.jsonl");
  stats_.open(folder / "stats.jsonl");
  edges_.open(folder / "edges.jsonl");
  const std::filesystem::path current = folder / "current.bin";
  const int fd = open(current.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  // Allocated now: a full disk must not kill the process in the middle of a walk.
  if (fd < 0 || posix_fallocate(fd, 0, kCurrentSize) != 0) {
    throw std::system_error(errno, std::generic_category(), "writing " + current.string());
  }
  void* mapping = mmap(nullptr, kCurrentSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapping == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "mapping " + current.string());
  }
  current_ = static_cast<uint8_t*>(mapping);
  write_identity(folder_, session_.jvm());
}

RunWriter::~RunWriter() {
  if (current_ != nullptr) munmap(current_, kCurrentSize);
}

void RunWriter::executing(const Input& input, std::span<const uint8_t> bytes) {
  if (current_ == nullptr) return;
  if (bytes.empty()) {
    encode(input, &encoded_);
    bytes = encoded_;
  }
  const uint64_t size = std::min(bytes.size(), kMaxEncodedInput);
  std::memcpy(current_, &size, sizeof size);
  std::memcpy(current_ + sizeof size, bytes.data(), size);
}

Input RunWriter::with_halt(const Input& input) const {
  Input result = input;
  const Victim& victim = session_.victims().of(input.scenario);
  if (input.halt.any && victim.slot != nullptr && !Victims::is_transient(input.scenario)) {
    result.halt = session_.describe_halt(victim);
  }
  return result;
}

void RunWriter::record(uint64_t key, size_t index, const Finding& finding,
                       const std::vector<NamedFrame>& trace) {
  if (folder_.empty()) return;
  Victim& victim = session_.victims().of(finding.input.scenario);
  const Input input = with_halt(finding.input);
  const std::string artifact = "artifacts/" + key_text(key) + "-" + std::to_string(index) + ".bin";
  std::vector<uint8_t> bytes;
  encode(input, &bytes);
  write_file(folder_ / artifact, bytes);

  const AddressSpace& addresses = session_.executor().addresses();
  json line =
      finding_line(finding, key, counts_.elapsed(), artifact, input, addresses.modules(), trace);
  if (victim.slot != nullptr && session_.halted()) {
    line["context"] = {
        {"real_pc", addresses.describe(victim.pc, victim)},
        {"real_sp", hex(victim.sp)},
        {"real_fp", hex(victim.fp)},
        {"stack_base", hex(victim.stack_base)},
        {"stack_end", hex(victim.stack_end)},
        {"fault_address", addresses.describe(finding.fault.address, victim)},
        {"thread_state", victim.is_java_thread
                             ? thread_state_name(victim.thread_state(session_.jvm().layout()))
                             : "not a JavaThread"}};
    if (const auto place = addresses.symbolic(finding.fault.address, victim)) {
      line["fault_place"] = to_json(*place);
    }
  }
  findings_.append(line);
}

void RunWriter::write_stats() {
  if (folder_.empty()) return;
  if (const auto found = reached_.take_new(); !found.empty()) {
    edges_.append({{"t", counts_.elapsed()}, {"new", found}});
  }
  json unavailable = json::object();
  for (const auto& [scenario, reason] : session_.unavailable()) {
    unavailable[std::string(name_of(scenario))] = reason;
  }
  json line = counts_.summary();
  line.update({{"sanitizer_reports_elsewhere", sanitizer::reports_elsewhere()},
               {"unavailable", unavailable},
               {"not_judged", not_judged_record(session_.executor().not_judged())},
               {"halts", session_.halts()},
               {"places", session_.places()},
               {"rss_kb", resident_kb()}});
  if (reached_.count() != 0) line["edges"] = reached_.count();
  if (const Profiler* const profiler = session_.profiler()) {
    json places = json::object();
    for (const auto& [pc, count] : Guard::contained_places()) {
      places[session_.executor().addresses().modules().describe(pc)] = count;
    }
    line["profiler"] = {{"signal", profiler->signal_number()},
                        {"own_siginfo", profiler->has_own_siginfo()},
                        {"counts_samples", profiler->counts()},
                        {"contained_places", places}};
  }
  stats_.append(line);
}

}  // namespace framestorm
