#include "harness/jvm/modules.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <math.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

#include "harness/base/test_folder.h"

namespace framestorm {
namespace {

extern "C" [[gnu::noinline, gnu::used]] uint64_t modules_test_function(uint64_t x) {
  volatile uint64_t value = x;
  return value * 3 + 1;
}

uintptr_t own_function() { return reinterpret_cast<uintptr_t>(&modules_test_function); }

TEST(Modules, FindTheExecutableByAnAddressInIt) {
  const Modules modules = Modules::snapshot();
  const Module* module = modules.find(own_function());
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(std::filesystem::path(module->path), std::filesystem::read_symlink("/proc/self/exe"));
  EXPECT_GE(own_function(), module->text_begin);
  EXPECT_LT(own_function(), module->text_end);
}

TEST(Modules, FindLibrariesByTheStartOfTheirName) {
  const Modules modules = Modules::snapshot();
  const Module* libc = modules.by_name("libc.so");
  ASSERT_NE(libc, nullptr);
  EXPECT_EQ(modules.by_name("no-such-module"), nullptr);
  EXPECT_EQ(modules.find(libc->text_begin), libc);
  EXPECT_LE(libc->begin, libc->text_begin);
  EXPECT_LE(libc->text_end, libc->end);
}

TEST(Modules, ARefreshKnowsWhatWasLoadedSince) {
  Modules modules = Modules::snapshot();
  ASSERT_EQ(modules.by_name("libresolv.so"), nullptr);
  void* const library = dlopen("libresolv.so.2", RTLD_NOW);
  ASSERT_NE(library, nullptr);
  modules.refresh();
  EXPECT_NE(modules.by_name("libresolv.so"), nullptr);
  dlclose(library);
  modules.refresh();
  EXPECT_EQ(modules.by_name("libresolv.so"), nullptr);
}

TEST(Modules, DescribeAnAddressByModuleAndOffset) {
  const Modules modules = Modules::snapshot();
  const Module* module = modules.find(own_function());
  ASSERT_NE(module, nullptr);
  char expected[64];
  std::snprintf(expected, sizeof expected, "%s+0x%lx", module->name.c_str(),
                own_function() - module->base);
  EXPECT_EQ(modules.describe(own_function()), expected);
  EXPECT_EQ(modules.describe(0x10), "0x10");
  EXPECT_EQ(modules.find(0x10), nullptr);
}

TEST(FunctionTable, FindsTheFunctionThatContainsAnAddress) {
  const Modules modules = Modules::snapshot();
  const Module* module = modules.find(own_function());
  ASSERT_NE(module, nullptr);
  const FunctionTable functions(module->path);
  ASSERT_FALSE(functions.empty());
  const uint64_t address = own_function() - module->base;
  const FunctionTable::Function* function = functions.find(address);
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(function->name, "modules_test_function");
  EXPECT_EQ(function->begin, address);
  EXPECT_EQ(functions.by_name("modules_test_function"), function);
  EXPECT_EQ(functions.by_name("no such function"), nullptr);
  EXPECT_EQ(functions.find(function->end - 1), function);
  EXPECT_NE(functions.find(function->end), function);
  EXPECT_NE(functions.find(function->begin - 1), function);
}

TEST(FunctionTable, ReadsTheDynamicSymbolsOfAStrippedLibrary) {
  const Modules modules = Modules::snapshot();
  const Module* libc = modules.by_name("libc.so");
  ASSERT_NE(libc, nullptr);
  const FunctionTable functions(libc->path);
  ASSERT_FALSE(functions.empty());
  const FunctionTable::Function* function =
      functions.find(reinterpret_cast<uintptr_t>(&getppid) - libc->base);
  ASSERT_NE(function, nullptr);
  EXPECT_NE(function->name.find("getppid"), std::string::npos) << function->name;
}

TEST(FunctionTable, IsEmptyForWhatIsNoElfFile) {
  EXPECT_TRUE(FunctionTable("/no/such/file").empty());
  const TestFolder folder;
  const auto path = folder / "no-elf";
  std::ofstream(path) << "no ELF";
  const FunctionTable functions(path);
  EXPECT_TRUE(functions.empty());
  EXPECT_EQ(functions.find(0), nullptr);
}

}  // namespace
}  // namespace framestorm
