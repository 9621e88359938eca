// SPDX-License-Identifier: Apache-2.0
// cuDNN's state of one device: its handle, and the plans of convolutions.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cudnn_plans.h"
#include "plugins/gpu/runtime/device.h"

namespace mge::cuda {

// Thread-safe. The library is opened at the first use.
class CudnnDevice {
 public:
  using Plans = std::shared_ptr<const std::vector<ConvolutionPlan>>;

  // Returns the plans of a convolution, the best one first: from memory, from the host's cache of blobs, or else from the
  // library. Fails like Cudnn::Load() and FindPlans().
  Result PlansOf(gpu::Device& device, const ConvolutionShape& shape, Plans* out);
  // Creates the plan with this number, ready for execution. If the library cannot read its text, which may be from another
  // process, all plans are found anew.
  Result Restore(gpu::Device& device, const ConvolutionShape& shape, size_t number, std::unique_ptr<Descriptor>* out);
  // Enqueues a plan on a stream. The device's context is current.
  Result Execute(const Descriptor& plan, const Descriptor& operands, void* stream);
  const Cudnn& library() const { return library_; }
  // Destroys the handle, if there is one.
  void Close(gpu::Device& device);

 private:
  struct Known {
    Result result;
    Plans plans;
  };
  Result Open(gpu::Device& device);
  // Asks the library, and stores what it finds.
  void Find(gpu::Device& device, const ConvolutionShape& shape, const std::string& key, Known* out);
  Result Read(gpu::Device& device, const ConvolutionPlan& plan, std::unique_ptr<Descriptor>* out);

  std::mutex mutex_;  // guards what follows, except the use of the handle
  bool tried_ = false;
  Result result_;
  Cudnn library_;
  std::unique_ptr<Descriptor> properties_;
  std::string key_;  // what plans depend on, besides the convolution
  std::map<std::string, Known> known_;
  std::mutex handle_mutex_;  // one thread uses the handle, because it has the stream
  cudnnHandle_t handle_ = nullptr;
};

}  // namespace mge::cuda
