// Which jmethodIDs are versions of one method. A class that is redefined has another Method for each of
// its methods, and the old one gets an ID of its own once somebody asks for it, of which no event tells.
// Both are the same frame.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>

#include "harness/jvm/jvm.h"

namespace framestorm::stepping {

// On the stepped thread, in signal context; allocates. Believes no ID: what a walker gives may be
// anything.
class MethodVersions {
 public:
  explicit MethodVersions(Jvm& jvm);

  // A method of which JVMTI gives a frame. It is asked for one that it has not told of: a version that was
  // replaced. `env`: the calling thread's, outside signal context.
  void know_frame(JNIEnv* env, jmethodID id);
  // A method that is known to be one.
  void know(jmethodID id);
  // The one that was known first of the same class and loader, name and signature; `id` itself where
  // there is none.
  // One that JVMTI has not told of is told to the JVM's table of methods.
  jmethodID first_of(jmethodID id);
  // Of the method at a Method*, which may be anything, where no ID is known to be its own; null where none
  // is known of its class, name and signature.
  jmethodID first_of_method(const void* method) const;

 private:
  // HotSpot's symbols, of which each text has one: class, name, signature. And what it has of the
  // class's loader, which a version that was replaced shares.
  using Name = std::array<uintptr_t, 4>;
  bool read_name(uintptr_t method, Name* name) const;
  bool read_name(jmethodID id, Name* name) const;

  Jvm& jvm_;
  const size_t const_method_, constants_, name_, signature_, pool_size_, holder_, class_name_,
      loader_;
  std::map<Name, jmethodID> by_name_;
  std::unordered_map<jmethodID, jmethodID> firsts_;
};

}  // namespace framestorm::stepping
