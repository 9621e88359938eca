// SPDX-License-Identifier: Apache-2.0
// Steps that throw across the boundary (fakes/throwing.cc), called by the thread of the run and on queues.
#include "tests/core/engine/tuner_test.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kModel[] = R"(
input x : float32[4]
a = Relu(x)
y = Relu(a)
output y
)";

absl::Status RunOf(Session& session, float first) {
  std::vector<HostValue> in(1), out(1);
  in[0].tensor = *Tensor::Create(DType::kF32, {4});
  std::ranges::fill(in[0].tensor.MutableData<float>(), first);
  RunState control;
  MGE_RETURN_IF_ERROR(session.Run(in, out, control));
  EXPECT_EQ(out[0].tensor.Data<float>()[0], first);
  return absl::OkStatus();
}

class Throwing : public testing::TestWithParam<const char*> {};

TEST_P(Throwing, AStepIsAnErrorThatNamesTheBackendAndTheNextRunIsCorrect) {
  const std::string backend = GetParam();
  Host host({}, backend + "0");
  auto session = host.Make(kModel);
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  for (int round = 0; round < 3; ++round) {
    absl::Status thrown = RunOf(**session, -1), unknown = RunOf(**session, -2);
    for (const absl::Status& status : {thrown, unknown}) EXPECT_EQ(ErrorId(status), errors::kKernelFailed.id);
    EXPECT_THAT(FormatError(thrown),
                AllOf(HasSubstr("the backend threw an exception across the boundary: the step exploded"),
                      HasSubstr("device " + backend + "0, kernel " + backend + ".relu, node '"), HasSubstr("(Relu)")));
    EXPECT_THAT(FormatError(unknown),
                HasSubstr("the backend threw an exception across the boundary that is not a std::exception"));
    EXPECT_TRUE(RunOf(**session, 2).ok());
  }
}
INSTANTIATE_TEST_SUITE_P(, Throwing, testing::Values("throwing", "throwing_queues"));

}  // namespace
}  // namespace mge
