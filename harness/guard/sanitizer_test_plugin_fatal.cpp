// As sanitizer_test_plugin.cpp, compiled so that ASan ends the process after a report.
#include <cstddef>

extern "C" [[gnu::noinline, gnu::visibility("default")]] int plugin_read_past_fatally(
    volatile char* block, size_t size) {
  return block[size];
}
