// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reports/operators_page.h"

#include <algorithm>
#include <vector>

#include "core/ops/op.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {
namespace {

struct TypeGroup {
  const char* name;
  TypeSet types;
};
constexpr TypeGroup kGroups[] = {
    {"any", kFixedSize}, {"numeric", kNumeric},   {"floating", kFloating}, {"integer", kInteger},
    {"signed", kSigned}, {"unsigned", kUnsigned}, {"index", kIndex},
};

// Returns a text such as "floating, bool": groups first, then single types. Ignores types that no backend receives.
std::string TypesText(TypeSet types) {
  std::vector<std::string> words;
  TypeSet left;
  for (int t = 1; t < kDTypeCount; ++t) {
    auto dtype = static_cast<DType>(t);
    if (types.Contains(dtype) && kFixedSize.Contains(dtype)) left = left | TypeSet{dtype};
  }
  auto has_all = [&](TypeSet group) {
    for (int t = 1; t < kDTypeCount; ++t) {
      auto dtype = static_cast<DType>(t);
      if (group.Contains(dtype) && !left.Contains(dtype)) return false;
    }
    return true;
  };
  for (const TypeGroup& group : kGroups) {
    if (!has_all(group.types)) continue;
    words.emplace_back(group.name);
    TypeSet rest;
    for (int t = 1; t < kDTypeCount; ++t) {
      auto dtype = static_cast<DType>(t);
      if (left.Contains(dtype) && !group.types.Contains(dtype)) rest = rest | TypeSet{dtype};
    }
    left = rest;
  }
  for (int t = 1; t < kDTypeCount; ++t) {
    if (left.Contains(static_cast<DType>(t))) words.emplace_back(DTypeName(static_cast<DType>(t)));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

const char* AttrText(AttrType type) {
  switch (type) {
    case AttrType::kInt: return "int";
    case AttrType::kFloat: return "float";
    case AttrType::kText: return "text";
    case AttrType::kInts: return "ints";
    case AttrType::kFloats: return "floats";
    case AttrType::kTexts: return "texts";
    default: return nullptr;  // not offered to backends
  }
}

// Returns "required", "optional", "always present" or "default 0.01".
std::string PresenceText(const Attr& attr) {
  switch (attr.presence) {
    case Presence::kRequired: return "required";
    case Presence::kOptional: return "optional";
    case Presence::kNormal: return "always present";
    case Presence::kDefault: break;
  }
  switch (attr.type) {
    case AttrType::kInt: return fmt::format("default {}", attr.int_value);
    case AttrType::kFloat: return fmt::format("default {}", attr.float_value);
    case AttrType::kText: return fmt::format("default \"{}\"", attr.text_value);
    default: return fmt::format("default [{}]", fmt::join(std::get<Ints>(attr.DefaultValue()), ", "));
  }
}

std::string ArityText(Arity arity) {
  return arity == Arity::kOptional ? " (optional)" : arity == Arity::kVariadic ? " (any number)" : "";
}

std::string OpText(const OpDef& op) {
  std::string out =
      fmt::format("### {}{}\n\n{}\n\n", op.domain.empty() ? "" : fmt::format("{}::", op.domain), op.name, op.doc);
  std::vector<std::string> words;
  for (const Slot& slot : op.inputs) {
    words.push_back(fmt::format("`{}`{}: {}", slot.name, ArityText(slot.arity), TypesText(slot.types)));
  }
  out += fmt::format("- inputs: {}\n", words.empty() ? "none" : fmt::format("{}", fmt::join(words, "; ")));
  words.clear();
  for (const Slot& slot : op.outputs) words.push_back(fmt::format("`{}`{}", slot.name, ArityText(slot.arity)));
  out += fmt::format("- outputs: {}\n", fmt::join(words, "; "));
  words.clear();
  std::vector<std::string> hidden;
  std::string attributes;
  for (const Attr& attr : op.attrs) {
    if (attr.name.starts_with('_')) continue;
    if (const char* type = AttrText(attr.type)) {
      attributes += fmt::format("  - `{}`: {}, {}: {}\n", attr.name, type, PresenceText(attr), attr.doc);
    } else {
      hidden.push_back(fmt::format("`{}`", attr.name));
    }
  }
  if (!attributes.empty()) out += "- attributes:\n" + attributes;
  if (!hidden.empty()) out += fmt::format("- not offered with attribute: {}\n", fmt::join(hidden, ", "));
  if (op.body) out += "- the host replaces it by other operators, unless every device has a kernel for it\n";
  if (op.gradient) out += "- can be trained: its gradient consists of other operators\n";
  if (!op.gradient && op.body) out += "- can be trained if the operators that replace it can\n";
  if (op.until < 999) out += fmt::format("- only in operator sets {} to {}\n", op.since, op.until);
  return out + "\n";
}

}  // namespace

std::string OperatorsMarkdown() {
  std::string out =
      "# Operators as a backend sees them\n\n"
      "This page is generated from the schemas in `core/ops`; a test compares it with them. Shapes and semantics "
      "are those of\n"
      "ONNX's newest operator set.\n\n"
      "The host prepares every node before it offers the node to a backend:\n\n"
      "- The host converts the node to the form on this page, for every operator set of the model. Attributes that "
      "became\n"
      "  inputs are inputs, and changed defaults are explicit. `mge_node.version` is 0, or the operator set that "
      "the model\n"
      "  imports. A node whose old meaning this form cannot express is not offered to backends.\n"
      "- The host checks inputs, attributes, types and shapes.\n"
      "- Attributes have their normal form. Those with a default are always there, and so are those that this page "
      "calls always\n"
      "  present. Only optional ones may be absent, with the meaning that their line tells. Axes are not negative. "
      "`auto_pad` is\n"
      "  `NOTSET`: pads are explicit, also for the models' `SAME_UPPER`, `SAME_LOWER` and `VALID`. Do not repeat a "
      "default in a\n"
      "  kernel.\n"
      "- Every input and output is a tensor of known type and shape. These stay on the host: control flow, "
      "sequences,\n"
      "  optionals, strings, complex numbers, shape arithmetic, and tensors whose sizes depend on data.\n"
      "- A node with an attribute that is a tensor or a graph is not offered. A list of strings (`texts` below) is "
      "passed as\n"
      "  one string of comma-separated elements. A node with an empty element, or with a comma in an element, is "
      "not offered.\n\n"
      "Types: `floating` is float32, float64, float16 and bfloat16; `signed` is int8 to int64; `unsigned` is uint8 "
      "to uint64;\n"
      "`integer` is both; `numeric` is floating and integer; `index` is int32 and int64; `any` is numeric and "
      "bool. A kernel's\n"
      "row declares the types that it supports. The types of outputs follow from the inputs.\n\n"
      "There is one more operator: `mge::Reorder` copies a tensor from one layout to another. Its input and output "
      "have the\n"
      "same type and shape.\n\n";
  for (const OpDef* op : AllOps()) {
    if (!op->Is(kHostOnly)) out += OpText(*op);
  }
  out.pop_back();  // no empty line at the end
  return out;
}

}  // namespace mge
