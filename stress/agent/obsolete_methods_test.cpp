// IDs of methods that were replaced while they ran, in a JVM of this process.
#include "stress/agent/obsolete_methods.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "harness/guard/guard.h"
#include "harness/hotspot/methods_test/class_file.h"
#include "harness/jvm/jvm.h"

namespace framestorm::stress {
namespace {

using methods_test::ClassFile;

constexpr uint16_t kPublicStatic = 0x9;
constexpr uint16_t kPublicStaticNative = 0x109;

// `caller` has the version in its code, and calls `replace`.
std::vector<uint8_t> version_of(int64_t version) {
  ClassFile file("framestorm/Replaced");
  const uint16_t constant = file.long_constant(version);
  const uint16_t replace = file.method_reference("framestorm/Replaced", "replace", "()V");
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

jvmtiEnv* jvmti = nullptr;
ObsoleteMethods* methods = nullptr;
jmethodID running = nullptr;
void (*on_running)(jmethodID) = nullptr;

class ObsoleteMethodsTest : public testing::Test {
 protected:
  void SetUp() override {
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

  JNIEnv* env() { return jvm_->env(); }

  // Replaces the class of its caller, and takes the caller's ID: of the version that still runs.
  static void JNICALL replace(JNIEnv*, jclass klass) {
    const std::vector<uint8_t> next = version_of(2);
    const jvmtiClassDefinition definition = {klass, static_cast<jint>(next.size()), next.data()};
    ASSERT_EQ(jvmti->RedefineClasses(1, &definition), JVMTI_ERROR_NONE);
    jvmtiFrameInfo caller = {};
    jint count = 0;
    ASSERT_EQ(jvmti->GetStackTrace(nullptr, 1, 1, &caller, &count), JVMTI_ERROR_NONE);
    ASSERT_EQ(count, 1);
    running = caller.method;
    on_running(running);
  }

  jmethodID call_what_is_replaced(void (*asked)(jmethodID)) {
    on_running = asked;
    const std::vector<uint8_t> first = version_of(1);
    const jclass klass =
        env()->DefineClass(nullptr, nullptr, reinterpret_cast<const jbyte*>(first.data()),
                           static_cast<jsize>(first.size()));
    const JNINativeMethod native = {const_cast<char*>("replace"), const_cast<char*>("()V"),
                                    reinterpret_cast<void*>(&replace)};
    env()->RegisterNatives(klass, &native, 1);
    const jmethodID caller = env()->GetStaticMethodID(klass, "caller", "()V");
    env()->CallStaticVoidMethod(klass, caller);
    return caller;
  }

  Jvm* jvm_ = nullptr;
};

TEST_F(ObsoleteMethodsTest, AMethodThatWasReplacedWhileItRunsIsOne) {
  ObsoleteMethods obsolete(*jvm_);
  obsolete.learn(env());
  methods = &obsolete;
  const jmethodID current =
      call_what_is_replaced([](jmethodID id) { EXPECT_TRUE(methods->has(id)); });
  ASSERT_NE(running, nullptr);
  EXPECT_NE(running, current) << "the ID goes over to the new version";
  EXPECT_FALSE(obsolete.has(current));
}

TEST_F(ObsoleteMethodsTest, WhatIsNoMethodIsNone) {
  ObsoleteMethods obsolete(*jvm_);
  obsolete.learn(env());
  uintptr_t zeros[4] = {};
  uintptr_t* in_zeros = &zeros[1];
  EXPECT_FALSE(obsolete.has(nullptr));
  EXPECT_FALSE(obsolete.has(reinterpret_cast<jmethodID>(uintptr_t{0x811})));
  EXPECT_FALSE(obsolete.has(reinterpret_cast<jmethodID>(zeros)));
  EXPECT_FALSE(obsolete.has(reinterpret_cast<jmethodID>(&in_zeros)));
  EXPECT_NE(obsolete.may_have_had(reinterpret_cast<jmethodID>(zeros)),
            jvm_->methods().ids_are_numbers());
}

}  // namespace
}  // namespace framestorm::stress
