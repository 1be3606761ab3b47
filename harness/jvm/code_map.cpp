#include "harness/jvm/code_map.h"

#include <jvmti.h>
#include <jvmticmlr.h>

#include <algorithm>

#include "harness/input/canonical.h"

namespace framestorm {
namespace {

// A generated stub's name of before JDK 26, which calls it "Stub Generator <name>_stub" (stubInfo.cpp).
std::string_view plain_stub_name(std::string_view name) {
  constexpr std::string_view kBefore = "Stub Generator ";
  constexpr std::string_view kBehind = "_stub";
  if (!name.starts_with(kBefore) || !name.ends_with(kBehind)) return name;
  return name.substr(kBefore.size(), name.size() - kBefore.size() - kBehind.size());
}

}  // namespace

bool is_method_handle_intrinsic(std::string_view name) {
  constexpr std::string_view kClass = "java/lang/invoke/MethodHandle.";
  if (name.starts_with(kClass)) {
    name.remove_prefix(kClass.size());
  } else if (name.starts_with('_')) {
    name.remove_prefix(1);
  } else {
    return false;
  }
  return name.starts_with("invokeBasic") || name.starts_with("linkTo") ||
         name.starts_with("invokeGeneric") || name.starts_with("compiledLambdaForm");
}

// SharedRuntime::deopt_blob() and uncommon_trap_blob() (sharedRuntime.cpp).
bool is_deoptimisation(std::string_view name) {
  return name.find("DeoptimizationBlob") != name.npos || name.find("UncommonTrapBlob") != name.npos;
}

DebugInfo::DebugInfo(jmethodID method, const void* compile_info) : method_(method) {
  const auto* record = static_cast<const jvmtiCompiledMethodLoadRecordHeader*>(compile_info);
  while (record != nullptr && record->kind != JVMTI_CMLR_INLINE_INFO) record = record->next;
  if (record == nullptr) return;
  const auto* inlined = reinterpret_cast<const jvmtiCompiledMethodLoadInlineRecord*>(record);
  for (jint i = 0; i < inlined->numpcs; ++i) {
    const PCStackInfo& place = inlined->pcinfo[i];
    places_.push_back({reinterpret_cast<uintptr_t>(place.pc), frames_.size(),
                       static_cast<size_t>(place.numstackframes)});
    for (jint frame = 0; frame < place.numstackframes; ++frame) {
      frames_.push_back({place.methods[frame], place.bcis[frame]});
    }
  }
  std::ranges::sort(places_, {}, &Place::pc);
}

std::span<const DebugInfo::JavaFrame> DebugInfo::at(uintptr_t pc) const {
  const auto place = std::ranges::lower_bound(places_, pc, {}, &Place::pc);
  if (place == places_.end() || place->pc != pc) return {};
  return frames_of(*place);
}

std::span<const DebugInfo::JavaFrame> DebugInfo::after(uintptr_t pc) const {
  const auto place = std::ranges::upper_bound(places_, pc, {}, &Place::pc);
  return place == places_.end() ? std::span<const JavaFrame>() : frames_of(*place);
}

bool DebugInfo::has_inlined(std::span<const JavaFrame> frames) const {
  return std::ranges::any_of(places_, [&](const Place& place) {
    const auto there = frames_of(place);
    if (there.size() < frames.size()) return false;
    const auto outer = there.last(frames.size());
    return outer.front().method == frames.front().method &&
           std::ranges::equal(outer.subspan(1), frames.subspan(1));
  });
}

CodeMap::CodeMap(const VmStructs& vm) : vm_(vm) {
  const Modules modules = Modules::snapshot();
  if (const Module* library = modules.by_name("libjvm.so")) library_ = *library;
}

const std::byte* CodeMap::find_blob(uintptr_t address) const {
  const auto* heaps_static = vm_.static_address("CodeCache", "_heaps");
  if (heaps_static == nullptr) return nullptr;
  const auto* heaps = read_at<const std::byte*>(heaps_static);
  const auto length = read_at<int32_t>(heaps, vm_.required_offset("GrowableArrayBase", "_len"));
  const auto* data =
      read_at<const std::byte*>(heaps, vm_.required_offset("GrowableArray<int>", "_data"));
  const size_t memory = vm_.required_offset("CodeHeap", "_memory");
  const size_t segmap = vm_.required_offset("CodeHeap", "_segmap");
  const size_t log2_segment = vm_.required_offset("CodeHeap", "_log2_segment_size");
  const size_t low_offset = vm_.required_offset("VirtualSpace", "_low");
  const size_t high_offset = vm_.required_offset("VirtualSpace", "_high");
  for (int32_t i = 0; i < length; ++i) {
    const auto* heap = read_at<const std::byte*>(data, static_cast<size_t>(i) * sizeof(void*));
    const auto low = read_at<uintptr_t>(heap, memory + low_offset);
    const auto high = read_at<uintptr_t>(heap, memory + high_offset);
    if (address < low || address >= high) continue;
    const auto shift = static_cast<unsigned>(read_at<int32_t>(heap, log2_segment));
    const auto* map = read_at<const uint8_t*>(heap, segmap + low_offset);
    size_t segment = (address - low) >> shift;
    if (map[segment] == 0xff) return nullptr;
    while (map[segment] != 0) segment -= map[segment];
    const uintptr_t block = low + (segment << shift);
    return reinterpret_cast<const std::byte*>(block + vm_.size_of("HeapBlock"));
  }
  return nullptr;
}

bool CodeMap::is_beside_code(uintptr_t address) const {
  if (!in_code_cache(address) || find(address) != nullptr) return false;
  // JDK 17 keeps addresses.
  const auto code = vm_.offset("CodeBlob", "_code_offset");
  const auto data = vm_.offset("CodeBlob", "_data_offset");
  if (!code || !data) return false;
  const std::byte* const blob = find_blob(address);
  if (blob == nullptr) return false;
  const auto distance = static_cast<ptrdiff_t>(address - reinterpret_cast<uintptr_t>(blob));
  return distance < read_at<int32_t>(blob, *code) || distance >= read_at<int32_t>(blob, *data);
}

void CodeMap::fill_nmethod(CodeEntry* entry) const {
  const std::byte* blob = find_blob(entry->begin);
  if (blob == nullptr) return;
  // An int in JDK 17, an int16_t in 25: the low half of either.
  if (const auto complete = vm_.offset("CodeBlob", "_frame_complete_offset")) {
    const auto distance = read_at<int16_t>(blob, *complete);
    if (distance > 0) entry->frame_complete = entry->begin + static_cast<uintptr_t>(distance);
  }
  if (const auto words = vm_.offset("CodeBlob", "_frame_size")) {
    entry->frame_bytes = static_cast<size_t>(read_at<int32_t>(blob, *words)) * sizeof(uintptr_t);
  }
  if (const auto stubs = vm_.offset("nmethod", "_stub_offset")) {
    entry->stubs =
        reinterpret_cast<uintptr_t>(blob) + static_cast<size_t>(read_at<int32_t>(blob, *stubs));
  }
  if (const auto level = vm_.offset("nmethod", "_comp_level")) {
    entry->tier = static_cast<uint8_t>(read_at<int8_t>(blob, *level));
  }
  // JDK 17 keeps addresses, JDK 23 and later keep offsets.
  if (const auto verified = vm_.offset("nmethod", "_verified_entry_point")) {
    entry->verified_entry = read_at<uintptr_t>(blob, *verified);
  } else if (const auto relative = vm_.offset("nmethod", "_verified_entry_offset")) {
    entry->verified_entry = entry->begin + read_at<uint16_t>(blob, *relative);
  }
  if (const auto deopt = vm_.offset("CompiledMethod", "_deopt_handler_begin")) {
    entry->deopt_handler = read_at<uintptr_t>(blob, *deopt);
    return;
  }
  for (const char* const field : {"_deopt_handler_offset", "_deopt_handler_entry_offset"}) {
    if (const auto relative = vm_.offset("nmethod", field)) {
      entry->deopt_handler = reinterpret_cast<uintptr_t>(blob) +
                             static_cast<size_t>(read_at<int32_t>(blob, *relative));
    }
  }
}

void CodeMap::add_nmethod(const void* code, size_t size, const std::string& name, jmethodID method,
                          const void* compile_info) {
  Event event;
  event.entry.begin = reinterpret_cast<uintptr_t>(code);
  event.entry.end = event.entry.begin + size;
  event.entry.kind = CodeKind::nmethod;
  event.entry.name = name;
  event.entry.debug = std::make_shared<DebugInfo>(method, compile_info);
  fill_nmethod(&event.entry);
  add(std::move(event));
}

void CodeMap::add(Event event) {
  canonicalise_name(&event.entry.name);  // it goes into artifacts
  const std::lock_guard lock(mutex_);
  pending_.push_back(std::move(event));
  pending_count_.store(pending_.size(), std::memory_order_release);
}

void CodeMap::add_stub(const void* code, size_t size, const std::string& name) {
  Event event;
  event.entry.begin = reinterpret_cast<uintptr_t>(code);
  event.entry.end = event.entry.begin + size;
  event.entry.kind = CodeKind::stub;
  event.entry.name = plain_stub_name(name);
  add(std::move(event));
}

void CodeMap::remove(const void* code) {
  Event event;
  event.removed = true;
  event.entry.begin = reinterpret_cast<uintptr_t>(code);
  add(std::move(event));
}

void CodeMap::add_codelets() {
  // Reserved for good; grows within that only. CodeHeap::_reserved is not in the tables: the heaps
  // are side by side, and what is between them is the code cache's too.
  for (const auto& [bound, field] : {std::pair(&low_, "_low_bound"), {&high_, "_high_bound"}}) {
    if (const auto* address = vm_.static_address("CodeCache", field)) {
      *bound = read_at<uintptr_t>(address);
    }
  }
  const auto* queue_static = vm_.static_address("AbstractInterpreter", "_code");
  if (queue_static == nullptr) return;
  const auto* queue = read_at<const std::byte*>(queue_static);
  const auto* buffer =
      read_at<const std::byte*>(queue, vm_.required_offset("StubQueue", "_stub_buffer"));
  const auto end = read_at<int32_t>(queue, vm_.required_offset("StubQueue", "_queue_end"));
  const size_t size_offset = vm_.required_offset("InterpreterCodelet", "_size");
  const size_t description = vm_.required_offset("InterpreterCodelet", "_description");
  // As InterpreterCodelet::code_begin (interpreter/interpreter.hpp): what follows the header,
  // aligned to CodeEntryAlignment, which no table exports; 32 is its value on x86-64.
  constexpr uintptr_t kCodeEntryAlignment = 32;
  const size_t header = vm_.size_of("InterpreterCodelet");
  for (int32_t at = 0; at < end;) {
    const std::byte* codelet = buffer + at;
    const auto size = read_at<int32_t>(codelet, size_offset);
    if (size <= 0) break;
    const auto* name = read_at<const char*>(codelet, description);
    Event event;
    const uintptr_t behind_header = reinterpret_cast<uintptr_t>(codelet) + header;
    event.entry.begin = (behind_header + kCodeEntryAlignment - 1) & ~(kCodeEntryAlignment - 1);
    event.entry.end = reinterpret_cast<uintptr_t>(codelet) + static_cast<size_t>(size);
    event.entry.kind = CodeKind::codelet;
    event.entry.name = name == nullptr ? "unnamed" : name;
    add(std::move(event));
    at += size;
  }
}

void CodeMap::absorb() {
  const std::lock_guard lock(mutex_);
  take_pending();
}

bool CodeMap::try_absorb() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  take_pending();
  return true;
}

