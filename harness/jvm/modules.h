// The process's loaded modules: addresses as "<file name>+0x<offset>" that mean the same in another
// process, and functions by the ELF symbol tables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace framestorm {

struct Module {
  std::string path;     // as the loader has it; the executable's own is resolved
  std::string name;     // file name
  uintptr_t base = 0;   // load bias: ELF address + base = run-time address
  uintptr_t begin = 0;  // mapped range
  uintptr_t end = 0;
  uintptr_t text_begin = 0;  // first executable segment
  uintptr_t text_end = 0;
};

class Modules {
 public:
  // Takes a snapshot of what is loaded now. Not async-signal-safe.
  static Modules snapshot();
  // Takes another one when something was loaded or unloaded since. Like the first, not while
  // threads are halted: one of them may hold the loader's lock.
  void refresh();

  const Module* find(uintptr_t address) const;
  const Module* by_name(std::string_view name_prefix) const;
  const std::vector<Module>& all() const { return modules_; }

  // "libjvm.so+0x88e870"; "0x..." for an address in no module.
  std::string describe(uintptr_t address) const;

 private:
  std::vector<Module> modules_;
  uint64_t changes_ = 0;  // as the loader counts them
};

// Functions of one ELF file, from .symtab or, when stripped, .dynsym.
class FunctionTable {
 public:
  // An unreadable file or one without symbols gives an empty table.
  explicit FunctionTable(const std::string& path);

  struct Function {
    uint64_t begin = 0, end = 0;  // ELF addresses
    std::string name;             // mangled
  };
  // The function that contains an ELF address; null when none does.
  const Function* find(uint64_t elf_address) const;
  // The function of that (mangled) name, the lowest of several; null when there is none.
  const Function* by_name(const std::string& name) const;
  bool empty() const { return functions_.empty(); }

 private:
  std::vector<Function> functions_;  // sorted by begin
  std::unordered_map<std::string, size_t> by_name_;
};

}  // namespace framestorm
