// SPDX-License-Identifier: Apache-2.0
// The help text of each documented error (core/base/errors.h): its usual causes and its remedy, for `mge help E0502`.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/errors.h"

namespace mge {

struct ErrorHelp {
  const ErrorRow* row;
  std::string_view causes;  // full sentences
  std::string_view remedy;  // full sentences, imperative
};

// Returns the help of each error in errors::kAll, in the same order.
std::span<const ErrorHelp> AllErrorHelp();

// Returns the fix that FormatError prints: the error's own fix if it has one, else the remedy of its row, else "".
std::string FixOf(const absl::Status& status);

}  // namespace mge
