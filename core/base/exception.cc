// SPDX-License-Identifier: Apache-2.0
#include "core/base/exception.h"

#include <new>
#include <system_error>

#include "core/base/errors.h"

namespace mge {
namespace {

absl::Status Describe() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return OutOfHostMemory();
  } catch (const std::system_error& e) {
    const bool resource = e.code() == std::errc::resource_unavailable_try_again || e.code() == std::errc::not_enough_memory;
    return Fail(resource ? errors::kOutOfMemory : errors::kInternal, "the system refused a thread or a lock",
                {.what = e.what()});
  } catch (const std::exception& e) {
    return Fail(errors::kInternal, "an exception that nobody expected", {.what = e.what()});
  } catch (...) {
    return Fail(errors::kInternal, "an exception of an unknown type that nobody expected");
  }
}

}  // namespace

absl::Status OutOfHostMemory() noexcept {
  try {
    static const absl::Status* const kMade = new absl::Status(
        Fail(errors::kOutOfMemory, "the process has no host memory left",
             {.what = "the system, or a limit of this process (ulimit -v, its control group), refused a request",
              .fix = "raise the limit, end other programs, or use a smaller model or batch"}));
    return *kMade;
  } catch (const std::bad_alloc&) {
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

// Made while there is memory, and before there are threads: the child of a fork would wait for ever for one that is half made.
[[maybe_unused]] const absl::Status made_at_load = OutOfHostMemory();

absl::Status StatusOfException() noexcept {
  try {
    return Describe();
  } catch (const std::bad_alloc&) {  // while it was described
    return OutOfHostMemory();
  }
}

}  // namespace mge
