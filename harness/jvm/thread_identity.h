// Which HotSpot thread an OS thread is, and making a walk believe that it runs on another one.
//
// HotSpot keeps the current Thread* twice: in a pthread key (Thread::current_or_null_safe, what
// AsyncGetCallTrace asks in 25; runtime/threadLocalStorage.hpp) and in the C++ thread-local
// Thread::_thr_current (Thread::current). Both are private; they are found once, on an attached
// thread, by looking for that thread's own JavaThread*.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <optional>

namespace framestorm {

class ThreadIdentity {
 public:
  // On a thread attached to the JVM whose JavaThread* is `java_thread`. Throws SetupError.
  static ThreadIdentity find(void* java_thread);

  // The calling thread's HotSpot thread; null when it has none. Async-signal-safe.
  void* current() const { return pthread_getspecific(key_); }

  // The calling thread is `thread` (a HotSpot Thread*, or null) until the object dies.
  // Async-signal-safe on threads that HotSpot knows; on others the first one allocates.
  class Scoped {
   public:
    Scoped(const ThreadIdentity& identity, void* thread);
    ~Scoped();
    Scoped(const Scoped&) = delete;
    Scoped& operator=(const Scoped&) = delete;

   private:
    const ThreadIdentity& identity_;
    void* saved_key_;
    void* saved_current_ = nullptr;
  };

  // Sets only the pthread key and returns what it was. Async-signal-safe.
  void* exchange_key(void* thread) const;

 private:
  // What __tls_get_addr takes: libjvm's TLS block is another one for each thread, at no fixed
  // distance from the thread pointer (Ulrich Drepper, ELF Handling For Thread-Local Storage).
  struct TlsIndex {
    unsigned long module = 0;
    unsigned long offset = 0;
  };

  ThreadIdentity(pthread_key_t key, std::optional<TlsIndex> current)
      : key_(key), current_(current) {}

  // Thread::_thr_current of the calling thread; null when that is not known.
  std::byte* current_slot() const;

  pthread_key_t key_;
  std::optional<TlsIndex> current_;
};

}  // namespace framestorm
