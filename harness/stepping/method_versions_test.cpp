// Versions of methods of two classes of one name, in a JVM of this process.
#include "harness/stepping/method_versions.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "harness/guard/guard.h"
#include "harness/hotspot/methods_test/class_file.h"
#include "harness/jvm/jvm.h"

namespace framestorm::stepping {
namespace {

using methods_test::ClassFile;

constexpr uint16_t kPublicStatic = 0x9;
constexpr uint16_t kPublicStaticNative = 0x109;
constexpr char kClass[] = "framestorm/Replaced";

// `caller` has the version in its code, and calls `replace`.
std::vector<uint8_t> version_of(int64_t version) {
  ClassFile file(kClass);
  const uint16_t constant = file.long_constant(version);
  const uint16_t replace = file.method_reference(kClass, "replace", "()V");
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
jmethodID replaced = nullptr;

class MethodVersionsTest : public testing::Test {
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

  // Replaces the class of its caller, and takes the ID of the version that still runs.
  static void JNICALL replace(JNIEnv*, jclass klass) {
    const std::vector<uint8_t> next = version_of(2);
    const jvmtiClassDefinition definition = {klass, static_cast<jint>(next.size()), next.data()};
    ASSERT_EQ(jvmti->RedefineClasses(1, &definition), JVMTI_ERROR_NONE);
    jvmtiFrameInfo caller = {};
    jint count = 0;
    ASSERT_EQ(jvmti->GetStackTrace(nullptr, 1, 1, &caller, &count), JVMTI_ERROR_NONE);
    ASSERT_EQ(count, 1);
    replaced = caller.method;
    asked();
  }

  // A class of that name, of a loader of its own.
  jclass define() {
    const jclass type = env()->FindClass("java/security/SecureClassLoader");
    const jobject loader =
        env()->NewObject(type, env()->GetMethodID(type, "<init>", "(Ljava/lang/ClassLoader;)V"),
                         static_cast<jobject>(nullptr));
    const std::vector<uint8_t> bytes = version_of(1);
    const jclass klass =
        env()->DefineClass(nullptr, loader, reinterpret_cast<const jbyte*>(bytes.data()),
                           static_cast<jsize>(bytes.size()));
    const JNINativeMethod native = {const_cast<char*>("replace"), const_cast<char*>("()V"),
                                    reinterpret_cast<void*>(&replace)};
    env()->RegisterNatives(klass, &native, 1);
    return klass;
  }
  jmethodID caller_of(jclass klass) { return env()->GetStaticMethodID(klass, "caller", "()V"); }

  static inline void (*asked)() = nullptr;
  static inline MethodVersions* versions = nullptr;
  static inline jmethodID first = nullptr, second = nullptr;
  Jvm* jvm_ = nullptr;
};

TEST_F(MethodVersionsTest, AVersionIsOneOfItsOwnLoadersClass) {
  MethodVersions all(*jvm_);
  versions = &all;
  const jclass klass = define();
  first = caller_of(klass);
  const jclass other = define();
  second = caller_of(other);
  ASSERT_NE(first, second);
  all.know(first);
  all.know(second);
  EXPECT_EQ(all.first_of(first), first);
  EXPECT_EQ(all.first_of(second), second) << "the other loader's class has that name, too";
  asked = [] {
    ASSERT_NE(replaced, second) << "the ID goes over to the new version";
    EXPECT_EQ(versions->first_of_method(Jvm::get().methods().method_at(replaced)), second);
    Jvm& jvm = Jvm::get();
    jvm.methods().absorb();
    ASSERT_EQ(jvm.methods().find(replaced), nullptr) << "no event tells of it";
    versions->know_frame(jvm.env(), replaced);
    jvm.methods().absorb();
    const MethodInfo* const told = jvm.methods().find(replaced);
    ASSERT_NE(told, nullptr);
    EXPECT_EQ(told->name, std::string(kClass) + ".caller");
    EXPECT_EQ(versions->first_of(replaced), second);
  };
  env()->CallStaticVoidMethod(other, second);
  EXPECT_NE(replaced, nullptr);
  asked = [] { EXPECT_EQ(versions->first_of(replaced), first); };
  env()->CallStaticVoidMethod(klass, first);
}

TEST_F(MethodVersionsTest, WhatIsNoMethodStaysWhatItIs) {
  MethodVersions all(*jvm_);
  uintptr_t zeros[4] = {};
  uintptr_t* in_zeros = &zeros[1];
  for (const uintptr_t none : {uintptr_t{0}, uintptr_t{0x811}, reinterpret_cast<uintptr_t>(zeros),
                               reinterpret_cast<uintptr_t>(&in_zeros)}) {
    const auto id = reinterpret_cast<jmethodID>(none);
    all.know(id);
    EXPECT_EQ(all.first_of(id), id);
    EXPECT_EQ(all.first_of_method(id), nullptr);
  }
}

}  // namespace
}  // namespace framestorm::stepping
