// SPDX-License-Identifier: Apache-2.0
// Turns a model into a training step: one run computes the loss of a batch and the gradients of the parameters, and an
// optimizer updates the parameters in place.
//
// The result is an ordinary model for a session. Parameters and the optimizer's values are states (mge.Assign): they stay in
// the session from run to run.
//   inputs:  those of the model; "labels", unless the model computes its loss; "learning_rate" float32[]
//   outputs: the loss, of one element; then those of the model
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/onnx/reader.h"

namespace mge {

struct TrainingOptions {
  std::string loss = "cross_entropy";    // see mge_training_options
  std::string output = {};               // the output that is compared with the labels; empty: the first one
  std::string optimizer = "sgd";         // sgd, adam or adamw
  double momentum = 0;                   // of sgd, in [0, 1)
  double beta1 = 0.9, beta2 = 0.999;     // of adam and adamw, in [0, 1)
  double epsilon = 1e-8;                 // of adam and adamw, above 0
  double weight_decay = 0;               // sgd, adam: added to the gradient; adamw: decoupled from it
  double clip_norm = 0;                  // limit of the Euclidean norm of all gradients together; 0: no limit
  std::vector<std::string> frozen = {};  // initializers that keep their values
  bool mirror = false;                   // GradientOptions::mirror
};

inline constexpr std::string_view kLabels = "labels";
inline constexpr std::string_view kLearningRate = "learning_rate";

// Changes the model as described above. Trains every float32 and float64 initializer with at least one dimension that the loss
// depends on, except for frozen ones. A BatchNormalization with training_mode also updates its mean and variance. Returns the
// names of the states that belong to the model: its parameters, and those means and variances. Fails with kBadInput for an
// unknown option, output or frozen name, and with the errors of AddGradients().
absl::StatusOr<std::vector<std::string>> MakeTrainingStep(onnx::Model& model, const TrainingOptions& options);

}  // namespace mge
