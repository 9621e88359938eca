// SPDX-License-Identifier: Apache-2.0
// A network learns by eager operators and a tape as it does in a training session.
#include <gmock/gmock.h>

#include "core/eager/eager_interpreter.h"
#include "core/eager/eager_tape.h"
#include "core/plugin/device_tensor.h"
#include "tests/plugins/virtual/sessions/virtual_session.h"
#include "tests/support/trainer.h"

namespace mge {
namespace {

using testing::FloatNear;
using testing::Pointwise;

class EagerTraining : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Devices, EagerTraining, testing::Values("cpu0", "virtual0", "host"));

TEST_P(EagerTraining, ParametersAreThoseOfATrainingSession) {
  const std::shared_ptr<Runtime> runtime = NewRuntime({{"virtual.devices", "1"}});
  const HostValue x = Waves({6, 3}, 1), labels = Waves({6, 2}, 2);
  constexpr float kRate = 0.1f;
  constexpr int kSteps = 5;
  Trainer trainer(runtime, kNetwork, {.loss = "mse"}, GetParam(), /*replicas=*/false);
  ASSERT_TRUE(trainer.status().ok()) << FormatError(trainer.status());

  auto eager = *EagerInterpreter::Create(runtime);
  const Graph graph = *ParseGraphText(kNetwork);
  auto put = [&](const HostValue& value) { return *eager->Put(value, GetParam()); };
  auto apply = [&](OperatorRequest op, std::vector<EagerTensorPtr> inputs) {
    auto out = eager->Apply(op, inputs);
    EXPECT_TRUE(out.ok()) << FormatError(out.status());
    return out.ok() ? (*out)[0] : nullptr;
  };
  std::vector<EagerTensorPtr> p;  // w, b, v
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    HostValue value;
    value.tensor = graph.value(v).constant;
    if (graph.value(v).role == Role::kConstant) p.push_back(put(value));
  }
  ASSERT_EQ(p.size(), 3u);
  HostValue rate;
  rate.tensor = Tensor::Scalar<float>(kRate);
  Attributes scalar;
  scalar.Set("keepdims", int64_t{0});
  const EagerTensorPtr data = put(x), wanted = put(labels);
  for (int step = 0; step < kSteps; ++step) {
    auto trained = trainer.Step({x, labels}, kRate);
    ASSERT_TRUE(trained.ok()) << FormatError(trained.status());
    auto tape = std::make_shared<EagerTape>(eager);
    for (const EagerTensorPtr& parameter : p) ASSERT_TRUE(tape->Watch(parameter).ok());
    tape->Start();
    const EagerTensorPtr hidden =
        apply({.op = "Tanh"}, {apply({.op = "Add"}, {apply({.op = "MatMul"}, {data, p[0]}), p[1]})});
    const EagerTensorPtr error = apply({.op = "Sub"}, {apply({.op = "MatMul"}, {hidden, p[2]}), wanted});
    const EagerTensorPtr loss = apply({.op = "ReduceMean", .attrs = scalar}, {apply({.op = "Mul"}, {error, error})});
    tape->Stop();
    auto value = eager->Get(*loss);
    ASSERT_TRUE(value.ok()) << FormatError(value.status());
    EXPECT_NEAR(ToHost(value->tensor)->Data<float>()[0], (*trained)[0], 1e-5) << "step " << step;
    auto gradients = tape->Gradient(loss, p);
    ASSERT_TRUE(gradients.ok()) << FormatError(gradients.status());
    for (size_t i = 0; i < p.size(); ++i) {
      p[i] = apply({.op = "Sub"}, {p[i], apply({.op = "Mul"}, {(*gradients)[i], eager->HostOperand(rate)})});
    }
  }
  const char* names[] = {"w", "b", "v"};
  for (size_t i = 0; i < p.size(); ++i) {
    auto value = eager->Get(*p[i]);
    ASSERT_TRUE(value.ok()) << FormatError(value.status());
    const Tensor host = *ToHost(value->tensor);
    const std::vector<float> got(host.Data<float>().begin(), host.Data<float>().end());
    EXPECT_THAT(got, Pointwise(FloatNear(1e-5f), trainer.State(names[i]))) << names[i];
  }
}

}  // namespace
}  // namespace mge
