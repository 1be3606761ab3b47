// IDs of old versions of redefined methods. HotSpot makes one when it first needs it, and no event
// tells of it before the one it was made for.
#pragma once

#include <jvmti.h>

#include <array>
#include <cstdint>

#include "harness/jvm/jvm.h"

namespace framestorm::stress {

// The judge's; one thread, attached to the JVM, the guard installed and SIGSEGV and SIGBUS not
// blocked.
class ObsoleteMethods {
 public:
  explicit ObsoleteMethods(Jvm& jvm) : jvmti_(jvm.jvmti()), methods_(jvm.methods()) {}

  // Learns what an ID looks like. Defines a class with the boot loader. Throws SetupError.
  void learn(JNIEnv* env);
  // Whether it is one. What a walker gives may be anything, and JVMTI believes it: it is asked only of what
  // leads to a Method.
  bool has(jmethodID id) const;
  // Whether it may have been one of a version that is gone by now: HotSpot leaves the ID no Method then
  // (Method::clear_jmethod_id).
  bool may_have_had(jmethodID id) const;

 private:
  bool load_method(jmethodID id, uintptr_t* method) const;
  uintptr_t vtable_of(jmethodID id) const;

  jvmtiEnv* jvmti_;
  const MethodTable& methods_;
  // Method's: libjvm's own, and that of Methods in a CDS archive, which has a copy of it
  // (cppVtables.cpp); the same where there is no archive.
  std::array<uintptr_t, 2> vtables_ = {};
};

}  // namespace framestorm::stress
