#include "harness/hotspot/methods_test/class_file.h"

namespace framestorm::methods_test {
namespace {

// Big-endian, as all of a class file.
void put(std::vector<uint8_t>& bytes, uint64_t value, int count) {
  for (int i = count - 1; i >= 0; --i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

void put(std::vector<uint8_t>& bytes, const std::vector<uint8_t>& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

// An attribute's length and content.
void put_sized(std::vector<uint8_t>& bytes, const std::vector<uint8_t>& content) {
  put(bytes, content.size(), 4);
  put(bytes, content);
}

}  // namespace

ClassFile::ClassFile(const std::string& name)
    : this_class_(class_constant(name)), super_class_(class_constant("java/lang/Object")) {}

uint16_t ClassFile::add_constant(const std::vector<uint8_t>& bytes, int slots) {
  put(pool_, bytes);
  const uint16_t index = next_;
  next_ = static_cast<uint16_t>(next_ + slots);
  return index;
}

uint16_t ClassFile::utf8(const std::string& text) {
  for (const auto& [known, index] : texts_) {
    if (known == text) return index;
  }
  std::vector<uint8_t> bytes = {1};
  put(bytes, text.size(), 2);
  bytes.insert(bytes.end(), text.begin(), text.end());
  const uint16_t index = add_constant(bytes, 1);
  texts_.emplace_back(text, index);
  return index;
}

uint16_t ClassFile::class_constant(const std::string& name) {
  std::vector<uint8_t> bytes = {7};
  put(bytes, utf8(name), 2);
  return add_constant(bytes, 1);
}

uint16_t ClassFile::long_constant(int64_t value) {
  std::vector<uint8_t> bytes = {5};
  put(bytes, static_cast<uint64_t>(value), 8);
  return add_constant(bytes, 2);
}

uint16_t ClassFile::method_reference(const std::string& klass, const std::string& name,
                                     const std::string& descriptor) {
  std::vector<uint8_t> name_and_type = {12};
  put(name_and_type, utf8(name), 2);
  put(name_and_type, utf8(descriptor), 2);
  std::vector<uint8_t> reference = {10};
  put(reference, class_constant(klass), 2);
  put(reference, add_constant(name_and_type, 1), 2);
  return add_constant(reference, 1);
}

std::vector<uint8_t> ClassFile::method_bytes(const MethodSpec& method) {
  constexpr int kMaxStack = 4;
  constexpr int kMaxLocals = 4;
  std::vector<uint8_t> bytes;
  put(bytes, method.flags, 2);
  put(bytes, utf8(method.name), 2);
  put(bytes, utf8(method.descriptor), 2);
  put(bytes, (method.code.empty() ? 0U : 1U) + (method.generic_signature.empty() ? 0U : 1U), 2);
  if (!method.code.empty()) {
    std::vector<uint8_t> code;
    put(code, kMaxStack, 2);
    put(code, kMaxLocals, 2);
    put_sized(code, method.code);
    put(code, 0, 2);  // handlers
    put(code, method.lines.empty() ? 0 : 1, 2);
    if (!method.lines.empty()) {
      std::vector<uint8_t> lines;
      put(lines, method.lines.size(), 2);
      for (const LineNumber& line : method.lines) {
        put(lines, line.bci, 2);
        put(lines, line.line, 2);
      }
      put(code, utf8("LineNumberTable"), 2);
      put_sized(code, lines);
    }
    put(bytes, utf8("Code"), 2);
    put_sized(bytes, code);
  }
  if (!method.generic_signature.empty()) {
    put(bytes, utf8("Signature"), 2);
    put(bytes, 2, 4);
    put(bytes, utf8(method.generic_signature), 2);
  }
  return bytes;
}

std::vector<uint8_t> ClassFile::bytes() {
  constexpr uint16_t kPublicSuper = 0x21;
  std::vector<uint8_t> body;
  put(body, kPublicSuper, 2);
  put(body, this_class_, 2);
  put(body, super_class_, 2);
  put(body, 0, 4);  // interfaces, fields
  put(body, methods_.size(), 2);
  for (const MethodSpec& method : methods_) put(body, method_bytes(method));
  put(body, generic_signature_.empty() ? 0 : 1, 2);
  if (!generic_signature_.empty()) {
    put(body, utf8("Signature"), 2);
    put(body, 2, 4);
    put(body, utf8(generic_signature_), 2);
  }

  std::vector<uint8_t> file;
  put(file, 0xcafebabe, 4);
  put(file, 49, 4);
  put(file, next_, 2);
  put(file, pool_);
  put(file, body);
  return file;
}

}  // namespace framestorm::methods_test
