#include "harness/walkers/complaint.h"

#include "harness/base/fixed_text.h"

namespace framestorm {

void complain(WalkFacts* facts, const ComplaintPlace& place, std::string_view what, int64_t got,
              int64_t wanted) {
  const size_t index = facts->complaint_count++;
  if (index >= facts->complaints.size()) return;
  Complaint& complaint = facts->complaints[index];
  complaint.clause = place.clause;
  complaint.scope = place.scope;
  FixedText line(complaint.detail);
  if (!place.call.empty()) {
    line.text("call ").number(static_cast<int64_t>(place.number)).text(" (");
    line.text(place.call).text("): ");
  }
  line.text(what).text(" ").number(got).text(", not ").number(wanted);
}

}  // namespace framestorm
