// SPDX-License-Identifier: Apache-2.0
// Attributes with a closed list of values are checked by the host when types are inferred, so that no device accepts what
// another refuses.
#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/conform/cases.h"
#include "core/ops/interpreter.h"
#include "fmt/format.h"
#include "gtest/gtest.h"

namespace mge::conform {
namespace {

// Attributes that may have any text, or that have no meaning without the types of the whole node.
bool IsFree(const Attr& a) {
  static const std::set<std::string_view> free = {"equation",  "locale",   "default_string", "delimiter",
                                                  "pad_value", "tokenexp", "value_string",   "type"};
  return free.contains(a.name) || a.name.starts_with('_');
}

// Returns whether the host refuses the node of a case with the attribute set to `value`.
bool IsRefused(const Case& c, std::string_view name, AttributeValue value) {
  Graph graph = c.graph;
  for (NodeId id = 0; id < graph.node_count(); ++id) graph.node(id).attrs.Set(std::string(name), value);
  return !InferTypes(graph).ok();
}

TEST(Attributes, AnUnknownWordIsRefusedByTheHost) {
  int checked = 0;
  for (const OpDef* def : CheckableOps()) {
    if (def->domain == "mge") continue;  // no model has them
    for (const Attr& a : def->attrs) {
      if (a.type != AttrType::kText || IsFree(a)) continue;
      for (const std::string& spec : SpecsFor(*def)) {
        absl::StatusOr<Case> c = MakeCase(*def, TypesOf(*def)[0], spec);
        if (!c.ok()) continue;
        EXPECT_TRUE(IsRefused(*c, a.name, std::string("sideways"))) << spec << " accepts " << a.name << "=\"sideways\"";
        ++checked;
        break;
      }
    }
  }
  EXPECT_GT(checked, 40);
}

TEST(Attributes, AnAxisOutsideOfTheRankIsRefusedByTheHost) {
  // These have an axis that they ignore in some cases: one scale for all elements, no axis at all.
  const std::set<std::string_view> ignored = {"DequantizeLinear", "QuantizeLinear"};
  int checked = 0;
  for (const OpDef* def : CheckableOps()) {
    if (def->domain == "mge") continue;  // no model has them
    for (const Attr& a : def->attrs) {
      if (a.name != "axis" || a.type != AttrType::kInt || ignored.contains(def->name)) continue;
      for (const std::string& spec : SpecsFor(*def)) {
        absl::StatusOr<Case> c = MakeCase(*def, TypesOf(*def)[0], spec);
        if (!c.ok()) continue;
        EXPECT_TRUE(IsRefused(*c, "axis", int64_t{99})) << spec << " accepts axis=99";
        EXPECT_TRUE(IsRefused(*c, "axis", int64_t{-99})) << spec << " accepts axis=-99";
        ++checked;
        break;
      }
    }
  }
  EXPECT_GT(checked, 20);
}

// Sizes out of range, and those whose sums and products overflow or wrap to small numbers.
constexpr int64_t kExtremes[] = {std::numeric_limits<int64_t>::min(),
                                 -1,
                                 0,
                                 int64_t{1} << 31,
                                 int64_t{1} << 40,
                                 0x5555555555555555,
                                 int64_t{1} << 61,
                                 int64_t{1} << 62,
                                 std::numeric_limits<int64_t>::max() - 1,
                                 std::numeric_limits<int64_t>::max()};

// An integer of a node: an attribute, or an element of a constant input or of an attribute that is a list.
struct Place {
  std::string attribute;
  ValueId constant = kNone;
  size_t index = 0;
};

std::vector<Place> PlacesOf(const Graph& graph) {
  std::vector<Place> out;
  const Node& node = graph.node(0);
  for (const Attr& a : node.def->attrs) {
    const std::string name(a.name);
    if (name.starts_with('_')) continue;
    const size_t count = a.type == AttrType::kInts ? node.attrs.IntList(name, {}).size() : a.type == AttrType::kInt;
    for (size_t i = 0; i < count; ++i) out.push_back({name, kNone, i});
  }
  constexpr int64_t kMaxElements = 4;
  for (ValueId v : node.inputs) {
    if (v == kNone || graph.value(v).role != Role::kConstant) continue;
    const Tensor& t = graph.value(v).constant;
    if (t.dtype() != DType::kI64 && t.dtype() != DType::kI32) continue;
    for (int64_t i = 0; i < std::min(t.elements(), kMaxElements); ++i) out.push_back({"", v, static_cast<size_t>(i)});
  }
  return out;
}

void Write(Graph& graph, const Place& place, int64_t number) {
  Attributes& attrs = graph.node(0).attrs;
  if (place.constant != kNone) {
    Tensor& constant = graph.value(place.constant).constant;
    constant = TensorOf(constant.dtype(), constant.shape(), constant.data());
    if (constant.dtype() == DType::kI64) {
      constant.MutableData<int64_t>()[place.index] = number;
    } else {
      using Limits = std::numeric_limits<int32_t>;
      constant.MutableData<int32_t>()[place.index] =
          static_cast<int32_t>(std::clamp<int64_t>(number, Limits::min(), Limits::max()));
    }
  } else if (const AttributeValue* value = attrs.Find(place.attribute); value && std::holds_alternative<Ints>(*value)) {
    Ints list = std::get<Ints>(*value);
    list[place.index] = number;
    attrs.Set(place.attribute, std::move(list));
  } else {
    attrs.Set(place.attribute, number);
  }
}

// An allocator of few bytes.
class Few : public HostAllocator {
 public:
  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(int64_t bytes) override {
    if (bytes > left_) return Fail(errors::kOverBudget, "the test's budget");
    left_ -= bytes;
    return UnlimitedHostAllocator().Allocate(bytes);
  }

