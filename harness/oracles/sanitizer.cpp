// No sanitizer report is made during a walk.
#include <algorithm>

#include "harness/base/hex.h"
#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

std::string describe(const SanitizerReport& report, uint32_t count) {
  std::string text = report.check;
  if (report.access_size != 0) {
    text += std::string(report.is_write ? ", write" : ", read") + " of " +
            std::to_string(report.access_size) + " bytes at " + hex(report.address);
  }
  if (report.place[0] != '\0') {
    text += (report.access_size != 0 ? ", " : " in ") + std::string(report.place);
  }
  if (count > 1) text += " (" + std::to_string(count) + " reports in all)";
  return text;
}

class SanitizerOracle final : public Oracle {
 public:
  static bool suspects(const WalkView& view) { return view.record.incidents->reports.count > 0; }

  void check(const WalkView& view, Further&, Violations* out) override {
    const SanitizerReports& reports = view.record.incidents->reports;
    for (uint32_t i = 0; i < std::min<uint32_t>(reports.count, kMaxSanitizerReports); ++i) {
      const SanitizerReport& report = reports.reports[i];
      FaultRecord where = place_with({report.stack, report.stack_size});
      where.pc = report.pc;
      where.address = report.address;
      where.is_write = report.is_write;
      out->add(FindingKind::sanitizer, report.check, describe(report, reports.count), where);
    }
  }
};

const RegisteredOracle<SanitizerOracle> kRegistered({.name = "sanitizer",
                                                     .order = 20,
                                                     .needs = {Need::incidents},
                                                     .judges_further = true,
                                                     .suspects = &SanitizerOracle::suspects});

}  // namespace
}  // namespace framestorm
