// SPDX-License-Identifier: Apache-2.0
// The table of all settings of the core. To add one, declare it in the settings_*.h of its area and
// list it in the rows there.
//
//   if (snapshot->Get<kPlanInplace>()) ...   // a bool; its index in the snapshot is a constant
#pragma once

#include "core/env/setting.h"
#include "core/env/settings_compute.h"
#include "core/env/settings_engine.h"
#include "core/env/settings_plan.h"
#include "core/env/settings_runtime.h"
#include "core/env/settings_train.h"

namespace mge {

inline constexpr auto kSettings = JoinSettingRows(kRuntimeRows, kEngineRows, kPlanRows, kComputeRows, kTrainRows);

// Returns the index of a setting in kSettings. Does not compile for a setting that is declared but not
// listed.
consteval size_t SettingIndex(std::string_view key) {
  for (size_t i = 0; i < kSettings.size(); ++i) {
    if (kSettings[i].key == key) return i;
  }
  throw "the setting is declared but not listed in the rows of its area";
}

// Prefixes of variables. A variable with one of them that no row has is reported as a probable typo.
inline constexpr std::string_view kVariablePrefixes[] = {"MGE_", "MXNET_", "NNVM_", "MEGENGINE_", "MGB_", "GE_"};

// A variable with such a prefix that is not a setting, and its reader.
struct IgnoredVariable {
  std::string_view name;
  std::string_view reader;
};
inline constexpr IgnoredVariable kIgnoredVariables[] = {
    {"MGE_COLLECTIVE_TOKEN", "trainings on several processes: a secret that all of them have (see collective.bind)"},
    {"MGE_TEST_DATA", "the tests: a directory of data that is not in the repository"},
    {"MGE_TEST_UPDATE", "the tests: 1 writes generated files again instead of comparing them"},
};

// Returns the variable of a key: MGE_ and the key in capitals with `_` for dots.
std::string VariableOf(std::string_view key);

}  // namespace mge
