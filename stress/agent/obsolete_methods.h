// IDs of old versions of redefined methods. HotSpot makes one when it first needs it, and no event
// tells of it before the one it was made for.
#pragma once

#include <jvmti.h>

#include <array>
#include <cstdint>

namespace framestorm::stress {

// The judge's; one thread, attached to the JVM, the guard installed and SIGSEGV and SIGBUS not
// blocked.
class ObsoleteMethods {
 public:
  explicit ObsoleteMethods(jvmtiEnv* jvmti) : jvmti_(jvmti) {}

  // Learns what an ID looks like. Defines a class with the boot loader. Throws SetupError.
  void learn(JNIEnv* env);
  // Whether it is one. What a walker gives may be anything, and JVMTI believes it: it is asked only
  // of what is a Method's address behind an address, as IDs are up to JDK 25.
  bool has(jmethodID id) const;
  // Whether it may have been one of a version that is gone by now: HotSpot leaves no Method behind
  // the ID's address then (Method::clear_jmethod_id).
  static bool may_have_had(jmethodID id);

 private:
  jvmtiEnv* jvmti_;
  // Method's: libjvm's own, and that of Methods in a CDS archive, which has a copy of it
  // (cppVtables.cpp); the same where there is no archive.
  std::array<uintptr_t, 2> vtables_ = {};
};

}  // namespace framestorm::stress
