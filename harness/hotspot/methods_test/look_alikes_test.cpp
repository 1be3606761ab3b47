// What has some of a method's marks and is none, and what is one although a mark of it is unusual.
// The VM's structures are poked for that, and put back.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "harness/base/poke.h"
#include "harness/hotspot/methods_test/live_methods.h"
#include "harness/jvm/vm_structs.h"

namespace framestorm::methods_test {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kPageWords = kPage / sizeof(uintptr_t);

class UnreadablePage {
 public:
  explicit UnreadablePage(void* page) : page_(page) {
    EXPECT_EQ(mprotect(page, kPage, PROT_NONE), 0);
  }
  ~UnreadablePage() { EXPECT_EQ(mprotect(page_, kPage, PROT_READ | PROT_WRITE), 0); }
  UnreadablePage(const UnreadablePage&) = delete;
  UnreadablePage& operator=(const UnreadablePage&) = delete;

 private:
  void* const page_;
};

// Room for an object's first bytes with nothing to read behind them, as where metaspace ends that
// is committed.
class Brink {
 public:
  static constexpr size_t kRoomInWords = 3 * kPageWords;

  explicit Brink(uintptr_t* room)
      : end_((word(room) + 2 * kPage - 1) / kPage * kPage),
        beyond_(reinterpret_cast<void*>(end_)) {}
  uintptr_t start_of(uintptr_t object, size_t bytes) {
    void* const place = reinterpret_cast<void*>(end_ - bytes);
    return word(std::memcpy(place, reinterpret_cast<const void*>(object), bytes));
  }

 private:
  const uintptr_t end_;
  const UnreadablePage beyond_;
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
  uintptr_t& const_method(uintptr_t method) { return field(method, "Method", "_constMethod"); }
  uintptr_t& constants(uintptr_t method) {
    return field(const_method(method), "ConstMethod", "_constants");
  }
  uintptr_t& holder(uintptr_t method) {
    return field(constants(method), "ConstantPool", "_pool_holder");
  }
  uintptr_t& methods(uintptr_t klass) { return field(klass, "InstanceKlass", "_methods"); }
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
  uintptr_t copy_in_metaspace(uintptr_t object, const char* type) {
    const size_t bytes = jvm().structs().size_of(type);
    uintptr_t* const room = room_in_metaspace(bytes / sizeof(uintptr_t));
    return word(std::memcpy(room, reinterpret_cast<const void*>(object), bytes));
  }
  // As many as methods, each made if it was not.
  std::vector<jmethodID> ids_of(jclass klass) {
    jint count = 0;
    jmethodID* ids = nullptr;
    EXPECT_EQ(jvmti()->GetClassMethods(klass, &count, &ids), JVMTI_ERROR_NONE);
    const std::vector<jmethodID> result(ids, ids + count);
    jvmti()->Deallocate(reinterpret_cast<unsigned char*>(ids));
    return result;
  }
  // What of a ConstMethod is before its number.
  size_t before_the_number() {
    return jvm().structs().required_offset("ConstMethod", "_method_idnum") / sizeof(uintptr_t) *
           sizeof(uintptr_t);
  }

