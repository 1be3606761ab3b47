#include "harness/jvm/thread_identity.h"

#include <limits.h>
#include <link.h>

#include <cstring>
#include <string_view>

#include "harness/base/error.h"
#include "harness/jvm/vm_structs.h"

// The dynamic linker's; not async-signal-safe the first time on a thread.
extern "C" void* __tls_get_addr(void* index);

namespace framestorm {
namespace {

struct TlsBlock {
  const std::byte* begin = nullptr;
  size_t size = 0;
  unsigned long module = 0;
};

// The calling thread's TLS block of libjvm.
TlsBlock libjvm_tls() {
  TlsBlock block;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        if (std::string_view(info->dlpi_name).find("libjvm.so") == std::string_view::npos ||
            info->dlpi_tls_data == nullptr) {
          return 0;
        }
        auto* result = static_cast<TlsBlock*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          if (info->dlpi_phdr[i].p_type != PT_TLS) continue;
          result->begin = static_cast<const std::byte*>(info->dlpi_tls_data);
          result->size = info->dlpi_phdr[i].p_memsz;
          result->module = info->dlpi_tls_modid;
        }
        return 1;
      },
      &block);
  return block;
}

}  // namespace

ThreadIdentity ThreadIdentity::find(void* java_thread) {
  std::optional<pthread_key_t> key;
  for (pthread_key_t k = 0; k < PTHREAD_KEYS_MAX && !key; ++k) {
    if (pthread_getspecific(k) == java_thread) key = k;
  }
  if (!key) {
    throw SetupError(
        "HotSpot's thread-local key was not found: this JVM does not keep its current thread in a "
        "pthread key, so framestorm cannot lend a victim's identity");
  }
  std::optional<TlsIndex> current;
  const TlsBlock mine = libjvm_tls();
  for (size_t at = 0; at + sizeof(void*) <= mine.size; at += sizeof(void*)) {
    if (read_at<void*>(mine.begin, at) == java_thread) {
      current = TlsIndex{mine.module, at};
    }
  }
  return {*key, current};
}

std::byte* ThreadIdentity::current_slot() const {
  if (!current_) return nullptr;
  TlsIndex index = *current_;
  return static_cast<std::byte*>(__tls_get_addr(&index));
}

void* ThreadIdentity::exchange_key(void* thread) const {
  void* const old = pthread_getspecific(key_);
  // Cannot fail: the key's slot exists since HotSpot's own set on this thread, or is one of the
  // first 32, which glibc keeps in the thread descriptor.
  pthread_setspecific(key_, thread);
  return old;
}

ThreadIdentity::Scoped::Scoped(const ThreadIdentity& identity, void* thread)
    : identity_(identity), saved_key_(identity.exchange_key(thread)) {
  if (std::byte* const slot = identity_.current_slot()) {
    saved_current_ = read_at<void*>(slot);
    std::memcpy(slot, static_cast<const void*>(&thread), sizeof thread);
  }
}

ThreadIdentity::Scoped::~Scoped() {
  if (std::byte* const slot = identity_.current_slot()) {
    std::memcpy(slot, static_cast<const void*>(&saved_current_), sizeof saved_current_);
  }
  identity_.exchange_key(saved_key_);
}

}  // namespace framestorm
