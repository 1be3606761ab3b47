#include "fuzz/afl_map.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <vector>

#include "harness/base/error.h"

namespace framestorm {
namespace {

// Of SanitizerCoverage's inline-8bit-counters (SanitizerCoverage.cpp in LLVM).
constexpr const char* kCountersSection = "__sancov_cntrs";

template <typename T>
bool read(std::ifstream& file, uint64_t offset, T* into, size_t count) {
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(into), static_cast<std::streamsize>(count * sizeof(T)));
  return file.good();
}

}  // namespace

void fold(std::span<const uint8_t> counters, std::span<const uint8_t> feedback,
          std::span<uint8_t> map) {
  if (map.empty()) return;
  std::span<uint8_t> rest = map.subspan(1);
  for (const auto part : {counters, feedback}) {
    const size_t size = std::min(part.size(), rest.size());
    std::memcpy(rest.data(), part.data(), size);
    rest = rest.subspan(size);
  }
}

size_t coverage_counters_in(const std::filesystem::path& library) {
  std::ifstream file(library, std::ios::binary);
  Elf64_Ehdr header;
  if (!file || !read(file, 0, &header, 1) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    throw SetupError(library.string() + " is not a shared library");
  }
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  if (sections.empty() || header.e_shstrndx >= sections.size()) return 0;
  if (!read(file, header.e_shoff, sections.data(), sections.size())) return 0;
  const Elf64_Shdr& names = sections[header.e_shstrndx];
  std::vector<char> text(names.sh_size + 1);  // the last one ends whatever name is last
  if (!read(file, names.sh_offset, text.data(), names.sh_size)) return 0;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_name < names.sh_size &&
        std::strcmp(text.data() + section.sh_name, kCountersSection) == 0) {
      return section.sh_size;
    }
  }
  return 0;
}

}  // namespace framestorm
