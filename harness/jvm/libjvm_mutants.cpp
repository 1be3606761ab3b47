#include "harness/jvm/libjvm_mutants.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "harness/base/error.h"

namespace framestorm {
namespace {

constexpr uint8_t kTriesInSituation = 100;

}  // namespace

LibjvmMutants::LibjvmMutants(const std::filesystem::path& counts) {
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
      file_->trying > file_->count || file_->in_force > static_cast<int64_t>(file_->count)) {
    munmap(mapped, sizeof(LibjvmMutantFile));
    throw SetupError(counts.string() + " is not of a libjvm with mutants");
  }
  if (file_->trying != 0) file_->tried[file_->trying].fate = LibjvmMutantFile::kDied;
  file_->trying = 0;
  file_->in_force = LibjvmMutantFile::kNone;
  acted_.resize(file_->count + 1);
}

LibjvmMutants::~LibjvmMutants() { munmap(file_, sizeof(LibjvmMutantFile)); }

void LibjvmMutants::begin() {
  for (size_t number = 1; number < acted_.size(); ++number) {
    acted_[number] = file_->counts[number].acted;
  }
}

std::vector<uint8_t>& LibjvmMutants::tries_in(size_t situation) {
  if (tries_.size() <= situation) tries_.resize(situation + 1);
  tries_[situation].resize(acted_.size());
  return tries_[situation];
}

std::vector<size_t> LibjvmMutants::to_try(size_t most, const std::vector<uint8_t>& tries,
                                          bool new_only) {
  const auto is_worth_it = [&](size_t number) {
    const auto& tried = file_->tried[number];
    return file_->counts[number].acted != acted_[number] && tries[number] < kTriesInSituation &&
           (tried.fate == LibjvmMutantFile::kOpen || tried.fate == LibjvmMutantFile::kSuspect) &&
           (!new_only || tried.tries == 0);
  };
  const auto is_suspect = [&](size_t number) {
    return file_->tried[number].fate == LibjvmMutantFile::kSuspect;
  };
  std::vector<size_t> acting;
  for (size_t number = 1; number < acted_.size(); ++number) {
    if (is_worth_it(number)) acting.push_back(number);
  }
  // So that what acts rarely is tried whenever it does.
  std::ranges::sort(acting, {}, [&](size_t number) {
    return std::tuple(tries[number], file_->tried[number].tries, number);
  });
  const auto suspect = std::ranges::find_if(acting, is_suspect);
  const auto before = static_cast<size_t>(suspect - acting.begin());
  const bool alone = before == 0 && suspect != acting.end();
  acting.resize(alone ? 1 : std::min(most, before));
  return acting;
}

void LibjvmMutants::try_acting(Walks& walks, size_t most, size_t situation, bool new_only) {
  std::vector<uint8_t>& tries = tries_in(situation);
  const std::vector<size_t> acting = to_try(most, tries, new_only);
  if (acting.empty()) return;
  // What finds something with none in force, too, tells nothing: more oracles may look now than did before.
  if (!walk(0, walks).empty() || !walks.was_made() || !walks.goes_on()) return;
  const uint64_t unmutated = walks.answer();
  for (const size_t number : acting) {
    if (!walks.goes_on()) break;
    ++tries[number];
    walks.begin_try(number);
    try_one(number, unmutated, walks);
    walks.end_try();
  }
  if (walks.goes_on()) look_behind(acting, walks);
}

std::vector<uint64_t> LibjvmMutants::walk(size_t number, Walks& walks) {
  walks.before_walk();
  file_->trying = number;
  file_->in_force = number == 0 ? LibjvmMutantFile::kNone : static_cast<int64_t>(number);
  std::vector<uint64_t> found = walks.walk();
  file_->in_force = LibjvmMutantFile::kNone;
  file_->trying = 0;
  return found;
}

void LibjvmMutants::try_one(size_t number, uint64_t unmutated, Walks& walks) {
  ++file_->tried[number].tries;
  tried_ = true;
  const std::vector<uint64_t> found_with = walk(number, walks);
  if (walks.answer() != unmutated) ++file_->tried[number].differed;
  const auto finds = [&](uint64_t key, size_t in_force) {
    const std::vector<uint64_t> found = walk(in_force, walks);
    return std::ranges::find(found, key) != found.end();
  };
  const auto is_confirmed = [&](uint64_t key) {
    for (size_t i = 0; i < walks.confirmations(); ++i) {
      if (finds(key, 0) || !walks.was_made() || !finds(key, number)) return false;
    }
    return true;
  };
  for (const uint64_t key : found_with) {
    // After a walk that must not be followed by another there is the one before it.
    if (!walks.goes_on() || is_confirmed(key)) {
      kill(number, key, walks);
      return;
    }
  }
}

void LibjvmMutants::look_behind(const std::vector<size_t>& tried, Walks& walks) {
  const std::vector<uint64_t> left = walk(0, walks);
  if (left.empty()) return;
  spoil();
  if (tried.size() == 1) {
    kill(tried.front(), left.front(), walks);
    return;
  }
  for (const size_t number : tried) {
    if (file_->tried[number].fate == LibjvmMutantFile::kOpen) {
      file_->tried[number].fate = LibjvmMutantFile::kSuspect;
    }
  }
}

void LibjvmMutants::kill(size_t number, uint64_t key, Walks& walks) {
  file_->tried[number].fate = LibjvmMutantFile::kKilled;
  walks.killed(number, key);
}

}  // namespace framestorm
