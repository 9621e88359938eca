// SPDX-License-Identifier: Apache-2.0
// Conversion of exceptions into statuses. Exceptions, mostly std::bad_alloc from containers, may propagate inside the core.
// They must be caught at the C API, in tasks on other threads, and before stack frames that cannot be unwound.
//
// pthread_exit() and pthread_cancel() unwind a thread like an exception of the type abi::__forced_unwind. A handler that does
// not throw it again ends the process ("exception not rethrown").
#pragma once

#include <cxxabi.h>

#include <utility>

#include "core/base/status.h"

namespace mge {

// Returns kOutOfMemory for the memory of the process. The status is created when the library is loaded, so that a call
// needs no memory. If its creation failed, returns kResourceExhausted without a text.
absl::Status OutOfHostMemory() noexcept;

// Converts the exception that is being handled: kOutOfMemory if memory or threads ran out, else kInternal with the
// exception's text. Must be called inside of a catch block.
absl::Status StatusOfException() noexcept;

// Returns the status of f(). If f() throws, returns StatusOfException(). Throws nothing, unless f() ends its thread.
template <typename F>
absl::Status NoThrow(F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return StatusOfException();
  }
}

}  // namespace mge
