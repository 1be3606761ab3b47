#include "harness/stepping/method_versions.h"

#include "harness/guard/arch.h"
#include "harness/jvm/agent.h"

namespace framestorm::stepping {
namespace {

bool load(uintptr_t address, uintptr_t* value) {
  return address % sizeof(*value) == 0 && arch::safe_load(address, value);
}

// A u2, by the word that it stands in.
bool load_index(uintptr_t address, uintptr_t* value) {
  constexpr uintptr_t kIndex = 0xffff;
  const uintptr_t within = address % sizeof(*value);
  if (!load(address - within, value)) return false;
  *value = *value >> (within * 8) & kIndex;
  return true;
}

}  // namespace

MethodVersions::MethodVersions(Jvm& jvm)
    : jvm_(jvm),
      const_method_(jvm.structs().required_offset("Method", "_constMethod")),
      constants_(jvm.structs().required_offset("ConstMethod", "_constants")),
      name_(jvm.structs().required_offset("ConstMethod", "_name_index")),
      signature_(jvm.structs().required_offset("ConstMethod", "_signature_index")),
      pool_size_(jvm.structs().size_of("ConstantPool")),
      holder_(jvm.structs().required_offset("ConstantPool", "_pool_holder")),
      class_name_(jvm.structs().required_offset("Klass", "_name")),
      loader_(jvm.structs().required_offset("Klass", "_class_loader_data")) {}

bool MethodVersions::read_name(jmethodID id, Name* name) const {
  const MethodTable& methods = jvm_.methods();
  auto method = methods.ids_are_numbers() ? reinterpret_cast<uintptr_t>(methods.method_at(id)) : 0;
  return (methods.ids_are_numbers() || load(reinterpret_cast<uintptr_t>(id), &method)) &&
         read_name(method, name);
}

bool MethodVersions::read_name(uintptr_t method, Name* name) const {
  uintptr_t const_method = 0;
  uintptr_t pool = 0;
  uintptr_t holder = 0;
  if (!load(method + const_method_, &const_method) || !load(const_method + constants_, &pool) ||
      !load(pool + holder_, &holder) || !load(holder + class_name_, &name->front()) ||
      !load(holder + loader_, &name->back())) {
    return false;
  }
  for (const auto& [offset, at] : {std::pair(name_, 1), {signature_, 2}}) {
    uintptr_t index = 0;
    if (!load_index(const_method + offset, &index) ||
        !load(pool + pool_size_ + index * sizeof(uintptr_t), &(*name)[static_cast<size_t>(at)])) {
      return false;
    }
  }
  return true;
}

void MethodVersions::know_frame(JNIEnv* env, jmethodID id) {
  if (jvm_.methods().find(id) == nullptr) {
    know_method(env, id);
  } else {
    know(id);
  }
}

void MethodVersions::know(jmethodID id) {
  Name name = {};
  if (firsts_.contains(id) || !read_name(id, &name)) return;
  firsts_[id] = by_name_.emplace(name, id).first->second;
}

jmethodID MethodVersions::first_of(jmethodID id) {
  if (id == nullptr) return id;
  if (const auto known = firsts_.find(id); known != firsts_.end()) return known->second;
  Name name = {};
  if (!read_name(id, &name)) return id;
  const auto first = by_name_.find(name);
  if (first == by_name_.end()) return id;
  if (jvm_.methods().find(id) == nullptr) jvm_.methods().add_version(id, first->second);
  return firsts_[id] = first->second;
}

jmethodID MethodVersions::first_of_method(const void* method) const {
  Name name = {};
  if (!read_name(reinterpret_cast<uintptr_t>(method), &name)) return nullptr;
  const auto first = by_name_.find(name);
  return first == by_name_.end() ? nullptr : first->second;
}

}  // namespace framestorm::stepping
