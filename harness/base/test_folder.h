// A folder of a test's own: tests run side by side, as processes of one machine.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace framestorm {

// Made empty, removed with all its files at the end of its scope. Throws
// std::filesystem::filesystem_error.
class TestFolder {
 public:
  TestFolder()
      : path_(
            std::filesystem::path(testing::TempDir()) /
            ("framestorm-test-" + std::to_string(getpid()) + "-" + std::to_string(next_number()))) {
    std::filesystem::create_directory(path_);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  static int next_number() {
    static int made = 0;
    return made++;
  }

  std::filesystem::path path_;
};

}  // namespace framestorm
