// SPDX-License-Identifier: Apache-2.0
// Timing of kernels if the host cannot compute the expected result, or only too slowly. Results are then checked against
// the backend's own reference kernel, or reported as unchecked.
#include <chrono>

#include "tests/core/engine/tuner_test.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

absl::Status Fails(EvalContext&) { return Fail(errors::kInternal, "the evaluator cannot"); }
absl::Status HasNoMemory(EvalContext&) { return Fail(errors::kOutOfMemory, "the evaluator has no memory"); }

class Unchecked : public testing::Test {
 protected:
  // Returns the plan of a Relu whose reference evaluator is `eval`.
  std::shared_ptr<const Plan> PlanOf(Host& host, EvalFn eval) {
    const InputType type = {.dtype = DType::kF32, .shape = {64}};
    auto plan = SessionOf(host, eval)->PlanFor({&type, 1});
    EXPECT_TRUE(plan.ok()) << FormatError(plan.status());
    return *plan;
  }
  std::shared_ptr<Session> SessionOf(Host& host, EvalFn eval) {
    onnx::Model model;
    model.graph = *ParseGraphText("input x : float32[?]\ny = Relu(x)\noutput y\n");
    EXPECT_TRUE(BindNode(model.graph, 0).ok());
    def_ = *model.graph.node(0).def;
    def_.eval = eval;
    model.graph.node(0).def = &def_;
    auto session = Session::Create(host.runtime, std::move(model), {.device = "tuner0"});
    EXPECT_TRUE(session.ok()) << FormatError(session.status());
    sessions_.push_back(*session);
    return *session;
  }
  std::vector<Assignment> Caching() const {
    return {Set("select.strategy", "profile"), Set("MGE_FASTRUN_CACHE_TYPE", "file"),
            Set("MGE_FASTRUN_CACHE_DIR", folder_.path())};
  }

  Folder folder_;
  OpDef def_;
  std::vector<std::shared_ptr<Session>> sessions_;  // sessions whose plans refer to def_
};

