#include "harness/oracles/oracle_set.h"

#include <algorithm>

#include "harness/guard/unsafe_calls.h"

namespace framestorm {
namespace {

bool is_known(const Finding& finding, const std::vector<Finding>& others) {
  return std::ranges::any_of(others, [&](const Finding& other) {
    return finding.kind == other.kind && finding.clause == other.clause &&
           finding.fault.pc == other.fault.pc;
  });
}

// Of a walk that was itself asked for.
class NoFurtherWalks final : public WalkMaker {
 public:
  const Walker* walker(WalkerId) const override { return nullptr; }
  bool offers(const FurtherWalk&) const override { return false; }
  const WalkRecord* make(const FurtherWalk&) override { return nullptr; }
};

std::string what_is_missing(Needs needs, Needs offered) {
  std::string text;
  for (unsigned i = 0; i < static_cast<unsigned>(Need::count); ++i) {
    const auto need = static_cast<Need>(i);
    if (!needs.has(need) || offered.has(need)) continue;
    text += (text.empty() ? "it needs " : " and ") + std::string(name_of(need));
  }
  return text;
}

}  // namespace

Needs had_here(Needs needs) {
  return interposer::is_active() ? needs : needs.without({Need::unsafe_calls});
}

OracleSet::OracleSet(Needs offered) : offered_(offered) {
  for (const OracleRegistration* registration : OracleRegistration::all()) {
    const OracleDeclaration& declaration = registration->declaration;
    if (declaration.needs.within(offered)) {
      members_.push_back({&declaration, registration->make()});
    } else {
      left_out_.push_back({declaration.name, what_is_missing(declaration.needs, offered)});
    }
  }
}

bool OracleSet::suspect(const WalkView& view, Needs offered) const {
  return std::ranges::any_of(members_, [&](const Member& member) {
    const OracleDeclaration& declaration = *member.declaration;
    return declaration.suspects != nullptr && declaration.needs.within(offered) &&
           declaration.suspects(view);
  });
}

void OracleSet::ask(const WalkView& view, FurtherWalks* out) const {
  for (const Member& member : members_) {
    if (member.declaration->ask != nullptr) member.declaration->ask(view, out);
  }
}

void OracleSet::judge(const WalkView& view, WalkMaker& maker, Needs offered, Violations* out,
                      Counts counts) {
  for (Member& member : members_) {
    if (!member.declaration->needs.within(offered)) {
      if (member.declaration->needs.has(Need::trace) && !offered.has(Need::trace)) {
        ++member.without_trace;
      }
      continue;
    }
    const size_t before = out->findings().size();
    Further further(*member.declaration, view, maker);
    member.oracle->check(view, further, out);
    member.undeclared += further.undeclared();
    member.not_offered += further.not_offered();
    if (counts != Counts::finds) ++member.looks;
    if (out->findings().size() == before) continue;
    out->attribute(before, member.declaration->name);
    if (counts != Counts::looks) ++member.finds;
  }
}

void OracleSet::judge(const WalkView& view, Needs offered, Violations* out) {
  NoFurtherWalks none;
  judge(view, none, offered, out);
}

void OracleSet::judge_further(const WalkView& view, Needs offered,
                              const std::vector<Finding>& known, std::vector<Finding>* out) {
  NoFurtherWalks none;
  for (Member& member : members_) {
    if (!member.declaration->judges_further || !member.declaration->needs.within(offered)) continue;
    Violations wrong;
    Further further(*member.declaration, view, none);
    member.oracle->check(view, further, &wrong);
    wrong.attribute(0, member.declaration->name);
    if (!wrong.empty()) ++member.finds;
    for (Finding& finding : wrong.take()) {
      if (is_known(finding, known) || is_known(finding, *out)) continue;
      finding.input = *view.subject.input;
      out->push_back(std::move(finding));
    }
  }
}

std::vector<OracleSet::Figures> OracleSet::figures() const {
  std::vector<Figures> figures;
  figures.reserve(members_.size());
  for (const Member& member : members_) {
    figures.push_back({member.declaration->name, member.declaration->suspects != nullptr,
                       member.looks, member.finds});
  }
  return figures;
}

std::vector<OracleSet::NotJudged> OracleSet::not_judged() const {
  std::vector<NotJudged> all = left_out_;
  for (const Member& member : members_) {
    const auto times = [](uint64_t count) { return std::to_string(count) + " times"; };
    if (member.without_trace != 0) {
      all.push_back({member.declaration->name,
                     times(member.without_trace) + " the walker gave no trace to judge"});
    }
    if (member.undeclared != 0) {
      all.push_back({member.declaration->name, "it asked " + times(member.undeclared) +
                                                   " for a walk that it does not declare"});
    }
    if (member.not_offered != 0) {
      all.push_back({member.declaration->name, "it asked " + times(member.not_offered) +
                                                   " for a walk that cannot be made here"});
    }
  }
  return all;
}

}  // namespace framestorm
