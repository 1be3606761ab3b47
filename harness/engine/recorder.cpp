#include "harness/engine/recorder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "harness/engine/minimizer.h"
#include "harness/input/binary.h"
#include "harness/input/text.h"
#include "harness/victim/scenario.h"

namespace framestorm {
namespace {

using nlohmann::json;

constexpr size_t kCurrentSize = 8 + kMaxEncodedInput;

double now_s() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// When this process started, on the same clock.
double process_start_s() {
  std::ifstream stat("/proc/self/stat");
  std::string text;
  std::getline(stat, text);
  // Field 22, counted behind the command name's closing parenthesis.
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 0; i < 20 && fields >> field; ++i) {
  }
  return std::stod(field.empty() ? "0" : field) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

uint64_t resident_kb() {
  std::ifstream statm("/proc/self/statm");
  uint64_t total = 0;
  uint64_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%lx", value);
  return text;
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

const char* state_name(uint32_t state) {
  constexpr const char* kNames[] = {"_thread_uninitialized", "1",
                                    "_thread_new",           "_thread_new_trans",
                                    "_thread_in_native",     "_thread_in_native_trans",
                                    "_thread_in_vm",         "_thread_in_vm_trans",
                                    "_thread_in_Java",       "_thread_in_Java_trans",
                                    "_thread_blocked",       "_thread_blocked_trans"};
  return state < std::size(kNames) ? kNames[state] : "invalid";
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

void write_file(const std::filesystem::path& path, std::string_view content) {
  std::ofstream file;
  open_for_writing(&file, path);
  file << content;
  file.flush();
  if (!file) throw std::system_error(errno, std::generic_category(), "writing " + path.string());
}

}  // namespace

Recorder::Recorder(const std::filesystem::path& folder, Session& session)
    : folder_(folder), session_(session), process_start_(process_start_s()) {
  std::filesystem::create_directories(folder / "artifacts");
  open_for_writing(&findings_file_, folder / "findings.jsonl");
  open_for_writing(&stats_file_, folder / "stats.jsonl");
  open_for_writing(&edges_file_, folder / "edges.jsonl");
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
  write_identity();
}

Recorder::~Recorder() { munmap(current_, kCurrentSize); }

void Recorder::write_identity() {
  Jvm& jvm = session_.jvm();
  const json identity = {{"version", jvm.version()},
                         {"vendor", jvm.vendor()},
                         {"feature", jvm.feature()},
                         {"home", jvm.options().home.string()},
                         {"libjvm", jvm.library_path().string()},
                         {"libjvm_build_id", build_id(jvm.library_path())},
                         {"args", jvm.arguments()},
                         {"arch", "x86_64"}};
  write_file(folder_ / "jvm.json", identity.dump(2) + "\n");
  json paths = json::object();
  const Modules modules = Modules::snapshot();
  for (const Module& module : modules.all()) paths[module.name] = module.path;
  write_file(folder_ / "modules.json", paths.dump(2) + "\n");
}

double Recorder::elapsed() const { return first_walk_ == 0 ? 0 : now_s() - first_walk_; }

void Recorder::executing(const Input& input, std::span<const uint8_t> bytes) {
  thread_local std::vector<uint8_t> encoded;
  if (bytes.empty()) {
    encode(input, &encoded);
    bytes = encoded;
  }
  const uint64_t size = std::min(bytes.size(), kMaxEncodedInput);
  std::memcpy(current_, &size, sizeof size);
  std::memcpy(current_ + sizeof size, bytes.data(), size);
}

bool Recorder::reproduces(uint64_t key, const Input& input) {
  if (poisoned_) return false;
  executing(input, {});
  const Outcome outcome = session_.engine().execute(input);
  poisoned_ = outcome.poisoned;
  for (const Finding& finding : *outcome.findings) {
    // Not those of walks that oracles made with another depth: that is another input.
    if (finding.input == input && signatures_.key_of(finding) == key) return true;
  }
  return false;
}

bool Recorder::executed(const Input& input, const Outcome& outcome) {
  ++executions_;
  if (outcome.status != Outcome::Status::walked) return false;
  if (walks_++ == 0) first_walk_ = now_s();
  poisoned_ = poisoned_ || outcome.poisoned;
  const bool java = scenario_info(input.scenario).java;
  const auto count = [&](Counts& counts) {
    ++counts.walks;
    if (outcome.succeeded()) ++counts.succeeded;
    if (outcome.unmutated) ++counts.unmutated;
    if (outcome.unmutated && outcome.succeeded()) ++counts.unmutated_succeeded;
    if (outcome.end != WalkEnd::returned) ++counts.contained;
  };
  count(by_scenario_[static_cast<size_t>(input.scenario)]);
  count(by_mode_[static_cast<size_t>(input.mode)]);
  count(by_walker_[static_cast<size_t>(input.walker)]);
  if (outcome.succeeded()) ++succeeded_;
  if (!outcome.unmutated) ++mutated_;
  if (outcome.end != WalkEnd::returned) {
    ++contained_;
  } else if (outcome.result <= 0) {
    const auto code = static_cast<size_t>(-static_cast<int64_t>(outcome.result));
    ++error_codes_[std::min(code, error_codes_.size() - 1)];
  }
  // A depth of 0 asks for no frames, and some scenarios stand where a walker may give none by
  // design; three registers alone do not say where Java begins.
  if (outcome.unmutated && java && input.walker != WalkerId::asgst_frame &&
      input.call.depth == DepthKind::normal && scenario_info(input.scenario).asgct_percent == 100) {
    ++unmutated_java_;
    if (outcome.succeeded()) ++unmutated_java_succeeded_;
  }
  if (outcome.findings->empty()) return false;

  bool new_key = false;
  const Coverage::Aside aside(session_.engine().coverage());
  // Minimising executes other inputs: take the findings over first.
  const std::vector<Finding> found = *outcome.findings;
  const auto trace = session_.engine().last_trace();
  for (const Finding& finding : found) {
    ++findings_;
    const uint64_t key = signatures_.key_of(finding);
    Bucket& bucket = buckets_[key];
    new_key = new_key || bucket.count == 0;
    ++bucket.count;
    if (bucket.artifacts.size() >= kArtifactsPerKey) continue;
    Finding minimized = finding;
    if (!outcome.poisoned) {
      minimized.input = minimize(
          finding.input, [&](const Input& candidate) { return reproduces(key, candidate); },
          kMinimizeBudget);
    }
    bool known = false;
    for (const Artifact& artifact : bucket.artifacts) {
      known = known || artifact.input == minimized.input;
    }
    if (known) continue;
    bucket.artifacts.push_back({minimized.input});
    // What is written has to be what this input does: its own registers, addresses and trace.
    if (minimized.input != input && !poisoned_) {
      executing(minimized.input, {});
      const Outcome again = session_.engine().execute(minimized.input);
      for (const Finding& own : *again.findings) {
        if (signatures_.key_of(own) == key) minimized = own;
      }
      record(key, minimized, bucket.artifacts.size() - 1, session_.engine().last_trace());
    } else {
      record(key, minimized, bucket.artifacts.size() - 1, trace);
    }
  }
  return new_key;
}

void Recorder::record_all(const Outcome& outcome) {
  const std::vector<Finding> found = *outcome.findings;
  const auto trace = session_.engine().last_trace();
  for (const Finding& finding : found) {
    const uint64_t key = signatures_.key_of(finding);
    Bucket& bucket = buckets_[key];
    ++bucket.count;
    if (bucket.artifacts.size() >= kArtifactsPerKey) continue;
    bucket.artifacts.push_back({finding.input});
    record(key, finding, bucket.artifacts.size() - 1, trace);
  }
}

void Recorder::recheck(ScenarioId scenario) {
  for (auto& [key, bucket] : buckets_) {
    for (const Artifact& artifact : bucket.artifacts) {
      if (artifact.input.scenario != scenario) continue;
      ++bucket.rechecks;
      if (reproduces(key, artifact.input)) ++bucket.rechecks_hit;
    }
  }
}

void Recorder::record(uint64_t key, const Finding& finding, size_t index,
                      const std::vector<Engine::NamedFrame>& trace) {
  const Modules& modules = session_.engine().addresses().modules();
  const FaultRecord& fault = finding.fault;
  Victim& victim = session_.crew().of(finding.input.scenario);
  Input input = finding.input;
  char name[48];
  std::snprintf(name, sizeof name, "artifacts/%016lx-%zu.bin", key, index);
  const std::string artifact_name = name;
  // Where the victim was is part of what happened: replay seeks it.
  if (input.halt.any && victim.slot != nullptr && !Crew::is_transient(input.scenario)) {
    input.halt = session_.describe_halt(victim);
  }
  std::vector<uint8_t> bytes;
  encode(input, &bytes);
  write_file(folder_ / artifact_name,
             std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));

  const AddressSpace& addresses = session_.engine().addresses();
  json stack = json::array();
  for (uint32_t i = 0; i < fault.stack_size; ++i) stack.push_back(modules.describe(fault.stack[i]));
  json registers = json::object();
  if (finding.kind != FindingKind::unsafe_call) {
    constexpr const char* kNames[] = {"r8",  "r9",  "r10", "r11", "r12", "r13",
                                      "r14", "r15", "rdi", "rsi", "rbp", "rbx",
                                      "rdx", "rax", "rcx", "rsp", "rip", "efl"};
    for (size_t i = 0; i < std::size(kNames); ++i) {
      registers[kNames[i]] = hex(static_cast<uint64_t>(fault.registers[i]));
    }
  }
  json frames = json::array();
  for (const auto& frame : trace) {
    if (frames.size() == 64) break;
    frames.push_back({{"method", frame.method}, {"bci", frame.bci}});
  }
  char key_text[24];
  std::snprintf(key_text, sizeof key_text, "%016lx", key);
  json line = {
      {"type", "finding"},
      {"key", key_text},
      {"t", elapsed()},
      {"kind", std::string(name_of(finding.kind))},
      {"clause", finding.clause},
      {"detail", detail_of(finding)},
      {"artifact", artifact_name},
      {"text", to_text(input)},
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
  };
  if (victim.slot != nullptr) {
    line["context"] = {
        {"real_pc", addresses.describe(victim.pc, victim)},
        {"real_sp", hex(victim.sp)},
        {"real_fp", hex(victim.fp)},
        {"stack_base", hex(victim.stack_base)},
        {"stack_end", hex(victim.stack_end)},
        {"fault_address", addresses.describe(fault.address, victim)},
        {"thread_state", victim.is_java_thread
                             ? state_name(victim.thread_state(session_.jvm().layout()))
                             : "not a JavaThread"}};
  }
  append(line.dump(-1, ' ', false, json::error_handler_t::replace));
}

void Recorder::append(const std::string& line) {
  findings_file_ << line << '\n';
  findings_file_.flush();
  if (!findings_file_) {
    throw std::system_error(ENOSPC, std::generic_category(),
                            "writing " + (folder_ / "findings.jsonl").string());
  }
}

LivenessCounts Recorder::liveness() const {
  return {walks_, mutated_, unmutated_java_, unmutated_java_succeeded_};
}

void Recorder::write_edges() {
  const std::vector<uint32_t> found = reached_.take_new();
  if (found.empty()) return;
  edges_file_ << json({{"t", elapsed()}, {"new", found}}).dump() << '\n';
  edges_file_.flush();
  if (!edges_file_) {
    throw std::system_error(ENOSPC, std::generic_category(),
                            "writing " + (folder_ / "edges.jsonl").string());
  }
}

void Recorder::write_stats() {
  write_edges();
  json scenarios = json::object();
  for (size_t i = 0; i < kScenarios; ++i) {
    const Counts& c = by_scenario_[i];
    if (c.walks == 0) continue;
    scenarios[std::string(name_of(static_cast<ScenarioId>(i)))] = {
        {"walks", c.walks},
        {"succeeded", c.succeeded},
        {"unmutated", c.unmutated},
        {"unmutated_succeeded", c.unmutated_succeeded}};
  }
  json modes = json::object();
  for (size_t i = 0; i < by_mode_.size(); ++i) {
    modes[std::string(name_of(static_cast<Mode>(i)))] = {{"walks", by_mode_[i].walks},
                                                         {"succeeded", by_mode_[i].succeeded}};
  }
  json walkers = json::object();
  for (size_t i = 0; i < by_walker_.size(); ++i) {
    const Counts& c = by_walker_[i];
    if (c.walks == 0) continue;
    walkers[std::string(name_of(static_cast<WalkerId>(i)))] = {
        {"walks", c.walks},
        {"succeeded", c.succeeded},
        {"unmutated", c.unmutated},
        {"unmutated_succeeded", c.unmutated_succeeded},
        {"contained", c.contained}};
  }
  json codes = json::object();
  for (size_t i = 0; i < error_codes_.size(); ++i) {
    if (error_codes_[i] != 0) codes[std::to_string(-static_cast<int>(i))] = error_codes_[i];
  }
  json unavailable = json::object();
  for (const auto& [scenario, reason] : session_.unavailable()) {
    unavailable[std::string(name_of(scenario))] = reason;
  }
  json line = {{"t", elapsed()},
               {"startup", first_walk_ == 0 ? 0 : first_walk_ - process_start_},
               {"walks", walks_},
               {"succeeded", succeeded_},
               {"mutated", mutated_},
               {"unmutated_java", unmutated_java_},
               {"unmutated_java_succeeded", unmutated_java_succeeded_},
               {"findings", findings_},
               {"executions", executions_},
               {"contained", contained_},
               {"sanitizer_reports_elsewhere", sanitizer::reports_elsewhere()},
               {"by_scenario", scenarios},
               {"by_mode", modes},
               {"by_walker", walkers},
               {"error_codes", codes},
               {"unavailable", unavailable},
               {"halts", session_.halts()},
               {"rss_kb", resident_kb()}};
  if (reached_.count() != 0) line["edges"] = reached_.count();
  stats_file_ << line.dump() << '\n';
  stats_file_.flush();
  if (!stats_file_) {
    throw std::system_error(ENOSPC, std::generic_category(),
                            "writing " + (folder_ / "stats.jsonl").string());
  }
  for (auto& [key, bucket] : buckets_) {
    if (bucket.count == bucket.written_count) continue;
    bucket.written_count = bucket.count;
    char key_text[24];
    std::snprintf(key_text, sizeof key_text, "%016lx", key);
    append(json({{"type", "count"},
                 {"key", key_text},
                 {"count", bucket.count},
                 {"rechecks", bucket.rechecks},
                 {"rechecks_hit", bucket.rechecks_hit}})
               .dump());
  }
}

}  // namespace framestorm
