// SPDX-License-Identifier: Apache-2.0
// Conversion of exceptions into statuses. Exceptions, mostly std::bad_alloc from containers, may propagate inside the core.
// They must be caught at the C API, in tasks on other threads, and before stack frames that cannot be unwound.
#pragma once

#include <utility>

#include "core/base/status.h"

namespace mge {

// Returns kOutOfMemory for the memory of the process. The status is created when the library is loaded, so that a call
// needs no memory. If its creation failed, returns kResourceExhausted without a text.
absl::Status OutOfHostMemory() noexcept;

// Converts the exception that is being handled: kOutOfMemory if memory or threads ran out, else kInternal with the
// exception's text. Must be called inside of a catch block.
absl::Status StatusOfException() noexcept;

// Returns the status of f(). If f() throws, returns StatusOfException().
template <typename F>
absl::Status NoThrow(F&& f) noexcept {
  try {
    return std::forward<F>(f)();
  } catch (...) {
    return StatusOfException();
  }
}

}  // namespace mge