  // A method that the VM made for method handles to jump through, which no class has among its
  // methods: one that code was compiled for. 0: there is none.
  uintptr_t find_linker() {
    constexpr int kNativeSynthetic = 0x1100;
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
    std::array<uintptr_t, kPageWords> page{};
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

// It has the number of its class's first method.
TEST_F(LookAlikesTest, ALinkerHasNoIdAndNotThatOfAnotherMethod) {
  const uintptr_t linker = find_linker();
  ASSERT_NE(linker, 0U);
  const std::vector<jmethodID> ids = ids_of(env()->FindClass("java/lang/invoke/MethodHandle"));
  const auto first = std::ranges::find_if(
      ids, [this](jmethodID id) { return number(word(functions().from_id(id))) == 0; });
  ASSERT_NE(first, ids.end());
  ASSERT_EQ(number(linker), 0);
  EXPECT_EQ(functions().to_id(functions().from_id(*first)), *first);
  EXPECT_EQ(functions().to_id(reinterpret_cast<void*>(linker)), nullptr);
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

TEST_F(LookAlikesTest, ACopyOfALinkerIsOneWhileItsPartsAreWhole) {
  const uintptr_t linker = find_linker();
  ASSERT_NE(linker, 0U);
  const uintptr_t forged = copy_in_metaspace(linker, "Method");
  const uintptr_t whole = copy_in_metaspace(const_method(linker), "ConstMethod");
  const_method(forged) = whole;
  const uintptr_t pool = copy_in_metaspace(constants(linker), "ConstantPool");
  constants(forged) = pool;
  ASSERT_TRUE(is_method_now(forged));

  const size_t pool_bytes = jvm().structs().size_of("ConstantPool");
  const auto* const words = reinterpret_cast<const uintptr_t*>(pool);
  const std::vector<uintptr_t> elsewhere(words, words + pool_bytes / sizeof(uintptr_t));
  const uintptr_t without_vtable = copy_in_metaspace(pool, "ConstantPool");
  *reinterpret_cast<uintptr_t*>(without_vtable) = 0;
  const uintptr_t unaligned = word(room_in_metaspace(elsewhere.size() + 1)) + 1;
  std::memcpy(reinterpret_cast<void*>(unaligned), words, pool_bytes);
  Brink brink(room_in_metaspace(Brink::kRoomInWords));
  const std::pair<uintptr_t, const char*> pools[] = {
      {word(elsewhere.data()), "not in metaspace"},
      {without_vtable, "without a vtable"},
      {unaligned, "unaligned"},
      {brink.start_of(pool, pool_bytes - sizeof(uintptr_t)), "without its last word"},
  };
  for (const auto& [bad, why] : pools) {
    constants(forged) = bad;
    EXPECT_FALSE(is_method_now(forged)) << "with a constant pool " << why;
  }
  constants(forged) = pool;
  const_method(forged) = brink.start_of(whole, before_the_number());
  EXPECT_FALSE(is_method_now(forged)) << "with a ConstMethod without a number";

  const_method(forged) = whole;
  ASSERT_TRUE(is_method_now(forged));
  constants(forged) = brink.start_of(pool, sizeof(uintptr_t));
  EXPECT_EQ(functions().method_info(reinterpret_cast<void*>(forged), nullptr), 0)
      << "it was one, and has no class now";
}

TEST_F(LookAlikesTest, ACopyOfAMethodOfTheLinkersClassIsNone) {
  const jmethodID type = env()->GetMethodID(env()->FindClass("java/lang/invoke/MethodHandle"),
                                            "type", "()Ljava/lang/invoke/MethodType;");
  const uintptr_t method = word(functions().from_id(type));
  ASSERT_TRUE(is_method_now(method));
  EXPECT_FALSE(is_method_now(copy_in_metaspace(method, "Method")));
}

// As after a redefinition that changes the order of the methods.
TEST_F(LookAlikesTest, AMethodWithTheNumberOfAnotherPlaceIsOne) {
  jclass sample = define(sample_class(1), new_loader());
  const uintptr_t far = word(method(sample, "far", "()V"));
  const uintptr_t pair = word(method(sample, "pair", "(Ljava/lang/Object;I)V"));
  ASSERT_NE(number(far), number(pair));
  const Poke poke(&number(far), number(pair));
  EXPECT_TRUE(is_method_now(far));
  EXPECT_TRUE(is_method_now(pair));
}

TEST_F(LookAlikesTest, WhatStandsBehindTheMethodsOfAClassIsNone) {
  const uintptr_t far = word(method(define(sample_class(1), new_loader()), "far", "()V"));
  const uintptr_t copy = copy_in_metaspace(far, "Method");

  // The class's array with one word more than its length says.
  const uintptr_t klass = word(method_info(reinterpret_cast<void*>(far)).klass);
  uintptr_t& array = methods(klass);
  const auto length = *reinterpret_cast<const uint32_t*>(array);
  const auto* const words = reinterpret_cast<const uintptr_t*>(array);
  std::vector<uintptr_t> longer(words, words + 1 + length);
  longer.push_back(copy);
  const Poke poke(&array, word(longer.data()));
  EXPECT_TRUE(is_method_now(far));
  EXPECT_FALSE(is_method_now(copy));

  const Poke its_number(&number(far), static_cast<uint16_t>(length));
  EXPECT_TRUE(is_method_now(far));
  EXPECT_FALSE(is_method_now(copy)) << "where its number says";
}

// The VM does not see what is changed in a copy of its class.
TEST_F(LookAlikesTest, AClassHasAtMostAsManyMethodsAsAClassFileMayHave) {
  constexpr size_t kMost = 65535;
  const uintptr_t far = word(method(define(sample_class(1), new_loader()), "far", "()V"));
  const uintptr_t klass = copy_in_metaspace(holder(far), "InstanceKlass");
  const Poke poke(&holder(far), klass);
  std::vector<uintptr_t> array(1 + kMost + 1);
  array[0] = kMost;
  array[kMost] = far;
  methods(klass) = word(array.data());
  EXPECT_TRUE(is_method_now(far));
  array[0] = kMost + 1;
  EXPECT_FALSE(is_method_now(far));
}

TEST_F(LookAlikesTest, WhatCannotBeReadOrIsUnalignedIsNoArrayOfMethods) {
  const uintptr_t far = word(method(define(sample_class(1), new_loader()), "far", "()V"));
  const uintptr_t klass = copy_in_metaspace(holder(far), "InstanceKlass");
  const Poke poke(&holder(far), klass);
  ASSERT_TRUE(is_method_now(far));

  const std::array<uintptr_t, 2> array{1, far};
  std::array<uintptr_t, 3> room{};
  methods(klass) = word(room.data()) + 1;
  std::memcpy(reinterpret_cast<void*>(methods(klass)), array.data(), sizeof array);
  EXPECT_FALSE(is_method_now(far)) << "unaligned";

  alignas(kPage) static std::array<uintptr_t, 3 * kPageWords> pages;
  uintptr_t* const second = &pages[kPageWords];
  uintptr_t* const third = second + kPageWords;
  second[-1] = kPageWords + 1;
  third[0] = far;
  const UnreadablePage page(second);
  methods(klass) = word(second - 1);
  EXPECT_FALSE(is_method_now(far)) << "not readable before the method";
  methods(klass) = word(third - 1);
  EXPECT_FALSE(is_method_now(far)) << "without a length that is readable";
}

TEST_F(LookAlikesTest, OlderVersionsAreLookedThroughForAsManyMethodsAsTwoClassesMayHave) {
  constexpr uintptr_t kMost = 65535;
  const uintptr_t far = word(method(define(sample_class(1), new_loader()), "far", "()V"));
  std::array<uintptr_t, 3> versions{};
  for (uintptr_t& version : versions) version = copy_in_metaspace(holder(far), "InstanceKlass");
  const auto previous = [&](uintptr_t version) -> uintptr_t& {
    // Right behind, which no table names.
    return (&field(version, "InstanceKlass", "_breakpoints"))[1];
  };
  previous(versions[0]) = versions[1];
  previous(versions[1]) = versions[2];
  std::vector<uintptr_t> newest(1 + kMost);
  std::vector<uintptr_t> older(1 + kMost);
  const std::array<uintptr_t, 2> oldest{1, far};
  newest[0] = kMost;
  methods(versions[0]) = word(newest.data());
  methods(versions[1]) = word(older.data());
  methods(versions[2]) = word(oldest.data());
  const Poke poke(&holder(far), versions[0]);
  const Poke not_its_place(&number(far), uint16_t{1});

  older[0] = kMost - 1;
  EXPECT_TRUE(is_method_now(far));
  older[0] = kMost;
  EXPECT_FALSE(is_method_now(far));
}

TEST_F(LookAlikesTest, WhatIsOnlyNearlyALiveClassIsNone) {
  const uintptr_t far = word(method(define(sample_class(1), new_loader()), "far", "()V"));
  const uintptr_t klass = copy_in_metaspace(holder(far), "InstanceKlass");
  const Poke poke(&holder(far), klass);
  ASSERT_TRUE(is_method_now(far));
  ASSERT_TRUE(is_class(klass));

  const auto expect_none = [&](const char* why) {
    EXPECT_FALSE(is_method_now(far)) << why;
    EXPECT_FALSE(is_class(klass)) << why;
  };
  {
    constexpr uint8_t kBehindTheLastState = 6;
    const Poke state(&field<uint8_t>(klass, "InstanceKlass", "_init_state"), kBehindTheLastState);
    expect_none("in a state that there is not");
  }
  alignas(kPage) static std::array<char, kPage> zeros;
  uintptr_t& loader_data = field(klass, "Klass", "_class_loader_data");
  loader_data = word(&zeros[1]);
  expect_none("with unaligned data of its loader");
  loader_data = word(&zeros[0]);
  ASSERT_TRUE(is_method_now(far));
  const UnreadablePage page(&zeros[0]);
  expect_none("with data of its loader that cannot be read");
}

TEST_F(LookAlikesTest, AMethodOfAClassThatFailedToBeInitializedIsOne) {
  constexpr uint16_t kStatic = 8;
  constexpr uint8_t kNull = 0x01;
  constexpr uint8_t kThrow = 0xbf;
  ClassFile file("framestorm/Failed");
  file.add({.name = "<clinit>", .descriptor = "()V", .flags = kStatic, .code = {kNull, kThrow}});
  jclass failed = define(file.bytes(), new_loader());
  EXPECT_EQ(env()->GetStaticMethodID(failed, "<clinit>", "()V"), nullptr);
  ASSERT_TRUE(env()->ExceptionCheck());
  env()->ExceptionClear();

  const std::vector<jmethodID> ids = ids_of(failed);
  ASSERT_EQ(ids.size(), 1U);
  EXPECT_NE(functions().from_id(ids[0]), nullptr);
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
  const Poke poke(&place, other);
  EXPECT_EQ(functions().to_id(far), nullptr);
}

TEST_F(LookAlikesTest, AnIdIsGivenOnlyFromItsPlaceInTheArray) {
  jclass sample = define(sample_class(1), new_loader());
  const uintptr_t far = word(method(sample, "far", "()V"));
  ids_of(sample);
  auto& ids = field<uintptr_t*>(holder(far), "InstanceKlass", "_methods_jmethod_ids");
  const auto id = [&] { return functions().to_id(reinterpret_cast<void*>(far)); };
  ASSERT_NE(id(), nullptr);
  {
    const Poke count(&ids[0], uintptr_t{number(far)});
    EXPECT_EQ(id(), nullptr) << "that ends before it";
  }
  {
    std::array<uintptr_t, 2> room{};
    const uintptr_t unaligned = word(room.data()) + 1;
    std::memcpy(reinterpret_cast<void*>(unaligned), &far, sizeof far);
    const Poke place(&ids[1 + number(far)], unaligned);
    EXPECT_EQ(id(), nullptr) << "that has an unaligned one there";
  }
  ASSERT_TRUE(is_method_now(far));
  Brink brink(room_in_metaspace(Brink::kRoomInWords));
  const Poke parts(&const_method(far), brink.start_of(const_method(far), before_the_number()));
  EXPECT_EQ(id(), nullptr) << "it was a method, and has no number now";
}

// An agent is loaded before, and may ask.
TEST(BeforeTheStartTest, NothingIsAMethodOrClass) {
  const char* const home = std::getenv("FRAMESTORM_TEST_JDK");
  ASSERT_NE(home, nullptr);
  void* const library = dlopen((std::string(home) + "/lib/server/libjvm.so").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto method_info =
      reinterpret_cast<decltype(&ASGST_GetMethodInfo)>(dlsym(library, "ASGST_GetMethodInfo"));
  const auto class_info =
      reinterpret_cast<decltype(&ASGST_GetClassInfo)>(dlsym(library, "ASGST_GetClassInfo"));
  if (method_info == nullptr) GTEST_SKIP() << home << " has no function of profile2.h";
  uintptr_t aligned = 0;
  EXPECT_EQ(method_info(&aligned, nullptr), 0);
  EXPECT_EQ(class_info(&aligned, nullptr), 0);
}

}  // namespace
}  // namespace framestorm::methods_test
