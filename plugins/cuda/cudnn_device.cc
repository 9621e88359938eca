// SPDX-License-Identifier: Apache-2.0
#include "cudnn_device.h"

#include <utility>

namespace mge::cuda {

Result CudnnDevice::Open(gpu::Device& device) {
  if (tried_) return result_;
  tried_ = true;
  result_ = library_.Load();
  if (!result_.ok()) return result_;
  return result_ = device.With([&]() -> Result {
    if (Result r = library_.ResultOf(library_.create(&handle_), "cudnnCreate"); !r.ok()) return r;
    properties_ = std::make_unique<Descriptor>(library_, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    properties_->Set(CUDNN_ATTR_DEVICEPROP_HANDLE, handle_).Finalize();
    key_ = "cudnn " + std::to_string(library_.version()) + " " +
           properties_->GetText(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION) + " ";
    return properties_->result();
  });
}

void CudnnDevice::Find(gpu::Device& device, const ConvolutionShape& shape, const std::string& key, Known* out) {
  auto plans = std::make_shared<std::vector<ConvolutionPlan>>();
  out->result = device.With([&] { return FindPlans(library_, *properties_, shape, plans.get()); });
  out->plans = plans;
  if (out->result.ok()) StoreBlob(key, WritePlans(*plans));
}

Result CudnnDevice::PlansOf(gpu::Device& device, const ConvolutionShape& shape, Plans* out) {
  std::lock_guard lock(mutex_);
  if (Result r = Open(device); !r.ok()) return r;
  const std::string key = key_ + shape.Text();
  const auto [entry, is_new] = known_.try_emplace(key);
  Known& known = entry->second;
  if (is_new) {
    auto plans = std::make_shared<std::vector<ConvolutionPlan>>();
    if (std::string blob; LoadBlob(key, &blob) && ReadPlans(blob, plans.get())) {
      known.plans = plans;
    } else {
      Find(device, shape, key, &known);
    }
  }
  *out = known.plans;
  const Result result = known.result;
  if (!result.ok() && result.code() != MGE_UNIMPLEMENTED) known_.erase(entry);  // it may succeed later
  return result;
}

Result CudnnDevice::Read(gpu::Device& device, const ConvolutionPlan& plan, std::unique_ptr<Descriptor>* out) {
  std::lock_guard lock(handle_mutex_);
  return device.With([&] {
    *out = std::make_unique<Descriptor>(library_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    (*out)->Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle_);
    (*out)->SetText(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, plan.json).Finalize();
    const auto workspace = (*out)->Get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
    if ((*out)->result().ok() && workspace > static_cast<int64_t>(plan.workspace)) {
      return Result(MGE_INTERNAL, "cuDNN's plan needs more workspace than before");
    }
    return (*out)->result();
  });
}

Result CudnnDevice::Restore(gpu::Device& device, const ConvolutionShape& shape, size_t number,
                            std::unique_ptr<Descriptor>* out) {
  Plans plans;
  if (Result r = PlansOf(device, shape, &plans); !r.ok()) return r;
  if (number >= plans->size()) return {MGE_INTERNAL, "cuDNN has fewer plans than before"};
  if (Read(device, (*plans)[number], out).ok()) return {};
  const std::string key = key_ + shape.Text();
  {
    std::lock_guard lock(mutex_);
    Known& known = known_[key];
    Find(device, shape, key, &known);
    if (!known.result.ok()) return known.result;
    const ConvolutionPlan before = (*plans)[number];
    plans = known.plans;
    if (number >= plans->size() || (*plans)[number].attributes != before.attributes ||
        (*plans)[number].workspace > before.workspace) {
      return {MGE_INTERNAL, "cuDNN has other plans than before"};
    }
  }
  return Read(device, (*plans)[number], out);
}

Result CudnnDevice::Execute(const Descriptor& plan, const Descriptor& operands, void* stream) {
  std::lock_guard lock(handle_mutex_);
  const auto to = static_cast<cudaStream_t>(stream);
  if (Result r = library_.ResultOf(library_.set_stream(handle_, to), "cudnnSetStream"); !r.ok()) return r;
  return library_.ResultOf(library_.execute(handle_, plan.raw(), operands.raw()), "cudnnBackendExecute");
}

void CudnnDevice::Close(gpu::Device& device) {
  if (!handle_) return;
  device.Always([&] {
    properties_.reset();
    library_.destroy(handle_);
  });
}

}  // namespace mge::cuda
