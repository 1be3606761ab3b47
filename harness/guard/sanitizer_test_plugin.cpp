// Stands for a libjvm that was built with ASan; compiled in each way (CMakeLists.txt), which is the
// end of its functions' names.
#include <cstddef>
#include <cstring>

#define CONCATENATE(a, b) a##b
#define EXPAND(a, b) CONCATENATE(a, b)
#define FUNCTION(name) [[gnu::noinline, gnu::visibility("default")]] EXPAND(name, PLUGIN)

extern "C" {

FUNCTION(int read_byte_)(volatile char* at) { return *at; }

FUNCTION(void write_byte_)(volatile char* at) { *at = 1; }

FUNCTION(int read_word_)(volatile int* at) { return *at; }

// ASan's memcpy checks for itself.
FUNCTION(void copy_)(void* to, const void* from, size_t size) { std::memcpy(to, from, size); }
}
