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
    return Fail(errors::kInternal, "unexpected exception", {.what = e.what()});
  } catch (...) {
    return Fail(errors::kInternal, "unexpected exception of an unknown type");
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

// Creates the status while memory is available and before threads exist. If a fork interrupted its creation, the child
// would wait for it forever.
[[maybe_unused]] const absl::Status made_at_load = OutOfHostMemory();

absl::Status StatusOfException() noexcept {
  try {
    return Describe();
  } catch (const std::bad_alloc&) {  // thrown by Describe() itself
    return OutOfHostMemory();
  }
}

}  // namespace mge
