// SPDX-License-Identifier: Apache-2.0
// Queries backends for an operator by its name, for operators that the core does not know.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/devices.h"

namespace mge {

// The name and the number of operands of an operator.
struct OperatorShape {
  std::string_view domain, name;
  int version = 0;
  int inputs = 1, outputs = 1;
};

// Returns whether the device offers or refuses a kernel for such a node. The node's operands are float32 vectors of one
// element, so the result shows only that the backend has kernels of that name. Opens the device; returns false if it cannot.
bool HasOperator(Device& device, const OperatorShape& op);

// Returns the names, each once, of the backends that offer or refuse a kernel for such a node. The node's operands are
// float32 vectors of one element, so the result shows only that a backend has kernels of that name. Ignores devices that
// cannot be opened.
std::vector<std::string> BackendsWithOperator(std::span<const std::shared_ptr<Device>> devices, const OperatorShape& op);

}  // namespace mge
