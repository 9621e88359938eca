// SPDX-License-Identifier: Apache-2.0
// Calls into a backend outside of the hot path: an exception that leaks across the boundary becomes
// an error.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "core/plugin/host_services.h"
#include "mge/plugin.h"

namespace mge {

// f(mge_error*) answers a code. The contract forbids to throw; a backend that does is told so, and
// the process lives on.
template <typename F>
mge_code CallBackend(mge_error& error, F&& f) {
  try {
    mge_code code = f(&error);
    error.code = code;
    return code;
  } catch (const std::exception& e) {
    error.text = std::string("the backend threw an exception across the boundary: ") + e.what();
  } catch (...) {
    error.text = "the backend threw something across the boundary";
  }
  return error.code = MGE_INTERNAL;
}

// A text of a backend, at most `limit` bytes of it.
inline std::string CopyText(const mge_text& text, uint64_t limit = 4096) {
  if (!text.data) return {};
  return std::string(text.data, static_cast<size_t>(text.size < limit ? text.size : limit));
}

}  // namespace mge
