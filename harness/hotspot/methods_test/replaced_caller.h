// A class that is replaced while a method of it runs, in a JVM of this process. That method's version
// then has another ID.
#pragma once

#include <gtest/gtest.h>
#include <jni.h>

#include <functional>

#include "harness/jvm/jvm.h"

namespace framestorm::methods_test {

class ReplacedCallerTest : public testing::Test {
 protected:
  static constexpr char kClass[] = "framestorm/Replaced";

  // FRAMESTORM_TEST_JDK, with the guard installed.
  void SetUp() override;

  JNIEnv* env() { return jvm_->env(); }

  // `loader`: null for the boot loader, which can have one only.
  jclass define(jobject loader);
  jmethodID caller_of(jclass klass) { return env()->GetStaticMethodID(klass, "caller", "()V"); }
  // `asked` gets the ID of the caller's version that is replaced, while it still runs.
  void replace_below_caller(jclass klass, std::function<void(jmethodID)> asked);

  Jvm* jvm_ = nullptr;
};

}  // namespace framestorm::methods_test
