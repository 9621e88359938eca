// SPDX-License-Identifier: Apache-2.0
// Reads what PyTorch's exporter has noted in the nodes of a model (onnx::ExportNote).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/onnx/reader.h"

namespace mge {

// A call of a function in PyTorch. Arguments that are parameters are "%p_" and their name, in which "_" stands for all but letters
// and digits; "%b_" begins a buffer, and "%c_" a tensor of the code.
struct ExportCall {
  std::string function;  // "aten.layer_norm", without the overload
  std::vector<std::string> arguments;
};

// Reads a note such as "%y : [...] = call_function[target=torch.ops.aten.linear.default](args = (%x, %p_fc_weight), kwargs = {})".
// Returns none if it has another form.
std::optional<ExportCall> ParseExportCall(std::string_view note);

// Returns whether PyTorch's exporter has written the model.
bool IsFromPyTorch(const onnx::Model& model);

// Returns whether a name is one that the exporter gives to a value that it has computed, such as "val_12" or "onnx::MatMul_7".
// Parameters keep their names in PyTorch, such as "layers.0.norm.weight".
bool IsMadeName(std::string_view name);

// Returns whether all elements are equal, as those of a normalization before its training. Reads at most some of them.
bool IsUniform(const Tensor& t);

// The names of the parameters in PyTorch.
class ParameterNames {
 public:
  explicit ParameterNames(const onnx::Model& model);
  // Returns what follows "%p_" in the argument of a call that stands for the value of this name.
  static std::string Mangled(std::string_view name);
  // Returns what follows "%p_", "%b_" or "%c_" in an argument; empty for another one.
  static std::string_view PartOf(std::string_view argument);
  // Returns the name of a parameter that is an argument of a call, such as "fc.weight" for "%p_fc_weight". Where no module of the
  // model tells the dots from the other signs, "_" stays.
  std::string NameOf(std::string_view argument) const;

 private:
  std::map<std::string, std::string, std::less<>> modules_;  // by their names with "_"
};

}  // namespace mge
