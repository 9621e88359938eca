// SPDX-License-Identifier: Apache-2.0
#include "core/train/exported.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <string_view>

#include "core/train/export_notes.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr std::string_view kRecipe =
    "export net.train() with torch.onnx.export(..., dynamo=True, optimize=False), as the page of Python says in \"Models "
    "from "
    "PyTorch\"";
constexpr std::string_view kNormalizations[] = {"LayerNormalization", "RMSNormalization", "GroupNormalization",
                                                "InstanceNormalization", "BatchNormalization"};
constexpr std::string_view kRecurrent[] = {"LSTM", "GRU", "RNN"};
constexpr double kMasked = -1e30;

// Returns "'a', 'b' and 3 more".
std::string Some(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  std::string out;
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i) out += fmt::format("{}'{}'", i ? ", " : "", names[i]);
  if (names.size() > kShown) out += fmt::format(" and {} more", names.size() - kShown);
  return out;
}

bool IsAmong(std::string_view op, std::span<const std::string_view> ops) { return std::ranges::find(ops, op) != ops.end(); }

// Returns the calls of the nodes' notes.
std::vector<ExportCall> CallsOf(const onnx::Model& model) {
  std::vector<ExportCall> out;
  for (const auto& [output, note] : model.info.export_notes) {
    if (std::optional<ExportCall> call = ParseExportCall(note.call)) out.push_back(*std::move(call));
  }
  return out;
}

// Returns the names of all arguments of a kind, as ParameterNames::PartOf: "%p_" has the parameters, "%b_" the buffers.
std::set<std::string, std::less<>> ArgumentsOf(std::span<const ExportCall> calls, std::string_view kind) {
  std::set<std::string, std::less<>> out;
  for (const ExportCall& call : calls) {
    for (const std::string& argument : call.arguments) {
      for (size_t at = argument.find(kind); at != std::string::npos; at = argument.find(kind, at + 1)) {  // also in a list
        const size_t end = argument.find_first_of(",])( ", at);
        out.emplace(ParameterNames::PartOf(std::string_view(argument).substr(at, end - at)));
      }
    }
  }
  return out;
}

double Smallest(const Tensor& t) {
  double smallest = 0;
  DispatchFloating(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const T x : t.Data<T>()) smallest = std::min(smallest, static_cast<double>(static_cast<Compute<T>>(x)));
  });
  return smallest;
}

// Returns whether all that a node reads of a value is a scale, bias or state that stands for none.
bool IsNeutralInput(const onnx::Model& model, const Node& node, ValueId v) {
  constexpr size_t kInitialState = 5;  // the first one; an LSTM has another
  const auto at = static_cast<size_t>(std::ranges::find(node.inputs, v) - node.inputs.begin());
  if (IsAmong(node.op, kRecurrent)) return at >= kInitialState;
  if (node.op != "InstanceNormalization" || at == 0) return false;
  const auto note = model.info.export_notes.find(model.graph.value(node.outputs[0]).name);
  if (note == model.info.export_notes.end()) return false;
  const std::optional<ExportCall> call = ParseExportCall(note->second.call);
  return call && call->function.starts_with("aten.group_norm");
}

// Returns whether an initializer with a made name is a number, a mask or neutral.
bool IsComputedConstant(const onnx::Model& model, ValueId v, std::span<const NodeId> readers) {
  const Value& value = model.graph.value(v);
  const bool slope = std::ranges::any_of(readers, [&](NodeId id) { return model.graph.node(id).op == "PRelu"; });
  if (value.constant.elements() == 1) return !value.name.starts_with("onnx::") && !slope;
  const absl::StatusOr<Tensor> held = value.constant.Held();
  if (!held.ok()) return false;
  if (Smallest(*held) <= kMasked) return true;
  const bool neutral = !readers.empty() && std::ranges::all_of(readers, [&](NodeId id) {
    return IsNeutralInput(model, model.graph.node(id), v);
  });
  return neutral && IsUniform(*held);
}

// Returns the uniform parameters that several normalizations read: PyTorch's exporter merges equal ones. Where there are notes,
// RestoreExported() has parted them, and what is shared still is shared in PyTorch.
std::vector<std::string> MergedWeights(const onnx::Model& model, std::span<const std::string> trained) {
  std::vector<std::string> out;
  if (!model.info.export_notes.empty()) return out;
  const std::vector<std::vector<NodeId>> readers = model.graph.Consumers();
  for (ValueId v = 0; v < model.graph.value_count(); ++v) {
    const Value& value = model.graph.value(v);
    if (value.dead || value.role != Role::kConstant || std::ranges::find(trained, value.name) == trained.end()) continue;
    std::set<NodeId> norms;  // a node that reads the value twice counts once
    for (NodeId id : readers[static_cast<size_t>(v)]) {
      if (IsAmong(model.graph.node(id).op, kNormalizations)) norms.insert(id);
    }
    if (norms.size() < 2) continue;
    const absl::StatusOr<Tensor> held = value.constant.Held();
    if (held.ok() && IsUniform(*held)) out.push_back(value.name);
  }
  return out;
}

// Returns a name without its digits.
std::string WithoutDigits(std::string name) {
  std::erase_if(name, [](unsigned char c) { return std::isdigit(c); });
  return name;
}

