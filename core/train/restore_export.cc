// SPDX-License-Identifier: Apache-2.0
#include "core/train/restore_export.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/ops/rewrites/node_adder.h"
#include "core/train/export_notes.h"

namespace mge {
namespace {

// An input of a node that is an argument of the call that the node is part of.
struct ArgumentInput {
  std::string_view function;  // begins with this
  std::string_view op;
  size_t input, argument;
};
constexpr ArgumentInput kArguments[] = {
    {"aten.layer_norm", "LayerNormalization", 1, 2},
    {"aten.layer_norm", "LayerNormalization", 2, 3},
    {"aten.rms_norm", "RMSNormalization", 1, 2},
    {"aten.group_norm", "Mul", 1, 2},
    {"aten.group_norm", "Add", 1, 3},
    {"aten.instance_norm", "InstanceNormalization", 1, 1},
    {"aten.instance_norm", "InstanceNormalization", 2, 2},
    {"aten._native_batch_norm", "BatchNormalization", 1, 1},
    {"aten._native_batch_norm", "BatchNormalization", 2, 2},
    {"aten._native_batch_norm", "BatchNormalization", 3, 3},
    {"aten._native_batch_norm", "BatchNormalization", 4, 4},
    {"aten.linear", "MatMul", 1, 1},
    {"aten.linear", "Add", 1, 2},
    {"aten.linear", "Gemm", 1, 1},
    {"aten.linear", "Gemm", 2, 2},
    {"aten.addmm", "Gemm", 1, 2},
    {"aten.addmm", "Gemm", 2, 0},
    {"aten.conv", "Conv", 1, 1},
    {"aten.conv", "Conv", 2, 2},
    {"aten.conv", "ConvTranspose", 1, 1},
    {"aten.conv", "ConvTranspose", 2, 2},
    {"aten.embedding", "Gather", 0, 0},
    {"aten.prelu", "PRelu", 1, 1},
    {"aten.mul", "Mul", 0, 0},
    {"aten.mul", "Mul", 1, 1},
    {"aten.add", "Add", 0, 0},
    {"aten.add", "Add", 1, 1},
};

// Returns whether `t` is the transpose of `of`.
absl::StatusOr<bool> IsTranspose(const Tensor& t, const Tensor& of) {
  if (t.dtype() != of.dtype() || t.shape().size() != 2 || of.shape() != Shape{t.shape()[1], t.shape()[0]}) return false;
  MGE_ASSIGN_OR_RETURN(const Tensor transposed, TransposedMatrix(of));
  return std::memcmp(t.data(), transposed.data(), static_cast<size_t>(t.bytes())) == 0;
}

class Restorer {
 public:
  explicit Restorer(onnx::Model& model) : graph_(model.graph), notes_(model.info.export_notes), names_(model) {
    for (ValueId v = 0; v < graph_.value_count(); ++v) {
      if (IsParameter(v)) parameters_.emplace(ParameterNames::Mangled(graph_.value(v).name), v);
    }
  }

  absl::StatusOr<RestoredExport> Run() {
    for (NodeId id = 0, count = graph_.node_count(); id < count; ++id) {
      if (graph_.node(id).dead || graph_.node(id).outputs.empty() || graph_.node(id).outputs[0] == kNone) continue;
      PartIdentity(id);
      const auto note = notes_.find(graph_.value(graph_.node(id).outputs[0]).name);
      if (graph_.node(id).dead || note == notes_.end()) continue;
      const std::optional<ExportCall> call = ParseExportCall(note->second.call);
      if (!call) continue;
      SetTrainingMode(graph_.node(id), *call);
      for (const ArgumentInput& role : kArguments) {
        if (graph_.node(id).op != role.op || !call->function.starts_with(role.function)) continue;
        if (role.argument >= call->arguments.size()) continue;
        MGE_RETURN_IF_ERROR(Restore(id, role.input, call->arguments[role.argument], note->second.rules));
      }
      KeepPadding(id, *call);
    }
    return std::move(out_);
  }

