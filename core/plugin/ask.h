// SPDX-License-Identifier: Apache-2.0
// Calls to functions of a device's backend, with the result as an absl::Status.
#pragma once

#include <string_view>

#include "core/plugin/abi_call.h"
#include "core/plugin/device.h"
#include "fmt/format.h"

namespace mge {

// Calls f(mge_error*), a function of the device's backend, and converts its code to a status. The error text names the
// device and `what`, for example "creating a queue". Must not be used on the hot path.
template <typename F>
absl::Status QueryDevice(const Device& device, std::string_view what, F&& f) {
  mge_error error;
  mge_code code = CallBackend(error, f);
  return code == MGE_OK ? absl::OkStatus() : StatusOfBackend(code, error, fmt::format("device {}: {}", device.name(), what));
}

}  // namespace mge
