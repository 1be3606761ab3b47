#include "harness/hotspot/methods_test/live_methods.h"

#include <cstdlib>

namespace framestorm::methods_test {
namespace {

Jvm& started_jvm() {
  static Jvm* const jvm = [] {
    JvmOptions options;
    const char* home = std::getenv("FRAMESTORM_TEST_JDK");
    options.home = home == nullptr ? "" : home;
    // The VM's own agent makes IDs of all methods at once; here some are to be without.
    return &Jvm::start(options);
  }();
  return *jvm;
}

template <class Function>
int set(const Jvm& jvm, Function& function, const char* name) {
  function = reinterpret_cast<Function>(jvm.symbol(name));
  return function == nullptr ? 0 : 1;
}

}  // namespace

void MethodsTest::SetUp() {
  ASSERT_NE(std::getenv("FRAMESTORM_TEST_JDK"), nullptr)
      << "set FRAMESTORM_TEST_JDK to a JDK's folder, or run `scripts/framestorm test`";
  jvm_ = &started_jvm();
  const int found =
      set(*jvm_, functions_.method_info, "ASGST_GetMethodInfo") +
      set(*jvm_, functions_.class_info, "ASGST_GetClassInfo") +
      set(*jvm_, functions_.line_number, "ASGST_GetLineNumber") +
      set(*jvm_, functions_.line_number_table, "ASGST_GetLineNumberTable") +
      set(*jvm_, functions_.to_id, "ASGST_MethodToJMethodID") +
      set(*jvm_, functions_.from_id, "ASGST_JMethodIDToMethod") +
      set(*jvm_, functions_.register_handler, "ASGST_RegisterClassUnloadHandler") +
      set(*jvm_, functions_.deregister_handler, "ASGST_DeregisterClassUnloadHandler") +
      set(*jvm_, functions_.forget, "framestorm_forget_methods");
  if (found == 0) {
    GTEST_SKIP() << jvm_->library_path()
                 << " has no function of profile2.h; `framestorm jdk build` "
                 << "makes a JDK that has";
  }
  ASSERT_EQ(found, 9) << "some functions of profile2.h, or framestorm's own, are missing";

  ASSERT_EQ(jvm_->vm()->GetEnv(reinterpret_cast<void**>(&jvmti_), JVMTI_VERSION_11), JNI_OK);
  jvmtiCapabilities capabilities = {};
  capabilities.can_redefine_classes = 1;
  capabilities.can_get_line_numbers = 1;
  ASSERT_EQ(jvmti_->AddCapabilities(&capabilities), JVMTI_ERROR_NONE);
}

bool MethodsTest::is_method(uintptr_t word) const {
  void* const method = reinterpret_cast<void*>(word);
  const bool has_info = functions_.method_info(method, nullptr) != 0;
  // An ID is the address of a pointer to a method.
  const uintptr_t id = word;
  const auto by_id = functions_.from_id(reinterpret_cast<jmethodID>(const_cast<uintptr_t*>(&id)));
  EXPECT_EQ(by_id, has_info ? method : nullptr);
  return has_info;
}

MethodInfo MethodsTest::method_info(ASGST_Method method) const {
  ASGST_MethodInfo raw = {};
  EXPECT_EQ(functions_.method_info(method, &raw), 1);
  std::string name(static_cast<size_t>(raw.method_name_length) + 1, '?');
  std::string signature(static_cast<size_t>(raw.signature_length) + 1, '?');
  std::string generic(static_cast<size_t>(raw.generic_signature_length) + 1, '?');
  raw.method_name = name.data();
  raw.method_name_length = static_cast<int>(name.size());
  raw.signature = signature.data();
  raw.signature_length = static_cast<int>(signature.size());
  raw.generic_signature = generic.data();
  raw.generic_signature_length = static_cast<int>(generic.size());
  EXPECT_EQ(functions_.method_info(method, &raw), 1);
  return {raw.klass, name.c_str(), signature.c_str(), generic.c_str(), raw.modifiers};
}

ClassInfo MethodsTest::class_info(ASGST_Class klass) const {
  ASGST_ClassInfo raw = {};
  EXPECT_EQ(functions_.class_info(klass, &raw), 1);
  std::string name(static_cast<size_t>(raw.class_name_length) + 1, '?');
  std::string generic(static_cast<size_t>(raw.generic_class_name_length) + 1, '?');
  raw.class_name = name.data();
  raw.class_name_length = static_cast<int>(name.size());
  raw.generic_class_name = generic.data();
  raw.generic_class_name_length = static_cast<int>(generic.size());
  EXPECT_EQ(functions_.class_info(klass, &raw), 1);
  return {name.c_str(), generic.c_str(), raw.modifiers};
}

std::vector<LineNumber> MethodsTest::lines(ASGST_Method method) const {
  const int count = functions_.line_number_table(method, nullptr, 0);
  EXPECT_GE(count, 0);
  std::vector<ASGST_LineNumberEntry> raw(static_cast<size_t>(count));
  EXPECT_EQ(functions_.line_number_table(method, raw.data(), count), count);
  std::vector<LineNumber> result;
  result.reserve(raw.size());
  for (const auto& entry : raw) {
    result.push_back(
        {static_cast<uint16_t>(entry.start_bci), static_cast<uint16_t>(entry.line_number)});
  }
  return result;
}

jclass MethodsTest::define(const std::vector<uint8_t>& bytes, jobject loader) {
  jclass klass = env()->DefineClass(nullptr, loader, reinterpret_cast<const jbyte*>(bytes.data()),
                                    static_cast<jsize>(bytes.size()));
  jvm_->check_exception("defining a class");
  return klass;
}

jobject MethodsTest::new_loader() {
  jclass url = env()->FindClass("java/net/URL");
  jclass klass = env()->FindClass("java/net/URLClassLoader");
  const jmethodID constructor = env()->GetMethodID(klass, "<init>", "([Ljava/net/URL;)V");
  jobject loader = env()->NewObject(klass, constructor, env()->NewObjectArray(0, url, nullptr));
  jvm_->check_exception("making a class loader");
  return loader;
}

void MethodsTest::collect_garbage() {
  jclass system = env()->FindClass("java/lang/System");
  env()->CallStaticVoidMethod(system, env()->GetStaticMethodID(system, "gc", "()V"));
  env()->DeleteLocalRef(system);
}

ASGST_Method MethodsTest::method(jclass klass, const char* name, const char* descriptor) {
  const jmethodID id = env()->GetStaticMethodID(klass, name, descriptor);
  jvm_->check_exception(std::string("looking for ") + name);
  return functions_.from_id(id);
}

MethodsTest::Known MethodsTest::known() {
  Known known;
  jint class_count = 0;
  jclass* classes = nullptr;
  EXPECT_EQ(jvmti_->GetLoadedClasses(&class_count, &classes), JVMTI_ERROR_NONE);
  for (jint i = 0; i < class_count; ++i) {
    jint count = 0;
    jmethodID* methods = nullptr;
    const jvmtiError error = jvmti_->GetClassMethods(classes[i], &count, &methods);
    if (error == JVMTI_ERROR_NONE) {
      for (jint j = 0; j < count; ++j) {
        known.methods.insert(reinterpret_cast<uintptr_t>(functions_.from_id(methods[j])));
      }
      jvmti_->Deallocate(reinterpret_cast<unsigned char*>(methods));
    } else if (error == JVMTI_ERROR_CLASS_NOT_PREPARED) {
      char* signature = nullptr;
      jvmti_->GetClassSignature(classes[i], &signature, nullptr);
      const std::string name = signature;
      jvmti_->Deallocate(reinterpret_cast<unsigned char*>(signature));
      known.other_classes.insert(name.substr(1, name.size() - 2));
    }
    env()->DeleteLocalRef(classes[i]);
  }
  jvmti_->Deallocate(reinterpret_cast<unsigned char*>(classes));
  return known;
}

bool MethodsTest::is_untold(const Known& known, uintptr_t method) const {
  constexpr int kNativeSynthetic = 0x1100;  // method handle intrinsics
  constexpr int kBridgeSynthetic = 0x1040;  // overpasses, for what a class does not implement
  const MethodInfo info = method_info(reinterpret_cast<ASGST_Method>(method));
  return (info.modifiers & kNativeSynthetic) == kNativeSynthetic ||
         (info.modifiers & kBridgeSynthetic) == kBridgeSynthetic ||
         known.other_classes.count(class_info(info.klass).name) != 0;
}

std::vector<uint8_t> sample_class(int64_t milliseconds) {
  constexpr uint16_t kPublicStatic = 0x9;
  constexpr uint16_t kPublicStaticNative = 0x109;
  constexpr uint8_t kNop = 0;
  constexpr uint8_t kReturn = 0xb1;
  ClassFile file("framestorm/Sample");
  file.set_generic_signature("<T:Ljava/lang/Object;>Ljava/lang/Object;");
  const uint16_t time = file.long_constant(milliseconds);
  const uint16_t sleep = file.method_reference("java/lang/Thread", "sleep", "(J)V");

  file.add({.name = "pair",
            .descriptor = "(Ljava/lang/Object;I)V",
            .flags = kPublicStatic,
            .generic_signature = "<T:Ljava/lang/Object;>(TT;I)V",
            .code = {kNop, kNop, kNop, kReturn},
            .lines = {{0, 10}, {1, 11}, {3, 12}}});

  // Leaps forwards and backwards, of one byte and of many; two entries for a bci.
  std::vector<uint8_t> long_code(4000, kNop);
  long_code.back() = kReturn;
  file.add(
      {.name = "far",
       .descriptor = "()V",
       .flags = kPublicStatic,
       .code = long_code,
       .lines = {
           {0, 65000}, {31, 1}, {32, 8}, {300, 9}, {200, 30000}, {200, 30001}, {3999, 65535}}});

  file.add({.name = "asleep",
            .descriptor = "()V",
            .flags = kPublicStatic,
            .code = {0x14, static_cast<uint8_t>(time >> 8), static_cast<uint8_t>(time), 0xb8,
                     static_cast<uint8_t>(sleep >> 8), static_cast<uint8_t>(sleep), kReturn},
            .lines = {{0, 40}}});
  file.add({.name = "unlined", .descriptor = "()V", .flags = kPublicStatic, .code = {kReturn}});
  file.add({.name = "outside", .descriptor = "()V", .flags = kPublicStaticNative});
  return file.bytes();
}

}  // namespace framestorm::methods_test
