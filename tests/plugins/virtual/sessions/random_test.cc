// SPDX-License-Identifier: Apache-2.0
// Random operators on the virtual GPU: the numbers of Philox, equal for equal seeds, new in every run and in every replay.
#include <cmath>
#include <set>

#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatEq;

class RandomNumbers : public testing::Test {
 protected:
  // Returns the results of several runs of a new session with that seed in its settings.
  std::vector<std::vector<float>> Runs(std::string_view text, const std::vector<HostValue>& in, int count,
                                       const std::string& seed = "0") {
    std::shared_ptr<Runtime> runtime = NewRuntime({{"virtual.devices", "1"}, {"seed", seed}});
    auto session = Load(runtime, text, "virtual0");
    EXPECT_TRUE(session.ok()) << FormatError(session.status());
    std::vector<std::vector<float>> out;
    for (int i = 0; session.ok() && i < count; ++i) {
      RunState run;
      run.seed = run_seed_;
      auto r = ResultsOf(**session, in, run);
      EXPECT_TRUE(r.ok()) << FormatError(r.status());
      out.push_back(r.ok() ? *r : std::vector<float>());
    }
    if (session.ok()) why_ = PlanText(*(*session)->last_plan(), true);
    return out;
  }
  uint64_t run_seed_ = 0;
  std::string why_;
};

HostValue Zeros(int64_t n) {
  HostValue v;
  v.tensor = *Tensor::Create(DType::kF32, {n});
  for (float& x : v.tensor.MutableData<float>()) x = 0;
  return v;
}

constexpr std::string_view kUniform = "input x : float32[N]\nr = RandomUniformLike(x)\ny = Add(x, r)\noutput y\n";

TEST_F(RandomNumbers, AreThoseOfPhilox) {
  // The first block of key 0: 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
  auto runs = Runs(kUniform, {Zeros(4)}, 1);
  EXPECT_THAT(runs[0], ElementsAre(FloatEq(0x6627e8 * 0x1p-24f), FloatEq(0xe169c5 * 0x1p-24f), FloatEq(0xbc57ac * 0x1p-24f),
                                   FloatEq(0x9b00db * 0x1p-24f)));
  EXPECT_NE(why_.find("gpu.random"), std::string::npos) << why_;
}

TEST_F(RandomNumbers, DifferInEveryRunAndRepeatInANewSession) {
  const auto first = Runs(kUniform, {Zeros(1001)}, 5);  // from the third run on, the work is a replay
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 5u);
  EXPECT_EQ(Runs(kUniform, {Zeros(1001)}, 5), first);
  EXPECT_NE(Runs(kUniform, {Zeros(1001)}, 5, "1"), first);
}

TEST_F(RandomNumbers, RepeatInRunsWithTheSameSeed) {
  run_seed_ = 7;
  const auto runs = Runs(kUniform, {Zeros(100)}, 4);
  EXPECT_EQ(std::set(runs.begin(), runs.end()).size(), 1u);
}

TEST_F(RandomNumbers, OfTwoNodesDiffer) {
  constexpr std::string_view kTwo =
      "input x : float32[N]\na = RandomUniformLike(x)\nb = RandomUniformLike(x)\ny = Sub(a, b)\noutput y\n";
  const auto runs = Runs(kTwo, {Zeros(1000)}, 1);
  EXPECT_THAT(runs[0], testing::Contains(testing::Gt(0.5f)));
}

TEST_F(RandomNumbers, OfTheNormalDistributionHaveItsMoments) {
  const auto runs =
      Runs("input x : float32[N]\ny = RandomNormalLike(x) {mean=2.0, scale=3.0}\noutput y\n", {Zeros(100'000)}, 1);
  double sum = 0, squares = 0;
  for (float v : runs[0]) sum += v, squares += v * v;
  const double mean = sum / 1e5, deviation = std::sqrt(squares / 1e5 - mean * mean);
  EXPECT_NEAR(mean, 2, 0.05);
  EXPECT_NEAR(deviation, 3, 0.05);
}

TEST_F(RandomNumbers, DecideWhatDropoutDrops) {
  HostValue ones = Zeros(10'000);
  for (float& x : ones.tensor.MutableData<float>()) x = 1;
  const auto runs = Runs(R"(input x : float32[N]
const ratio = float32[]<0.25>
const training = bool[]<true>
y, mask = Dropout(x, ratio, training)
kept = Cast(mask) {to=1}
output y
output kept
)",
                         {ones}, 2);
  EXPECT_NE(runs[0], runs[1]);
  EXPECT_NE(why_.find("gpu.random"), std::string::npos) << why_;
  double kept = 0;
  for (size_t i = 0; i < 10'000; ++i) {
    const float mask = runs[0][10'000 + i];
    kept += mask;
    EXPECT_FLOAT_EQ(runs[0][i], mask / 0.75f);
  }
  EXPECT_NEAR(kept / 10'000, 0.75, 0.02);
}

}  // namespace
}  // namespace mge
