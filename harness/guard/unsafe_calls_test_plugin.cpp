// A shared object as walkers are: it binds to libc's names at load time.
#include <cstdlib>
#include <cstring>

extern "C" char* plugin_duplicate(const char* text) {
  const std::size_t size = std::strlen(text) + 1;
  auto* copy = static_cast<char*>(std::malloc(size));
  return copy == nullptr ? nullptr : static_cast<char*>(std::memcpy(copy, text, size));
}
