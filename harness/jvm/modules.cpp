#include "harness/jvm/modules.h"

#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "harness/base/hex.h"

namespace framestorm {
namespace {

// How often something was loaded or unloaded so far.
uint64_t loader_changes() {
  uint64_t changes = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        *static_cast<uint64_t*>(data) = info->dlpi_adds + info->dlpi_subs;
        return 1;  // each module says the same
      },
      &changes);
  return changes;
}

}  // namespace

void Modules::refresh() {
  if (loader_changes() != changes_) *this = snapshot();
}

Modules Modules::snapshot() {
  Modules result;
  result.changes_ = loader_changes();
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        Module module;
        module.path = info->dlpi_name;
        if (module.path.empty()) {
          std::error_code error;
          module.path = std::filesystem::read_symlink("/proc/self/exe", error).string();
        }
        module.name = std::filesystem::path(module.path).filename().string();
        module.base = info->dlpi_addr;
        module.begin = UINTPTR_MAX;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
          module.begin = std::min(module.begin, begin);
          module.end = std::max(module.end, begin + segment.p_memsz);
          if ((segment.p_flags & PF_X) != 0 && module.text_begin == 0) {
            module.text_begin = begin;
            module.text_end = begin + segment.p_memsz;
          }
        }
        if (module.end != 0) static_cast<Modules*>(data)->modules_.push_back(std::move(module));
        return 0;
      },
      &result);
  std::ranges::sort(result.modules_, {}, &Module::begin);
  return result;
}

const Module* Modules::find(uintptr_t address) const {
  for (const Module& module : modules_) {
    if (address >= module.begin && address < module.end) return &module;
  }
  return nullptr;
}

const Module* Modules::by_name(std::string_view name_prefix) const {
  for (const Module& module : modules_) {
    if (module.name.starts_with(name_prefix)) return &module;
  }
  return nullptr;
}

std::string Modules::describe(uintptr_t address) const {
  const Module* module = find(address);
  return module == nullptr ? hex(address) : module->name + "+" + hex(address - module->base);
}

FunctionTable::FunctionTable(const std::string& path) {
  elf_version(EV_CURRENT);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const std::unique_ptr<Elf, decltype(&elf_end)> elf(elf_begin(fd, ELF_C_READ, nullptr), &elf_end);
  Elf_Scn* symtab = nullptr;
  Elf_Scn* dynsym = nullptr;
  for (Elf_Scn* section = nullptr;
       elf != nullptr && (section = elf_nextscn(elf.get(), section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    if (header.sh_type == SHT_SYMTAB) symtab = section;
    if (header.sh_type == SHT_DYNSYM) dynsym = section;
  }
  if (Elf_Scn* section = symtab != nullptr ? symtab : dynsym; section != nullptr) {
    GElf_Shdr header;
    gelf_getshdr(section, &header);
    Elf_Data* data = elf_getdata(section, nullptr);
    const auto count = static_cast<int>(header.sh_size / header.sh_entsize);
    for (int i = 0; i < count; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, i, &symbol) == nullptr || GELF_ST_TYPE(symbol.st_info) != STT_FUNC ||
          symbol.st_size == 0) {
        continue;
      }
      const char* name = elf_strptr(elf.get(), header.sh_link, symbol.st_name);
      functions_.push_back({symbol.st_value, symbol.st_value + symbol.st_size,
                            name == nullptr ? std::string() : std::string(name)});
    }
  }
  close(fd);
  std::ranges::sort(functions_, {}, &Function::begin);
  for (size_t i = 0; i < functions_.size(); ++i) by_name_.emplace(functions_[i].name, i);
}

const FunctionTable::Function* FunctionTable::by_name(const std::string& name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &functions_[it->second];
}

const FunctionTable::Function* FunctionTable::find(uint64_t elf_address) const {
  auto it = std::ranges::upper_bound(functions_, elf_address, {}, &Function::begin);
  if (it == functions_.begin()) return nullptr;
  --it;
  return elf_address < it->end ? &*it : nullptr;
}

}  // namespace framestorm
