#include "fuzz/libjvm_mutants.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "harness/base/error.h"

namespace framestorm {
namespace {

// Of one input, and of one mutant in all: what acts in each walk leaves time for the others.
constexpr size_t kTriesOfInput = 8;
constexpr uint32_t kTriesOfMutant = 3000;
// A try walks some twenty times. Of a trace with so many frames that takes as long as a thousand other tries:
// there one mutant is tried, that was tried nowhere.
constexpr int32_t kDeep = 1000;
// Of the key of what killed one, so that each has an artifact of its own.
constexpr uint64_t kKeyOfMutant = 0x9e3779b97f4a7c15;

}  // namespace

LibjvmMutants::LibjvmMutants(const std::filesystem::path& counts, Session& session,
                             RunWriter& writer, Signatures& signatures)
    : session_(session), writer_(writer), signatures_(signatures) {
  const int fd = open(counts.c_str(), O_RDWR | O_CLOEXEC);
  struct stat file = {};
  const bool has_room = fd >= 0 && fstat(fd, &file) == 0 &&
                        static_cast<size_t>(file.st_size) >= sizeof(LibjvmMutantFile);
  void* const mapped =
      has_room ? mmap(nullptr, sizeof(LibjvmMutantFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
               : MAP_FAILED;
  if (fd >= 0) close(fd);
  if (mapped == MAP_FAILED) {
    throw SetupError("cannot map the mutants' counts of " + counts.string());
  }
  file_ = static_cast<LibjvmMutantFile*>(mapped);
  if (file_->count == 0 || file_->count >= LibjvmMutantFile::kMost ||
      file_->trying > file_->count || file_->in_force != LibjvmMutantFile::kNone) {
    munmap(mapped, sizeof(LibjvmMutantFile));
    throw SetupError(counts.string() + " is not of a libjvm with mutants, none of them in force");
  }
  if (file_->trying != 0) file_->tried[file_->trying].fate = LibjvmMutantFile::kDied;
  file_->trying = 0;
  acted_.resize(file_->count + 1);
}

LibjvmMutants::~LibjvmMutants() { munmap(file_, sizeof(LibjvmMutantFile)); }

void LibjvmMutants::begin() {
  for (size_t number = 1; number < acted_.size(); ++number) {
    acted_[number] = file_->counts[number].acted;
  }
}

bool LibjvmMutants::is_worth_a_try(size_t number) const {
  const auto& tried = file_->tried[number];
  return file_->counts[number].acted != acted_[number] && tried.tries < kTriesOfMutant &&
         (tried.fate == LibjvmMutantFile::kOpen || tried.fate == LibjvmMutantFile::kSuspect);
}

std::vector<size_t> LibjvmMutants::to_try(bool deep) {
  const size_t most = deep ? 1 : kTriesOfInput;
  std::vector<size_t> acting;
  for (size_t i = 0; i < acted_.size() - 1 && acting.size() < most; ++i) {
    const size_t number = 1 + (next_ + i) % (acted_.size() - 1);
    if (!is_worth_a_try(number) || (deep && file_->tried[number].tries != 0)) continue;
    if (file_->tried[number].fate == LibjvmMutantFile::kSuspect) {
      if (acting.empty()) acting.push_back(number);
      break;
    }
    acting.push_back(number);
  }
  if (!acting.empty()) next_ = acting.back();
  return acting;
}

void LibjvmMutants::look(const Input& input, const Outcome& outcome) {
  if (outcome.status != Outcome::Status::walked) return;
  if (!outcome.findings.empty()) {
    // The added walkers are known to have no bug; what has JFR walk has JFR's.
    const WalkerTraits& walker = traits_of(input.walker);
    spoiled_ = tried_ && walker.is_added() && !walker.chooses_its_threads;
    return;
  }
  Executor& executor = session_.executor();
  const Coverage::Aside aside(executor.coverage());
  const std::vector<size_t> acting = to_try(outcome.result > kDeep);
  if (acting.empty()) return;
  executor.set_rigour(Rigour::everything);
  for (const size_t number : acting) {
    if (!executor.not_reusable()) try_one(number, input);
  }
  if (!executor.not_reusable()) look_behind(acting, input);
  executor.set_rigour(Rigour::per_walk);
}

Outcome LibjvmMutants::walk(size_t number, const Input& input) {
  file_->trying = number;
  file_->in_force = number == 0 ? LibjvmMutantFile::kNone : static_cast<int64_t>(number);
  Outcome outcome = session_.executor().execute(input);
  file_->in_force = LibjvmMutantFile::kNone;
  file_->trying = 0;
  return outcome;
}

bool LibjvmMutants::finds(uint64_t key, const Outcome& outcome) {
  return std::ranges::any_of(
      outcome.findings, [&](const Finding& finding) { return signatures_.key_of(finding) == key; });
}

void LibjvmMutants::try_one(size_t number, const Input& input) {
  ++file_->tried[number].tries;
  tried_ = true;
  const Outcome found = walk(number, input);
  if (found.findings.empty()) return;
  const std::vector<NamedFrame> trace = session_.executor().last_trace();
  for (const Finding& finding : found.findings) {
    const uint64_t key = signatures_.key_of(finding);
    // After a walk that must not be followed by another there is the one before it.
    if (session_.executor().not_reusable() ||
        (!finds(key, walk(0, input)) && finds(key, walk(number, input)))) {
      kill(number, finding, trace);
      return;
    }
  }
}

void LibjvmMutants::look_behind(const std::vector<size_t>& tried, const Input& input) {
  const Outcome left = walk(0, input);
  if (left.findings.empty()) return;
  spoiled_ = true;
  if (tried.size() == 1) {
    kill(tried.front(), left.findings.front(), session_.executor().last_trace());
    return;
  }
  for (const size_t number : tried) {
    if (file_->tried[number].fate == LibjvmMutantFile::kOpen) {
      file_->tried[number].fate = LibjvmMutantFile::kSuspect;
    }
  }
}

void LibjvmMutants::kill(size_t number, const Finding& finding,
                         const std::vector<NamedFrame>& trace) {
  file_->tried[number].fate = LibjvmMutantFile::kKilled;
  Finding killing = finding;
  killing.mutant = number;
  writer_.record(signatures_.key_of(finding) ^ (number * kKeyOfMutant), 0, killing, trace);
}

}  // namespace framestorm
