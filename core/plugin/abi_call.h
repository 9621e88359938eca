// SPDX-License-Identifier: Apache-2.0
// Calls across the plugin ABI: no exception crosses the boundary in either direction.
//
// Why: backend and host may be built by different compilers and share only a C interface. An exception that unwinds through
// frames of the other side is undefined behaviour, and must not end the process.
//
// Method: CallBackend() wraps each call from the host into a backend and converts an exception to an error code.
// AnswerBackend() wraps each function of a host table that a backend calls and converts an exception to an error code.
// Deferred wraps callbacks that cannot return an error: it stores the exception until the backend has returned. On the hot
// path, calls are not wrapped one by one: the engine has one try block around many calls.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/exception.h"
#include "core/plugin/host_services.h"
#include "mge/plugin.h"

namespace mge {

// Returns the error code for the exception that is being handled, and writes its text into `error`. A std::bad_alloc becomes
// MGE_RESOURCE_EXHAUSTED, any other exception MGE_INTERNAL. Must be called inside a catch block.
mge_code CodeOfThrown(mge_error& error) noexcept;

// Calls f(mge_error*), which calls a function of a backend and returns its code. Returns that code, and stores it in
// `error.code`. The contract forbids a backend to throw; an exception becomes a code and a text (see CodeOfThrown).
template <typename F>
mge_code CallBackend(mge_error& error, F&& f) {
  try {
    return error.code = f(&error);
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return CodeOfThrown(error);
  }
}

// Calls f(), the body of a host function that a backend has called, and returns its status as a code. An exception becomes
// an error status. `error` is optional.
template <typename F>
mge_code AnswerBackend(mge_error* error, F&& f) noexcept {
  return CodeForBackend(NoThrow(f), error);
}

// Stores an exception of a callback that returns nothing, until the backend has returned. Not thread-safe.
class Deferred {
 public:
  // Calls f() and stores its exception. After an exception, later calls do nothing.
  template <typename F>
  void Run(F&& f) {
    if (thrown_) return;
    try {
      f();
    } catch (abi::__forced_unwind&) {
      throw;
    } catch (...) {
      thrown_ = std::current_exception();
    }
  }
  // Throws the stored exception, if there is one. Must be called after the backend has returned.
  void Rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  std::exception_ptr thrown_;
};

// Returns a copy of a backend's text, cut at `limit` bytes.
inline std::string CopyText(const mge_text& text, uint64_t limit = 4096) {
  if (!text.data) return {};
  return std::string(text.data, static_cast<size_t>(text.size < limit ? text.size : limit));
}

}  // namespace mge
