// SPDX-License-Identifier: Apache-2.0
// A fast kernel that writes zeros: timing must detect it, also for operators that give zeros for small values.
#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::shared_ptr<Runtime> Profiling() {
  return NewRuntime({{"select.strategy", "profile"},
                     {"select.cache_type", "memory"},
                     {"virtual.devices", "1"},
                     {"virtual.wrong_kernel", "1"}});
}

// Returns the plan as text, or the error.
std::string Planned(const std::shared_ptr<Runtime>& runtime, const std::string& model, const InputType& input) {
  auto session = Load(runtime, model, "virtual0,cpu0");
  if (!session.ok()) return FormatError(session.status());
  auto plan = (*session)->PlanFor({&input, 1});
  return plan.ok() ? PlanText(**plan, true) : FormatError(plan.status());
}

const InputType kFloats = {.dtype = DType::kF32, .shape = {64}};
const InputType kInts = {.dtype = DType::kI32, .shape = {64}};
const InputType kScalar = {.dtype = DType::kF32, .shape = {}};

TEST(WrongKernel, IsDetectedForOperatorsThatRoundSmallFloatsToZero) {
  auto runtime = Profiling();
  const std::string head = "input x : float32[64]\nconst two = float32[]<2>\nconst most = float32[]<50>\n";
  for (const char* line : {"y = Cast(x) {to=7}", "y = Cast(x) {to=2}", "y = Round(x)", "y = Greater(x, two)",
                           "y = Greater(x, most)", "y = IsNaN(x)", "y = IsInf(x)", "y = ThresholdedRelu(x) {alpha=1.0}",
                           "y = Shrink(x) {lambd=0.5}", "y = HardSigmoid(x) {beta=-1.0}"}) {
    const std::string text = Planned(runtime, head + line + "\noutput y\n", kFloats);
    EXPECT_THAT(text, AllOf(HasSubstr("not virtual.wrong: wrong results"), Not(HasSubstr("not checked")))) << line;
  }
}

TEST(WrongKernel, IsDetectedForOperatorsThatGiveZeroForSmallIntegers) {
  auto runtime = Profiling();
  const std::string text =
      Planned(runtime, "input x : int32[64]\nconst two = int32[]<2>\ny = Greater(x, two)\noutput y\n", kInts);
  EXPECT_THAT(text, AllOf(HasSubstr("not virtual.wrong: wrong results"), Not(HasSubstr("not checked"))));
}

TEST(WrongKernel, IsDetectedForTensorsOfOneElement) {
  auto runtime = Profiling();
  const std::string text =
      Planned(runtime, "input x : float32[]\nconst two = float32[]<2>\ny = Greater(x, two)\noutput y\n", kScalar);
  EXPECT_THAT(text, AllOf(HasSubstr("not virtual.wrong: wrong results"), Not(HasSubstr("not checked"))));
}

TEST(WrongKernel, IsReportedAsUncheckedIfZeroIsAlwaysCorrect) {
  auto runtime = Profiling();
  const std::string text =
      Planned(runtime, "input x : float32[64]\nconst zero = float32[]<0>\ny = Clip(x, zero, zero)\noutput y\n", kFloats);
  EXPECT_THAT(text, HasSubstr("its results were not checked: output 0 was the same for all inputs that were tried"));
}

TEST(WrongKernel, IsCorrectIfThereIsNoInputData) {
  auto runtime = Profiling();
  const InputType empty = {.dtype = DType::kF32, .shape = {0, 4}};
  const std::string text =
      Planned(runtime, "input x : float32[0,4]\nconst a = int64[1]<0>\ny = ReduceSum(x, a)\noutput y\n", empty);
  EXPECT_THAT(text, AllOf(HasSubstr("ReduceSum"), Not(HasSubstr("not checked"))));
}

}  // namespace
}  // namespace mge
