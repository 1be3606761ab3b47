// Another value at a place, in memory of a halted thread or of the VM, say, and the one that was there back at the end:
// also where an assertion leaves a test before.
#pragma once

#include <utility>

namespace framestorm {

template <typename T>
class Poke {
 public:
  Poke(T* place, T value) : place_(place), was_(std::exchange(*place, value)) {}
  Poke(void* place, T value) : Poke(static_cast<T*>(place), value) {}
  ~Poke() { *place_ = was_; }
  Poke(const Poke&) = delete;
  Poke& operator=(const Poke&) = delete;

 private:
  T* const place_;
  const T was_;
};

}  // namespace framestorm
