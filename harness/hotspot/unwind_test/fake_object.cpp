#include "harness/hotspot/unwind_test/fake_object.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "runtime/safefetch.hpp"

namespace framestorm::unwind_test {
namespace {

constexpr size_t kPage = 4096;

LoadedObject fake;  // empty range: none

int find_loaded(void* pc, dl_find_object* result) {
  using Find = int (*)(void*, dl_find_object*);
  static const auto find = reinterpret_cast<Find>(dlsym(RTLD_NEXT, "_dl_find_object"));
  return find(pc, result);
}

// The first look-up resolves the symbol, which must not happen in a signal handler.
[[maybe_unused]] const int kResolved = [] {
  dl_find_object ignored{};
  return find_loaded(nullptr, &ignored);
}();

AddressRange map_fenced(size_t size) {
  const size_t whole = (size + kPage - 1) / kPage * kPage + 2 * kPage;
  void* place = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) std::abort();
  const auto low = reinterpret_cast<uintptr_t>(place);
  return {low, low + whole};
}

void make_writable(uintptr_t address, size_t size) {
  if (mprotect(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE) != 0) std::abort();
}

}  // namespace

LoadedObject loaded_object(uintptr_t pc) {
  dl_find_object found{};
  if (find_loaded(reinterpret_cast<void*>(pc), &found) != 0) std::abort();
  return {{reinterpret_cast<uintptr_t>(found.dlfo_map_start),
           reinterpret_cast<uintptr_t>(found.dlfo_map_end)},
          reinterpret_cast<uintptr_t>(found.dlfo_eh_frame)};
}

FakeObject::FakeObject(size_t size) : mapped_(map_fenced(size)) {
  range_ = {mapped_.low + kPage, mapped_.low + kPage + size};
  make_writable(range_.low, mapped_.high - mapped_.low - 2 * kPage);
  fake = {range_, range_.low};
}

FakeObject::FakeObject(const LoadedObject& original)
    : mapped_(map_fenced(original.range.high - original.range.low)) {
  const size_t size = original.range.high - original.range.low;
  range_ = {mapped_.low + kPage, mapped_.low + kPage + size};
  for (size_t offset = 0; offset < size; offset += kPage) {
    auto* const page = reinterpret_cast<intptr_t*>(original.range.low + offset);
    if (SafeFetchN(page, 1) == 1 && SafeFetchN(page, 2) == 2) continue;
    make_writable(range_.low + offset, kPage);
    std::memcpy(reinterpret_cast<void*>(range_.low + offset), page, kPage);
  }
  fake = {range_, range_.low + (original.table_header - original.range.low)};
}

FakeObject::~FakeObject() {
  fake = {};
  munmap(reinterpret_cast<void*>(mapped_.low), mapped_.high - mapped_.low);
}

void FakeObject::set_table_header(uintptr_t address) { fake.table_header = address; }
void FakeObject::set_link_map(link_map* map) { fake.map = map; }

}  // namespace framestorm::unwind_test

// In front of glibc's, for this program and all it has loaded.
extern "C" int _dl_find_object(void* pc, dl_find_object* result) noexcept {
  using namespace framestorm::unwind_test;
  const auto at = reinterpret_cast<uintptr_t>(pc);
  if (at < fake.range.low || at >= fake.range.high) return find_loaded(pc, result);
  *result = {};
  result->dlfo_map_start = reinterpret_cast<void*>(fake.range.low);
  result->dlfo_map_end = reinterpret_cast<void*>(fake.range.high);
  result->dlfo_eh_frame = reinterpret_cast<void*>(fake.table_header);
  result->dlfo_link_map = fake.map;
  return 0;
}
