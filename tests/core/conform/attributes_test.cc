// SPDX-License-Identifier: Apache-2.0
// Attributes with a closed list of values are checked by the host when types are inferred, so that no device accepts what
// another refuses.
#include <set>
#include <string>

#include "core/conform/cases.h"
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

}  // namespace
}  // namespace mge::conform
