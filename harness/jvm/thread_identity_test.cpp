#include "harness/jvm/thread_identity.h"

#include <gtest/gtest.h>

#include <thread>

#include "harness/executor/jvm_fixture.h"

namespace framestorm::jvm_test {
namespace {

// JNI's GetEnv asks Thread::current_or_null(), which is the C++ thread-local, not the key.
jint get_env(JavaVM* vm) {
  void* env = nullptr;
  return vm->GetEnv(&env, JNI_VERSION_10);
}

class ThreadIdentityTest : public JvmTest {
 protected:
  void SetUp() override {
    start({ScenarioId::parked});
    if (!HasFatalFailure()) Jvm::get().env()->GetJavaVM(&vm_);
  }
  JavaVM* vm_ = nullptr;
};

TEST_F(ThreadIdentityTest, BothPlacesAreLentAndGivenBack) {
  const ThreadIdentity& identity = Jvm::get().identity();
  void* const own = identity.current();
  ASSERT_NE(own, nullptr);
  ASSERT_EQ(get_env(vm_), JNI_OK);
  {
    const ThreadIdentity::Scoped nobody(identity, nullptr);
    EXPECT_EQ(identity.current(), nullptr);
    EXPECT_EQ(get_env(vm_), JNI_EDETACHED);
  }
  EXPECT_EQ(identity.current(), own);
  EXPECT_EQ(get_env(vm_), JNI_OK);
}

// Thread-local variables of a library that is loaded late are elsewhere on each thread.
TEST_F(ThreadIdentityTest, AThreadOfItsOwnIsWhoeverItIsToldToBe) {
  const ThreadIdentity& identity = Jvm::get().identity();
  void* const lent = identity.current();
  jint before = JNI_OK;
  jint meanwhile = JNI_EDETACHED;
  jint after = JNI_OK;
  std::thread([&] {
    before = get_env(vm_);
    {
      const ThreadIdentity::Scoped as_other(identity, lent);
      meanwhile = get_env(vm_);
    }
    after = get_env(vm_);
  }).join();
  EXPECT_EQ(before, JNI_EDETACHED);
  EXPECT_EQ(meanwhile, JNI_OK);
  EXPECT_EQ(after, JNI_EDETACHED);
}

}  // namespace
}  // namespace framestorm::jvm_test
