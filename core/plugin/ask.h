// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/plugin/device.h"
#include "core/plugin/guard.h"
#include "fmt/format.h"

namespace mge {

// Calls f(mge_error*), a slot of the device's backend, and answers what it answered; an error says that it is about `what`.
template <typename F>
absl::Status AskDevice(const Device& device, std::string_view what, F&& f) {
  mge_error error;
  mge_code code = CallBackend(error, f);
  return code == MGE_OK ? absl::OkStatus()
                        : StatusOfBackend(code, error, fmt::format("device {}: {}", device.name(), what));
}

}  // namespace mge
