// SPDX-License-Identifier: Apache-2.0
// Chooses sizes for the dimensions that a model leaves open.
//
// First tries a common size for each dimension, chosen by its name and position. If type inference fails, searches:
// changes one dimension at a time and keeps the size for which inference determines the most types. Candidates are
// sizes that occur in the model and common sizes. The search ends after kRounds rounds or a number of attempts that
// depends on the graph's size.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "core/base/errors.h"
#include "core/base/lower_case.h"
#include "core/base/nearest.h"
#include "core/ops/declared_type.h"
#include "core/ops/examples/contains_any.h"
#include "core/ops/examples/example_inputs.h"
#include "core/ops/op.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int64_t kImageSize = 224, kLength = 16;
constexpr int64_t kUsualSizes[] = {1,  16, 224, 2,   4,   8,   32,  64,  128, 256,  512,  1024, 3,    48,
                                   80, 96, 160, 192, 320, 384, 448, 640, 768, 1280, 1536, 2048, 4096, 16000};
// Returns the shapes to try for inputs that declare no rank.
std::vector<Shape> Forms() { return {{}, {1}, {1, kLength}, {1, kLength, kLength}, {1, 3, kImageSize, kImageSize}}; }
constexpr size_t kMaxModelSizes = 32;
constexpr int64_t kLargestModelSize = 1 << 16;
constexpr int kRounds = 3;
// Returns the maximum number of type inferences in a search. It is smaller for larger graphs.
int Tries(const Graph& graph) { return std::clamp(400'000 / std::max(graph.node_count(), 1), 24, 600); }

// An open size: one dimension, or all dimensions with one name.
struct Unknown {
  std::string name;
  std::vector<std::pair<size_t, int>> places;  // input, axis
  int64_t size = 1;
  std::string reason;
};

bool IsImage(const TensorType& type, int axis) {
  if (type.dims.size() != 4) return false;
  auto channels = [&](int64_t d) { return d == 1 || d == 3 || d == 4; };
  return (axis >= 2 && channels(type.dims[1])) || (axis >= 1 && axis <= 2 && channels(type.dims[3])) ||
         (axis >= 2 && type.dims[1] < 0 && type.dims[3] < 0);
}

void Guess(const TensorType& type, int axis, Unknown* out) {
  const std::string name = LowerCase(out->name);
  auto set = [&](int64_t size, const char* reason) {
    out->size = size;
    out->reason = reason;
  };
  if (ContainsAny(name, {"batch"}) || name == "n" || name == "b") return set(1, "a batch of 1");
  if (ContainsAny(name, {"height", "width"}) || name == "h" || name == "w" || IsImage(type, axis)) {
    return set(axis == 1 && type.dims.size() == 4 && type.dims[3] < 0 ? 3 : kImageSize, "a usual size of images");
  }
  if (ContainsAny(name, {"seq", "len", "time", "token", "frame"})) return set(kLength, "a short sequence");
  if (axis == 0) return set(1, "a batch of 1");
  if (type.dims.size() == 4 && axis == 1) return set(3, "a usual number of channels");
  set(kLength, "a small size");
}

// Returns sizes that occur in the model, the most frequent first: its constants' dimensions and the elements of small
// constants.
std::vector<int64_t> ModelSizes(const Graph& graph) {
  std::map<int64_t, int> counts;
  auto add = [&](int64_t size) {
    if (size > 1 && size <= kLargestModelSize) ++counts[size];
  };
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    const Value& value = graph.value(v);
    if (value.dead || value.role != Role::kConstant) continue;
    for (int64_t d : value.type.dims) add(d);
    if (value.type.dtype == DType::kI64 && value.constant.elements() <= 8) {
      for (int64_t i = 0; i < value.constant.elements(); ++i) add(value.constant.Data<int64_t>()[static_cast<size_t>(i)]);
    }
  }
  std::vector<std::pair<int64_t, int>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<int64_t> out;
  for (size_t i = 0; i < sorted.size() && i < kMaxModelSizes; ++i) out.push_back(sorted[i].first);
  return out;
}

class Search {
 public:
  Search(const Graph& graph, const ExampleOptions& options, std::span<const HostValue> given,
         std::vector<ExampleInput>* inputs)
      : graph_(graph), inputs_(*inputs) {
    std::map<std::string, int64_t> bound;  // sizes of named dimensions that the caller chose
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t i = 0; i < inputs_.size(); ++i) {
        const Value& value = graph.value(graph.inputs()[i]);
        auto asked = options.shapes.find(value.name);
        const bool is_given = given[i].kind != ValueKind::kTensor || given[i].tensor.defined();
        const bool settled = is_given || asked != options.shapes.end();
        if (settled != (pass == 0)) continue;
        ExampleInput& input = inputs_[i];
        input.given = is_given;
        if (is_given) input.shape = given[i].kind == ValueKind::kTensor ? given[i].tensor.shape() : Shape();
        if (!is_given && settled) input.shape = asked->second;
        if (!settled) {
          Open(i, value.type, bound);
          continue;
        }
        for (size_t d = 0; d < value.type.symbols.size() && d < input.shape.size(); ++d) {
          if (!value.type.symbols[d].empty()) bound.emplace(value.type.symbols[d], input.shape[d]);
        }
      }
    }
  }

  // Searches for sizes. Sets `typed` to the graph with the best ones, unless the caller supplied all inputs.
  absl::Status Run(Graph* typed) {
    if (std::all_of(inputs_.begin(), inputs_.end(), [](const ExampleInput& i) { return i.given; })) return absl::OkStatus();
    tries_ = Tries(graph_);
    int64_t best = Try(typed);
    const absl::Status first = last_;
    if (!last_.ok() && !rankless_.empty()) ChooseForm(&best, typed);
    std::vector<int64_t> sizes = ModelSizes(graph_);
    sizes.insert(sizes.begin(), 1);
    sizes.insert(sizes.end(), std::begin(kUsualSizes), std::end(kUsualSizes));
    for (int round = 0; round < kRounds && !last_.ok() && tries_ > 0; ++round) {
      const int64_t before = best;
      for (Unknown& unknown : unknowns_) {
        Improve(unknown, sizes, &best, typed);
        if (last_.ok()) return absl::OkStatus();
      }
      if (best == before) break;
    }
    if (last_.ok()) return last_;
    if (unknowns_.empty() && rankless_.empty()) return first;
    ErrorParts parts = PartsOf(first);
    return Fail(errors::kBadInput, "found no input sizes that are valid for the model",
                {.what = fmt::format("tried first: {}: {}", Words(), ErrorTitle(first)),
                 .where = parts.where,
                 .fix = "give the shapes with --shape NAME=1x3x224x224, or real inputs with --input"});
  }

  void Finish() {
    for (const Unknown& unknown : unknowns_) {
      for (auto [i, axis] : unknown.places) {
        inputs_[i].chosen.push_back({axis, unknown.name, unknown.size, unknown.reason});
      }
    }
    for (size_t i : rankless_) {
      for (size_t d = 0; d < inputs_[i].shape.size(); ++d) {
        inputs_[i].chosen.push_back({static_cast<int>(d), "", inputs_[i].shape[d], "the model declares no rank"});
      }
    }
  }

 private:
  void Open(size_t i, const TensorType& type, const std::map<std::string, int64_t>& bound) {
    inputs_[i].shape = type.dims;
    if (!type.has_rank) rankless_.push_back(i);
    for (size_t d = 0; d < type.dims.size(); ++d) {
      if (type.dims[d] >= 0) continue;
      std::string name = d < type.symbols.size() ? type.symbols[d] : "";
      if (auto known = bound.find(name); !name.empty() && known != bound.end()) {
        inputs_[i].shape[d] = known->second;
        continue;
      }
      auto same = std::find_if(unknowns_.begin(), unknowns_.end(),
                               [&](const Unknown& u) { return !name.empty() && u.name == name; });
      if (same == unknowns_.end()) {
        unknowns_.emplace_back().name = name;
        same = unknowns_.end() - 1;
        Guess(type, static_cast<int>(d), &*same);
      }
      same->places.emplace_back(i, static_cast<int>(d));
    }
  }

  // Infers types with the current sizes. Returns the number of values whose size is then known. Sets last_ to the
  // status.
  int64_t Try(Graph* typed) {
    --tries_;
    for (const Unknown& unknown : unknowns_) {
      for (auto [i, axis] : unknown.places) inputs_[i].shape[static_cast<size_t>(axis)] = unknown.size;
    }
    *typed = graph_;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      Value& value = typed->value(typed->inputs()[i]);
      if (value.kind == ValueKind::kTensor) value.type = {value.type.dtype, true, inputs_[i].shape, {}};
    }
    last_ = InferTypes(*typed);
    int64_t known = 0;
    for (ValueId v = 0; v < typed->value_count(); ++v) known += typed->value(v).type.IsStatic();
    return known;
  }

  // Tries all forms for the inputs without a rank. Keeps the form for which inference determines the most types.
  void ChooseForm(int64_t* best, Graph* typed) {
    auto use = [&](const Shape& form) {
      for (size_t i : rankless_) inputs_[i].shape = form;
      return Try(typed);
    };
    Shape chosen;
    for (const Shape& form : Forms()) {
      const int64_t known = use(form);
      if (last_.ok()) return;
      if (known <= *best) continue;
      *best = known;
      chosen = form;
    }
    use(chosen);
  }

  // Tries all sizes for one dimension. Keeps the size for which inference determines the most types.
  void Improve(Unknown& unknown, const std::vector<int64_t>& sizes, int64_t* best, Graph* typed) {
    const int64_t present = unknown.size;
    int64_t chosen = present;
    std::set<int64_t> tried = {present};
    std::vector<int64_t> all = sizes;
    int64_t sum = 0;
    for (const Unknown& other : unknowns_) {
      all.push_back(other.size);
      sum += other.size;
    }
    all.push_back(sum - present);
    for (int64_t size : all) {
      if (tries_ <= 0 || !tried.insert(size).second) continue;
      unknown.size = size;
      const int64_t known = Try(typed);
      if (!last_.ok() && known <= *best) continue;
      *best = known;
      chosen = size;
      unknown.reason = "the first size that is valid for the model";
      if (last_.ok()) return;
    }
    unknown.size = chosen;
    Try(typed);
  }

  std::string Words() const {
    std::string out;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      out += fmt::format("{}{}={}", i ? ", " : "", graph_.value(graph_.inputs()[i]).name, fmt::join(inputs_[i].shape, "x"));
    }
    return out;
  }

  const Graph& graph_;
  std::vector<ExampleInput>& inputs_;
  std::vector<Unknown> unknowns_;
  std::vector<size_t> rankless_;  // inputs that declare no rank
  int tries_ = 0;
  absl::Status last_;
};

}  // namespace

