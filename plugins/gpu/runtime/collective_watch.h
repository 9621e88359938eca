// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mge/plugin.hpp"

namespace mge::gpu {

// The collective operations that a queue has enqueued. On the device they wait for the other ranks without a limit, so the
// host looks at them while it waits for a fence behind them. Functions are [any].
class CollectiveWatch {
 public:
  virtual ~CollectiveWatch() = default;
  // Called when operations are enqueued: their time limit begins.
  virtual void Begin() = 0;
  // Returns MGE_OK if the operations have not failed. Otherwise they have been ended on the device. `pending`: they have not
  // ended yet, so a passed time limit is a failure.
  virtual Result Check(bool pending) = 0;
};

}  // namespace mge::gpu
