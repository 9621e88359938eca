// SPDX-License-Identifier: Apache-2.0
// The documented errors: one constant per row of core/base/error_rows.inc, such as errors::kDeviceUnusable for E0502.
#pragma once

#include "core/base/status.h"

namespace mge::errors {

#define MGE_ERROR(name, id, code, doc, causes, remedy) \
  inline constexpr ErrorRow name = {id, absl::StatusCode::code, doc, causes, remedy};
#include "core/base/error_rows.inc"
#undef MGE_ERROR

// All rows, in the order of their ids.
inline constexpr const ErrorRow* kAll[] = {
#define MGE_ERROR(name, ...) &name,
#include "core/base/error_rows.inc"
#undef MGE_ERROR
};

// Returns the row with this id, or null.
constexpr const ErrorRow* Find(int id) {
  for (const ErrorRow* row : kAll) {
    if (row->id == id) return row;
  }
  return nullptr;
}

}  // namespace mge::errors
