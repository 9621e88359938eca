// SPDX-License-Identifier: Apache-2.0
// The boundary to a backend, which no exception crosses: calls into it outside of the hot path, and what it calls back.
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

// Inside of a handler: what a backend threw, as it should have reported it. A std::bad_alloc says that the process has no
// memory, whoever asked for it; anything else is MGE_INTERNAL.
mge_code CodeOfThrown(mge_error& error) noexcept;

// f(mge_error*) answers a code. The contract forbids to throw; a backend that does is told so, and
// the process lives on.
template <typename F>
mge_code CallBackend(mge_error& error, F&& f) noexcept {
  try {
    return error.code = f(&error);
  } catch (...) {
    return CodeOfThrown(error);
  }
}

// The other way: a function of a table that the host hands to a backend. f() answers a status; what it throws becomes one.
template <typename F>
mge_code AnswerBackend(mge_error* error, F&& f) noexcept {
  return CodeForBackend(NoThrow(f), error);
}

// The same for a callback that has no answer: what it throws waits until the backend has returned.
class Deferred {
 public:
  template <typename F>
  void Run(F&& f) noexcept {
    if (thrown_) return;
    try {
      f();
    } catch (...) {
      thrown_ = std::current_exception();
    }
  }
  // In the host's own frames.
  void Rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  std::exception_ptr thrown_;
};

// A text of a backend, at most `limit` bytes of it.
inline std::string CopyText(const mge_text& text, uint64_t limit = 4096) {
  if (!text.data) return {};
  return std::string(text.data, static_cast<size_t>(text.size < limit ? text.size : limit));
}

}  // namespace mge
