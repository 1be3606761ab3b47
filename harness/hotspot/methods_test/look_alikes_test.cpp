// What has some of a method's marks and is none, and what is one although a mark of it is unusual.
// The VM's structures are poked for that, and put back.
#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <set>
#include <utility>

#include "harness/hotspot/methods_test/live_methods.h"
#include "harness/jvm/vm_structs.h"

namespace framestorm::methods_test {
namespace {

uintptr_t word(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// Another value, and at its end the one that was there.
template <class T>
class Poke {
 public:
  Poke(T& place, T value) : place_(place), was_(std::exchange(place, value)) {}
  ~Poke() { place_ = was_; }
  Poke(const Poke&) = delete;
  Poke& operator=(const Poke&) = delete;

 private:
  T& place_;
  const T was_;
};

class LookAlikesTest : public MethodsTest {
 protected:
  // What was proven before the last poke does not count.
  bool is_method_now(uintptr_t word) const {
    functions().forget();
    return is_method(word);
  }

  template <class T = uintptr_t>
  T& field(uintptr_t object, const char* type, const char* name) {
    return *reinterpret_cast<T*>(object + jvm().structs().required_offset(type, name));
  }
  uintptr_t const_method(uintptr_t method) { return field(method, "Method", "_constMethod"); }
  uint16_t& number(uintptr_t method) {
    return field<uint16_t>(const_method(method), "ConstMethod", "_method_idnum");
  }

  // Zeros in metaspace to be written to: bytecodes that nobody runs.
  uintptr_t* room_in_metaspace(size_t words) {
    constexpr uint8_t kReturn = 0xb1;
    std::vector<uint8_t> code((words + 1) * sizeof(uintptr_t));
    code.back() = kReturn;
    ClassFile file("framestorm/Room");
    file.add({.name = "holder", .descriptor = "()V", .flags = 9, .code = code});
    const uintptr_t holder = word(method(define(file.bytes(), new_loader()), "holder", "()V"));
    const uintptr_t codes = const_method(holder) + jvm().structs().size_of("ConstMethod");
    EXPECT_EQ(codes % sizeof(uintptr_t), 0U);
    return reinterpret_cast<uintptr_t*>(codes);
  }

  // A method that the VM made for method handles to jump through, which no class has among its
  // methods: one that code was compiled for. 0: there is none.
  uintptr_t find_linker() {
    constexpr int kNativeSynthetic = 0x1100;
    constexpr size_t kPage = 4096;
    // A lambda, which is made by method handles.
    jclass function = env()->FindClass("java/util/function/Function");
    env()->CallStaticObjectMethod(
        function,
        env()->GetStaticMethodID(function, "identity", "()Ljava/util/function/Function;"));
    jvm().check_exception("making a lambda");

    const uintptr_t known = word(method(define(sample_class(1), new_loader()), "far", "()V"));
    const auto vtable = *reinterpret_cast<const uintptr_t*>(known);
    const auto bound = [&](const char* name) {
      return read_at<uintptr_t>(jvm().structs().static_address("CodeCache", name));
    };
    std::set<uintptr_t> others;
    std::array<uintptr_t, kPage / sizeof(uintptr_t)> page{};
    const uintptr_t high = bound("_high_bound");
    for (uintptr_t at = bound("_low_bound"); at < high; at += kPage) {
      if (!read(at, page.data(), kPage)) continue;
      for (const uintptr_t candidate : page) {
        uintptr_t first = 0;
        if (candidate % sizeof(uintptr_t) != 0 || !others.insert(candidate).second) continue;
        if (!read(candidate, &first, sizeof first) || first != vtable) continue;
        const auto flags = field<uint16_t>(candidate, "Method", "_access_flags");
        if ((flags & kNativeSynthetic) == kNativeSynthetic) return candidate;
      }
    }
    return 0;
  }

 private:
  static bool read(uintptr_t address, void* buffer, size_t size) {
    const iovec to = {buffer, size};
    const iovec from = {reinterpret_cast<void*>(address), size};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == static_cast<ssize_t>(size);
  }
};

TEST_F(LookAlikesTest, ALinkerOfMethodHandlesIsAMethod) {
  const uintptr_t linker = find_linker();
  ASSERT_NE(linker, 0U);
  ASSERT_TRUE(is_method_now(linker));
  const MethodInfo info = method_info(reinterpret_cast<void*>(linker));
  EXPECT_EQ(class_info(info.klass).name, "java/lang/invoke/MethodHandle");
}

// Since a linker is not looked for among its class's methods, it is known by its parts alone.
TEST_F(LookAlikesTest, WhatHasOnlySomeOfALinkersPartsIsNone) {
  const uintptr_t linker = find_linker();
  ASSERT_NE(linker, 0U);
  ASSERT_EQ(jvm().structs().required_offset("Method", "_constMethod"), sizeof(uintptr_t));
  const auto vtable = *reinterpret_cast<const uintptr_t*>(linker);
  const size_t method_words = jvm().structs().size_of("Method") / sizeof(uintptr_t);

  std::array<uintptr_t, 32> on_the_stack{vtable, const_method(linker)};
  ASSERT_LE(method_words, on_the_stack.size());
  EXPECT_FALSE(is_method_now(word(on_the_stack.data()))) << "not in metaspace";

  uintptr_t* const room = room_in_metaspace(method_words);
  room[1] = const_method(linker);
  ASSERT_EQ(room[0], 0U);
  EXPECT_FALSE(is_method_now(word(room))) << "without a vtable";

  const auto* const parts = reinterpret_cast<const uintptr_t*>(const_method(linker));
  const size_t count = jvm().structs().size_of("ConstMethod") / sizeof(uintptr_t);
  const std::vector<uintptr_t> elsewhere(parts, parts + count);
  room[0] = vtable;
  room[1] = word(elsewhere.data());
  EXPECT_FALSE(is_method_now(word(room))) << "with a ConstMethod that is not in metaspace";
}

// As after a redefinition that changes the order of the methods.
TEST_F(LookAlikesTest, AMethodWithTheNumberOfAnotherPlaceIsOne) {
  jclass sample = define(sample_class(1), new_loader());
  const uintptr_t far = word(method(sample, "far", "()V"));
  const uintptr_t pair = word(method(sample, "pair", "(Ljava/lang/Object;I)V"));
  ASSERT_NE(number(far), number(pair));
  const Poke poke(number(far), number(pair));
  EXPECT_TRUE(is_method_now(far));
  EXPECT_TRUE(is_method_now(pair));
}

TEST_F(LookAlikesTest, WhatStandsBehindTheMethodsOfAClassIsNone) {
  const uintptr_t far = word(method(define(sample_class(1), new_loader()), "far", "()V"));
  const size_t bytes = jvm().structs().size_of("Method");
  uintptr_t* const copy = room_in_metaspace(bytes / sizeof(uintptr_t));
  std::memcpy(copy, reinterpret_cast<const void*>(far), bytes);

  // The class's array with one word more than its length says.
  const uintptr_t klass = word(method_info(reinterpret_cast<void*>(far)).klass);
  uintptr_t& methods = field(klass, "InstanceKlass", "_methods");
  const auto length = *reinterpret_cast<const uint32_t*>(methods);
  const auto* const words = reinterpret_cast<const uintptr_t*>(methods);
  std::vector<uintptr_t> longer(words, words + 1 + length);
  longer.push_back(word(copy));
  const Poke poke(methods, word(longer.data()));
  EXPECT_TRUE(is_method_now(far));
  EXPECT_FALSE(is_method_now(word(copy)));

  const Poke its_number(number(far), static_cast<uint16_t>(length));
  EXPECT_TRUE(is_method_now(far));
  EXPECT_FALSE(is_method_now(word(copy))) << "where its number says";
}

// As in an array of IDs that a redefinition has freed for a larger one.
TEST_F(LookAlikesTest, TheIdOfAnotherMethodIsNotGiven) {
  jclass sample = define(sample_class(1), new_loader());
  const jmethodID id = env()->GetStaticMethodID(sample, "far", "()V");
  const jmethodID other = env()->GetStaticMethodID(sample, "pair", "(Ljava/lang/Object;I)V");
  ASGST_Method far = functions().from_id(id);
  ASSERT_EQ(functions().to_id(far), id);
  const uintptr_t klass = word(method_info(far).klass);
  auto* const ids = field<jmethodID*>(klass, "InstanceKlass", "_methods_jmethod_ids");
  jmethodID& place = ids[1 + number(word(far))];
  ASSERT_EQ(place, id);
  const Poke poke(place, other);
  EXPECT_EQ(functions().to_id(far), nullptr);
}

}  // namespace
}  // namespace framestorm::methods_test
