// Text in an array, without stdio, which a walk may not call; what does not fit is cut.
// Async-signal-safe.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <string_view>

namespace framestorm {

class FixedText {
 public:
  explicit FixedText(std::span<char> room) : rest_(room), begin_(room.data()) { room[0] = '\0'; }

  FixedText& text(std::string_view text) {
    const size_t length = std::min(text.size(), rest_.size() - 1);
    std::memcpy(rest_.data(), text.data(), length);
    rest_ = rest_.subspan(length);
    rest_[0] = '\0';
    return *this;
  }
  FixedText& number(int64_t number) {
    char digits[24];
    return text({digits, std::to_chars(std::begin(digits), std::end(digits), number).ptr});
  }

  std::string_view view() const { return {begin_, rest_.data()}; }
  // Where the next text goes, with room for the null that ends it.
  std::span<char> rest() const { return rest_; }

 private:
  std::span<char> rest_;
  const char* begin_;
};

// Of a path: "frame.cpp".
inline std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace framestorm
