// Classes of profile2.h that go: what unload handlers are told, and what is left of their methods.
#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "harness/hotspot/methods_test/live_methods.h"
#include "harness/jvm/vm_structs.h"

namespace framestorm::methods_test {
namespace {

// What unload handlers saw of one class.
struct Unloaded {
  const MethodsTest* test = nullptr;
  const Functions* functions = nullptr;
  std::atomic<int> calls = 0;
  std::set<uintptr_t> methods;
  ASGST_Class klass = nullptr;
  int readable = 0;  // methods that still have their names then
};

void on_unload(ASGST_Class klass, ASGST_Method* methods, int count, bool redefined,
               void* argument) {
  auto& seen = *static_cast<Unloaded*>(argument);
  std::array<char, 64> name{};
  ASGST_ClassInfo info = {};
  info.class_name = name.data();
  info.class_name_length = static_cast<int>(name.size());
  if (seen.functions->class_info(klass, &info) != 1 ||
      std::strcmp(name.data(), "framestorm/Sample") != 0) {
    return;
  }
  ++seen.calls;
  EXPECT_FALSE(redefined);
  seen.klass = klass;
  for (int i = 0; i < count; ++i) {
    seen.methods.insert(word(methods[i]));
    ASGST_MethodInfo method = {};
    seen.readable += seen.functions->method_info(methods[i], &method);
  }
}

void on_unload_too(ASGST_Class klass, ASGST_Method* methods, int count, bool redefined,
                   void* argument) {
  on_unload(klass, methods, count, redefined, argument);
}

class UnloadTest : public MethodsTest {
 protected:
  // Loads the sample class and drops it again, with all of its loader.
  struct Dropped {
    ASGST_Method pair = nullptr;
    jmethodID id = nullptr;
    ASGST_Class klass = nullptr;
  };
  Dropped load_and_drop() {
    constexpr int kReferences = 32;
    Dropped dropped;
    env()->PushLocalFrame(kReferences);
    jclass sample = define(sample_class(1), new_loader());
    dropped.id = env()->GetStaticMethodID(sample, "pair", "(Ljava/lang/Object;I)V");
    dropped.pair = functions().from_id(dropped.id);
    dropped.klass = method_info(dropped.pair).klass;
    EXPECT_TRUE(is_class(word(dropped.klass)));
    env()->PopLocalFrame(nullptr);
    return dropped;
  }
};

TEST_F(UnloadTest, HandlersAreCalledForAClassOfADroppedLoader) {
  Unloaded seen;
  seen.functions = &functions();
  ASSERT_EQ(functions().register_handler(on_unload, &seen), 1);
  const Dropped dropped = load_and_drop();
  EXPECT_EQ(seen.calls, 0);
  collect_garbage();
  EXPECT_EQ(seen.calls, 1);
  EXPECT_EQ(seen.klass, dropped.klass);
  EXPECT_EQ(seen.methods.size(), 5U);
  EXPECT_EQ(seen.readable, 5);
  EXPECT_EQ(seen.methods.count(word(dropped.pair)), 1U);

  // Gone.
  for (const uintptr_t method : seen.methods) EXPECT_FALSE(is_method(method));
  EXPECT_FALSE(is_class(word(dropped.klass)));
  EXPECT_EQ(functions().from_id(dropped.id), nullptr);
  EXPECT_EQ(functions().to_id(dropped.pair), nullptr);

  // Deregistered: not called any more.
  EXPECT_EQ(functions().deregister_handler(on_unload, &seen), 1);
  const Dropped another = load_and_drop();
  collect_garbage();
  EXPECT_EQ(seen.calls, 1);
  EXPECT_FALSE(is_method(another.pair));
}

// Who asks while handlers are called, in the thread that calls them and in another one.
struct AskedMeanwhile {
  const Functions* functions = nullptr;
  int here = 0, elsewhere = 0;  // methods and classes that were found
};

void ask_meanwhile(ASGST_Class klass, ASGST_Method* methods, int count, bool, void* argument) {
  auto& asked = *static_cast<AskedMeanwhile*>(argument);
  const auto found = [&] {
    int found = asked.functions->class_info(klass, nullptr);
    for (int i = 0; i < count; ++i) found += asked.functions->method_info(methods[i], nullptr);
    return found;
  };
  std::thread([&] {
    asked.functions->forget();  // what was proven counts until the handlers return
    asked.elsewhere += found();
  }).join();
  asked.here += found();
}

TEST_F(UnloadTest, OnlyTheHandlersThreadFindsWhatIsUnloaded) {
  AskedMeanwhile asked;
  asked.functions = &functions();
  ASSERT_EQ(functions().register_handler(ask_meanwhile, &asked), 1);
  load_and_drop();
  collect_garbage();
  EXPECT_EQ(functions().deregister_handler(ask_meanwhile, &asked), 1);
  EXPECT_GE(asked.here, 6);
  EXPECT_EQ(asked.elsewhere, 0);
}

// Epochs are counted in 20 bits, so that the one that the method was proven in comes again.
TEST_F(UnloadTest, AMethodThatIsGoneIsNoneWhenItsEpochComesAgain) {
  constexpr int kEpochs = 1 << 20;
  constexpr int kUnloaded = 1 << 14;  // more than begin while its class is unloaded
  Dropped dropped = load_and_drop();
  ASSERT_NE(dropped.pair, nullptr);
  collect_garbage();
  // Nothing is asked but whether it is one: the rest of it is gone.
  const auto id = reinterpret_cast<jmethodID>(&dropped.pair);
  int found = 0;
  for (int i = 0; i < kEpochs; ++i) {
    functions().forget();
    if (i < kEpochs - kUnloaded) continue;
    found += functions().from_id(id) == nullptr ? 0 : 1;
  }
  EXPECT_EQ(found, 0);
}

// The memory of classes between others that stay is kept, with what is in it.
TEST_F(UnloadTest, WhereAMethodWasIsNothingThatLooksLikeOne) {
  constexpr int kPairs = 40;
  const auto offset = jvm().structs().required_offset("Method", "_constMethod");
  std::vector<Dropped> dropped;
  for (int i = 0; i < kPairs; ++i) {
    dropped.push_back(load_and_drop());
    env()->NewGlobalRef(define(sample_class(1), new_loader()));
  }
  collect_garbage();
  int kept = 0;
  for (const Dropped& one : dropped) {
    std::array<uintptr_t, 2> vtable_and_const_method{};
    static_assert(sizeof(uintptr_t) == 8);
    ASSERT_EQ(offset, sizeof(uintptr_t)) << "not two neighbouring words";
    const iovec to = {vtable_and_const_method.data(), sizeof vtable_and_const_method};
    const iovec from = {one.pair, sizeof vtable_and_const_method};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != sizeof vtable_and_const_method) continue;
    kept += vtable_and_const_method[0] == 0 ? 0 : 1;
    EXPECT_EQ(vtable_and_const_method[1], 0U);
    EXPECT_FALSE(is_method(one.pair));
    EXPECT_FALSE(is_class(word(one.klass)));
  }
  EXPECT_GT(kept, 0) << "no memory was kept: this shows nothing";
}

TEST_F(UnloadTest, AClassThatIsHeldStays) {
  Unloaded seen;
  seen.functions = &functions();
  ASSERT_EQ(functions().register_handler(on_unload, &seen), 1);
  jclass sample = define(sample_class(1), new_loader());
  ASGST_Method pair = method(sample, "pair", "(Ljava/lang/Object;I)V");
  collect_garbage();
  EXPECT_EQ(seen.calls, 0);
  EXPECT_TRUE(is_method(pair));
  EXPECT_EQ(functions().deregister_handler(on_unload, &seen), 1);
}

// Handlers that come and go while classes do.
std::atomic<int> called{0}, mismatched{0};
template <int number>
void on_unload_of(ASGST_Class, ASGST_Method*, int, bool, void* argument) {
  called++;
  if (word(argument) != number) mismatched++;
}

TEST_F(UnloadTest, AHandlerIsCalledWithItsOwnArgument) {
  std::atomic<bool> stop{false};
  std::thread flips([&] {
    void* const first = reinterpret_cast<void*>(1);
    void* const second = reinterpret_cast<void*>(2);
    while (!stop) {
      functions().register_handler(on_unload_of<1>, first);
      functions().deregister_handler(on_unload_of<1>, first);
      functions().register_handler(on_unload_of<2>, second);
      functions().deregister_handler(on_unload_of<2>, second);
    }
  });
  // None may be registered just then.
  for (int round = 0; round < 50 && called == 0; ++round) {
    for (int i = 0; i < 200; ++i) load_and_drop();
    collect_garbage();
  }
  stop = true;
  flips.join();
  EXPECT_GT(called, 0);
  EXPECT_EQ(mismatched, 0);
}

TEST_F(UnloadTest, ThereAreSixtyFourHandlers) {
  std::array<Unloaded, 65> seen;
  for (auto& one : seen) one.functions = &functions();
  EXPECT_EQ(functions().register_handler(nullptr, nullptr), 0);
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(functions().register_handler(on_unload, &seen[i]), 1);
  }
  EXPECT_EQ(functions().register_handler(on_unload, &seen[64]), 0);
  EXPECT_EQ(functions().deregister_handler(on_unload, &seen[64]), 0);
  EXPECT_EQ(functions().deregister_handler(on_unload_too, &seen[7]), 0);
  EXPECT_EQ(functions().deregister_handler(on_unload, &seen[7]), 1);
  EXPECT_EQ(functions().register_handler(on_unload, &seen[8]), 0) << "twice";
  EXPECT_EQ(functions().register_handler(on_unload_too, &seen[8]), 1) << "another pair";

  load_and_drop();
  collect_garbage();
  for (size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].calls, i == 7 || i == 64 ? 0 : i == 8 ? 2 : 1) << i;
  }
  for (size_t i = 0; i < 64; ++i) functions().deregister_handler(on_unload, &seen[i]);
  EXPECT_EQ(functions().deregister_handler(on_unload_too, &seen[8]), 1);
}

}  // namespace
}  // namespace framestorm::methods_test
