// Names of all Java methods whose jmethodID exists, filled by JVMTI ClassPrepare.
//
// Two halves, because the fuzz loop must not take a lock that a halted thread may hold: the event
// callbacks append to a pending list under a mutex; the control thread absorbs it while the VM
// runs, and only it (or code it has handed the world to) reads the table.
#pragma once

#include <jni.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace framestorm {

// Of the frame in which a continuation begins.
inline constexpr std::string_view kEntersContinuation = "jdk/internal/vm/Continuation.enterSpecial";

struct MethodInfo {
  std::string name;             // "pkg/Class.method"
  int32_t last_bci = 0;         // of the bytecodes; -1 for a native or abstract method
  std::string descriptor = {};  // "(I)V"; empty when it is not known
  // Where it calls methods, ascending: of framestorm's own classes only.
  std::vector<int32_t> invokes = {};
  const void* first = nullptr;  // what its ID pointed at when id_of() saw it first
};

class MethodTable {
 public:
  // Any thread, VM running.
  void add(jmethodID method, MethodInfo info);
  // Control thread. With the world halted it can only try: a halted thread may hold the lock (false
  // then).
  void absorb();
  bool try_absorb();

  // Whether there is something to absorb. Any context.
  bool has_pending() const { return has_pending_.load(std::memory_order_acquire); }

  // After absorb(), by the thread that owns the halted world. Null for an unknown id.
  const MethodInfo* find(jmethodID method) const;
  // Of a method that a frame can be of.
  bool is_native(jmethodID method) const {
    const MethodInfo* const info = find(method);
    return info != nullptr && info->last_bci < 0;
  }
  // The ID of the method at a Method*. Null when no class has it. As find().
  jmethodID id_of(const void* method);
  // The offset in a Method of what no other has that comes to stand where it stood.
  void set_mark(size_t offset) { mark_ = offset; }
  // Methods have been replaced, and what was a Method* may be another one's.
  void retake_ids() { ids_stale_ = true; }
  // Whether its class was redefined since id_of() was first asked for anything. As find().
  bool is_replaced(jmethodID id) const;
  // From JDK 26 on an ID is a number that HotSpot looks up (oops/jmethodIDTable.cpp). Before, it is where
  // the address of its Method stands, and the memory of an ID stays. `look_up`: HotSpot's, for any number;
  // null where it cannot be had, and then no method is found.
  using LookUp = const void* (*)(jmethodID);
  void set_look_up(LookUp look_up);
  LookUp look_up() const { return look_up_; }
  bool ids_are_numbers() const { return look_up_ != nullptr; }
  bool finds_methods() const;
  // The Method* of an ID; null once its class is unloaded. Any context of a thread that is attached.
  const void* method_at(jmethodID id) const {
    return look_up_ != nullptr ? look_up_(id) : *reinterpret_cast<const void* const*>(id);
  }
  // Whether it is no more than the newest ID that is known, where IDs are numbers: they are counted up.
  // As find().
  bool was_counted(jmethodID id) const {
    return id != nullptr && reinterpret_cast<uintptr_t>(id) <= newest_;
  }
  // Another version of a known method, which no event tells of. As find().
  void add_version(jmethodID version, jmethodID of) { methods_[version] = methods_[of]; }

 private:
  struct Known {
    jmethodID id = nullptr;
    const void* mark = nullptr;  // when it was asked for last; null before
  };

  void take_pending();
  void take_ids();
  const void* mark_of(const void* method) const;

  std::mutex mutex_;
  std::vector<std::pair<jmethodID, MethodInfo>> pending_;
  std::atomic<bool> has_pending_{false};
  std::unordered_map<jmethodID, MethodInfo> methods_;
  std::unordered_map<const void*, Known> ids_;  // by Method*
  size_t ids_of_ = 0;                           // methods
  size_t mark_ = 0;
  uint64_t ids_taken_ns_ = 0;
  bool ids_stale_ = false;
  LookUp look_up_ = nullptr;
  uintptr_t newest_ = 0;  // ID, as a number
};

}  // namespace framestorm
