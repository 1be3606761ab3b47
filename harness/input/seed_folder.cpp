#include "harness/input/seed_folder.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>

#include "harness/base/error.h"
#include "harness/input/binary.h"
#include "harness/input/text.h"

namespace framestorm {
namespace {

// A text form is at most some 4 KiB; the rest is room for comments.
constexpr std::streamsize kMaxFile = 64 << 10;

std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string content(static_cast<size_t>(kMaxFile) + 1, '\0');
  if (in) in.read(content.data(), kMaxFile + 1);
  if (!in && !in.eof()) throw SetupError(file.string() + ": cannot be read");
  content.resize(static_cast<size_t>(in.gcount()));
  if (in.gcount() > kMaxFile) {
    throw SetupError(file.string() + ": longer than 64 KiB: not an input of framestorm");
  }
  return content;
}

}  // namespace

Input load_input_file(const std::filesystem::path& file) {
  const std::string content = read_file(file);
  Input input;
  if (content.starts_with("framestorm-input") || content.starts_with('#') ||
      file.extension() == ".txt") {
    TextError problem;
    if (parse_text(content, &input, &problem)) return input;
    throw SetupError(file.string() + ":" + std::to_string(problem.line) + ": " + problem.message);
  }
  const std::span bytes(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  if (const ArtifactCheck check = check_artifact(bytes); check != ArtifactCheck::ok) {
    throw SetupError(file.string() + ": " + std::string(explain(check)));
  }
  decode(bytes, &input);
  return input;
}

std::vector<Input> load_seed_folders(const std::vector<std::filesystem::path>& folders) {
  std::vector<Input> inputs;
  for (const std::filesystem::path& folder : folders) {
    std::vector<std::filesystem::path> files;
    std::error_code problem;
    std::filesystem::directory_iterator entry(folder, problem);
    for (; !problem && entry != std::filesystem::directory_iterator(); entry.increment(problem)) {
      const std::filesystem::path extension = entry->path().extension();
      if (extension == ".txt" || extension == ".bin") files.push_back(entry->path());
    }
    if (problem) throw SetupError(folder.string() + ": " + problem.message());
    if (files.empty()) {
      throw SetupError(folder.string() +
                       ": no seeds: expected *.txt (text form) or *.bin (artifacts)");
    }
    std::ranges::sort(files);
    std::ranges::transform(files, std::back_inserter(inputs), &load_input_file);
  }
  return inputs;
}

}  // namespace framestorm
