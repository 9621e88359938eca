// SPDX-License-Identifier: Apache-2.0
#include "core/train/export_notes.h"

#include <algorithm>
#include <cctype>

namespace mge {
namespace {

// The exporter names values of its own after these words and a number.
constexpr std::string_view kWords[] = {"val", "scalar_tensor_default", "_tensor_constant", "lifted_tensor", "constant"};

constexpr size_t kMark = 3;  // the length of "%p_"

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// Splits the text up to its closing parenthesis at the commas that lie in no other one.
std::vector<std::string> SplitArguments(std::string_view text) {
  std::vector<std::string> out;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    const bool closes = c == ')' || c == ']' || c == '}';
    const bool ends = closes && depth == 0;
    if (closes) --depth;
    if (!ends && (c != ',' || depth > 0)) continue;
    if (const std::string_view part = Trimmed(text.substr(begin, i - begin)); !part.empty()) out.emplace_back(part);
    begin = i + 1;
    if (ends) break;
  }
  return out;
}

}  // namespace

std::optional<ExportCall> ParseExportCall(std::string_view note) {
  constexpr std::string_view kTarget = "[target=torch.ops.";
  constexpr std::string_view kArguments = "](args = (";
  const size_t target = note.find(kTarget);
  if (target == std::string_view::npos) return std::nullopt;
  note.remove_prefix(target + kTarget.size());
  const size_t arguments = note.find(kArguments);
  if (arguments == std::string_view::npos) return std::nullopt;
  const std::string_view function = note.substr(0, arguments);
  return ExportCall{std::string(function.substr(0, function.rfind('.'))),
                    SplitArguments(note.substr(arguments + kArguments.size()))};
}

bool IsFromPyTorch(const onnx::Model& model) { return model.info.producer_name == "pytorch"; }

bool IsMadeName(std::string_view name) {
  if (name.starts_with("onnx::")) return true;
  return std::ranges::any_of(kWords, [&](std::string_view word) {
    if (!name.starts_with(word)) return false;
    const std::string_view rest = name.substr(word.size());
    if (rest.empty()) return true;
    return rest.size() > 1 && rest[0] == '_' && rest.find_first_not_of("0123456789", 1) == std::string_view::npos;
  });
}

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

ParameterNames::ParameterNames(const onnx::Model& model) {
  auto add = [&](std::string_view module) {
    if (!module.empty()) modules_.emplace(Mangled(module), module);
  };
  for (ValueId v = 0; v < model.graph.value_count(); ++v) {
    const Value& value = model.graph.value(v);
    if (value.dead || value.role != Role::kConstant) continue;
    if (const size_t dot = value.name.rfind('.'); dot != std::string::npos) add(std::string_view(value.name).substr(0, dot));
  }
  for (const auto& [output, note] : model.info.export_notes) {
    std::string_view rest = note.scopes;  // "['', 'layers', 'layers.0', 'linear_3']"
    for (size_t quote; (quote = rest.find('\'')) != std::string_view::npos;) {
      rest.remove_prefix(quote + 1);
      const size_t end = std::min(rest.find('\''), rest.size());
      add(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
}

std::string ParameterNames::Mangled(std::string_view name) {
  std::string out(name);
  std::ranges::replace_if(
      out, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return out;
}

std::string_view ParameterNames::PartOf(std::string_view argument) {
  constexpr std::string_view kKinds = "pbc";
  const bool fits = argument.size() > kMark && argument[0] == '%' && argument[2] == '_' &&
                    kKinds.find(argument[1]) != std::string_view::npos;
  return fits ? argument.substr(kMark) : std::string_view();
}

std::string ParameterNames::NameOf(std::string_view argument) const {
  const std::string_view whole = PartOf(argument);
  for (size_t end = whole.rfind('_'); end != std::string_view::npos && end > 0; end = whole.rfind('_', end - 1)) {
    const auto module = modules_.find(whole.substr(0, end));
    if (module != modules_.end()) return module->second + "." + std::string(whole.substr(end + 1));
  }
  return std::string(whole);
}

}  // namespace mge