 private:
  bool IsParameter(ValueId v) const {
    if (v == kNone) return false;
    const Value& value = graph_.value(v);
    return !value.dead && value.role == Role::kConstant && value.kind == ValueKind::kTensor &&
           kFloating.Contains(value.constant.dtype());
  }
  // Returns the parameter that an argument stands for; kNone: the model has none.
  ValueId Find(std::string_view argument) const {
    const auto at = parameters_.find(ParameterNames::PartOf(argument));
    return at == parameters_.end() ? kNone : at->second;
  }
  ValueId AddParameter(const std::string& name, Tensor tensor) {
    const ValueId made = graph_.AddConstant(name, std::move(tensor));
    parameters_.emplace(ParameterNames::Mangled(name), made);
    return made;
  }
  void SetInput(NodeId id, size_t input, ValueId v) {
    Node& node = graph_.node(id);
    if (node.inputs.size() <= input) node.inputs.resize(input + 1, kNone);
    node.inputs[input] = v;
    out_.added.push_back({graph_.value(v).name, graph_.value(node.outputs[0]).name, input});
  }

  // The older exporter writes Identity(a) with the output b where the parameters a and b have equal elements. Random ones are equal
  // only if the parameters are one, or copies of modules; b is then left as it is.
  void PartIdentity(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op != "Identity" || !node.domain.empty() || node.inputs.size() != 1 || !IsParameter(node.inputs[0])) return;
    const ValueId old = node.outputs[0];
    const std::string name = graph_.value(old).name;
    if (IsMadeName(name) || name.find('.') == std::string::npos || name.starts_with('/')) return;
    const absl::StatusOr<Tensor> held = graph_.value(node.inputs[0]).constant.Held();
    if (!held.ok() || held->shape().empty() || !IsUniform(*held)) return;
    const Tensor tensor = graph_.value(node.inputs[0]).constant;
    graph_.RemoveNode(id);
    const ValueId made = AddParameter(name, tensor);
    graph_.ReplaceUses(old, made);
    out_.added.push_back({name, name, 0});
  }

  static void SetTrainingMode(Node& node, const ExportCall& call) {
    constexpr size_t kTraining = 5;  // the argument of both functions
    const bool trains =
        call.function == "aten._native_batch_norm_legit_functional" || call.function == "aten._native_batch_norm_legit";
    if (node.op != "BatchNormalization" || !trains || call.arguments.size() <= kTraining) return;
    if (call.arguments[kTraining] == "True") node.attrs.Set("training_mode", int64_t{1});
  }

  // Makes a Gather of a call with padding_idx an mge.Embedding, which does not train the row of padding.
  void KeepPadding(NodeId id, const ExportCall& call) {
    constexpr size_t kPaddingIndex = 2;   // the argument; -1 stands for none
    const Node gather = graph_.node(id);  // a copy: adding nodes moves it
    if (gather.op != "Gather" || !gather.domain.empty() || call.function != "aten.embedding") return;
    if (call.arguments.size() <= kPaddingIndex || gather.attrs.Int("axis", 0) != 0) return;
    int64_t row = -1;
    const std::string& text = call.arguments[kPaddingIndex];
    std::from_chars(text.data(), text.data() + text.size(), row);
    const TensorType& weight = graph_.value(gather.inputs[0]).type;
    if (row < 0 || !weight.has_rank || weight.dims.size() != 2 || !kFloating.Contains(weight.dtype)) return;
    NodeAdder(graph_, gather).AddTo(gather.outputs, "Embedding", gather.inputs, IntAttribute("padding_idx", row), "mge");
    graph_.RemoveNode(id);  // its output stays: it has a new producer
  }

  // Makes an input of a node the parameter that an argument stands for.
  absl::Status Restore(NodeId id, size_t input, const std::string& argument, const std::string& rules) {
    if (ParameterNames::PartOf(argument).empty()) return absl::OkStatus();
    const Node& node = graph_.node(id);
    const ValueId now = input < node.inputs.size() ? node.inputs[input] : kNone;
    if (now == kNone) return AddBias(id, input, argument, rules);
    if (!IsParameter(now) || graph_.value(now).constant.shape().empty()) return absl::OkStatus();
    const ValueId own = Find(argument);
    if (own == now) return absl::OkStatus();
    if (IsMadeName(graph_.value(now).name)) return RestoreCopy(id, input, now, own, argument);
    if (own != kNone) {
      if (graph_.value(own).constant.shape() == graph_.value(now).constant.shape()) SetInput(id, input, own);
      return absl::OkStatus();
    }
    SetInput(id, input, AddParameter(names_.NameOf(argument), graph_.value(now).constant));
    return absl::OkStatus();
  }

