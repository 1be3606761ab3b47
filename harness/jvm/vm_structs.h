// HotSpot's private structures by name, from the tables it exports for the serviceability agent
// (src/hotspot/share/runtime/vmStructs.cpp): gHotSpotVMStructs, gHotSpotVMTypes,
// gHotSpotVMIntConstants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace framestorm {

class VmStructs {
 public:
  // Reads the tables of a loaded libjvm (dlopen handle). Throws SetupError when it has none.
  explicit VmStructs(void* libjvm);

  // Offset in bytes of an instance field, none when this HotSpot does not have it.
  std::optional<size_t> offset(const std::string& type, const std::string& field) const;
  // Same, for fields the harness cannot do without. Throws SetupError naming the field.
  size_t required_offset(const std::string& type, const std::string& field) const;
  // Address of a static field; null when unknown.
  void* static_address(const std::string& type, const std::string& field) const;
  // sizeof(type) in bytes; 0 when unknown.
  size_t size_of(const std::string& type) const;
  std::optional<int32_t> int_constant(const std::string& name) const;
  // A flag that is true or false (runtime/flags/jvmFlag.hpp), in a JVM that has read its options; false when
  // unknown.
  bool is_on(std::string_view flag) const;

 private:
  struct Field {
    bool is_static = false;
    size_t offset = 0;
    void* address = nullptr;
  };
  const Field* find(const std::string& type, const std::string& field) const;

  std::unordered_map<std::string, Field> fields_;  // "Type::field"
  std::unordered_map<std::string, size_t> sizes_;
  std::unordered_map<std::string, int32_t> int_constants_;
};

// Reads a T at base + offset; for structures known to be mapped.
template <typename T>
T read_at(const void* base, size_t offset = 0) {
  T value;
  __builtin_memcpy(static_cast<void*>(&value), static_cast<const std::byte*>(base) + offset,
                   sizeof(T));
  return value;
}

}  // namespace framestorm
