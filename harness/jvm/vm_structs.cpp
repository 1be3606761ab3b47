#include "harness/jvm/vm_structs.h"

#include <dlfcn.h>

#include "harness/base/error.h"

namespace framestorm {
namespace {

// One exported table: a pointer to the array, its stride and the offsets of the columns.
class Table {
 public:
  Table(void* libjvm, const char* array, const char* stride) : libjvm_(libjvm) {
    entry_ = read_at<const std::byte*>(symbol(array));
    stride_ = read_at<uint64_t>(symbol(stride));
  }
  size_t column(const char* name) const { return read_at<uint64_t>(symbol(name)); }
  const std::byte* entry() const { return entry_; }
  void next() { entry_ += stride_; }

 private:
  const void* symbol(const char* name) const {
    const void* address = dlsym(libjvm_, name);
    if (address == nullptr) {
      throw SetupError(std::string("this libjvm does not export ") + name +
                       ": it is not a HotSpot with VM structures; give another JDK with --jdk");
    }
    return address;
  }

  void* libjvm_;
  const std::byte* entry_ = nullptr;
  size_t stride_ = 0;
};

}  // namespace

VmStructs::VmStructs(void* libjvm) {
  Table structs(libjvm, "gHotSpotVMStructs", "gHotSpotVMStructEntryArrayStride");
  const size_t type = structs.column("gHotSpotVMStructEntryTypeNameOffset");
  const size_t field = structs.column("gHotSpotVMStructEntryFieldNameOffset");
  const size_t is_static = structs.column("gHotSpotVMStructEntryIsStaticOffset");
  const size_t offset = structs.column("gHotSpotVMStructEntryOffsetOffset");
  const size_t address = structs.column("gHotSpotVMStructEntryAddressOffset");
  for (; read_at<const char*>(structs.entry(), type) != nullptr; structs.next()) {
    const std::byte* e = structs.entry();
    fields_[std::string(read_at<const char*>(e, type)) + "::" + read_at<const char*>(e, field)] =
        Field{read_at<int32_t>(e, is_static) != 0, read_at<uint64_t>(e, offset),
              read_at<void*>(e, address)};
  }
  Table types(libjvm, "gHotSpotVMTypes", "gHotSpotVMTypeEntryArrayStride");
  const size_t type_name = types.column("gHotSpotVMTypeEntryTypeNameOffset");
  const size_t type_size = types.column("gHotSpotVMTypeEntrySizeOffset");
  for (; read_at<const char*>(types.entry(), type_name) != nullptr; types.next()) {
    sizes_[read_at<const char*>(types.entry(), type_name)] =
        read_at<uint64_t>(types.entry(), type_size);
  }
  Table ints(libjvm, "gHotSpotVMIntConstants", "gHotSpotVMIntConstantEntryArrayStride");
  const size_t int_name = ints.column("gHotSpotVMIntConstantEntryNameOffset");
  const size_t int_value = ints.column("gHotSpotVMIntConstantEntryValueOffset");
  for (; read_at<const char*>(ints.entry(), int_name) != nullptr; ints.next()) {
    int_constants_[read_at<const char*>(ints.entry(), int_name)] =
        read_at<int32_t>(ints.entry(), int_value);
  }
}

const VmStructs::Field* VmStructs::find(const std::string& type, const std::string& field) const {
  const auto it = fields_.find(type + "::" + field);
  return it == fields_.end() ? nullptr : &it->second;
}

std::optional<size_t> VmStructs::offset(const std::string& type, const std::string& field) const {
  const Field* found = find(type, field);
  if (found == nullptr || found->is_static) return std::nullopt;
  return found->offset;
}

size_t VmStructs::required_offset(const std::string& type, const std::string& field) const {
  const auto found = offset(type, field);
  if (!found) {
    throw SetupError("this HotSpot's VM structures have no " + type + "::" + field +
                     ": framestorm does not know this version yet");
  }
  return *found;
}

void* VmStructs::static_address(const std::string& type, const std::string& field) const {
  const Field* found = find(type, field);
  return found == nullptr || !found->is_static ? nullptr : found->address;
}

size_t VmStructs::size_of(const std::string& type) const {
  const auto it = sizes_.find(type);
  return it == sizes_.end() ? 0 : it->second;
}

std::optional<int32_t> VmStructs::int_constant(const std::string& name) const {
  const auto it = int_constants_.find(name);
  if (it == int_constants_.end()) return std::nullopt;
  return it->second;
}

bool VmStructs::is_on(std::string_view flag) const {
  const void* const flags = static_address("JVMFlag", "flags");
  const void* const number = static_address("JVMFlag", "numFlags");
  const auto name = offset("JVMFlag", "_name");
  const auto address = offset("JVMFlag", "_addr");
  if (flags == nullptr || number == nullptr || !name || !address) return false;
  const auto* at = read_at<const std::byte*>(flags);
  for (size_t i = 0; i < read_at<size_t>(number); ++i, at += size_of("JVMFlag")) {
    const auto* const own = read_at<const char*>(at, *name);
    if (own != nullptr && own == flag) return *read_at<const bool*>(at, *address);
  }
  return false;
}

}  // namespace framestorm
