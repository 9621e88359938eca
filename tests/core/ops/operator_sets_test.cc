// SPDX-License-Identifier: Apache-2.0
// Operators whose meaning changed between operator sets: operator_sets.md.
#include <set>

#include "tests/core/ops/table_cases.h"

namespace mge {
namespace {

TEST(OperatorSets, HaveTheMeaningOfTheirVersion) {
  const std::vector<TableCase> cases = ReadTable("operator_sets.md");
  EXPECT_GT(cases.size(), 150u);
  for (const TableCase& c : cases) CheckCase(c);
}

TEST(OperatorSets, HaveACaseForEachUpgradeRule) {
  // Scan has a body (control_flow_test.cc), and trees pack their attributes in every version (ml_test.cc).
  std::set<std::string, std::less<>> named = {"Scan", "TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"};
  for (const TableCase& c : ReadTable("operator_sets.md")) named.insert(c.op.substr(0, c.op.find('@')));
  for (const OpDef* def : AllOps()) {
    if (!def->upgrade || !def->domain.empty()) continue;
    EXPECT_TRUE(named.contains(def->name)) << def->name << " has no row";
  }
}

}  // namespace
}  // namespace mge
