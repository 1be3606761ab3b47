// The operators new and delete by the interposed malloc and free, as libstdc++ has them: ASan's runtime has
// its own, which go past these. A thread that is halted in them holds locks that the loop waits for
// (interposer::in_allocator). Weak: where libstdc++ is linked into the program, its own may be there already.
#include <cstdlib>
#include <new>

namespace {

using Alignment = std::align_val_t;

void* allocate(size_t size) noexcept { return std::malloc(size == 0 ? 1 : size); }

void* allocate(size_t size, Alignment alignment) noexcept {
  const auto unit = static_cast<size_t>(alignment);
  return std::aligned_alloc(unit, size == 0 ? unit : (size + unit - 1) / unit * unit);
}

void* or_throw(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

[[gnu::weak]] void* operator new(size_t size) { return or_throw(allocate(size)); }
[[gnu::weak]] void* operator new[](size_t size) { return or_throw(allocate(size)); }
[[gnu::weak]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return allocate(size);
}
[[gnu::weak]] void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return allocate(size);
}
[[gnu::weak]] void* operator new(size_t size, Alignment to) { return or_throw(allocate(size, to)); }
[[gnu::weak]] void* operator new[](size_t size, Alignment to) {
  return or_throw(allocate(size, to));
}
[[gnu::weak]] void* operator new(size_t size, Alignment to, const std::nothrow_t&) noexcept {
  return allocate(size, to);
}
[[gnu::weak]] void* operator new[](size_t size, Alignment to, const std::nothrow_t&) noexcept {
  return allocate(size, to);
}

[[gnu::weak]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::weak]] void operator delete[](void* block) noexcept { std::free(block); }
[[gnu::weak]] void operator delete(void* block, size_t) noexcept { std::free(block); }
[[gnu::weak]] void operator delete[](void* block, size_t) noexcept { std::free(block); }
[[gnu::weak]] void operator delete(void* block, const std::nothrow_t&) noexcept {
  std::free(block);
}
[[gnu::weak]] void operator delete[](void* block, const std::nothrow_t&) noexcept {
  std::free(block);
}
[[gnu::weak]] void operator delete(void* block, Alignment) noexcept { std::free(block); }
[[gnu::weak]] void operator delete[](void* block, Alignment) noexcept { std::free(block); }
[[gnu::weak]] void operator delete(void* block, size_t, Alignment) noexcept { std::free(block); }
[[gnu::weak]] void operator delete[](void* block, size_t, Alignment) noexcept { std::free(block); }
[[gnu::weak]] void operator delete(void* block, Alignment, const std::nothrow_t&) noexcept {
  std::free(block);
}
[[gnu::weak]] void operator delete[](void* block, Alignment, const std::nothrow_t&) noexcept {
  std::free(block);
}
