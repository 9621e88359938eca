// SPDX-License-Identifier: Apache-2.0
// Training sessions, on one device or on replicas, of graphs in text form.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/engine/session.h"
#include "core/graph/graph.h"
#include "core/kvstore/data_parallel.h"
#include "tests/support/session_values.h"

namespace mge {

// A network with three parameters: x float32[N,3] to y float32[N,2].
inline constexpr char kNetwork[] = R"(input x : float32[N,3]
const w = float32[3,4]<0.3, -0.2, 0.1, 0.5, -0.4, 0.2, 0.6, -0.1, 0.2, 0.7, -0.3, 0.4>
const b = float32[4]<0.1, 0.2, -0.1, 0.05>
const v = float32[4,2]<0.5, -0.6, 0.3, 0.2, -0.2, 0.4, 0.1, 0.3>
m = MatMul(x, w)
a = Add(m, b)
t = Tanh(a)
y = MatMul(t, v)
output y
)";

// A training session, on one device or on replicas.
class Trainer {
 public:
  Trainer(std::shared_ptr<Runtime> runtime, std::string_view text, const TrainingOptions& training,
          const std::string& device, bool replicas, std::vector<Assignment> settings = {}) {
    auto graph = ParseGraphText(text);
    if (!(status_ = graph.status()).ok()) return;
    onnx::Model model;
    model.graph = *std::move(graph);
    const onnx::Model plain = model;
    status_ = MakeTrainingStep(model, training).status();
    if (!status_.ok()) return;
    const SessionOptions options = {.device = device, .settings = std::move(settings), .training = true};
    auto session = Session::Create(std::move(runtime), std::move(model), options);
    if (!(status_ = session.status()).ok()) return;
    session_ = *std::move(session);
    auto make = [plain, training](const ReplicaExchange& exchange) -> absl::StatusOr<onnx::Model> {
      onnx::Model replica = plain;
      MGE_RETURN_IF_ERROR(MakeTrainingStep(replica, training, exchange).status());
      return replica;
    };
    if (replicas) status_ = TrainOnReplicas(*session_, options, make);
  }

  const absl::Status& status() const { return status_; }
  Session& session() { return *session_; }
  // Runs a step. Returns the elements of the loss, then those of the model's outputs.
  absl::StatusOr<std::vector<float>> Step(std::vector<HostValue> inputs, float rate, RunState* control = nullptr) {
    MGE_RETURN_IF_ERROR(status_);
    inputs.emplace_back().tensor = Tensor::Scalar<float>(rate);
    RunState own;
    return ResultsOf(*session_, inputs, control ? *control : own);
  }
  std::vector<float> State(const std::string& name) {
    auto tensor = session_->ReadState(name);
    EXPECT_TRUE(tensor.ok()) << FormatError(tensor.status());
    if (!tensor.ok()) return {};
    return {tensor->Data<float>().begin(), tensor->Data<float>().end()};
  }

 private:
  absl::Status status_;
  std::shared_ptr<Session> session_;
};

// Returns numbers between -1 and 1, which depend on the seed.
inline HostValue Waves(Shape shape, int seed) {
  HostValue v;
  v.tensor = *Tensor::Create(DType::kF32, std::move(shape));
  auto all = v.tensor.MutableData<float>();
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(std::sin(static_cast<double>(i) * 1.7 + seed));
  return v;
}

}  // namespace mge
