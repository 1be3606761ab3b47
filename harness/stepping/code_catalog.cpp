#include "harness/stepping/code_catalog.h"

#include <algorithm>

#include "harness/stepping/arch.h"
#include "harness/stepping/told.h"

namespace framestorm::stepping {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Role role_of(const CodeEntry& entry) {
  switch (entry.kind) {
    case CodeKind::nmethod:
      return entry.tier == 0 ? Role::native_wrapper : Role::compiled;
    case CodeKind::codelet:
      return Role::interpreter;
    default:
      break;
  }
  const std::string_view name = entry.name;
  if (contains(name, "I2C/C2I") || is_method_handle_intrinsic(name)) return Role::adapter;
  if (framestorm::is_deoptimisation(name)) return Role::deoptimization;
  if (contains(name, "cont_returnBarrier") || contains(name, "return barrier")) {
    return Role::return_barrier;
  }
  return Role::stub;
}

struct Named {
  std::string_view part;
  Section section;
};
// The first one that fits a stub's name.
constexpr Named kStubs[] = {
    {"vtable stub", "vtable stub"},
    {"itable stub", "itable stub"},
    {"I2C/C2I", "adapter"},
    {"_invokeBasic", "method handle adapter"},
    {"_linkTo", "method handle adapter"},
    {"call_stub", "call stub"},
    {"upcall", "upcall stub"},
    {"nep_invoker", "downcall stub"},
    {"downcall", "downcall stub"},
    {"cont_", "continuation stub"},
    {"Continuation", "continuation stub"},
    {"barrier", "GC barrier"},
    {"g1_", "GC barrier"},
    {"shenandoah", "GC barrier"},
    {"z_", "GC barrier"},
    {"arraycopy", "array stub"},
    {"arrayof", "array stub"},
    {"fill", "array stub"},
    {"sha", "crypto stub"},
    {"aes", "crypto stub"},
    {"md5", "crypto stub"},
    {"Blob", "runtime blob"},
    {"StubRoutines", "StubRoutines"},
};

Section section_of_stub(std::string_view name) {
  const auto* const found =
      std::ranges::find_if(kStubs, [&](const Named& named) { return contains(name, named.part); });
  return found == std::end(kStubs) ? Section("runtime stub") : found->section;
}

}  // namespace

bool leaves_frame(const Blob& codelet) {
  return codelet.entry.name == "exception handling" || codelet.entry.name.ends_with("return");
}

CodeCatalog::CodeCatalog(Jvm& jvm) : jvm_(jvm) {
  if (jvm.code_map().knows_code_cache()) return;
  throw SetupError("this HotSpot does not say where its code cache is");
}

const Blob* CodeCatalog::at(uintptr_t pc, bool runs) {
  if (!in_code_cache(pc)) return nullptr;
  CodeMap& map = jvm_.code_map();
  if (map.has_pending()) map.try_absorb();
  if (epoch_ != map.epoch()) {
    epoch_ = map.epoch();
    last_ = nullptr;
  }
  if (jvm_.methods().has_pending()) jvm_.methods().try_absorb();
  if (last_ != nullptr && pc >= last_->entry.begin && pc < last_->entry.end) return last_;
  const CodeEntry* entry = map.find(pc);
  if (entry == nullptr && runs) entry = wait_for(pc);
  last_ = entry == nullptr ? nullptr : add(*entry);
  return last_;
}

// JVMTI's thread tells of code some time after it is installed, and needs no poll of this one for that.
const CodeEntry* CodeCatalog::wait_for(uintptr_t pc) {
  constexpr uintptr_t kPage = 4096;
  if (!waited_for_.insert({pc / kPage, epoch_}).second) return nullptr;
  CodeMap& map = jvm_.code_map();
  const CodeEntry* entry = nullptr;
  wait_until_told([&] {
    if (map.has_pending() && map.try_absorb()) entry = map.find(pc);
    return entry != nullptr;
  });
  return entry;
}

const Blob* CodeCatalog::add(const CodeEntry& entry) {
  const Blob*& known = by_begin_[entry.begin];
  // An address may get other code once that of an nmethod is freed.
  if (known != nullptr && known->entry.debug == entry.debug && known->entry.end == entry.end &&
      known->entry.name == entry.name) {
    return known;
  }
  Blob& blob = blobs_.emplace_back();
  blob.role = role_of(entry);
  blob.stub = section_of_stub(entry.name);
  blob.entry = entry;
  // Native wrappers have none; where HotSpot says that theirs is, is their code.
  if (blob.role == Role::compiled && entry.deopt_handler != 0) {
    blob.deopt_handler = deopt_handler_begin(entry.deopt_handler);
  }
  const auto* code = reinterpret_cast<const std::byte*>(entry.begin);
  blob.code.assign(code, code + (entry.end - entry.begin));
  return known = &blob;
}

Section CodeCatalog::section_of(const Blob* blob, uintptr_t pc, bool frame_stands) {
  if (blob == nullptr) return "native code";
  const CodeEntry& entry = blob->entry;
  switch (blob->role) {
    case Role::interpreter:
      return "interpreter codelet";
    case Role::native_wrapper:
      return "native wrapper";
    case Role::compiled: {
      const bool c2 = entry.tier == 4;
      if (entry.stubs != 0 && pc >= entry.stubs) return c2 ? "C2 slow path" : "C1 slow path";
      if (pc < entry.frame_complete) return c2 ? "C2 prologue" : "C1 prologue";
      if (!frame_stands) return c2 ? "C2 epilogue" : "C1 epilogue";
      return c2 ? "C2 body" : "C1 body";
    }
    default:
      return blob->stub;
  }
}

}  // namespace framestorm::stepping
