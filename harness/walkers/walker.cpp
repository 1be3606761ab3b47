#include "harness/walkers/walker.h"

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

}  // namespace

Frame read_frame(const FrameLayout& layout, const std::byte* frames, size_t index) {
  const std::byte* at = frames + index * layout.stride;
  Frame frame;
  if (layout.type >= 0) frame.type = read_type(layout, at);
  if (layout.is_union() && frame.type == FrameType::cpp) {
    frame.bci = kNoBci;
    frame.pc = read_at<uintptr_t>(at, static_cast<size_t>(layout.pc));
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
  if (layout.tier >= 0) frame.tier = read_at<int8_t>(at, static_cast<size_t>(layout.tier));
  return frame;
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
      find([&jvm](const char* name) { return jvm.symbol(name); }) {}

void* Exports::require(const char* name) const {
  void* const address = find(name);
  if (address == nullptr) {
    throw SetupError(library + " does not export " + name +
                     ": `framestorm jdk build` makes a JDK that has it (--jdk instrumented)");
  }
  return address;
}

std::unique_ptr<Walker> make_walker(WalkerId id, const Jvm& jvm) {
  const Exports exports(jvm);
  switch (id) {
    case WalkerId::asgct:
      return make_asgct(jvm);
    case WalkerId::gst:
      return make_gst(jvm);
    case WalkerId::asgst:
      return make_asgst(exports);
    case WalkerId::asgst_env:
      return make_asgst_env(exports);
    case WalkerId::asgst_thread:
      return make_asgst_thread(exports);
    case WalkerId::asgct2:
      return make_asgct2(exports);
    case WalkerId::asgst_iterator:
      return make_asgst_iterator(exports);
    case WalkerId::asgst_frame:
      return make_asgst_frame(exports);
    case WalkerId::plugin:
    case WalkerId::count:
      break;
  }
  throw SetupError("walker " + std::string(name_of(id)) + " is in no JVM");
}

}  // namespace framestorm
