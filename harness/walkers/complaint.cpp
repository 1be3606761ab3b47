#include "harness/walkers/complaint.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace framestorm {

Line& Line::text(std::string_view text) {
  const size_t size = std::min(text.size(), out_.size() - 1 - size_);
  std::copy_n(text.begin(), size, out_.begin() + static_cast<std::ptrdiff_t>(size_));
  size_ += size;
  out_[size_] = '\0';
  return *this;
}

Line& Line::number(int64_t number) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return text({digits.data(), end});
}

void complain(WalkFacts* facts, const ComplaintPlace& place, std::string_view what, int64_t got,
              int64_t wanted) {
  const size_t index = facts->complaint_count++;
  if (index >= facts->complaints.size()) return;
  Complaint& complaint = facts->complaints[index];
  complaint.clause = place.clause;
  complaint.scope = place.scope;
  Line line(complaint.detail);
  if (!place.call.empty()) {
    line.text("call ").number(static_cast<int64_t>(place.number)).text(" (");
    line.text(place.call).text("): ");
  }
  line.text(what).text(" ").number(got).text(", not ").number(wanted);
}

}  // namespace framestorm