  // The input is a value that the exporter has computed of the parameter.
  absl::Status RestoreCopy(NodeId id, size_t input, ValueId now, ValueId own, const std::string& argument) {
    const auto [first, is_first] = copies_.emplace(now, argument);
    const bool is_other = !is_first && first->second != argument;
    if (own != kNone && is_other) return absl::OkStatus();
    if (own != kNone) {
      MGE_ASSIGN_OR_RETURN(const Tensor copy, graph_.value(now).constant.Held());
      MGE_ASSIGN_OR_RETURN(const Tensor whole, graph_.value(own).constant.Held());
      MGE_ASSIGN_OR_RETURN(const bool is_transpose, IsTranspose(copy, whole));
      if (!is_transpose) return absl::OkStatus();
      const std::string name = graph_.value(now).name;
      NodeAdder add(graph_, name + ".parameter");
      const ValueId transposed = add.Add("Transpose", {own}, OneAttribute("perm", std::vector<int64_t>{1, 0}));
      graph_.node(id).inputs[input] = transposed;
      if (is_first) out_.copies.push_back({name, graph_.value(own).name});
      return absl::OkStatus();
    }
    if (is_first) out_.stand_ins.push_back(graph_.value(now).name);
    if (!is_other) return absl::OkStatus();
    const std::string name = names_.NameOf(argument) + ".folded";  // its shape is not that of the parameter
    const auto known = parameters_.find(ParameterNames::Mangled(name));
    if (known == parameters_.end()) out_.stand_ins.push_back(name);
    SetInput(id, input, known != parameters_.end() ? known->second : AddParameter(name, graph_.value(now).constant));
    return absl::OkStatus();
  }

  // The exporter leaves out a bias of zeros.
  absl::Status AddBias(NodeId id, size_t input, const std::string& argument, const std::string& rules) {
    if (rules.find("RemoveOptionalBias") == std::string::npos || !argument.starts_with("%p_")) return absl::OkStatus();
    if (const ValueId own = Find(argument); own != kNone) {
      SetInput(id, input, own);
      return absl::OkStatus();
    }
    const Node& node = graph_.node(id);
    const ValueId weight = node.inputs.size() > 1 ? node.inputs[1] : kNone;
    if (!IsParameter(weight)) return absl::OkStatus();
    const Tensor& tensor = graph_.value(weight).constant;
    const bool transposed = node.op == "ConvTranspose" || (node.op == "Gemm" && node.attrs.Int("transB") == 0);
    if (tensor.shape().size() < 2) return absl::OkStatus();
    const int64_t groups = node.op == "ConvTranspose" ? node.attrs.Int("group", 1) : 1;
    MGE_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Create(tensor.dtype(), {tensor.shape()[transposed ? 1 : 0] * groups}));
    std::memset(zeros.mutable_data(), 0, static_cast<size_t>(zeros.bytes()));
    SetInput(id, input, AddParameter(names_.NameOf(argument), std::move(zeros)));
    return absl::OkStatus();
  }

  Graph& graph_;
  const std::map<std::string, onnx::ExportNote>& notes_;
  const ParameterNames names_;
  std::map<std::string, ValueId, std::less<>> parameters_;  // by ParameterNames::Mangled
  std::map<ValueId, std::string> copies_;                   // computed values and the argument that each stands for
  RestoredExport out_;
};

}  // namespace

absl::StatusOr<RestoredExport> RestoreExported(onnx::Model& model) {
  if (!IsFromPyTorch(model)) return RestoredExport{};
  return Restorer(model).Run();
}

absl::StatusOr<Tensor> TransposedMatrix(const Tensor& matrix) {
  const int64_t rows = matrix.shape()[0], columns = matrix.shape()[1], bytes = ElementBytes(matrix.dtype());
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(matrix.dtype(), {columns, rows}));
  const char* from = static_cast<const char*>(matrix.data());
  char* to = static_cast<char*>(out.mutable_data());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j)
      std::memcpy(to + (j * rows + i) * bytes, from + (i * columns + j) * bytes, static_cast<size_t>(bytes));
  }
  return out;
}

}  // namespace mge
