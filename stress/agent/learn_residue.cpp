#include "stress/agent/learn_residue.h"

#include <sys/mman.h>

#include <thread>
#include <vector>

#include "harness/guard/guard.h"

namespace framestorm::stress {
namespace {

using Asgct = void (*)(void* trace, jint depth, void* ucontext);

struct Trial {
  Asgct asgct;
  void* trace;
};

void walk(void* arg) {
  const auto* const trial = static_cast<const Trial*>(arg);
  trial->asgct(trial->trace, 1, nullptr);
}

}  // namespace

WalkResidue learn_residue(Jvm& jvm) {
  WalkResidue residue;
  const auto asgct = reinterpret_cast<Asgct>(jvm.symbol("AsyncGetCallTrace"));
  // An ASGCT_CallTrace that cannot be written: of a thread without Java frames the walk reads
  // nothing, but it has to say so.
  constexpr size_t kPage = 4096;
  void* const trace =
      mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (asgct == nullptr || trace == MAP_FAILED) return residue;
  std::thread([&] {
    JavaVMAttachArgs arguments = {JNI_VERSION_10, const_cast<char*>("framestorm-trial"), nullptr};
    JNIEnv* env = nullptr;
    if (jvm.vm()->AttachCurrentThreadAsDaemon(reinterpret_cast<void**>(&env), &arguments) !=
        JNI_OK) {
      return;
    }
    *static_cast<JNIEnv**>(trace) = env;  // its first field, the only one that is read
    mprotect(trace, kPage, PROT_READ);
    auto* const thread = static_cast<std::byte*>(jvm.identity().current());
    const size_t size = jvm.layout().java_thread_size;
    const std::vector<std::byte> before(thread, thread + size);
    Trial trial = {asgct, trace};
    FaultRecord fault;
    UnsafeCalls unsafe;
    const WalkEnd end = Guard::call(&walk, &trial, &fault, &unsafe);
    const std::vector<std::byte> after(thread, thread + size);
    if (end == WalkEnd::fault) {
      residue.learn(before.data(), after.data(), size);
      residue.restore(thread, {});
    }
    jvm.vm()->DetachCurrentThread();
  }).join();
  munmap(trace, kPage);
  return residue;
}

}  // namespace framestorm::stress
