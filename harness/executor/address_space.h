// Turns symbolic values into addresses of this process (input.h says what each means) and addresses
// back into words a person can read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/input/input.h"
#include "harness/jvm/code_map.h"
#include "harness/jvm/jvm.h"
#include "harness/jvm/modules.h"
#include "harness/victim/victims.h"

namespace framestorm {

class AddressSpace {
 public:
  explicit AddressSpace(Jvm& jvm);

  // The value that a location of `victim` whose unmutated content is `own` is set to. Nothing when a
  // code reference names something this JVM does not have, or another victim is asked for and there
  // is none. World halted.
  std::optional<uint64_t> resolve(const SymbolicValue& value, const Victim& victim,
                                  const std::vector<Victim*>& halted, uint64_t own) const;

  // An address as a value that means it again: a position in known code, or on the victim's stack.
  std::optional<SymbolicValue> symbolic(uintptr_t address, const Victim& victim) const;
  // That in text, or a place in a module: "nmethod \"framestorm/C1.spin\" tier 1 entry + 0x35",
  // "real-sp + 16", "libjvm.so+0x1234", ...
  std::string describe(uintptr_t address, const Victim& victim) const;

  // As of the last refresh, which is not for a halted world.
  const Modules& modules() const { return modules_; }
  void refresh() { modules_.refresh(); }

 private:
  Jvm& jvm_;
  Modules modules_ = Modules::snapshot();
  uintptr_t guard_page_ = 0;
  uintptr_t libc_text_ = 0;
  uintptr_t libjvm_text_ = 0;
  uintptr_t java_heap_ = 0;
  uintptr_t unmapped_ = 0;
};

}  // namespace framestorm
