// SPDX-License-Identifier: Apache-2.0
// Derives cases from an operator's row: every attribute away from its default, every operand broadcast in every position,
// and the defaults of older versions.
//
// Method: take small cases of the operator. Change one attribute, the shape of one operand or the version. Keep a case if
// the reference evaluator accepts it and its result shows the change.
#include <algorithm>
#include <set>

#include "absl/strings/str_split.h"
#include "core/conform/cases.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge::conform {
namespace {

constexpr size_t kBases = 4;        // number of cases that are varied
constexpr double kMaxWork = 40000;  // upper limit of Case::Work() of a case that is varied

// The words that attributes of ONNX's operators accept.
constexpr std::string_view kWords =
    "SAME_UPPER SAME_LOWER VALID reverse bidirectional LEFT RIGHT CRD DCR tanh add mul max min mean sum none "
    "constant reflect edge wrap nearest linear cubic bilinear bicubic zeros border reflection avg floor ceil "
    "round_prefer_ceil half_pixel asymmetric align_corners pytorch_half_pixel half_pixel_symmetric not_larger "
    "not_smaller nesterov standard";

// Returns lists that differ in every position, such as the strides [1,2], the pads [1,0,0,2] and the permutation [1,2,0].
std::vector<std::string> Lists() {
  std::vector<std::string> out;
  for (int n : {1, 2, 3, 4, 6}) {
    std::vector<std::vector<int>> cycles = {{1, 2}, {2, 1}, {2, 3}, {1, 0, 0, 2}, {0, 2, 1, 0}, {}, {}};
    for (int i = 0; i < n; ++i) cycles[5].push_back((i + 1) % n), cycles[6].push_back(n - 1 - i);
    for (const std::vector<int>& cycle : cycles) {
      std::vector<int> list;
      for (int i = 0; i < n; ++i) list.push_back(cycle[static_cast<size_t>(i) % cycle.size()]);
      out.push_back(fmt::format("[{}]", fmt::join(list, ",")));
    }
  }
  for (const char* axes : {"[-1]", "[-2]", "[0,2]", "[0,-1]"}) out.push_back(axes);
  return out;
}

std::vector<std::string> AttributeValues(const Attr& attr) {
  switch (attr.type) {
    case AttrType::kInt: return {"0", "1", "2", "3", "-1", "-2"};
    case AttrType::kFloat: return {"0.5", "2.5", "-0.75"};
    case AttrType::kInts: return Lists();
    case AttrType::kText: {
      std::vector<std::string> out;
      for (absl::string_view word : absl::StrSplit(Absl(kWords), ' ')) out.push_back(fmt::format("\"{}\"", Std(word)));
      return out;
    }
    default: return {};  // lists of numbers and texts, tensors and graphs: only in examples
  }
}

// Returns the bytes and the shapes of the results, to compare two cases.
std::string ResultOf(const Case& c) {
  std::string out;
  for (const Tensor& t : c.expected[0]) {
    out += fmt::format("{};", fmt::join(t.shape(), ","));
    out.append(static_cast<const char*>(t.data()), static_cast<size_t>(t.bytes()));
  }
  return out;
}

// Returns the forms of an operand that broadcasting may accept: sizes of 1 in all combinations, and fewer dimensions.
std::vector<std::string> Narrowed(const std::string& operand) {
  std::vector<std::string> out;
  const size_t open = operand.find('['), close = operand.find(']');
  if (open == std::string::npos || operand.find('<') != std::string::npos) return out;
  std::vector<std::string> dims;
  if (close > open + 1) dims = absl::StrSplit(operand.substr(open + 1, close - open - 1), ',');
  for (size_t first = 0; first <= dims.size() && dims.size() <= 4; ++first) {
    for (unsigned ones = 0; ones < 1u << (dims.size() - first); ++ones) {
      std::vector<std::string> form(dims.begin() + static_cast<ptrdiff_t>(first), dims.end());
      for (size_t d = 0; d < form.size(); ++d) {
        if (ones >> d & 1) form[d] = "1";
      }
      out.push_back(fmt::format("{}[{}]{}", operand.substr(0, open), fmt::join(form, ","), operand.substr(close + 1)));
    }
  }
  return out;
}

class Variations {
 public:
  explicit Variations(const OpDef& def) : def_(def), dtype_(TypesOf(def).front()) {
    for (const std::string& spec : SpecsFor(def)) known_.insert(spec);
  }

