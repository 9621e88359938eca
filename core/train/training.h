// SPDX-License-Identifier: Apache-2.0
// Turns a model into a training step: one run computes the loss of a batch and the gradients of the parameters, and an
// optimizer updates the parameters in place.
//
// The result is an ordinary model for a session. Parameters and the optimizer's values are states (mge.Assign): they stay in
// the session from run to run.
//   inputs:  those of the model; the labels, unless the model computes its loss; "learning_rate" float32[]
//   outputs: the loss, of one element; then those of the model
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/autodiff/sublinear.h"
#include "core/onnx/reader.h"

namespace mge {

// Parameters that are updated otherwise than the others.
struct ParameterGroup {
  std::string pattern;       // of their names, in which * and ? stand for any text or letter
  double rate = 1;           // factor of the learning rate, not negative
  double weight_decay = -1;  // negative: that of the options
};

struct TrainingOptions {
  std::string loss = "cross_entropy";      // see mge_training_options
  std::string loss_output = {};            // the output that is compared with the labels; empty: the first one
  std::string labels_name = "labels";      // of the input with the labels
  std::string optimizer = "sgd";           // a row of mge/optimizers.hpp, which says which of these numbers it reads
  double momentum = 0;                     // in [0, 1)
  double beta1 = 0.9, beta2 = 0.999;       // in [0, 1)
  double epsilon = 1e-8;                   // in [0, 1]
  double weight_decay = 0;                 // Optimizer::decay
  std::string on_nan = "stop";             // "stop", "skip" or "continue"; see mge_training_options
  double clip_value = 0;                   // limit of each element of the gradients; 0: no limit
  int64_t accumulate = 1;                  // steps whose gradients are summed before an update
  double label_smoothing = 0;              // in [0, 1): the part of each label that is spread over all classes
  std::vector<double> class_weights = {};  // mge_training_options::class_weights
  double huber_delta = 1;                  // above 0: the error at which the loss "huber" becomes linear
  std::vector<ParameterGroup> groups = {};
  double average_decay = 0;     // in [0, 1): mge_training_options::average_decay; 0: no averages
  bool keep_gradients = false;  // the states NAME.gradient
  double clip_norm = 0;         // limit of the Euclidean norm of all gradients together; 0: no limit
  // Initializers that keep their values: names, in which * and ? stand for any text or letter.
  std::vector<std::string> frozen = {};
  bool mirror = false;          // GradientOptions::mirror
  bool inplace_update = false;  // the setting train.inplace_update
  // GradientOptions::sublinear
  std::optional<SublinearOptions> sublinear = {};
};

inline constexpr std::string_view kLearningRate = "learning_rate";
inline constexpr std::string_view kExamples = "replica.examples";

// Returns whether a name fits a pattern, in which * stands for any text and ? for any letter.
bool FitsPattern(std::string_view name, std::string_view pattern);

// Adds nodes that sum each value over all replicas of a training step, and returns the sums in the same order. If parts[i], this
// replica needs only its part of sum i, a vector (PartOfElements()). `parts` is empty unless ReplicaExchange::sums_parts.
using SumOverReplicas = std::function<absl::StatusOr<std::vector<ValueId>>(Graph& graph, std::span<const ValueId> values,
                                                                           const std::vector<bool>& parts)>;

// Adds a node that joins the parts of arrays, as the optimizers of all replicas have updated them. Array i is a vector with
// elements[i] elements, of which this replica has parts[i]. Returns a token for the next gather, then the arrays. The token, an
// int64 scalar, orders the gathers of all replicas.
using GatherFromReplicas = std::function<std::vector<ValueId>(Graph& graph, ValueId token, std::span<const ValueId> parts,
                                                              std::span<const int64_t> elements)>;

// How a training step works with those of other replicas.
struct ReplicaExchange {
  SumOverReplicas sum = nullptr;        // nullptr: there is one replica
  GatherFromReplicas gather = nullptr;  // nullptr: each replica updates all elements of the parameters
  bool sums_parts = false;              // with `gather`: `sum` can return parts
  int64_t gather_elements = 1;          // at least so many elements are gathered at a time, except for the last ones
  uint32_t replica = 0, replicas = 1;   // for `gather`
};

// Changes the model as described above. Trains every floating initializer with at least one dimension that the loss
// depends on, except for frozen ones. A BatchNormalization with training_mode also updates its mean and variance. Returns the
// names of the states that belong to the model: its parameters, and those means and variances. Fails with kBadInput for an
// unknown option, output or frozen name, or if an input of the model has the name of a new one, and with the errors of
// AddGradients().
//
// With `exchange.sum`, the step is one of several that run at the same time, each on a part of a batch. They compute the
// loss and the gradients of the whole batch: sums over all replicas, divided by what counts in all of them (labels, elements,
// or examples if the model computes its loss, which must be a mean over them). A last input `replica.examples`, a float32
// scalar, is the number of the replica's examples. If it is 0, the replica has an example that does not count.
//
// With `exchange.gather`, the optimizer's states of a parameter are divided: the replica has a vector, its part of their elements
// (PartOfElements()), and updates that part of the parameter. Parameters with fewer elements than replicas are not divided.
// Fails with kBadInput for an optimizer that does not update each element alone.
absl::StatusOr<std::vector<std::string>> MakeTrainingStep(onnx::Model& model, const TrainingOptions& options,
                                                          const ReplicaExchange& exchange = {});

// Changes the model into one that computes the loss of a batch, then its outputs, as MakeTrainingStep() does, and updates
// nothing. The inputs are those of the model and the labels. With `inference_form`, changes it like MakeInferenceForm(). Fails
// like MakeTrainingStep().
absl::Status MakeEvaluation(onnx::Model& model, const TrainingOptions& options, bool inference_form = true);

}  // namespace mge
