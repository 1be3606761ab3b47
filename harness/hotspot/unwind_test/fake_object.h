// A loaded object that is none: _dl_find_object of this program answers for it too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/hotspot/unwind_test/safe_fetch.h"

struct link_map;

namespace framestorm::unwind_test {

struct LoadedObject {
  AddressRange range;
  uintptr_t table_header = 0;
  link_map* map = nullptr;
};
// The object that `pc` is in. Aborts when there is none.
LoadedObject loaded_object(uintptr_t pc);

// Memory with an unreadable page on both sides. While it lives, pcs in it belong to an object with
// its unwind tables at `table_header`. One at a time.
class FakeObject {
 public:
  explicit FakeObject(size_t size);
  // The same bytes as those of a loaded object; what it has no memory for is unreadable here too.
  explicit FakeObject(const LoadedObject& original);
  ~FakeObject();
  FakeObject(const FakeObject&) = delete;
  FakeObject& operator=(const FakeObject&) = delete;

  AddressRange range() const { return range_; }
  unsigned char* bytes() const { return reinterpret_cast<unsigned char*>(range_.low); }
  void set_table_header(uintptr_t address);
  // Borrowed; none at first.
  void set_link_map(link_map* map);

 private:
  AddressRange mapped_;
  AddressRange range_;
};

}  // namespace framestorm::unwind_test
