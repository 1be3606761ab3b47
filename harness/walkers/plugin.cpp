// Walkers of other projects through framestorm_walker.h.
#include <dlfcn.h>

#include "harness/walkers/framestorm_walker.h"
#include "harness/walkers/walker.h"

namespace framestorm {
namespace {

static_assert(traits_of(WalkerId::plugin).layout ==
              FrameLayout{.stride = sizeof(framestorm_frame),
                          .method = offsetof(framestorm_frame, method),
                          .bci = offsetof(framestorm_frame, bci),
                          .pc = offsetof(framestorm_frame, pc),
                          .sp = offsetof(framestorm_frame, sp)});

class Plugin final : public Walker {
 public:
  explicit Plugin(decltype(&framestorm_walk) walk) : Walker(WalkerId::plugin), walk_(walk) {}

  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override {
    framestorm_trace trace = {0, reinterpret_cast<framestorm_frame*>(frames)};
    const framestorm_thread thread = {target.java_thread,
                                      target.jni_env,
                                      target.tid,
                                      target.same_thread ? 1 : 0,
                                      reinterpret_cast<const void*>(target.stack_base),
                                      reinterpret_cast<const void*>(target.stack_end)};
    walk_(&trace, depth, ucontext, &thread);
    return trace.num_frames;
  }

 private:
  decltype(&framestorm_walk) walk_;
};

template <typename Function>
Function required_symbol(void* library, const char* name, const std::filesystem::path& path) {
  void* address = dlsym(library, name);
  if (address == nullptr) {
    throw SetupError(path.string() + " does not export " + name +
                     ": build it against harness/walkers/framestorm_walker.h");
  }
  return reinterpret_cast<Function>(address);
}

}  // namespace

std::unique_ptr<Walker> make_adapter(AdapterOf<WalkerId::plugin>, const Exports&) {
  throw SetupError("walker plugin is in no JVM");
}

std::unique_ptr<Walker> make_plugin(const Jvm& jvm, const std::filesystem::path& shared_object) {
  // Never unloaded: findings refer to its code until the process ends.
  void* library = dlopen(shared_object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    throw SetupError("cannot load walker plugin " + shared_object.string() + ": " +
                     (reason == nullptr ? "unknown reason" : reason));
  }
  const auto abi = required_symbol<decltype(&framestorm_walker_abi)>(
      library, "framestorm_walker_abi", shared_object);
  if (const int version = abi(); version != FRAMESTORM_WALKER_ABI) {
    throw SetupError(shared_object.string() + " speaks walker ABI " + std::to_string(version) +
                     ", this framestorm speaks " + std::to_string(FRAMESTORM_WALKER_ABI));
  }
  const auto init = required_symbol<decltype(&framestorm_walker_init)>(
      library, "framestorm_walker_init", shared_object);
  if (const int result = init(jvm.vm()); result != 0) {
    throw SetupError(shared_object.string() + ": framestorm_walker_init returned " +
                     std::to_string(result));
  }
  return std::make_unique<Plugin>(
      required_symbol<decltype(&framestorm_walk)>(library, "framestorm_walk", shared_object));
}

}  // namespace framestorm