absl::StatusOr<Shape> ParseShapeText(std::string_view text) {
  Shape shape;
  std::string_view rest = text;
  for (bool more = !text.empty(); more;) {
    int64_t size = 0;
    auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    more = rest.starts_with('x');
    if (failure != std::errc() || size < 0 || (!more && !rest.empty())) {
      return Fail(errors::kUsage, fmt::format("'{}' is not a shape", text),
                  {.fix = "write sizes joined by x, as in 1x3x224x224"});
    }
    if (more) rest.remove_prefix(1);
    shape.push_back(size);
  }
  return shape;
}

absl::Status ChooseExampleShapes(const Graph& graph, const ExampleOptions& options, std::span<const HostValue> given,
                                 std::vector<ExampleInput>* out, Graph* typed) {
  out->assign(graph.inputs().size(), {});
  std::vector<std::string> names;
  for (ValueId v : graph.inputs()) names.push_back(graph.value(v).name);
  for (const auto& [name, shape] : options.shapes) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return Fail(errors::kUsage, fmt::format("the model has no input '{}'.{}", name, DidYouMean(Nearest(name, names))),
                {.what = fmt::format("its inputs are: {}", fmt::join(names, ", ")),
                 .fix = "name one of them in --shape NAME=SIZES"});
  }
  for (ValueId v : graph.inputs()) {
    const Value& declared = graph.value(v);
    auto asked = options.shapes.find(declared.name);
    if (asked == options.shapes.end() || declared.kind != ValueKind::kTensor) continue;
    MGE_RETURN_IF_ERROR(RequireDeclaredType(declared, declared.type.dtype, asked->second));
  }
  Search search(graph, options, given, out);
  MGE_RETURN_IF_ERROR(search.Run(typed));
  search.Finish();
  return absl::OkStatus();
}

}  // namespace mge
