// Stands for a libjvm that was built with ASan; one function per defect.
#include <cstddef>

extern "C" {

// Compiled to go on after a report.
[[gnu::noinline, gnu::visibility("default")]] int plugin_read_past(volatile char* block,
                                                                   size_t size) {
  return block[size];
}
[[gnu::noinline, gnu::visibility("default")]] void plugin_write_past(volatile char* block,
                                                                     size_t size) {
  block[size] = 1;
}
}
