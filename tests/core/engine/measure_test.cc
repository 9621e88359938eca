// SPDX-License-Identifier: Apache-2.0
// Timing where the host cannot compute what the kernels should: against the backend's own reference, or marked as unchecked.
#include "tests/core/engine/tuner_test.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

absl::Status Fails(EvalContext&) { return Fail(errors::kInternal, "the evaluator cannot"); }
absl::Status HasNoMemory(EvalContext&) { return Fail(errors::kOutOfMemory, "the evaluator has no memory"); }

class Unchecked : public testing::Test {
 protected:
  // The settings' plan of Relu, whose evaluator is `eval`.
  std::shared_ptr<const Plan> PlanOf(Host& host, EvalFn eval) {
    onnx::Model model;
    model.graph = *ParseGraphText("input x : float32[?]\ny = Relu(x)\noutput y\n");
    EXPECT_TRUE(BindNode(model.graph, 0).ok());
    def_ = *model.graph.node(0).def;
    def_.eval = eval;
    model.graph.node(0).def = &def_;
    auto session = Session::Create(host.runtime, std::move(model), {.device = "tuner0"});
    EXPECT_TRUE(session.ok()) << FormatError(session.status());
    const InputType type = {.dtype = DType::kF32, .shape = {64}};
    auto plan = (*session)->PlanFor({&type, 1});
    EXPECT_TRUE(plan.ok()) << FormatError(plan.status());
    sessions_.push_back(*session);
    return *plan;
  }
  std::vector<Assignment> Caching() const {
    return {Set("select.strategy", "profile"), Set("MGE_FASTRUN_CACHE_TYPE", "file"),
            Set("MGE_FASTRUN_CACHE_DIR", folder_.path())};
  }

  Folder folder_;
  OpDef def_;
  std::vector<std::shared_ptr<Session>> sessions_;  // they keep plans of a definition that dies with the test
};

TEST_F(Unchecked, ResultsAreHeldAgainstTheKernelThatIsMarkedAsTheReference) {
  for (EvalFn eval : {EvalFn(Fails), EvalFn(HasNoMemory), EvalFn(nullptr)}) {
    Host host({Set("select.strategy", "profile")});
    host.record() = {};
    host.record().with_plain = true;
    auto plan = PlanOf(host, eval);
    host.record() = {};
    EXPECT_EQ(plan->units[0].kernel, "loose");
    const std::string why = PlanText(*plan, true);
    EXPECT_THAT(why, AllOf(HasSubstr("not wrong: wrong results: output 0"), HasSubstr("against kernel 'plain'")));
    EXPECT_THAT(why, Not(HasSubstr("not checked")));
    EXPECT_THAT(host.warnings, ElementsAre(HasSubstr("kernel 'wrong'")));
  }
}

TEST_F(Unchecked, WithoutOneThePlanSaysThatNothingWasChecked) {
  Host host(Caching());
  host.record() = {};
  auto plan = PlanOf(host, Fails);
  EXPECT_EQ(plan->units[0].kernel, "wrong");  // nothing is there that could tell
  const char kWhy[] = "its results were not checked: the host cannot compute them (the evaluator cannot), and no kernel is "
                      "marked as the reference";
  EXPECT_THAT(PlanText(*plan, true), AllOf(HasSubstr(kWhy), HasSubstr("not steady: estimated 10.00 us, measured")));
  EXPECT_THAT(plan->units[0].reason, HasSubstr(kWhy));
  EXPECT_THAT(host.warnings, ElementsAre(AllOf(HasSubstr("Relu float32[64]"), HasSubstr("by their times alone"),
                                               HasSubstr(kWhy))));
  // And so it does in a process that reads the times.
  Host second(Caching());
  second.record() = {};
  EXPECT_THAT(PlanOf(second, Fails)->units[0].reason, HasSubstr(kWhy));
  EXPECT_EQ(second.record().launches, 0);
}

TEST_F(Unchecked, AReferenceThatFailsIsNamed) {
  Host host({Set("select.strategy", "profile")});
  host.record() = {};
  host.record().with_plain = host.record().plain_fails = true;
  auto plan = PlanOf(host, nullptr);
  host.record() = {};
  EXPECT_THAT(plan->units[0].reason, AllOf(HasSubstr("(there is no evaluator of Relu)"), HasSubstr("kernel 'plain' failed: "),
                                           HasSubstr("told to fail")));
}

TEST_F(Unchecked, WhatMemoryAloneForbadeIsNotRemembered) {
  Host host(Caching());
  host.record() = {};
  EXPECT_THAT(PlanOf(host, HasNoMemory)->units[0].reason, HasSubstr("were not checked"));
  EXPECT_THAT(folder_.Files(".tuning"), IsEmpty());
}

}  // namespace
}  // namespace mge
