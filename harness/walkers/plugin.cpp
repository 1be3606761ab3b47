// Walkers of other projects through framestorm_walker.h.
#include <dlfcn.h>

#include "harness/walkers/framestorm_walker.h"
#include "harness/walkers/walker.h"

namespace framestorm {
namespace {

constexpr FrameLayout kLayout = {sizeof(framestorm_frame), offsetof(framestorm_frame, method),
                                 offsetof(framestorm_frame, bci), offsetof(framestorm_frame, pc),
                                 offsetof(framestorm_frame, sp)};

class Plugin final : public Walker {
 public:
  explicit Plugin(decltype(&framestorm_walk) walk) : walk_(walk) {}

  WalkerId id() const override { return WalkerId::plugin; }
  std::string_view description() const override {
    return "a walker in a shared object (harness/walkers/framestorm_walker.h)";
  }
  const FrameLayout& layout() const override { return kLayout; }
  bool documented_error(int32_t) const override { return true; }
  std::string_view error_name(int32_t code) const override {
    return code < 0 ? "plugin_error" : "no_frame";
  }
  bool error_agrees(int32_t, uint32_t) const override { return true; }
  int32_t lowest_bci() const override { return -1; }

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
