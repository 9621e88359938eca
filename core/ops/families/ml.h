// SPDX-License-Identifier: Apache-2.0
// Helpers of the domain ai.onnx.ml, into which classical models are exported: rows of features, class labels, and the
// transforms of scores. Where the ONNX standard leaves a case open, the operators compute what onnxruntime does.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"

namespace mge {

inline constexpr std::string_view kMlDomain = "ai.onnx.ml";
inline constexpr TypeSet kMlNumbers = {DType::kF32, DType::kF64, DType::kI64, DType::kI32};

// The shape of an input of rows. A vector is one row.
struct RowShape {
  int64_t rows = kUnknownDim, columns = kUnknownDim;
};
// Fails unless the shape has one or two dimensions.
absl::StatusOr<RowShape> RowShapeOf(std::span<const int64_t> shape);
// Returns the shape of input 0; both sizes are unknown if its rank is.
absl::StatusOr<RowShape> InferredRows(const InferContext& ctx);

// Returns the elements of a tensor of kMlNumbers as float32.
absl::StatusOr<Tensor> AsFloats(const Tensor& tensor, HostAllocator& allocator);

// The numbers are those of the attribute post_transform of TreeEnsemble.
enum class PostTransform { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };
absl::StatusOr<PostTransform> ReadPostTransform(const Attributes& attrs);

float Logistic(float x);
// Transforms the scores of one row.
void TransformScores(PostTransform transform, std::span<float> scores);
// Sets the two scores of a binary classifier from its only score, that of the second class. The first class has the score of
// the opposite sign, as scikit-learn has it; a probability and its PROBIT have the complement.
void TransformBinaryScore(PostTransform transform, float score, std::span<float> out);

// The classes of a classifier: integers or texts.
struct ClassLabels {
  Ints ints;
  Texts texts;
  bool as_text() const { return !texts.empty(); }
  int64_t count() const { return static_cast<int64_t>(as_text() ? texts.size() : ints.size()); }
  DType dtype() const { return as_text() ? DType::kString : DType::kI64; }
};
// Fails unless exactly one of the attributes is present and not empty.
absl::StatusOr<ClassLabels> ReadLabels(const Attributes& attrs, std::string_view ints);
// Sets element `row` of `y` to the label of a class.
void SetLabel(Tensor& y, int64_t row, const ClassLabels& labels, int64_t label);

// Sets output 0 to [rows] and output 1 to float32[rows, width].
void SetClassifierOutputs(InferContext& ctx, const ClassLabels& labels, int64_t rows, int64_t width);

// The parts of a map, vectors of one length.
struct MapView {
  const Tensor &keys, &values;
};
// Returns input 0, a map. Fails if it has no such parts.
absl::StatusOr<MapView> MapInput(const EvalContext& ctx);

// A table from keys to values, for the operators that replace categories.
struct LookupTable {
  Tensor keys, values;  // vectors of one length
  Tensor fallback;      // the value for elements that are not a key, a scalar
};
// Writes output 0, the value of each element of input 0. If keys are equal, the first one counts. NaN equals NaN. `make`
// returns the table. It depends only on the node and the type of the input.
absl::Status EvalLookup(EvalContext& ctx, const std::function<absl::StatusOr<LookupTable>()>& make);

}  // namespace mge
