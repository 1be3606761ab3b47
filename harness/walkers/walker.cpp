#include "harness/walkers/walker.h"

#include <sys/uio.h>
#include <unistd.h>

#include <utility>

#include "harness/input/thread_state.h"
#include "harness/victim/scenario.h"

namespace framestorm {
namespace {

constexpr uint16_t kNoShortBci = 65535;

int32_t read_bci(const FrameLayout& layout, const std::byte* at) {
  const auto offset = static_cast<size_t>(layout.bci);
  if (layout.bci_size == sizeof(int32_t)) return read_at<int32_t>(at, offset);
  const auto bci = read_at<uint16_t>(at, offset);
  return bci == kNoShortBci ? kNoBci : int32_t{bci};
}

FrameType read_type(const FrameLayout& layout, const std::byte* at) {
  const auto number = read_at<uint8_t>(at, static_cast<size_t>(layout.type));
  if (number >= layout.types.size() || layout.types[number] == FrameType::none) {
    return FrameType::invalid;
  }
  return layout.types[number];
}

using MakeAdapter = std::unique_ptr<Walker> (*)(const Exports&);

template <size_t... Ids>
constexpr std::array<MakeAdapter, sizeof...(Ids)> adapters(std::index_sequence<Ids...>) {
  return {[](const Exports& exports) {
    return make_adapter(AdapterOf<static_cast<WalkerId>(Ids)>(), exports);
  }...};
}

}  // namespace

bool Walker::documented_error(int32_t code) const {
  return traits_->find_error(code) != nullptr || !traits_->other_errors.empty();
}

std::string_view Walker::error_name(int32_t code) const {
  if (const WalkerError* const error = traits_->find_error(code)) return error->name;
  return traits_->other_errors.empty() ? "undocumented" : traits_->other_errors;
}

bool Walker::error_agrees(int32_t code, uint32_t thread_state) const {
  const WalkerError* const error = traits_->find_error(code);
  switch (error == nullptr ? ErrorState::any : error->state) {
    case ErrorState::in_java:
      return is_in_java(thread_state);
    case ErrorState::outside_java:
      return is_outside_java(thread_state);
    case ErrorState::illegal:
      return !is_legal_thread_state(thread_state);
    case ErrorState::any:
      break;
  }
  return true;
}

Frame read_frame(const FrameLayout& layout, const std::byte* frames, size_t index) {
  const std::byte* at = frames + index * layout.stride;
  Frame frame;
  if (layout.type >= 0) frame.type = read_type(layout, at);
  if (layout.is_union() && layout.type >= 0 && !layout.names(frame.type)) {
    frame.bci = kNoBci;
    frame.pc = read_at<uintptr_t>(at, static_cast<size_t>(layout.pc));
    frame.unnamed = frame.type == FrameType::native;
    return frame;
  }
  if (layout.method >= 0) {
    frame.method =
        reinterpret_cast<jmethodID>(read_at<uintptr_t>(at, static_cast<size_t>(layout.method)));
  }
  if (layout.bci >= 0) frame.bci = read_bci(layout, at);
  if (layout.pc >= 0 && !layout.is_union()) {
    frame.pc = read_at<uintptr_t>(at, static_cast<size_t>(layout.pc));
  }
  if (layout.sp >= 0) frame.sp = read_at<uintptr_t>(at, static_cast<size_t>(layout.sp));
  if (layout.bcp >= 0) frame.bcp = read_at<uintptr_t>(at, static_cast<size_t>(layout.bcp));
  if (layout.name >= 0) {
    frame.name = read_at<const char*>(at, static_cast<size_t>(layout.name));
  }
  if (layout.tier >= 0) frame.tier = read_at<int8_t>(at, static_cast<size_t>(layout.tier));
  return frame;
}

Frame read_frame(const FrameLayout& layout, const std::byte* frames, size_t index,
                 const CodeMap& code) {
  Frame frame = read_frame(layout, frames, index);
  if (!frame.unnamed) return frame;
  frame.method = code.native_at(frame.pc);
  frame.unnamed = frame.method == nullptr;
  return frame;
}

std::string method_name(const Frame& frame, const MethodTable& methods) {
  if (frame.unnamed) return std::string(kUnnamedNative);
  const MethodInfo* const info = methods.find(frame.method);
  return info == nullptr ? "?" : info->name;
}

std::string text_at(const char* text) {
  constexpr size_t kMost = 120;
  std::string result;
  // By the kernel, a byte at a time: the next one may be on a page that is not there.
  for (char byte = 0; result.size() < kMost; result.push_back(byte)) {
    const iovec to = {&byte, 1};
    const iovec from = {const_cast<char*>(text + result.size()), 1};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1 || byte == 0) break;
  }
  return result;
}

bool same_frames(const FrameLayout& layout, const std::byte* a, const std::byte* b, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (read_frame(layout, a, i) != read_frame(layout, b, i)) return false;
  }
  return true;
}

bool lost_methods(const FrameLayout& layout, const std::byte* earlier, const std::byte* later,
                  size_t count) {
  bool lost = false;
  for (size_t i = 0; i < count; ++i) {
    Frame before = read_frame(layout, earlier, i);
    const Frame after = read_frame(layout, later, i);
    if (before.method != nullptr && after.method == nullptr) {
      lost = true;
      before.method = nullptr;
    }
    if (before != after) return false;
  }
  return lost;
}

Exports::Exports(const Jvm& jvm)
    : library(jvm.library_path().string()),
      find([&jvm](const char* name) { return jvm.symbol(name); }),
      jvmti(jvm.jvmti()),
      jni_env(static_cast<size_t>(jvm.layout().jni_env)) {
  if (jvm.code_map().knows_code_cache()) code_cache = jvm.code_map().code_cache();
}

Export Exports::require(WalkerId id) const {
  return require(std::string(traits_of(id).symbol).c_str(), traits_of(id).origin);
}

Export Exports::require(const char* name, WalkerOrigin origin) const {
  void* const address = find(name);
  if (address != nullptr) return {address};
  throw SetupError(library + " does not export " + name +
                   (origin == WalkerOrigin::added
                        ? ": `framestorm jdk build` makes a JDK that has it (--jdk instrumented)"
                        : ": choose another JDK with --jdk"));
}

std::unique_ptr<Walker> make_walker(WalkerId id, const Exports& exports) {
  static constexpr auto kAdapters = adapters(std::make_index_sequence<kWalkers.size()>());
  return kAdapters[static_cast<size_t>(id)](exports);
}

std::unique_ptr<Walker> make_walker(WalkerId id, const Jvm& jvm) {
  return make_walker(id, Exports(jvm));
}

}  // namespace framestorm
