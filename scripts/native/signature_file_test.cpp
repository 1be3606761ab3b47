#include "scripts/native/signature_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "harness/base/error.h"
#include "harness/base/test_folder.h"

namespace framestorm {
namespace {

// Ranges are offsets in libc, which is in every process; nothing there is called.
class SignatureFileTest : public testing::Test {
 protected:
  void SetUp() override {
    const Modules modules = Modules::snapshot();
    const Module* libc = modules.by_name("libc.so");
    ASSERT_NE(libc, nullptr);
    base_ = libc->base;
  }

  SignatureFile signature(const std::string& frames) {
    std::ofstream(path_) << R"({"kind": "fault", "clause": "", "frames": )" << frames << "}";
    return SignatureFile(path_);
  }

  Finding fault(std::initializer_list<uintptr_t> offsets) const {
    Finding finding;
    for (const uintptr_t offset : offsets) {
      finding.fault.stack[finding.fault.stack_size++] = base_ + offset;
    }
    return finding;
  }

  uintptr_t base_ = 0;
  const TestFolder folder_;
  std::filesystem::path path_ = folder_ / "signature.json";
};

TEST_F(SignatureFileTest, FramesAreLookedForInOrder) {
  const SignatureFile wanted =
      signature(R"([["libc.so.6", [256, 512]], ["libc.so.6", [1024, 2048]]])");
  EXPECT_TRUE(wanted.matches(fault({300, 700, 1500})));
  EXPECT_FALSE(wanted.matches(fault({1500, 300})));
  EXPECT_FALSE(wanted.matches(fault({300})));
  EXPECT_FALSE(wanted.matches(fault({})));
}

TEST_F(SignatureFileTest, OneRangeOfAFrameIsEnough) {
  const SignatureFile wanted = signature(R"([["libc.so.6", [256, 512], [4096, 4112]]])");
  EXPECT_TRUE(wanted.matches(fault({300})));
  EXPECT_TRUE(wanted.matches(fault({4100})));
  EXPECT_FALSE(wanted.matches(fault({600})));
}

TEST_F(SignatureFileTest, ReturnAddressesBelongToTheCallBeforeThem) {
  const SignatureFile wanted = signature(R"([["libc.so.6", [256, 512]]])");
  EXPECT_FALSE(wanted.matches(fault({512})));      // a pc: the next function's
  EXPECT_TRUE(wanted.matches(fault({900, 512})));  // a return address: the call ends the range
}

TEST_F(SignatureFileTest, KindAndClauseCount) {
  const SignatureFile wanted = signature(R"([["libc.so.6", [256, 512]]])");
  Finding other = fault({300});
  other.kind = FindingKind::hang;
  EXPECT_FALSE(wanted.matches(other));
  other = fault({300});
  other.clause = "bci";
  EXPECT_FALSE(wanted.matches(other));
}

TEST_F(SignatureFileTest, WhatAContractsWalkerDidCountsWhereItIsSaid) {
  const auto contract = [&](const std::string& more) {
    std::ofstream(path_) << R"({"kind": "contract", "clause": "bci", "frames": [])" << more << "}";
    return SignatureFile(path_);
  };
  Finding finding;
  finding.kind = FindingKind::contract;
  finding.clause = "bci";
  finding.detail = "frame 7 has bci 3";
  finding.input.walker = WalkerId::asgst;
  EXPECT_TRUE(contract("").matches(finding));
  EXPECT_TRUE(
      contract(R"(, "detail_class": "frame * has bci *", "walker": "asgst")").matches(finding));
  EXPECT_FALSE(contract(R"(, "detail_class": "frame * has none")").matches(finding));
  EXPECT_FALSE(contract(R"(, "walker": "asgct")").matches(finding));
  finding.detail = "compiled code: frame 7 has bci 3";
  EXPECT_TRUE(contract(R"(, "detail_class": "frame * has bci *")").matches(finding))
      << "one of before, which does not say where";
  EXPECT_FALSE(contract(R"(, "detail_class": "stub: frame * has bci *")").matches(finding));
}

TEST_F(SignatureFileTest, DamagedFilesAreSetupErrors) {
  EXPECT_THROW(signature("[[\"libc.so.6\", 1, 2]]"), SetupError);
  EXPECT_THROW(signature("[[\"libc.so.6\"]]"), SetupError);
  EXPECT_THROW(signature("[[\"no-such-module.so\", [1, 2]]]"), SetupError);
  EXPECT_THROW(signature("[\"torn"), SetupError);
  EXPECT_THROW(SignatureFile("/no/such/file"), SetupError);
}

}  // namespace
}  // namespace framestorm
