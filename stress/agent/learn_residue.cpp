#include "stress/agent/learn_residue.h"

#include <sys/mman.h>

#include <cstring>
#include <thread>
#include <vector>

#include "harness/guard/guard.h"
#include "harness/walkers/walker.h"

namespace framestorm::stress {
namespace {

struct Trial {
  Walker* walker;
  WalkTarget target;
  void* context;
};

void walk(void* arg) {
  auto* trial = static_cast<Trial*>(arg);
  std::byte frame[64];
  trial->walker->walk(trial->target, frame, 1, trial->context);
}

}  // namespace

WalkResidue learn_residue(Jvm& jvm) {
  WalkResidue residue;
  // A page that cannot be read in place of a context. The thread has no Java frames, so that the
  // walk has nothing else to begin with.
  void* const unreadable = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (unreadable == MAP_FAILED) return residue;
  const std::unique_ptr<Walker> walker = make_asgct(jvm);
  std::thread([&] {
    JavaVMAttachArgs arguments = {JNI_VERSION_10, const_cast<char*>("framestorm-trial"), nullptr};
    JNIEnv* env = nullptr;
    if (jvm.vm()->AttachCurrentThreadAsDaemon(reinterpret_cast<void**>(&env), &arguments) !=
        JNI_OK) {
      return;
    }
    auto* const thread = static_cast<std::byte*>(jvm.identity().current());
    const size_t size = jvm.layout().java_thread_size;
    const std::vector<std::byte> before(thread, thread + size);
    Trial trial = {walker.get(), {}, unreadable};
    trial.target.java_thread = thread;
    trial.target.jni_env = env;
    trial.target.same_thread = true;
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
  munmap(unreadable, 4096);
  return residue;
}

}  // namespace framestorm::stress
