// Class files made by hand, so that a test knows each byte of what it asks for, and can have a
// class in two versions or loaders.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace framestorm::methods_test {

struct LineNumber {
  uint16_t bci = 0;
  uint16_t line = 0;
  bool operator==(const LineNumber&) const = default;
};

struct MethodSpec {
  std::string name;
  std::string descriptor;
  uint16_t flags = 0;
  std::string generic_signature;  // empty: none
  std::vector<uint8_t> code;      // empty: none (native, abstract)
  std::vector<LineNumber> lines;
};

// Constant pool indices are known while code is written: those of the constants come first.
class ClassFile {
 public:
  // Public, with java/lang/Object above it.
  explicit ClassFile(const std::string& name);

  // Constant pool indices.
  uint16_t long_constant(int64_t value);
  uint16_t method_reference(const std::string& klass, const std::string& name,
                            const std::string& descriptor);

  void set_generic_signature(const std::string& signature) { generic_signature_ = signature; }
  void add(const MethodSpec& method) { methods_.push_back(method); }

  // Of version 49, which needs no stack maps.
  std::vector<uint8_t> bytes();

 private:
  uint16_t utf8(const std::string& text);
  uint16_t class_constant(const std::string& name);
  uint16_t add_constant(const std::vector<uint8_t>& bytes, int slots);
  std::vector<uint8_t> method_bytes(const MethodSpec& method);

  std::vector<uint8_t> pool_;
  uint16_t next_ = 1;
  std::vector<std::pair<std::string, uint16_t>> texts_;
  uint16_t this_class_ = 0;
  uint16_t super_class_ = 0;
  std::string generic_signature_;
  std::vector<MethodSpec> methods_;
};

}  // namespace framestorm::methods_test
