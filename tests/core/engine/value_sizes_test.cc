// SPDX-License-Identifier: Apache-2.0
// Values larger than the limit of a tensor or than the memory: the error is clear, and only runs that compute them fail.
#include "tests/core/engine/tuner_test.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;

absl::Status PlanFor(Host& host, std::string_view graph, const std::vector<Shape>& shapes) {
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<Session> session, host.Make(graph));
  std::vector<InputType> types;
  for (const Shape& shape : shapes) types.push_back({ValueKind::kTensor, DType::kF32, shape});
  return session->PlanFor(types).status();
}

constexpr char kOuter[] = R"(
input a : float32[A,1,1]
input b : float32[1,B,1]
input c : float32[1,1,C]
ab = Add(a, b)
abc = Add(ab, c)
y = ReduceSum(abc)
output y
)";

TEST(ValueSizes, AnOverflowingSizeIsATypedErrorThatNamesTheNode) {
  const int64_t n = int64_t{1} << 21;
  for (const char* device : {"tuner0", "host"}) {
    Host host({}, device);
    absl::Status status = PlanFor(host, kOuter, {{n, 1, 1}, {1, n, 1}, {1, 1, n}});
    EXPECT_THAT(FormatError(status), AllOf(HasSubstr("E0305"), HasSubstr("'abc' is float32[2097152,2097152,2097152]"),
                                           HasSubstr("Add node"), HasSubstr("use smaller inputs")));
    EXPECT_TRUE(PlanFor(host, kOuter, {{2, 1, 1}, {1, 3, 1}, {1, 1, 4}}).ok());
  }
}

TEST(ValueSizes, AnEmptyTensorOverflowsByItsOtherDimensions) {
  Host host;
  absl::Status status = PlanFor(host,
                                "input x : float32[1]\nconst s = int64[3]<1099511627776, 0, 1099511627776>\n"
                                "e = Expand(x, s)\ny = Relu(e)\noutput y\n",
                                {{1}});
  EXPECT_THAT(FormatError(status), AllOf(HasSubstr("E0305"), HasSubstr("float32[1099511627776,0,1099511627776]")));
  EXPECT_TRUE(PlanFor(host,
                      "input x : float32[1]\nconst s = int64[2]<1099511627776, 0>\n"
                      "e = Expand(x, s)\ny = Relu(e)\noutput y\n",
                      {{1}})
                  .ok());
}

TEST(ValueSizes, AnOverflowInABranchThatIsNotTakenIsNotAnError) {
  Host host;
  auto session = host.Make(R"(
input x : float32[1]
input go : bool[]
a = Relu(x)
b = If(go) captures(a, a) {then_branch=graph {
  capture a
  r = Add(a, a)
  output r
}, else_branch=graph {
  capture a
  const s = int64[3]<2097152, 2097152, 2097152>
  e = Expand(a, s)
  n = ReduceSum(e) {keepdims=0}
  const one = int64[1]<1>
  m = Reshape(n, one)
  output m
}} : float32[1]
output b
)");
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  auto run = [&](bool go) {
    std::vector<HostValue> in(2), out(1);
    in[0].tensor = *Tensor::Create(DType::kF32, {1});
    in[0].tensor.MutableData<float>()[0] = 1;
    in[1].tensor = Tensor::Scalar(go);
    RunState control;
    return (*session)->Run(in, out, control);
  };
  EXPECT_TRUE(run(true).ok()) << FormatError(run(true));
  EXPECT_EQ(ErrorId(run(false)), errors::kInvalidTensor.id) << FormatError(run(false));
  EXPECT_TRUE(run(true).ok());
}

constexpr char kWide[] =
    "input x : float32[1]\nconst s = int64[1]<33554432>\n"
    "e = Expand(x, s)\ny = Neg(e)\nz = ReduceSum(y)\noutput z\n";

TEST(ValueSizes, AValueLargerThanTheMemoryLimitIsNamedInTheError) {
  Host host({Set("memory.limit", "tuner0=64MiB")});
  absl::Status status = PlanFor(host, kWide, {{1}});
  EXPECT_THAT(FormatError(status),
              AllOf(HasSubstr("E0602"), HasSubstr("does not fit into the memory limit of device tuner0"),
                    HasSubstr("the planned peak is at least the 134217728 bytes of 'e' : float32[33554432]"),
                    HasSubstr("Expand node"), HasSubstr("the limit is 67108864"),
                    HasSubstr("the largest are 'e' (134217728 bytes)"), HasSubstr("tuner0=134217728")));
  Host larger({Set("memory.limit", "tuner0=512MiB")});
  EXPECT_TRUE(PlanFor(larger, kWide, {{1}}).ok());
}

TEST(ValueSizes, AViewOfTheCallersMemoryDoesNotCountAgainstTheLimit) {
  Host host({Set("memory.limit", "tuner0=64MiB")});
  absl::Status status = PlanFor(host,
                                "input x : float32[N]\nconst s = int64[2]<2, -1>\nr = Reshape(x, s)\n"
                                "y = ReduceSum(r)\noutput y\n",
                                {{int64_t{1} << 25}});
  EXPECT_TRUE(status.ok()) << FormatError(status);
}

}  // namespace
}  // namespace mge
