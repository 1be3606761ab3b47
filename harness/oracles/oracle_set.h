// The oracles that one driver has look at its walks, and those that it cannot have.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/oracles/oracle.h"

namespace framestorm {

// Of these what there is in this process: without the interposer no unsafe call is seen.
Needs had_here(Needs needs);

class OracleSet {
 public:
  // Of all registered oracles those that need no more than what the driver offers.
  explicit OracleSet(Needs offered);
  Needs offered() const { return offered_; }

  // Async-signal-safe, on any thread: whether an oracle that `offered` is enough for might find
  // something wrong in the view's incidents, and the further walks that oracles will ask for.
  bool suspect(const WalkView& view, Needs offered) const;
  void ask(const WalkView& view, FurtherWalks* out) const;

  // Which of a view's counts a look at it is for: a driver may look twice.
  enum class Counts : uint8_t { both, looks, finds };
  // Has the oracles look that `offered` is enough for.
  void judge(const WalkView& view, WalkMaker& maker, Needs offered, Violations* out,
             Counts counts = Counts::both);
  // The same for a driver that makes no further walks.
  void judge(const WalkView& view, Needs offered, Violations* out);
  // Judges a further walk by itself. What is in `known` or in *out already is not reported again.
  void judge_further(const WalkView& view, Needs offered, const std::vector<Finding>& known,
                     std::vector<Finding>* out);

  struct Figures {
    std::string_view oracle;
    bool spares_clean = false;  // OracleDeclaration::suspects says what need not be looked at
    uint64_t looks = 0;         // on how many walks it looked
    uint64_t finds = 0;         // and in how many of them it found something
  };
  std::vector<Figures> figures() const;

  // Oracles that have not judged what they should, and why, in words.
  struct NotJudged {
    std::string_view oracle;
    std::string why;
  };
  std::vector<NotJudged> not_judged() const;

 private:
  struct Member {
    const OracleDeclaration* declaration;
    std::unique_ptr<Oracle> oracle;
    uint64_t looks = 0, finds = 0, undeclared = 0, not_offered = 0, without_trace = 0;
  };
  const Needs offered_;
  std::vector<Member> members_;
  std::vector<NotJudged> left_out_;
};

}  // namespace framestorm
