// SPDX-License-Identifier: Apache-2.0
// Functions that read reports of the kit.
#pragma once

#include <string>

#include "core/conform/conform.h"
#include "gtest/gtest.h"

namespace mge::conform {

inline std::string Plugin(const std::string& name) {
  return std::string(MGE_BINARY_DIR) + "/lib/mge/plugins/mge_" + name + ".so";
}

inline std::string Findings(const Report& report) {
  std::string out;
  for (const CheckResult& c : report.checks) {
    for (const Finding& f : c.findings) out += c.name + ": " + f.where + ": " + f.what + "\n";
  }
  return out;
}

inline const CheckResult& Named(const Report& report, const std::string& name) {
  for (const CheckResult& c : report.checks) {
    if (c.name == name) return c;
  }
  ADD_FAILURE() << "no check " << name;
  return report.checks[0];
}

}  // namespace mge::conform
