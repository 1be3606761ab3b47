#include "harness/input/seed_folder.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>

#include "harness/input/binary.h"
#include "harness/input/text.h"

namespace framestorm {
namespace {

// A text form is at most some 4 KiB; the rest is room for comments.
constexpr std::streamsize kMaxFile = 64 << 10;

bool read_file(const std::filesystem::path& file, std::string* content, std::string* error) {
  std::ifstream in(file, std::ios::binary);
  content->resize(static_cast<size_t>(kMaxFile) + 1);
  if (in) {
    in.read(content->data(), kMaxFile + 1);
  }
  if (!in && !in.eof()) {
    *error = file.string() + ": cannot be read";
    return false;
  }
  content->resize(static_cast<size_t>(in.gcount()));
  if (in.gcount() > kMaxFile) {
    *error = file.string() + ": longer than 64 KiB: not an input of framestorm";
    return false;
  }
  return true;
}

}  // namespace

bool load_input_file(const std::filesystem::path& file, Input* out, std::string* error) {
  std::string content;
  if (!read_file(file, &content, error)) {
    return false;
  }
  if (content.starts_with("framestorm-input") || content.starts_with('#') ||
      file.extension() == ".txt") {
    TextError problem;
    if (!parse_text(content, out, &problem)) {
      *error = file.string() + ":" + std::to_string(problem.line) + ": " + problem.message;
      return false;
    }
    return true;
  }
  const std::span bytes(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  if (const ArtifactCheck check = check_artifact(bytes); check != ArtifactCheck::ok) {
    *error = file.string() + ": " + std::string(explain(check));
    return false;
  }
  decode(bytes, out);
  return true;
}

bool load_seed_folder(const std::filesystem::path& folder, std::vector<Input>* out,
                      std::string* error) {
  std::vector<std::filesystem::path> files;
  std::error_code problem;
  std::filesystem::directory_iterator entry(folder, problem);
  for (; !problem && entry != std::filesystem::directory_iterator(); entry.increment(problem)) {
    const std::filesystem::path extension = entry->path().extension();
    if (extension == ".txt" || extension == ".bin") {
      files.push_back(entry->path());
    }
  }
  if (problem) {
    *error = folder.string() + ": " + problem.message();
    return false;
  }
  if (files.empty()) {
    *error = folder.string() + ": no seeds: expected *.txt (text form) or *.bin (artifacts)";
    return false;
  }
  std::ranges::sort(files);
  for (const std::filesystem::path& file : files) {
    if (!load_input_file(file, &out->emplace_back(), error)) {
      return false;
    }
  }
  return true;
}

}  // namespace framestorm
