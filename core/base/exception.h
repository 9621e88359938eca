// SPDX-License-Identifier: Apache-2.0
// Where an exception has to end: at the C API, in a task of another thread, before frames that cannot be unwound. In
// between they travel: a std::bad_alloc that a container throws is an ordinary way out of the core.
#pragma once

#include <utility>

#include "core/base/status.h"

namespace mge {

// kOutOfMemory for the memory of the process. Made once and then shared, so that it needs no memory where there is none; if
// even the first call finds none, a bare kResourceExhausted without a text.
absl::Status OutOfHostMemory() noexcept;

// What the exception that is being handled means: kOutOfMemory where memory or threads ran out, else kInternal with its
// text.
absl::Status StatusOfException() noexcept;

// f() answers a status; so does what it throws.
template <typename F>
absl::Status NoThrow(F&& f) noexcept {
  try {
    return std::forward<F>(f)();
  } catch (...) {
    return StatusOfException();
  }
}

}  // namespace mge