// Returns the parameters that Identity nodes give a second name that differs by its numbers: layers that were copied, and are equal
// until they are trained.
std::vector<std::string> CopiedLayers(const Graph& graph, std::span<const std::string> trained) {
  std::vector<std::string> out;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.dead || node.op != "Identity" || node.inputs[0] == kNone || node.outputs[0] == kNone) continue;
    const std::string &from = graph.value(node.inputs[0]).name, &to = graph.value(node.outputs[0]).name;
    if (from != to && WithoutDigits(from) == WithoutDigits(to) && std::ranges::find(trained, from) != trained.end())
      out.push_back(to);
  }
  return out;
}

// Returns the trained values that the exporter has computed of parameters, other than one that stands for a single parameter.
std::vector<std::string> ComputedWeights(const onnx::Model& model, std::span<const std::string> trained,
                                         const RestoredExport& restored) {
  const std::vector<ExportCall> calls = CallsOf(model);
  const auto parameters = ArgumentsOf(calls, "%p_");
  const std::vector<std::vector<NodeId>> readers = model.graph.Consumers();
  std::vector<std::string> out;
  for (const std::string& name : trained) {
    const bool known = parameters.empty() || parameters.contains(ParameterNames::Mangled(name));
    const bool made = IsMadeName(name) && !name.starts_with("onnx::");
    if ((known && !made) || std::ranges::find(restored.stand_ins, name) != restored.stand_ins.end()) continue;
    const ValueId v = model.graph.FindValue(name);
    const bool stacked = v != kNone && std::ranges::all_of(readers[static_cast<size_t>(v)], [&](NodeId id) {
                           return IsAmong(model.graph.node(id).op, kRecurrent);  // the gates of a layer, in ONNX's order
                         });
    const bool statistic = v != kNone && std::ranges::any_of(readers[static_cast<size_t>(v)], [&](NodeId id) {
                             return model.graph.node(id).op == "BatchNormalization";
                           });
    if (!stacked && !statistic) out.push_back(name);
  }
  return out;
}

// Signs in the convolutions and BatchNormalizations of a model of the mode in which it was exported.
struct Mode {
  std::vector<std::string> folded;  // weights of convolutions into which a BatchNormalization was folded
  int fixed = 0;                    // BatchNormalizations without training_mode
};

Mode ModeOf(const onnx::Model& model) {
  const Graph& graph = model.graph;
  Mode mode;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.dead || !node.domain.empty()) continue;
    if (node.op == "BatchNormalization" && node.attrs.Int("training_mode") == 0) ++mode.fixed;
    if (node.op != "Conv" && node.op != "ConvTranspose" && node.op != "Gemm") continue;
    const auto note = model.info.export_notes.find(graph.value(node.outputs[0]).name);
    const bool fused =
        note != model.info.export_notes.end() && note->second.rules.find("FuseBatchNorm") != std::string::npos;
    const std::string& weights = graph.value(node.inputs[1]).name;
    const bool has_bias = node.op == "Conv" && node.inputs.size() > 2 && node.inputs[2] != kNone;
    if (fused || (has_bias && IsMadeName(weights))) mode.folded.push_back(weights);
  }
  return mode;
}

}  // namespace

std::vector<bool> ExportedConstants(const onnx::Model& model) {
  std::vector<bool> out(static_cast<size_t>(model.graph.value_count()), false);
  if (!IsFromPyTorch(model)) return out;
  const std::vector<std::vector<NodeId>> readers = model.graph.Consumers();
  const std::vector<ExportCall> calls = CallsOf(model);
  auto buffers = ArgumentsOf(calls, "%b_");
  buffers.merge(ArgumentsOf(calls, "%c_"));
  const auto parameters = ArgumentsOf(calls, "%p_");
  for (ValueId v = 0; v < model.graph.value_count(); ++v) {
    const Value& value = model.graph.value(v);
    if (value.dead || value.role != Role::kConstant || !kFloating.Contains(value.constant.dtype())) continue;
    const std::string name = ParameterNames::Mangled(value.name);
    out[static_cast<size_t>(v)] = (buffers.contains(name) && !parameters.contains(name)) ||
                                  (IsMadeName(value.name) && IsComputedConstant(model, v, readers[static_cast<size_t>(v)]));
  }
  return out;
}

std::vector<std::string> ExportWarnings(const onnx::Model& model, std::span<const std::string> trained,
                                        const RestoredExport& restored) {
  std::vector<std::string> out;
  if (!IsFromPyTorch(model)) return out;
  if (const auto merged = MergedWeights(model, trained); !merged.empty()) {
    out.push_back(
        fmt::format("several normalizations share the parameters {}, whose elements are all equal: the exporter has "
                    "probably merged them, "
                    "and they would be trained as one; {}",
                    Some(merged), kRecipe));
  }
  if (const auto copied = CopiedLayers(model.graph, trained); !copied.empty()) {
    out.push_back(fmt::format(
        "the parameters {} are those of another layer with equal elements: the exporter has probably merged them, "
        "and they would be trained as one; {}",
        Some(copied), kRecipe));
  }
  if (const auto computed = ComputedWeights(model, trained, restored); !computed.empty()) {
    out.push_back(
        fmt::format("{} are trained, and have no names of parameters: the exporter may have computed them, or they are "
                    "constants, which frozen keeps as they are; {}",
                    Some(computed), kRecipe));
  }
  const Mode mode = ModeOf(model);
  if (!mode.folded.empty()) {
    out.push_back(
        fmt::format("the weights {} of convolutions were folded, probably with a BatchNormalization, which is then not "
                    "trained; {}",
                    Some(mode.folded), kRecipe));
  }
  if (mode.fixed > 0) {
    out.push_back(
        fmt::format("{} BatchNormalization nodes were exported for inference: their statistics are not updated; {}",
                    mode.fixed, kRecipe));
  }
  return out;
}

}  // namespace mge
