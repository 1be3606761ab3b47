#include "fuzz/code_names.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "harness/input/canonical.h"

namespace framestorm {
namespace {

// A frame that returns there is unwound in a way of its own, or not at all (frame_x86.cpp,
// frame::safe_for_sender and frame::sender_raw). HotSpot compares some with the exact address.
// Parts of their names; upcall_stub's is among them.
constexpr std::string_view kReturnedTo[] = {"call_stub", "cont_returnBarrier",
                                            "cont return barrier", "DeoptimizationBlob",
                                            "return entry points"};

bool is_returned_to(std::string_view name) {
  return std::ranges::any_of(kReturnedTo, [name](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  });
}

}  // namespace

void CodeNameList::clear() {
  blobs_.clear();
  returned_to_.clear();
  nmethods_.clear();
}

void CodeNameList::add(NamedCode code) {
  if (code.ref.kind == CodeKind::nmethod) {
    nmethods_.push_back(std::move(code));
    return;
  }
  code.is_returned_to = is_returned_to(code.ref.name);
  if (code.is_returned_to) returned_to_.push_back(blobs_.size());
  blobs_.push_back(std::move(code));
}

const NamedCode* CodeNameList::pick(Rng& rng) const {
  if (!returned_to_.empty() && rng.one_in(16)) {
    return &blobs_[returned_to_[rng.below(returned_to_.size())]];
  }
  const auto& from = (rng.one_in(2) && !nmethods_.empty()) || blobs_.empty() ? nmethods_ : blobs_;
  return from.empty() ? nullptr : &from[rng.below(from.size())];
}

// One per line: kind, tier, size, and the name, which may hold spaces.
void CodeNameList::save(const std::filesystem::path& file) const {
  const std::filesystem::path scratch = file.string() + "." + std::to_string(getpid());
  std::ofstream out(scratch, std::ios::binary);
  for (const auto* list : {&nmethods_, &blobs_}) {
    for (const NamedCode& code : *list) {
      out << static_cast<int>(code.ref.kind) << ' ' << static_cast<int>(code.ref.tier) << ' '
          << code.size << ' ' << code.ref.name << '\n';
    }
  }
  out.close();
  if (!out) throw std::system_error(errno, std::generic_category(), "writing " + file.string());
  std::filesystem::rename(scratch, file);
}

bool CodeNameList::load(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return false;
  CodeNameList loaded;
  unsigned kind = 0;
  unsigned tier = 0;
  NamedCode code;
  while (in >> kind) {
    if (!(in >> tier >> code.size) || kind >= static_cast<unsigned>(CodeKind::count)) return false;
    code.ref.kind = static_cast<CodeKind>(kind);
    code.ref.tier = static_cast<uint8_t>(tier);
    in.get();
    std::getline(in, code.ref.name);
    canonicalise(&code.ref);
    loaded.add(code);
  }
  if (!in.eof()) return false;
  blobs_ = std::move(loaded.blobs_);
  returned_to_ = std::move(loaded.returned_to_);
  nmethods_ = std::move(loaded.nmethods_);
  return true;
}

}  // namespace framestorm