// With the lock held.
void CodeMap::take_pending() {
  if (pending_.empty()) return;
  for (Event& event : pending_) {
    // Enclosing ranges (the interpreter as a whole) sort before what they contain.
    const auto key = std::pair(event.entry.begin, UINTPTR_MAX - event.entry.end);
    if (event.removed) {
      for (auto it = by_range_.lower_bound({event.entry.begin, 0});
           it != by_range_.end() && it->first.first == event.entry.begin;) {
        it = it->second.kind == CodeKind::nmethod ? by_range_.erase(it) : std::next(it);
      }
    } else {
      by_range_[key] = std::move(event.entry);
    }
  }
  pending_.clear();
  pending_count_.store(0, std::memory_order_release);
  ++epoch_;
}

const CodeMap::ByName& CodeMap::by_name() const {
  if (named_epoch_ != epoch_) {
    by_name_.clear();
    for (const CodeEntry& entry : entries()) by_name_[entry.name].push_back(&entry);
    named_epoch_ = epoch_;
  }
  return by_name_;
}

const FunctionTable& CodeMap::functions() const {
  if (functions_ == nullptr) {
    functions_ = std::make_unique<FunctionTable>(library_ ? library_->path : std::string());
  }
  return *functions_;
}

std::optional<CodePosition> CodeMap::describe_function(uintptr_t address) const {
  if (!library_ || address < library_->text_begin || address >= library_->text_end) {
    return std::nullopt;
  }
  const FunctionTable::Function* function = functions().find(address - library_->base);
  // Only what resolve() turns back: names of file-local functions may not be unique.
  if (function == nullptr || function->name.size() > kMaxSymbolName ||
      functions().by_name(function->name) != function) {
    return std::nullopt;
  }
  CodePosition position;
  position.ref.kind = CodeKind::function;
  position.ref.name = function->name;
  position.delta = static_cast<int32_t>(address - library_->base - function->begin);
  return position;
}

