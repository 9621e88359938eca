// SPDX-License-Identifier: Apache-2.0
// cuDNN's state of one device: its handle, and its plans.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "cudnn_plans.h"
#include "plugins/gpu/runtime/device.h"

namespace mge::cuda {

// A plan that the device's handle can execute.
struct ReadyPlan {
  uint64_t attributes = 0;  // MGE_KERNEL_ bits
  uint64_t workspace = 0;   // bytes
  Descriptor plan;
};

// Thread-safe. The library is opened at the first use.
class CudnnDevice {
 public:
  using Plans = std::shared_ptr<const std::vector<ReadyPlan>>;

  // Returns the plans of a convolution or a pool, the best one first: from memory, from the host's cache of blobs, or else
  // from the library. Fails like Cudnn::Load() and FindPlans().
  template <typename Shape>
  Result PlansOf(gpu::Device& device, const Shape& shape, Plans* out) {
    return PlansOf(
        device, shape.Text(),
        [&](std::vector<ExecutionPlan>* plans) { return FindPlans(library_, *properties_, shape, plans); }, out);
  }
  // Enqueues a plan on a stream. `ids`: the numbers by which the plan knows the operands. `workspace` is null if the plan
  // needs none. The device's context is current.
  Result Execute(const Descriptor& plan, std::span<const int64_t> ids, std::span<void* const> operands, void* workspace,
                 void* stream);
  // Destroys the handle, if there is one.
  void Close(gpu::Device& device);

 private:
  struct Known {
    Result result;
    Plans plans;
  };
  using Finder = std::function<Result(std::vector<ExecutionPlan>*)>;
  Result Open(gpu::Device& device);
  Result PlansOf(gpu::Device& device, const std::string& shape, const Finder& find, Plans* out);
  // Reads plans from their text. Leaves out those that the library does not read. Fails if it reads none.
  Result Read(gpu::Device& device, const std::vector<ExecutionPlan>& plans, Plans* out);
  // Finds plans in the cache of blobs or by the library.
  Result Find(gpu::Device& device, const std::string& shape, const Finder& find, Plans* out);

  std::mutex mutex_;  // guards what follows, except the use of the handle
  bool tried_ = false;
  Result result_;
  Cudnn library_;
  std::unique_ptr<Descriptor> properties_;
  std::string key_;  // everything that plans depend on, apart from the shape
  std::map<std::string, Known> known_;
  std::mutex handle_mutex_;  // one thread uses the handle, because it has the stream
  cudnnHandle_t handle_ = nullptr;
};

}  // namespace mge::cuda
