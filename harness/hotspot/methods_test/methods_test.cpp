// Methods and classes of profile2.h on a live JVM: what they say of every loaded method, and what they
// refuse.
#include <gtest/gtest.h>
#include <jvmti.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "harness/hotspot/methods_test/live_methods.h"
#include "harness/jvm/vm_structs.h"

namespace framestorm::methods_test {
namespace {

std::string taken(jvmtiEnv* jvmti, char* text) {
  std::string copy = text == nullptr ? "" : text;
  jvmti->Deallocate(reinterpret_cast<unsigned char*>(text));
  return copy;
}

TEST_F(MethodsTest, NamesSignaturesAndModifiersOfAKnownClass) {
  jclass sample = define(sample_class(1), new_loader());
  ASGST_Method pair = method(sample, "pair", "(Ljava/lang/Object;I)V");
  ASSERT_NE(pair, nullptr);
  const MethodInfo info = method_info(pair);
  EXPECT_EQ(info.name, "pair");
  EXPECT_EQ(info.signature, "(Ljava/lang/Object;I)V");
  EXPECT_EQ(info.generic_signature, "<T:Ljava/lang/Object;>(TT;I)V");
  EXPECT_EQ(info.modifiers, 0x9);
  const ClassInfo klass = class_info(info.klass);
  EXPECT_EQ(klass.name, "framestorm/Sample");
  EXPECT_EQ(klass.generic_name, "<T:Ljava/lang/Object;>Ljava/lang/Object;");
  EXPECT_EQ(klass.modifiers, 0x21);

  const MethodInfo outside = method_info(method(sample, "outside", "()V"));
  EXPECT_EQ(outside.modifiers, 0x109);
  EXPECT_EQ(outside.generic_signature, "");
  EXPECT_EQ(outside.klass, info.klass);
}

// Names of the prototype, so that what was written for it compiles.
TEST_F(MethodsTest, ClassesAndNumbersOfMethods) {
  const auto find = [&]<class Function>(Function* function, const char* name) {
    *function = reinterpret_cast<Function>(jvm().symbol(name));
    ASSERT_NE(*function, nullptr) << name;
  };
  decltype(&ASGST_GetClass) class_of = nullptr;
  decltype(&ASGST_JClassToClass) from_jclass = nullptr;
  decltype(&ASGST_ClassToJClass) to_jclass = nullptr;
  decltype(&ASGST_GetMethodIdNum) method_id = nullptr;
  decltype(&ASGST_GetClassIdNum) class_id = nullptr;
  decltype(&ASGST_GetMethodLineNumber) line = nullptr;
  find(&class_of, "ASGST_GetClass");
  find(&from_jclass, "ASGST_JClassToClass");
  find(&to_jclass, "ASGST_ClassToJClass");
  find(&method_id, "ASGST_GetMethodIdNum");
  find(&class_id, "ASGST_GetClassIdNum");
  find(&line, "ASGST_GetMethodLineNumber");
  ASSERT_FALSE(HasFatalFailure());

  jclass sample = define(sample_class(1), new_loader());
  jclass twin = define(sample_class(1), new_loader());
  ASGST_Method pair = method(sample, "pair", "(Ljava/lang/Object;I)V");
  ASGST_Method far = method(sample, "far", "()V");
  ASGST_Class klass = from_jclass(sample);
  EXPECT_EQ(klass, class_of(pair));
  EXPECT_NE(klass, from_jclass(twin));
  EXPECT_TRUE(env()->IsSameObject(to_jclass(klass), sample));
  EXPECT_NE(method_id(pair), method_id(far));
  EXPECT_EQ(method_id(pair), method_id(method(twin, "pair", "(Ljava/lang/Object;I)V")));
  EXPECT_NE(class_id(klass), 0);
  EXPECT_NE(class_id(klass), class_id(from_jclass(twin)));
  ASGST_MethodInfo info = {};
  ASSERT_EQ(functions().method_info(pair, &info), 1);
  EXPECT_EQ(info.idnum, method_id(pair));
  EXPECT_EQ(info.class_idnum, class_id(klass));
  ASGST_ClassInfo class_info = {};
  ASSERT_EQ(functions().class_info(klass, &class_info), 1);
  EXPECT_EQ(class_info.idnum, class_id(klass));
  EXPECT_EQ(line(far, 0), functions().line_number(far, 0));

  EXPECT_EQ(from_jclass(nullptr), nullptr);
  EXPECT_EQ(from_jclass(env()->FindClass("[I")), nullptr);
  EXPECT_EQ(to_jclass(pair), nullptr);
  EXPECT_EQ(class_of(klass), nullptr);
  EXPECT_EQ(method_id(klass), 0);
  EXPECT_EQ(class_id(pair), 0);
}

TEST_F(MethodsTest, NamesAreCutToTheirBuffers) {
  ASGST_Method pair =
      method(define(sample_class(1), new_loader()), "pair", "(Ljava/lang/Object;I)V");
  for (int size = 0; size <= 6; ++size) {
    std::array<char, 8> buffer{};
    buffer.fill('#');
    ASGST_MethodInfo info = {};
    info.method_name = buffer.data();
    info.method_name_length = size;
    ASSERT_EQ(functions().method_info(pair, &info), 1);
    EXPECT_EQ(info.method_name_length, 4);
    EXPECT_EQ(info.signature_length, 22);
    const std::string_view all(buffer.data(), buffer.size());
    const auto copied = static_cast<size_t>(size);
    if (size > 0) {
      const std::string expected = std::string("pair").substr(0, std::min<size_t>(copied - 1, 4));
      EXPECT_STREQ(buffer.data(), expected.c_str());
    }
    EXPECT_EQ(all.substr(copied).find_first_not_of('#'), std::string_view::npos) << size;
  }

  // Not within a character.
  ClassFile file("framestorm/Umlaut");
  file.add({.name = "\xc3\xa4\xe2\x82\xac", .descriptor = "()V", .flags = 9, .code = {0xb1}});
  ASGST_Method umlaut = method(define(file.bytes(), new_loader()), "\xc3\xa4\xe2\x82\xac", "()V");
  for (const auto& [size, expected] : {std::pair{1, ""},
                                       {2, ""},
                                       {3, "\xc3\xa4"},
                                       {4, "\xc3\xa4"},
                                       {5, "\xc3\xa4"},
                                       {6, "\xc3\xa4\xe2\x82\xac"}}) {
    std::array<char, 8> buffer{};
    ASGST_MethodInfo info = {};
    info.method_name = buffer.data();
    info.method_name_length = size;
    ASSERT_EQ(functions().method_info(umlaut, &info), 1);
    EXPECT_EQ(info.method_name_length, 5);
    EXPECT_STREQ(buffer.data(), expected) << size;
  }
}

TEST_F(MethodsTest, LinesOfAKnownClass) {
  jclass sample = define(sample_class(1), new_loader());
  ASGST_Method pair = method(sample, "pair", "(Ljava/lang/Object;I)V");
  EXPECT_EQ(lines(pair), (std::vector<LineNumber>{{0, 10}, {1, 11}, {3, 12}}));
  const std::vector<int> expected = {-1, 10, 11, 11, 12, -1};
  for (int bci = -1; bci <= 4; ++bci) {
    EXPECT_EQ(functions().line_number(pair, bci), expected[static_cast<size_t>(bci + 1)]) << bci;
  }
  std::array<ASGST_LineNumberEntry, 3> entries{};
  EXPECT_EQ(functions().line_number_table(pair, entries.data(), 2), 3);
  EXPECT_EQ(entries[1].line_number, 11);
  EXPECT_EQ(entries[2].line_number, 0);

  ASGST_Method far = method(sample, "far", "()V");
  EXPECT_EQ(
      lines(far),
      (std::vector<LineNumber>{
          {0, 65000}, {31, 1}, {32, 8}, {300, 9}, {200, 30000}, {200, 30001}, {3999, 65535}}));
  for (const auto& [bci, line] : {std::pair{30, 65000},
                                  {31, 1},
                                  {199, 8},
                                  {299, 30000},
                                  {300, 9},
                                  {3998, 9},
                                  {3999, 65535}}) {
    EXPECT_EQ(functions().line_number(far, bci), line) << bci;
  }

  for (const char* name : {"unlined", "outside"}) {
    ASGST_Method none = method(sample, name, "()V");
    EXPECT_EQ(functions().line_number(none, 0), -1);
    EXPECT_EQ(functions().line_number_table(none, nullptr, 0), 0);
  }
  EXPECT_EQ(functions().line_number(&entries, 0), -1);
  EXPECT_EQ(functions().line_number_table(&entries, nullptr, 0), -1);
}

TEST_F(MethodsTest, AgreesWithJvmtiOnEveryLoadedMethod) {
  // A lambda, so that there is a hidden class.
  jclass function = env()->FindClass("java/util/function/Function");
  env()->CallStaticObjectMethod(
      function, env()->GetStaticMethodID(function, "identity", "()Ljava/util/function/Function;"));
  jvm().check_exception("making a lambda");

  int hidden = 0;
  jint class_count = 0;
  jclass* classes = nullptr;
  ASSERT_EQ(jvmti()->GetLoadedClasses(&class_count, &classes), JVMTI_ERROR_NONE);
  int methods_seen = 0;
  int lined = 0;
  for (jint i = 0; i < class_count && !HasFailure(); ++i) {
    char* signature = nullptr;
    char* generic = nullptr;
    jint count = 0;
    jmethodID* methods = nullptr;
    ASSERT_EQ(jvmti()->GetClassSignature(classes[i], &signature, &generic), JVMTI_ERROR_NONE);
    const std::string class_signature = taken(jvmti(), signature);
    const std::string class_generic = taken(jvmti(), generic);
    if (jvmti()->GetClassMethods(classes[i], &count, &methods) != JVMTI_ERROR_NONE) continue;
    for (jint j = 0; j < count; ++j) {
      ++methods_seen;
      ASGST_Method method = functions().from_id(methods[j]);
      ASSERT_NE(method, nullptr) << class_signature;
      EXPECT_EQ(functions().to_id(method), methods[j]);
      const MethodInfo info = method_info(method);
      char* name = nullptr;
      ASSERT_EQ(jvmti()->GetMethodName(methods[j], &name, &signature, &generic), JVMTI_ERROR_NONE);
      EXPECT_EQ(info.name, taken(jvmti(), name));
      EXPECT_EQ(info.signature, taken(jvmti(), signature));
      EXPECT_EQ(info.generic_signature, taken(jvmti(), generic));
      jint modifiers = 0;
      ASSERT_EQ(jvmti()->GetMethodModifiers(methods[j], &modifiers), JVMTI_ERROR_NONE);
      EXPECT_EQ(info.modifiers, modifiers);

      const ClassInfo klass = class_info(info.klass);
      // A hidden class's last dot stands for the + of its internal name.
      std::string expected = class_signature.substr(1, class_signature.size() - 2);
      if (const size_t dot = expected.rfind('.'); dot != std::string::npos) {
        expected[dot] = '+';
        ++hidden;
      }
      EXPECT_EQ(klass.name, expected);
      EXPECT_EQ(klass.generic_name, class_generic);

      jint entry_count = 0;
      jvmtiLineNumberEntry* entries = nullptr;
      const jvmtiError lines_error =
          jvmti()->GetLineNumberTable(methods[j], &entry_count, &entries);
      const std::vector<LineNumber> found = lines(method);
      if (lines_error != JVMTI_ERROR_NONE) entry_count = 0;
      ASSERT_EQ(found.size(), static_cast<size_t>(entry_count)) << info.name;
      for (jint k = 0; k < entry_count; ++k) {
        ++lined;
        EXPECT_EQ(found[static_cast<size_t>(k)].bci, entries[k].start_location);
        EXPECT_EQ(found[static_cast<size_t>(k)].line, entries[k].line_number);
      }
      jvmti()->Deallocate(reinterpret_cast<unsigned char*>(entries));
    }
    jvmti()->Deallocate(reinterpret_cast<unsigned char*>(methods));
    env()->DeleteLocalRef(classes[i]);
  }
  jvmti()->Deallocate(reinterpret_cast<unsigned char*>(classes));
  EXPECT_GT(methods_seen, 3000);
  EXPECT_GT(lined, 10000);
  EXPECT_GT(hidden, 0);
}

TEST_F(MethodsTest, WhatIsNearAMethodOrClassIsNone) {
  const Known known = this->known();
  std::set<uintptr_t> classes;
  ASSERT_GT(known.methods.size(), 3000U);
  for (const uintptr_t method : known.methods) {
    ASSERT_TRUE(is_method(method));
    for (const int offset : {-16, -8, -4, -1, 1, 2, 4, 8, 16, 24, 32, 64, 88, 96}) {
      const uintptr_t near = method + static_cast<uintptr_t>(offset);
      ASSERT_TRUE(known.has(near) || !is_method(near) || is_untold(known, near)) << offset;
    }
    ASSERT_FALSE(is_class(method));
    classes.insert(word(method_info(reinterpret_cast<void*>(method)).klass));
  }
  ASSERT_GT(classes.size(), 300U);
  for (const uintptr_t klass : classes) {
    ASSERT_TRUE(is_class(klass));
    ASSERT_FALSE(is_method(klass));
    for (const int offset : {-8, -1, 1, 8, 16, 64, 256}) {
      const uintptr_t near = klass + static_cast<uintptr_t>(offset);
      ASSERT_TRUE(classes.count(near) != 0 || !is_class(near));
    }
  }
}

TEST_F(MethodsTest, WhatIsNoMetadataIsNone) {
  void* page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  int local = 0;
  for (const uintptr_t value : {uintptr_t{0}, uintptr_t{1}, uintptr_t{8}, ~uintptr_t{0},
                                ~uintptr_t{7}, uintptr_t{1} << 47, uintptr_t{1} << 63, word(page),
                                word(page) + 8, word(&local), word(env()), word(jvm().vm())}) {
    EXPECT_FALSE(is_method(value)) << value;
    EXPECT_FALSE(is_class(value)) << value;
    EXPECT_EQ(functions().to_id(reinterpret_cast<void*>(value)), nullptr);
    EXPECT_EQ(functions().from_id(reinterpret_cast<jmethodID>(value)), nullptr);
    EXPECT_EQ(functions().line_number(reinterpret_cast<void*>(value), 0), -1);
  }
  munmap(page, 4096);
}

// What is taken for a method has to be one that JVMTI knows too, or has reason not to.
class GarbageTest : public MethodsTest {
 protected:
  struct Counts {
    int words = 0;
    int known = 0;
    int untold = 0;
  };

