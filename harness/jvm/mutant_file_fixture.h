// The file of counts of a libjvm with mutants, for tests in which a walker behaves as that does.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "harness/jvm/libjvm_mutants.h"

namespace framestorm::jvm_test {

class MutantFile {
 public:
  MutantFile(const std::filesystem::path& path, uint64_t count) : path_(path) {
    std::ofstream(path).seekp(sizeof(LibjvmMutantFile) - 1).put(0);
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    file_ = static_cast<LibjvmMutantFile*>(
        mmap(nullptr, sizeof(LibjvmMutantFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    close(fd);
    file_->count = count;
    file_->in_force = LibjvmMutantFile::kNone;
  }
  ~MutantFile() { munmap(file_, sizeof(LibjvmMutantFile)); }
  MutantFile(const MutantFile&) = delete;
  MutantFile& operator=(const MutantFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  LibjvmMutantFile* operator->() const { return file_; }

  // What each of `numbers` does in a walk with none in force.
  void act(std::initializer_list<size_t> numbers) const {
    if (file_->in_force != LibjvmMutantFile::kNone) return;
    for (const size_t number : numbers) ++file_->counts[number].acted;
  }

 private:
  const std::filesystem::path path_;
  LibjvmMutantFile* file_;
};

}  // namespace framestorm::jvm_test
