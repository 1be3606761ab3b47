// The walks being made, in a mapped file (walking.bin), so that a process which dies in one leaves
// behind which: what current.bin is for fuzz targets. README.md has the layout.
#pragma once

#include <sys/ucontext.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace framestorm::stress {

// One walk. All numbers in the machine's own byte order; 512 bytes.
struct WalkingRecord {
  uint64_t number;  // of the sample; 0: no walk is being made. Written last, and first cleared
  uint32_t tid;
  uint32_t walker;  // WalkerId
  uint32_t mode;    // SamplingMode
  int32_t depth;
  uint32_t rewalks;  // walks made of this sample before, for costly oracles
  uint32_t thread_state;
  uint64_t stack_base, stack_end;
  uint64_t last_java_sp, last_java_pc, last_java_fp;
  uint64_t java_thread;
  uint64_t registers[NGREG];  // as in ucontext_t
  uint8_t unused[512 - 10 * 8 - 8 * NGREG];
};
static_assert(sizeof(WalkingRecord) == 512);

class WalkingFile {
 public:
  // With room for `records`, allocated now: a full disk must not kill the process in a walk. Throws
  // std::system_error.
  WalkingFile(const std::filesystem::path& path, size_t records);
  ~WalkingFile();
  WalkingFile(const WalkingFile&) = delete;
  WalkingFile& operator=(const WalkingFile&) = delete;

  WalkingRecord* record(size_t index) { return records_ + index; }

 private:
  WalkingRecord* records_;
  size_t size_;
};

// The walks that a file holds, the oldest sample's first. Throws std::system_error when it cannot be
// read.
std::vector<WalkingRecord> read_walks(const std::filesystem::path& path);

}  // namespace framestorm::stress
