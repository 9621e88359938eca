// SPDX-License-Identifier: Apache-2.0
// Decides which nodes of function operators are not replaced by their bodies, because the devices have kernels for them.
#pragma once

#include <map>

#include "core/plan/plan_context.h"

namespace mge {

// Asks the devices of a session, which must outlive this object. Not thread-safe.
class FunctionKernels {
 public:
  explicit FunctionKernels(const PlanContext& context) : context_(context) {}

  // Returns whether every device has a kernel for the node. As long as its shapes are unknown, kernels of that name suffice.
  bool Has(const Graph& graph, NodeId id);

 private:
  bool HasName(const OpDef& def);

  const PlanContext& context_;
  std::map<const OpDef*, bool> named_;
};

}  // namespace mge
