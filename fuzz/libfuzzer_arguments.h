// libFuzzer's own command line, as OSS-Fuzz, ClusterFuzz and people give it to a bundled target,
// and what a process with a JVM in it needs there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace framestorm {

class LibFuzzerArguments {
 public:
  // As main() got them, with the program's name.
  explicit LibFuzzerArguments(std::vector<std::string> arguments);

  // Whether libFuzzer would only start other processes of this program (merging, minimising, fork
  // mode, jobs) or print its help: it needs no JVM, and could not wait for processes on a victim.
  bool only_starts_others() const;
  // Whether it would execute the files it was given, and mutate nothing.
  bool executes_files() const;
  // Whether it executes a corpus to be merged: a process that ends too early must not look done.
  bool merges() const { return is_set("merge_inner"); }
  // The file that -minimize_crash is making smaller; empty otherwise.
  std::string minimized_file() const;

  // Where the artifact of a finding goes: `name` as in "crash-0123".
  std::string artifact_path(std::string_view name) const;

  // A flag's value, as libFuzzer reads it: the last one given. `otherwise` when there is none.
  long number(std::string_view flag, long otherwise) const;

  // The same command line with what the JVM, the guard and the encoding need.
  std::vector<std::string> completed() const;

 private:
  struct Flag {
    std::string name, value;
  };
  bool is_set(std::string_view flag) const;
  const std::string* find(std::string_view flag) const;

  std::vector<std::string> arguments_;
  std::vector<Flag> flags_;
  std::vector<std::string> paths_;  // files and folders
};

}  // namespace framestorm
