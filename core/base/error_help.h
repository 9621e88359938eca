// SPDX-License-Identifier: Apache-2.0
// What `mge help E0502` adds to a row of core/base/errors.h: why the error usually comes up, and what to do about it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/errors.h"

namespace mge {

struct ErrorHelp {
  const ErrorRow* row;
  std::string_view causes;  // usual ones, in sentences
  std::string_view remedy;
};

// One for each of errors::kAll, in its order.
std::span<const ErrorHelp> AllErrorHelp();

// What the user can do: the error's own words, else the usual remedy of its row. FormatError shows it.
std::string FixOf(const absl::Status& status);

}  // namespace mge