  // Asks for the words in memory, or for its addresses. What cannot be read is left out.
  Counts feed(uintptr_t low, uintptr_t high, bool addresses) {
    constexpr size_t kPage = 4096;
    const Known known = this->known();
    Counts counts;
    std::array<uintptr_t, kPage / sizeof(uintptr_t)> page{};
    for (uintptr_t at = low & ~(kPage - 1); at < high && !HasFailure(); at += kPage) {
      const iovec to = {page.data(), kPage};
      const iovec from = {reinterpret_cast<void*>(at), kPage};
      if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != kPage) continue;
      for (size_t i = 0; i < page.size(); ++i) {
        if (at + i * sizeof(uintptr_t) < low) continue;
        feed(known, addresses ? at + i * sizeof(uintptr_t) : page[i], &counts);
      }
    }
    return counts;
  }

 private:
  void feed(const Known& known, uintptr_t value, Counts* counts) {
    ++counts->words;
    const bool klass = is_class(value);
    const bool method = is_method(value);
    EXPECT_FALSE(klass && method);
    EXPECT_TRUE(method || !known.has(value));
    if (known.has(value)) {
      ++counts->known;
    } else if (method) {
      ++counts->untold;
      EXPECT_TRUE(is_untold(known, value)) << value;
    }
  }
};

TEST_F(GarbageTest, WordsOfAStack) {
  pthread_attr_t attributes;
  void* low = nullptr;
  size_t size = 0;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  EXPECT_GT(feed(word(low), word(low) + size, false).words, 1000);
}

TEST_F(GarbageTest, AddressesAndWordsOfTheCdsArchive) {
  const auto* base = jvm().structs().static_address("MetaspaceObj", "_shared_metaspace_base");
  const auto* top = jvm().structs().static_address("MetaspaceObj", "_shared_metaspace_top");
  ASSERT_NE(base, nullptr);
  ASSERT_NE(top, nullptr);
  const auto low = *reinterpret_cast<const uintptr_t*>(base);
  const auto high = *reinterpret_cast<const uintptr_t*>(top);
  if (low == high) GTEST_SKIP() << "this JVM runs without a CDS archive";
  const Counts addresses = feed(low, high, true);
  EXPECT_GT(addresses.words, 1'000'000);
  EXPECT_GT(addresses.known, 3000);
  const Counts words = feed(low, high, false);
  EXPECT_GT(words.known, 3000);
}

// Metaspace gives what is left over in the class space to other data of a loader's classes
// (ClassLoaderMetaspace::allocate).
TEST_F(MethodsTest, WhatLiesInGapsOfTheClassSpaceIsFound) {
  constexpr size_t kClasses = 200;
  constexpr size_t kLoaders = 4;                  // in turn, so that none's chunks can grow
  constexpr uintptr_t kFar = uintptr_t{1} << 30;  // the size of the class space
  const auto to_const = jvm().structs().required_offset("Method", "_constMethod");
  const auto to_constants = jvm().structs().required_offset("ConstMethod", "_constants");
  std::array<jobject, kLoaders> loaders;
  for (jobject& loader : loaders) loader = new_loader();
  int in_class_space = 0;
  for (size_t i = 0; i < kClasses; ++i) {
    ClassFile file("framestorm/Gap" + std::to_string(i));
    std::vector<uint8_t> code(1 + i % 40 * 10);  // of many sizes: one may fit
    code.back() = 0xb1;
    file.add({.name = "nothing", .descriptor = "()V", .flags = 9, .code = code});
    ASGST_Method nothing = method(define(file.bytes(), loaders[i % kLoaders]), "nothing", "()V");
    ASSERT_NE(nothing, nullptr) << i;
    const MethodInfo info = method_info(nothing);
    const uintptr_t klass = word(info.klass);
    const auto const_method = *reinterpret_cast<const uintptr_t*>(word(nothing) + to_const);
    const auto constants = *reinterpret_cast<const uintptr_t*>(const_method + to_constants);
    for (const uintptr_t data : {word(nothing), const_method, constants}) {
      if (std::max(klass, data) - std::min(klass, data) < kFar) ++in_class_space;
    }
  }
  EXPECT_GT(in_class_space, 0) << "this JVM leaves no gaps: the test shows nothing";
}

// The bytes of a real method, in metaspace: in the offsets of a switch, which nobody runs. Right
// down to its class, which does not have it.
TEST_F(MethodsTest, ACopyOfAMethodIsNone) {
  constexpr size_t kCopied = 96;
  constexpr uint8_t kTableSwitch = 0xaa;
  constexpr uint8_t kReturn = 0xb1;
  jclass sample = define(sample_class(1), new_loader());
  const auto* const real = static_cast<const uint8_t*>(method(sample, "far", "()V"));
  // At bci 3: default, 0 to 23, and as many offsets.
  std::vector<uint8_t> code = {0, 0, 0, kTableSwitch, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23};
  code.insert(code.end(), real, real + kCopied);
  code.push_back(kReturn);
  ClassFile file("framestorm/Forged");
  file.add({.name = "holder", .descriptor = "()V", .flags = 9, .code = code});
  // By the boot loader, whose classes are not verified.
  ASGST_Method holder = method(define(file.bytes(), nullptr), "holder", "()V");
  const auto offset =
      static_cast<size_t>(jvm().structs().required_offset("Method", "_constMethod"));
  const auto* const const_method =
      *reinterpret_cast<const uint8_t* const*>(static_cast<const uint8_t*>(holder) + offset);
  const auto* copy = const_method;
  while (copy < const_method + kCopied && std::memcmp(copy, real, kCopied) != 0) copy += 8;
  ASSERT_EQ(std::memcmp(copy, real, kCopied), 0);
  EXPECT_TRUE(is_method(real));
  EXPECT_FALSE(is_method(copy));
}

// A method that was proven is remembered with the epoch it was proven in, which classes that go
// count up: a word must not bring bits of its own for that. These have the place of the method
// itself.
TEST_F(MethodsTest, AProvenMethodWithBitsBeyondAddressesIsNone) {
  constexpr int kAddressBits = 47;
  constexpr uintptr_t kBits[] = {3169, 3561, 6338, 6730};
  const auto drop = [&](int classes) {
    for (int i = 0; i < classes; ++i) {
      env()->PushLocalFrame(32);
      define(sample_class(1), new_loader());
      env()->PopLocalFrame(nullptr);
    }
    collect_garbage();
  };
  const std::set<uintptr_t> methods = known().methods;
  ASSERT_GT(methods.size(), 1000U);
  drop(20);
  for (int round = 0; round < 10; ++round) {
    drop(1);
    int checked = 0;
    for (const uintptr_t method : methods) {
      if (++checked > 200) break;
      void* const real = reinterpret_cast<void*>(method);
      if (functions().method_info(real, nullptr) == 0) continue;
      for (const uintptr_t bits : kBits) {
        void* const other = reinterpret_cast<void*>(method | bits << kAddressBits);
        ASSERT_EQ(functions().method_info(other, nullptr), 0) << other << " in round " << round;
      }
    }
  }
}

TEST_F(MethodsTest, ANullIdAndOneOfNothingHaveNoMethod) {
  uintptr_t no_method = 0x1234560;
  EXPECT_EQ(functions().from_id(nullptr), nullptr);
  EXPECT_EQ(functions().from_id(reinterpret_cast<jmethodID>(&no_method)), nullptr);
  EXPECT_EQ(functions().from_id(reinterpret_cast<jmethodID>(word(&no_method) + 1)), nullptr);
}

// A method that is running when its class is redefined.
TEST_F(MethodsTest, AReplacedMethodIsOneWhileItRuns) {
  jclass sample =
      static_cast<jclass>(env()->NewGlobalRef(define(sample_class(600'000), new_loader())));
  const jmethodID id = env()->GetStaticMethodID(sample, "asleep", "()V");
  ASGST_Method old = functions().from_id(id);
  ASSERT_NE(old, nullptr);

  std::atomic<jobject> sleeper = nullptr;
  JavaVM* vm = jvm().vm();
  std::thread thread([&] {
    JNIEnv* own = nullptr;
    vm->AttachCurrentThread(reinterpret_cast<void**>(&own), nullptr);
    jclass threads = own->FindClass("java/lang/Thread");
    sleeper = own->NewGlobalRef(own->CallStaticObjectMethod(
        threads, own->GetStaticMethodID(threads, "currentThread", "()Ljava/lang/Thread;")));
    own->CallStaticVoidMethod(sample, id);
    own->ExceptionClear();
    vm->DetachCurrentThread();
  });
  while (sleeper == nullptr) std::this_thread::yield();
  jint state = 0;
  while ((state & JVMTI_THREAD_STATE_SLEEPING) == 0) {
    ASSERT_EQ(jvmti()->GetThreadState(sleeper, &state), JVMTI_ERROR_NONE);
  }
  ASSERT_TRUE(is_method(old));

  const std::vector<uint8_t> changed = sample_class(1);
  const jvmtiClassDefinition definition = {sample, static_cast<jint>(changed.size()),
                                           changed.data()};
  ASSERT_EQ(jvmti()->RedefineClasses(1, &definition), JVMTI_ERROR_NONE);
  EXPECT_TRUE(is_method(old));
  EXPECT_EQ(method_info(old).name, "asleep");
  EXPECT_EQ(functions().line_number(old, 0), 40);
  ASGST_Method replacement = functions().from_id(id);
  EXPECT_NE(replacement, old);
  EXPECT_TRUE(is_method(replacement));
  EXPECT_EQ(functions().to_id(replacement), id);

  jclass threads = env()->FindClass("java/lang/Thread");
  env()->CallVoidMethod(sleeper, env()->GetMethodID(threads, "interrupt", "()V"));
  thread.join();
  // Not running any more, and freed when the class is redefined again.
  const std::vector<uint8_t> again = sample_class(2);
  const jvmtiClassDefinition second = {sample, static_cast<jint>(again.size()), again.data()};
  ASSERT_EQ(jvmti()->RedefineClasses(1, &second), JVMTI_ERROR_NONE);
  EXPECT_FALSE(is_method(old));
}

}  // namespace
}  // namespace framestorm::methods_test

// Like jvm_test's: HotSpot does not like to measure the primordial thread's stack, and exit
// handlers would run beside the JVM's threads.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  int result = 1;
  std::thread control_thread([&] { result = RUN_ALL_TESTS(); });
  control_thread.join();
  std::fflush(nullptr);
  std::_Exit(result);
}
