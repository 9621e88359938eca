// SPDX-License-Identifier: Apache-2.0
#include "core/ops/operators_page.h"

#include <algorithm>
#include <vector>

#include "core/ops/op.h"
#include "fmt/format.h"

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

// "floating, bool": groups first, then what is left. Types that no backend sees do not count.
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
    case AttrType::kInt:
      return "int";
    case AttrType::kFloat:
      return "float";
    case AttrType::kText:
      return "text";
    case AttrType::kInts:
      return "ints";
    case AttrType::kFloats:
      return "floats";
    case AttrType::kTexts:
      return "texts";
    default:
      return nullptr;  // does not cross to a backend
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
  for (const Attr& attr : op.attrs) {
    if (attr.name.starts_with('_')) continue;
    if (const char* type = AttrText(attr.type)) {
      words.push_back(fmt::format("`{}` {}{}", attr.name, type, attr.required ? " (always there)" : ""));
    } else {
      hidden.push_back(fmt::format("`{}`", attr.name));
    }
  }
  if (!words.empty()) out += fmt::format("- attributes: {}\n", fmt::join(words, ", "));
  if (!hidden.empty()) out += fmt::format("- not offered with: {}\n", fmt::join(hidden, ", "));
  if (op.until < 999) out += fmt::format("- of operator sets {} to {} only\n", op.since, op.until);
  return out + "\n";
}

}  // namespace

std::string OperatorsMarkdown() {
  std::vector<const OpDef*> ops;
  for (const OpDef* op : AllOps()) {
    if (!op->Is(kHostOnly)) ops.push_back(op);
  }
  std::sort(ops.begin(), ops.end(), [](const OpDef* a, const OpDef* b) {
    return a->domain != b->domain ? a->domain < b->domain : a->name < b->name;
  });
  std::string out =
      "# Operators as a backend sees them\n\n"
      "Generated from the schemas in `core/ops`; a test keeps it fresh. Shapes and meaning are those of ONNX's newest "
      "operator set.\n\n"
      "What the host has done before a node reaches a backend:\n\n"
      "- The node is in the form given here, whatever operator set the model was written for: attributes that became inputs "
      "are\n"
      "  inputs, changed defaults are spelt out. `mge_node.version` is 0, or the set that the model imports. A node whose "
      "old set\n"
      "  has a meaning that this form cannot say is not offered to backends.\n"
      "- Inputs, attributes, types and shapes are checked. An optional attribute that the model leaves out does not arrive: the\n"
      "  kernel takes ONNX's default for it.\n"
      "- Every input and output is a tensor of a known type and shape. Control flow, sequences, optionals, strings, "
      "complex\n"
      "  numbers, sizes that only the data tell, and shape arithmetic stay in the host.\n"
      "- Attributes that are tensors or graphs do not cross: a node that has one is not offered. A list of texts (`texts` "
      "below)\n"
      "  arrives as one text, its elements separated by commas; a node with an empty element or a comma in one is not "
      "offered.\n\n"
      "Types: `floating` is float32, float64, float16 and bfloat16; `signed` int8 to int64; `unsigned` uint8 to uint64; "
      "`integer`\n"
      "both; `numeric` floating and integer; `index` int32 and int64; `any` numeric and bool. Which of them a kernel takes, "
      "its row\n"
      "says; the types of outputs follow from the inputs.\n\n"
      "Beside these there is `mge::Reorder`, one input and one output of equal type and shape in two layouts: a kernel of "
      "it moves\n"
      "a tensor from one to the other.\n\n";
  for (const OpDef* op : ops) out += OpText(*op);
  out.pop_back();  // no empty line at the end
  return out;
}

}  // namespace mge
