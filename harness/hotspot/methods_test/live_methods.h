// The methods and classes of a live JVM, by JVMTI and JNI, and the functions of profile2.h under
// test.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "harness/hotspot/methods_test/class_file.h"
#include "harness/jvm/jvm.h"
#include "profile2.h"

namespace framestorm::methods_test {

inline uintptr_t word(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

struct Functions {
  decltype(&ASGST_GetMethodInfo) method_info = nullptr;
  decltype(&ASGST_GetClassInfo) class_info = nullptr;
  decltype(&ASGST_GetLineNumber) line_number = nullptr;
  decltype(&ASGST_GetLineNumberTable) line_number_table = nullptr;
  decltype(&ASGST_MethodToJMethodID) to_id = nullptr;
  decltype(&ASGST_JMethodIDToMethod) from_id = nullptr;
  decltype(&ASGST_RegisterClassUnloadHandler) register_handler = nullptr;
  decltype(&ASGST_DeregisterClassUnloadHandler) deregister_handler = nullptr;
  void (*forget)() = nullptr;  // what was proven to be a method: it is proven anew
};

struct MethodInfo {
  ASGST_Class klass = nullptr;
  std::string name;
  std::string signature;
  std::string generic_signature;
  int modifiers = 0;
};

struct ClassInfo {
  std::string name;
  std::string generic_name;
  int modifiers = 0;
};

// A JVM that has the functions; skipped, with the reason, on one that has none of them.
class MethodsTest : public testing::Test {
 protected:
  void SetUp() override;

  Jvm& jvm() { return *jvm_; }
  jvmtiEnv* jvmti() { return jvmti_; }  // may redefine classes and knows lines
  JNIEnv* env() { return jvm_->env(); }
  const Functions& functions() const { return functions_; }

  // By both functions that tell.
  bool is_method(uintptr_t word) const;
  bool is_method(const void* word) const { return is_method(reinterpret_cast<uintptr_t>(word)); }
  bool is_class(uintptr_t word) const {
    return functions_.class_info(reinterpret_cast<void*>(word), nullptr) != 0;
  }
  // Of what is one.
  MethodInfo method_info(ASGST_Method method) const;
  ClassInfo class_info(ASGST_Class klass) const;
  std::vector<LineNumber> lines(ASGST_Method method) const;

  jclass define(const std::vector<uint8_t>& bytes, jobject loader);
  jobject new_loader();
  void collect_garbage();
  ASGST_Method method(jclass klass, const char* name, const char* descriptor);

  struct Known {
    std::set<uintptr_t> methods;  // of classes that are linked
    std::set<std::string>
        other_classes;  // loaded ones that are not: JVMTI has none of their methods

    bool has(uintptr_t method) const { return methods.count(method) != 0; }
  };
  Known known();
  // A method that JVMTI tells nobody of: the VM's own, and those of classes that are not linked.
  bool is_untold(const Known& known, uintptr_t method) const;

 private:
  Jvm* jvm_ = nullptr;
  jvmtiEnv* jvmti_ = nullptr;
  Functions functions_;
};

// framestorm/Sample<T>: pair, far (whose lines leap), asleep (sleeps for so long), unlined,
// outside.
std::vector<uint8_t> sample_class(int64_t milliseconds);

}  // namespace framestorm::methods_test
