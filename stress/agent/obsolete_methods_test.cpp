// IDs of methods that were replaced while they ran, in a JVM of this process.
#include "stress/agent/obsolete_methods.h"

#include <gtest/gtest.h>

#include "harness/hotspot/methods_test/replaced_caller.h"

namespace framestorm::stress {
namespace {

using ObsoleteMethodsTest = methods_test::ReplacedCallerTest;

TEST_F(ObsoleteMethodsTest, AMethodThatWasReplacedWhileItRunsIsOne) {
  ObsoleteMethods obsolete(*jvm_);
  obsolete.learn(env());
  const jclass klass = define(nullptr);
  const jmethodID current = caller_of(klass);
  replace_below_caller(klass, [&](jmethodID replaced) {
    EXPECT_TRUE(obsolete.has(replaced));
    EXPECT_NE(replaced, current) << "the ID goes over to the new version";
  });
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
