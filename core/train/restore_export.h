// SPDX-License-Identifier: Apache-2.0
// Undoes changes by PyTorch's exporters that would make a model train in another way than in PyTorch.
#pragma once

#include <string>
#include <vector>

#include "core/onnx/reader.h"
#include "core/onnx/weights_writer.h"

namespace mge {

// An initializer that the exporter has computed of a parameter: its transpose, of two dimensions.
struct TransposedCopy {
  std::string name, parameter;
};

// Where the file of a model differs from its restored form.
struct RestoredExport {
  std::vector<onnx::AddedParameter> added;
  std::vector<TransposedCopy> copies;
  std::vector<std::string>
      stand_ins;  // initializers that the exporter has computed of one parameter each, and that train like it
};

// Restores what is certain, by the notes in a model of the newer exporter (ReadOptions::export_notes) and by the Identity nodes
// that the older one leaves:
// - Parameters that were merged because their elements are equal become parameters of their own.
// - Biases that were left out because they are 0 are added.
// - A weight that was transposed, and is used elsewhere by its name, is that parameter's transpose again.
// - The row padding_idx of an embedding gets no gradient from it.
// - A BatchNormalization of a model that trained has training_mode, which the newer exporter does not write.
// Other models stay as they are. Call it before MakeTrainingStep() and MakeEvaluation().
absl::StatusOr<RestoredExport> RestoreExported(onnx::Model& model);

// Returns the transpose of a tensor of two dimensions.
absl::StatusOr<Tensor> TransposedMatrix(const Tensor& matrix);

}  // namespace mge