std::optional<uintptr_t> CodeMap::resolve(const CodeRef& ref) const {
  if (ref.kind == CodeKind::function) {
    if (!library_) return std::nullopt;
    const FunctionTable::Function* function = functions().by_name(ref.name);
    if (function == nullptr) return std::nullopt;
    return library_->base + (ref.anchor == CodeAnchor::end ? function->end : function->begin);
  }
  const auto it = by_name().find(ref.name);
  if (it == by_name().end()) return std::nullopt;
  for (const CodeEntry* const one : it->second) {
    const CodeEntry& entry = *one;
    if (entry.kind != ref.kind || (ref.tier != 0 && entry.tier != ref.tier)) continue;
    switch (ref.anchor) {
      case CodeAnchor::verified_entry:
        if (entry.verified_entry != 0) return entry.verified_entry;
        break;
      case CodeAnchor::deopt_handler:
        if (entry.deopt_handler != 0) return entry.deopt_handler;
        break;
      case CodeAnchor::end:
        return entry.end;
      case CodeAnchor::entry:
      case CodeAnchor::count:
        break;
    }
    return entry.begin;
  }
  return std::nullopt;
}

const CodeEntry* CodeMap::find(uintptr_t address) const {
  auto it = by_range_.upper_bound({address, UINTPTR_MAX});
  // A few steps back reach the enclosing range when the nearest entry ends before the address.
  for (int back = 0; back < 512 && it != by_range_.begin(); ++back) {
    --it;
    if (address < it->second.end) return &it->second;
  }
  return nullptr;
}

jmethodID CodeMap::native_at(uintptr_t address) const {
  const CodeEntry* const entry = find(address);
  const bool native = entry != nullptr && entry->kind == CodeKind::nmethod && entry->tier == 0;
  return native ? entry->debug->method() : nullptr;
}

std::optional<CodePosition> CodeMap::describe(uintptr_t address) const {
  const CodeEntry* entry = find(address);
  if (entry == nullptr) return describe_function(address);
  CodePosition position;
  position.ref.kind = entry->kind;
  position.ref.name = entry->name;
  position.ref.tier = entry->tier;
  position.delta = static_cast<int32_t>(address - entry->begin);
  return position;
}

}  // namespace framestorm
