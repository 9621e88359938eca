// SPDX-License-Identifier: Apache-2.0
#include "core/train/exported.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "fmt/format.h"

namespace mge {
namespace {

// The exporter names values of its own after these words and a number; parameters keep their names in PyTorch, such as
// "layers.0.norm.weight".
constexpr std::string_view kWords[] = {"val", "scalar_tensor_default", "_tensor_constant", "lifted_tensor", "constant"};
constexpr std::string_view kRecipe =
    "export net.train() with torch.onnx.export(..., dynamo=True, optimize=False), as the page of Python says in \"Models "
    "from "
    "PyTorch\"";
constexpr std::string_view kNormalizations[] = {"LayerNormalization", "RMSNormalization", "GroupNormalization",
                                                "InstanceNormalization", "BatchNormalization"};

bool IsPyTorch(const onnx::Model& model) { return model.info.producer_name == "pytorch"; }

// Returns whether a name is one of the words, followed by nothing or by "_" and a number.
bool IsMadeName(std::string_view name) {
  return std::ranges::any_of(kWords, [&](std::string_view word) {
    if (!name.starts_with(word)) return false;
    const std::string_view rest = name.substr(word.size());
    if (rest.empty()) return true;
    return rest.size() > 1 && rest[0] == '_' && rest.find_first_not_of("0123456789", 1) == std::string_view::npos;
  });
}

// Returns whether the weights have a name that constant folding has made: "onnx::Conv_12" of the older exporter.
bool IsFoldedName(std::string_view name) { return name.starts_with("onnx::") || IsMadeName(name); }

// Returns whether all elements are equal, as those of a normalization before its training. Reads at most some of them.
bool IsUniform(const Tensor& t) {
  bool uniform = t.elements() > 0;
  DispatchFloating(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto all = t.Data<T>();
    for (size_t i = 1; i < all.size() && uniform; ++i) {
      uniform = static_cast<double>(static_cast<Compute<T>>(all[i])) == static_cast<double>(static_cast<Compute<T>>(all[0]));
    }
  });
  return uniform;
}

// Returns "'a', 'b' and 3 more".
std::string Some(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  std::string out;
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i) out += fmt::format("{}'{}'", i ? ", " : "", names[i]);
  if (names.size() > kShown) out += fmt::format(" and {} more", names.size() - kShown);
  return out;
}

// Returns the uniform parameters that several normalizations read: PyTorch's exporter merges equal ones.
std::vector<std::string> MergedWeights(const onnx::Model& model, std::span<const std::string> trained) {
  std::vector<std::string> out;
  const std::vector<std::vector<NodeId>> readers = model.graph.Consumers();
  for (ValueId v = 0; v < model.graph.value_count(); ++v) {
    const Value& value = model.graph.value(v);
    if (value.dead || value.role != Role::kConstant || std::ranges::find(trained, value.name) == trained.end()) continue;
    std::set<NodeId> norms;  // a node that reads the value twice counts once
    for (NodeId id : readers[static_cast<size_t>(v)]) {
      if (std::ranges::find(kNormalizations, model.graph.node(id).op) != std::end(kNormalizations)) norms.insert(id);
    }
    if (norms.size() < 2) continue;
    const absl::StatusOr<Tensor> held = value.constant.Held();
    if (held.ok() && IsUniform(*held)) out.push_back(value.name);
  }
  return out;
}

// Signs in the convolutions and BatchNormalizations of a model of the mode in which it was exported.
struct Mode {
  std::vector<std::string> folded;  // weights of convolutions with a bias that folding has named
  int fixed = 0;                    // BatchNormalizations without training_mode
};

Mode ModeOf(const Graph& graph) {
  Mode mode;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.dead || !node.domain.empty()) continue;
    if (node.op == "BatchNormalization" && node.attrs.Int("training_mode") == 0) ++mode.fixed;
    const bool has_bias = node.op == "Conv" && node.inputs.size() > 2 && node.inputs[2] != kNone;
    if (has_bias && IsFoldedName(graph.value(node.inputs[1]).name)) mode.folded.push_back(graph.value(node.inputs[1]).name);
  }
  return mode;
}

}  // namespace

bool IsExportedNumber(const onnx::Model& model, ValueId initializer) {
  const Value& value = model.graph.value(initializer);
  return IsPyTorch(model) && value.constant.elements() == 1 && IsMadeName(value.name);
}

std::vector<std::string> ExportWarnings(const onnx::Model& model, std::span<const std::string> trained) {
  std::vector<std::string> out;
  if (!IsPyTorch(model)) return out;
  if (const auto merged = MergedWeights(model, trained); !merged.empty()) {
    out.push_back(
        fmt::format("several normalizations share the parameters {}, whose elements are all equal: the exporter has "
                    "probably merged them, "
                    "and they would be trained as one; {}",
                    Some(merged), kRecipe));
  }
  std::vector<std::string> made;
  for (const std::string& name : trained) {
    if (IsMadeName(name)) made.push_back(name);
  }
  if (!made.empty()) {
    out.push_back(
        fmt::format("{} are trained, and have no names of parameters: the exporter may have computed them, or they are "
                    "constants, which frozen keeps as they are; {}",
                    Some(made), kRecipe));
  }
  const Mode mode = ModeOf(model.graph);
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