  void Vary(const CaseSpec& base, const Case& made) {
    for (const Attr& attr : def_.attrs) {
      if (!attr.name.starts_with('_')) VaryAttribute(base, made, attr);
    }
    for (size_t i = 0; i < base.operands.size(); ++i) {
      for (std::string& form : Narrowed(base.operands[i])) {
        CaseSpec spec = base;
        spec.operands[i] = std::move(form);
        Try(spec, [&](const Case& c) {  // a result of the same shape
          return std::ranges::equal(c.expected[0], made.expected[0], {}, &Tensor::shape, &Tensor::shape);
        });
      }
      VaryAxis(base, made, i);
    }
    std::vector<std::string> versions;
    for (int version = def_.since; def_.upgrade && version < made.graph.node(0).version; ++version)
      versions.push_back(std::to_string(version));
    VaryValue(base, made, versions, false, [](CaseSpec& spec, const std::string& v) { spec.version = std::stoi(v); });
  }
  std::vector<std::string> Take() { return std::move(found_); }

 private:
  template <typename F>
  void Try(const CaseSpec& spec, F&& shows_the_change) {
    std::string text = spec.Text();
    if (known_.contains(text)) return;
    absl::StatusOr<Case> c = MakeCase(def_, dtype_, text);
    if (!c.ok()) return;
    for (const auto& [name, value] : c->graph.node(0).attrs) {
      if (name.starts_with('_')) return;  // such as "_flatten": the host replaces this node
    }
    if (!shows_the_change(*c)) return;
    known_.insert(text);
    found_.push_back(std::move(text));
  }
  // Tries a list of values, which set(spec, value) puts into a spec. Keeps those with a new result. A negative axis is
  // another form of an axis that was tried, so it is kept although the result is the same.
  template <typename F>
  void VaryValue(const CaseSpec& base, const Case& made, const std::vector<std::string>& values, bool axis, F&& set) {
    std::set<std::string> seen = {ResultOf(made)};
    for (const std::string& value : values) {
      CaseSpec spec = base;
      set(spec, value);
      Try(spec, [&](const Case& c) { return seen.insert(ResultOf(c)).second || (axis && value.find('-') != value.npos); });
    }
  }
  void VaryAttribute(const CaseSpec& base, const Case& made, const Attr& attr) {
    const bool axis = attr.name == "axes" || attr.name.ends_with("axis");
    std::vector<std::string> values = AttributeValues(attr);
    if (!axis && attr.type != AttrType::kFloat) std::erase_if(values, [](auto& v) { return v.find('-') != v.npos; });
    VaryValue(base, made, values, axis, [&](CaseSpec& spec, const std::string& value) {
      std::erase_if(spec.attributes, [&](const auto& a) {
        return a.first == attr.name || (attr.name == "auto_pad" && a.first == "pads");  // ONNX allows one of the two
      });
      spec.attributes.emplace_back(attr.name, value);
    });
  }

  // Varies an operand that is one constant integer, such as the axis of ReduceSum.
  void VaryAxis(const CaseSpec& base, const Case& made, size_t i) {
    const std::string& operand = base.operands[i];
    if (!operand.starts_with("int64[1]<") && !operand.starts_with("int64[]<")) return;
    VaryValue(base, made, {"0", "1", "2", "-1", "-2"}, true, [&](CaseSpec& spec, const std::string& value) {
      spec.operands[i] = fmt::format("{}<{}>", operand.substr(0, operand.find('<')), value);
    });
  }

  const OpDef& def_;
  const DType dtype_;
  std::set<std::string> known_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> VariationsOf(const OpDef& def) {
  Variations variations(def);
  size_t bases = 0;
  for (const std::string& text : SpecsFor(def)) {
    absl::StatusOr<Case> made = MakeCase(def, TypesOf(def).front(), text);
    if (!made.ok() || made->Work() > kMaxWork || made->once || text.find("@special") != text.npos ||
        text.find("@rare") != text.npos)
      continue;
    variations.Vary(ParseSpec(text), *made);
    if (++bases == kBases) break;
  }
  return variations.Take();
}

}  // namespace mge::conform
