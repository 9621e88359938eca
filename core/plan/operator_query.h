// SPDX-License-Identifier: Apache-2.0
// Asks backends for an operator by its name alone: for operators that the core does not know.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/devices.h"

namespace mge {

struct OperatorShape {
  std::string_view domain, name;
  int version = 0;
  int inputs = 1, outputs = 1;
};

// Names of the backends, each once, that offer a kernel for such a node or say why they refuse it. The node's operands are
// small float32 vectors, so that "offers" says no more than that the backend has kernels of that name. Devices that cannot
// be opened are left out.
std::vector<std::string> BackendsWithOperator(std::span<const std::unique_ptr<Device>> devices, const OperatorShape& op);

}  // namespace mge