TEST_F(Unchecked, ResultsAreComparedWithTheKernelMarkedAsTheReference) {
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

TEST_F(Unchecked, WithoutAReferenceKernelThePlanSaysThatResultsWereNotChecked) {
  Host host(Caching());
  host.record() = {};
  auto plan = PlanOf(host, Fails);
  EXPECT_EQ(plan->units[0].kernel, "wrong");  // without a reference the wrong kernel is not detected
  const char kWhy[] =
      "its results were not checked: the host cannot compute them (the evaluator cannot), and no kernel is "
      "marked as the reference";
  EXPECT_THAT(PlanText(*plan, true), AllOf(HasSubstr(kWhy), HasSubstr("not steady: estimated 10.0 us, measured")));
  EXPECT_THAT(plan->units[0].reason, HasSubstr(kWhy));
  EXPECT_THAT(host.warnings,
              ElementsAre(AllOf(HasSubstr("Relu float32[64]"), HasSubstr("by their times alone"), HasSubstr(kWhy))));
  // A second process, which reads the recorded times, must say so too.
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
  EXPECT_THAT(plan->units[0].reason, AllOf(HasSubstr("(there is no evaluator of Relu)"),
                                           HasSubstr("kernel 'plain' failed: "), HasSubstr("told to fail")));
}

TEST_F(Unchecked, TimesUncheckedForLackOfMemoryAreNotCached) {
  Host host(Caching());
  host.record() = {};
  EXPECT_THAT(PlanOf(host, HasNoMemory)->units[0].reason, HasSubstr("were not checked"));
  EXPECT_THAT(folder_.Files(".tuning"), IsEmpty());
}

TEST(Deterministic, KernelsThatAreNotAreLeftOutWhateverTheStrategy) {
  const InputType type = {.dtype = DType::kF32, .shape = {64}};
  for (const char* strategy : {"heuristic", "profile"}) {
    for (const char* deterministic : {"0", "1"}) {
      Host host({Set("select.strategy", strategy), Set("MXNET_ENFORCE_DETERMINISM", deterministic),
                 Set("MXNET_CUDA_ALLOW_TENSOR_CORE", "0"), Set("MGE_FASTRUN_CACHE_TYPE", "memory")});
      const bool only = *deterministic == '1';
      host.record() = {};
      auto relu = (*host.Make("input x : float32[?]\ny = Relu(x)\noutput y\n"))->PlanFor({&type, 1});
      ASSERT_TRUE(relu.ok()) << FormatError(relu.status());
      EXPECT_THAT((*relu)->units[0].kernel, only ? AnyOf("slow", "steady") : AnyOf("slow", "loose"));
      EXPECT_EQ(host.record().loose == 0, only || *strategy == 'h') << strategy;
      // Without the matrix units, all kernels of Neg are nondeterministic.
      auto neg = (*host.Make("input x : float32[?]\ny = Neg(x)\noutput y\n"))->PlanFor({&type, 1});
      EXPECT_EQ(neg.ok(), !only);
      if (only) {
        EXPECT_THAT(FormatError(neg.status()), AllOf(HasSubstr("operator Neg has no kernel that the settings allow"),
                                                     HasSubstr("select.deterministic"), HasSubstr("loose")));
      }
    }
  }
}

// The kernels of the fake compute a Relu in place of a MatMul, so the evaluators and the kernel marked as the reference
// disagree. The plan shows which of them was used.
TEST(Truth, LargeProblemsAreComparedWithTheReferenceKernelOfTheDevice) {
  auto plan_of = [](Host& host, int64_t rows, int64_t columns) {
    host.record() = {};
    host.record().with_plain = true;
    EXPECT_TRUE((host.session = *host.Make("input x : float32[?,?]\ninput w : float32[?,?]\ny = MatMul(x, w)\noutput y\n")));
    std::vector<InputType> types = {{.dtype = DType::kF32, .shape = {rows, columns}},
                                    {.dtype = DType::kF32, .shape = {columns, columns}}};
    auto plan = host.session->PlanFor(types);
    host.record() = {};
    return plan;
  };
  Host host({Set("select.strategy", "profile")});
  auto large = plan_of(host, 1024, 512);  // 2^29 operations
  ASSERT_TRUE(large.ok()) << FormatError(large.status());
  EXPECT_NE((*large)->units[0].kernel, "wrong");
  EXPECT_THAT(PlanText(**large, true), HasSubstr("(against kernel 'plain')"));
  EXPECT_THAT(host.warnings, ElementsAre(HasSubstr("kernel 'wrong'")));
  auto small = plan_of(host, 64, 32);
  EXPECT_THAT(FormatError(small.status()), HasSubstr("no kernel of device tuner0 computes operator MatMul correctly"));
}

TEST_F(Unchecked, IfTheReferenceKernelFailsTheEvaluatorsAreUsedForLargeProblems) {
  Host host({Set("select.strategy", "profile")});
  host.record() = {};
  host.record().with_plain = host.record().plain_fails = true;
  host.session = *host.Make("input x : float32[?,?]\ninput w : float32[?,?]\ny = MatMul(x, w)\noutput y\n");
  std::vector<InputType> types = {{.dtype = DType::kF32, .shape = {1024, 512}}, {.dtype = DType::kF32, .shape = {512, 512}}};
  auto plan = host.session->PlanFor(types);
  host.record() = {};
  ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
  EXPECT_EQ((*plan)->units[0].kernel, "plain");  // the only one without wrong results; it fails when the plan runs
  EXPECT_THAT(PlanText(**plan, true), AllOf(HasSubstr("not steady: wrong results"), Not(HasSubstr("against kernel"))));
}

// The kernel 'plain' takes 3000 times as long as 'loose', which is timed before it. It runs once for the expected results, and
// twice as a candidate; 'wrong' runs once. The others run 10 times each.
TEST_F(Unchecked, ACandidateThatIsManyTimesSlowerIsNotRepeated) {
  Host host({Set("select.strategy", "profile")});
  host.record() = {};
  host.record().with_plain = true;
  (void)PlanOf(host, Fails);
  const TunerRecord record = host.record();
  host.record() = {};
  EXPECT_EQ(record.slow, 10);
  EXPECT_EQ(record.launches - record.slow - record.steady - record.loose - record.rough, 1 + 2 + 1);
}

// 2^32 operations would take the evaluators ten seconds or more.
TEST_F(Unchecked, ProblemsThatAreTooLargeForTheEvaluatorsAreNotCheckedWithoutAReferenceKernel) {
  Host host({Set("select.strategy", "profile")});
  host.record() = {};
  host.session = *host.Make("input x : float32[?,?]\ninput w : float32[?,?]\ny = MatMul(x, w)\noutput y\n");
  std::vector<InputType> types = {{.dtype = DType::kF32, .shape = {2048, 1024}},
                                  {.dtype = DType::kF32, .shape = {1024, 1024}}};
  auto plan = host.session->PlanFor(types);
  host.record() = {};
  ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
  EXPECT_THAT(PlanText(**plan, true),
              HasSubstr("were not checked: the host cannot compute them (4.3e+09 operations take too "
                        "long), and no kernel is marked as the reference"));
}

// Computes until it is stopped, for at most 10 s.
absl::Status NeverEnds(EvalContext& ctx) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < end) MGE_RETURN_IF_ERROR(ctx.CheckStop());
  return Fail(errors::kInternal, "nobody stopped it");
}

TEST_F(Unchecked, ASlowEvaluatorIsStopped) {
  Host host({Set("select.strategy", "profile")});
  host.record() = {};
  std::vector<HostValue> in(1), out(1);
  in[0].tensor = *Tensor::Create(DType::kF32, {64});
  std::memset(in[0].tensor.mutable_data(), 0, 256);
  RunState control;
  control.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  const absl::Status status = SessionOf(host, NeverEnds)->Run(in, out, control);
  EXPECT_EQ(ErrorId(status), errors::kTimeout.id);
  EXPECT_THAT(FormatError(status), HasSubstr("timing the kernels of"));
  EXPECT_EQ(host.record().launches, 0);
}

TEST(Checked, ResultsThatOnnxLeavesUndefinedDoNotMakeAKernelWrong) {
  Host host({Set("select.strategy", "profile")}, "edges0");
  auto plan = host.PlanOf("input x : float32[?]\ny = Cast(x) {to=2}\noutput y\n");
  ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
  EXPECT_GE((*plan)->units[0].measured_us, 0);
  EXPECT_THAT(PlanText(**plan, true), testing::Not(HasSubstr("wrong results")));
  EXPECT_THAT(host.warnings, testing::IsEmpty());
}

TEST(Checked, GeneratedDivisorsAreNeitherZeroNorAllEqual) {
  Host host({Set("select.strategy", "profile")}, "edges0");
  auto plan = host.PlanOf("input x : float32[?]\na = Cast(x) {to=6}\nb = Neg(a)\ny = Div(a, b)\noutput y\n");
  ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
  EXPECT_EQ((*plan)->units[2].kernel, "edges.div");
  EXPECT_THAT(PlanText(**plan, true), HasSubstr("not edges.div.not: wrong results"));
  EXPECT_THAT(host.warnings, ElementsAre(HasSubstr("edges.div.not")));
}

}  // namespace
}  // namespace mge
