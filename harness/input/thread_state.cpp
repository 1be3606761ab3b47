#include "harness/input/thread_state.h"

#include <iterator>

namespace framestorm {

const char* thread_state_name(uint32_t state) {
  constexpr const char* kNames[] = {"_thread_uninitialized", "1",
                                    "_thread_new",           "_thread_new_trans",
                                    "_thread_in_native",     "_thread_in_native_trans",
                                    "_thread_in_vm",         "_thread_in_vm_trans",
                                    "_thread_in_Java",       "_thread_in_Java_trans",
                                    "_thread_blocked",       "_thread_blocked_trans"};
  return state < std::size(kNames) ? kNames[state] : "invalid";
}

}  // namespace framestorm
