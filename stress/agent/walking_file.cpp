#include "stress/agent/walking_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

namespace framestorm::stress {

WalkingFile::WalkingFile(const std::filesystem::path& path, size_t records)
    : size_(records * sizeof(WalkingRecord)) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const int error = fd < 0 ? errno : posix_fallocate(fd, 0, static_cast<off_t>(size_));
  void* const mapping =
      error != 0 ? MAP_FAILED : mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const int mapping_error = errno;
  if (fd >= 0) close(fd);
  if (mapping == MAP_FAILED) {
    throw std::system_error(error != 0 ? error : mapping_error, std::generic_category(),
                            "writing " + path.string());
  }
  records_ = static_cast<WalkingRecord*>(mapping);
}

WalkingFile::~WalkingFile() { munmap(records_, size_); }

std::vector<WalkingRecord> read_walks(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::system_error(errno, std::generic_category(), "reading " + path.string());
  std::vector<WalkingRecord> walks;
  WalkingRecord record;
  while (file.read(reinterpret_cast<char*>(&record), sizeof record)) {
    if (record.number != 0) walks.push_back(record);
  }
  std::ranges::sort(walks, {}, &WalkingRecord::number);
  return walks;
}

}  // namespace framestorm::stress
