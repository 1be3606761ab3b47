#include "harness/hotspot/methods_test/replaced_caller.h"

#include <jvmti.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "harness/guard/guard.h"
#include "harness/hotspot/methods_test/class_file.h"

namespace framestorm::methods_test {
namespace {

constexpr uint16_t kPublicStatic = 0x9;
constexpr uint16_t kPublicStaticNative = 0x109;

jvmtiEnv* jvmti = nullptr;
std::function<void(jmethodID)> on_replaced;

// `caller` has the version in its code, and calls `replace`.
std::vector<uint8_t> version_of(const char* name, int64_t version) {
  ClassFile file(name);
  const uint16_t constant = file.long_constant(version);
  const uint16_t replace = file.method_reference(name, "replace", "()V");
  const auto high = [](uint16_t index) { return static_cast<uint8_t>(index >> 8); };
  const auto low = [](uint16_t index) { return static_cast<uint8_t>(index); };
  file.add({.name = "caller",
            .descriptor = "()V",
            .flags = kPublicStatic,
            .code = {0x14, high(constant), low(constant), 0x58,   // ldc2_w, pop2
                     0xb8, high(replace), low(replace), 0xb1}});  // invokestatic, return
  file.add({.name = "replace", .descriptor = "()V", .flags = kPublicStaticNative});
  return file.bytes();
}

void replace_class(jclass klass, const std::vector<uint8_t>& next) {
  const jvmtiClassDefinition definition = {klass, static_cast<jint>(next.size()), next.data()};
  ASSERT_EQ(jvmti->RedefineClasses(1, &definition), JVMTI_ERROR_NONE);
  jvmtiFrameInfo caller = {};
  jint count = 0;
  ASSERT_EQ(jvmti->GetStackTrace(nullptr, 1, 1, &caller, &count), JVMTI_ERROR_NONE);
  ASSERT_EQ(count, 1);
  on_replaced(caller.method);
}

}  // namespace

void ReplacedCallerTest::SetUp() {
  const char* const home = std::getenv("FRAMESTORM_TEST_JDK");
  ASSERT_NE(home, nullptr) << "set FRAMESTORM_TEST_JDK, or run `scripts/framestorm test`";
  JvmOptions options;
  options.home = home;
  jvm_ = &Jvm::start(options);
  Guard::install({&Jvm::claim_fault}, {});
  ASSERT_EQ(jvm_->vm()->GetEnv(reinterpret_cast<void**>(&jvmti), JVMTI_VERSION_11), JNI_OK);
  jvmtiCapabilities capabilities = {};
  capabilities.can_redefine_classes = 1;
  ASSERT_EQ(jvmti->AddCapabilities(&capabilities), JVMTI_ERROR_NONE);
}

jclass ReplacedCallerTest::define(jobject loader) {
  const std::vector<uint8_t> bytes = version_of(kClass, 1);
  const jclass klass =
      env()->DefineClass(nullptr, loader, reinterpret_cast<const jbyte*>(bytes.data()),
                         static_cast<jsize>(bytes.size()));
  constexpr auto kReplace = [](JNIEnv*, jclass of) { replace_class(of, version_of(kClass, 2)); };
  const JNINativeMethod native = {const_cast<char*>("replace"), const_cast<char*>("()V"),
                                  reinterpret_cast<void*>(+kReplace)};
  env()->RegisterNatives(klass, &native, 1);
  return klass;
}

void ReplacedCallerTest::replace_below_caller(jclass klass, std::function<void(jmethodID)> asked) {
  bool was_asked = false;
  on_replaced = [&](jmethodID replaced) {
    was_asked = true;
    asked(replaced);
  };
  env()->CallStaticVoidMethod(klass, caller_of(klass));
  EXPECT_TRUE(was_asked);
}

}  // namespace framestorm::methods_test
