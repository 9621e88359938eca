// SPDX-License-Identifier: Apache-2.0
// Calls from threads of the library into the application.
#pragma once

#include <cxxabi.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "mge/mge.h"

namespace mge::api {

// Calls f(), which calls a function of the application. If that ends its thread (pthread_exit()), the thread sleeps until the
// process ends. Why: Python ends every thread that enters it after the interpreter has ended. The thread may be inside of an
// engine, which cannot go on without it, and has functions that must not be unwound.
template <typename F>
void CallApplication(F&& f) {
  try {
    std::forward<F>(f)();
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
}

// Returns an object that calls `release` (nullable) with `state` when its last owner is destroyed.
inline std::shared_ptr<void> CallAtEnd(mge_release_fn release, void* state) {
  return std::shared_ptr<void>(state, [release](void* s) {
    if (release) CallApplication([&] { release(s); });
  });
}

}  // namespace mge::api
