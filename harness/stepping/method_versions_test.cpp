// Versions of methods of two classes of one name, in a JVM of this process.
#include "harness/stepping/method_versions.h"

#include <gtest/gtest.h>

#include <string>

#include "harness/hotspot/methods_test/replaced_caller.h"

namespace framestorm::stepping {
namespace {

class MethodVersionsTest : public methods_test::ReplacedCallerTest {
 protected:
  jobject new_loader() {
    const jclass type = env()->FindClass("java/security/SecureClassLoader");
    return env()->NewObject(type, env()->GetMethodID(type, "<init>", "(Ljava/lang/ClassLoader;)V"),
                            static_cast<jobject>(nullptr));
  }
};

TEST_F(MethodVersionsTest, AVersionIsOneOfItsOwnLoadersClass) {
  MethodVersions versions(*jvm_);
  const jclass klass = define(new_loader());
  const jmethodID first = caller_of(klass);
  const jclass other = define(new_loader());
  const jmethodID second = caller_of(other);
  ASSERT_NE(first, second);
  versions.know(first);
  versions.know(second);
  EXPECT_EQ(versions.first_of(first), first);
  EXPECT_EQ(versions.first_of(second), second) << "the other loader's class has that name, too";
  MethodTable& methods = jvm_->methods();
  replace_below_caller(other, [&](jmethodID replaced) {
    ASSERT_NE(replaced, second) << "the ID goes over to the new version";
    EXPECT_EQ(versions.first_of_method(methods.method_at(replaced)), second);
    methods.absorb();
    ASSERT_EQ(methods.find(replaced), nullptr) << "no event tells of it";
    versions.know_frame(env(), replaced);
    methods.absorb();
    const MethodInfo* const told = methods.find(replaced);
    ASSERT_NE(told, nullptr);
    EXPECT_EQ(told->name, std::string(kClass) + ".caller");
    EXPECT_EQ(versions.first_of(replaced), second);
  });
  replace_below_caller(klass,
                       [&](jmethodID replaced) { EXPECT_EQ(versions.first_of(replaced), first); });
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