 private:
  int64_t left_ = 4 << 20;
};

// Infers types and runs the node. Expects valid shapes, and an error of the table if there is one.
void ExpectDefined(Graph graph, const std::vector<Tensor>& inputs, const std::string& what) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(100);
  const auto stop = [&] { return Clock::now() < end ? absl::OkStatus() : Fail(errors::kTimeout, "the test's limit"); };
  absl::Status status = InferTypes(graph, stop);
  if (status.ok()) {
    for (ValueId v : graph.outputs()) {
      const TensorType& type = graph.value(v).type;
      const bool valid = std::ranges::all_of(type.dims, [](int64_t d) { return d >= kUnknownDim; });
      EXPECT_TRUE(valid) << what << ": " << ShapeText(type.dims);
      if (!valid) return;
    }
    std::vector<HostValue> values;
    for (const Tensor& t : inputs) values.emplace_back().tensor = t;
    Few allocator;
    status = Interpret(graph, std::move(values), allocator, stop).status();
  }
  EXPECT_NE(ErrorId(status), errors::kInternal.id) << what << ": " << FormatError(status);
  EXPECT_TRUE(status.ok() || ErrorId(status) != 0) << what << ": " << status;
}

class Integers : public testing::TestWithParam<const OpDef*> {};

TEST_P(Integers, OfAnySizeGiveAResultOrAnError) {
  const OpDef& def = *GetParam();
  for (const std::string& spec : SpecsFor(def)) {
    absl::StatusOr<Case> c = MakeCase(def, TypesOf(def)[0], spec);
    if (!c.ok()) continue;
    const std::vector<Place> places = PlacesOf(c->graph);
    for (size_t a = 0; a < places.size(); ++a) {
      for (size_t b = a; b < places.size(); ++b) {  // two of them may overflow together
        for (int64_t number : kExtremes) {
          Graph graph = c->graph;
          Write(graph, places[a], number);
          if (b != a) Write(graph, places[b], number);
          ExpectDefined(std::move(graph), c->inputs[0],
                        fmt::format("{} with {} in {} and {}", spec, number, places[a].attribute, places[b].attribute));
        }
      }
    }
  }
}

std::vector<const OpDef*> OpsOfModels() {
  std::vector<const OpDef*> ops(AllOps().begin(), AllOps().end());
  std::erase_if(ops, [](const OpDef* def) { return def->domain == "mge" || TypesOf(*def).empty(); });
  return ops;
}

INSTANTIATE_TEST_SUITE_P(Operators, Integers, testing::ValuesIn(OpsOfModels()), [](const auto& info) {
  std::string name = fmt::format("{}_{}", info.param->domain, info.param->name);
  std::ranges::replace(name, '.', '_');
  return name;
});

}  // namespace
}  // namespace mge::conform
