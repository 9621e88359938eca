// SPDX-License-Identifier: Apache-2.0
#include "cudnn_device.h"

#include <utility>

#include "plugins/gpu/runtime/memory.h"

namespace mge::cuda {

Result CudnnDevice::Open(gpu::Device& device) {
  if (tried_) return result_;
  tried_ = true;
  result_ = library_.Load();
  if (!result_.ok()) return result_;
  return result_ = gpu::CreateExternal(device, "cudnnCreate", [&]() -> Result {
           if (Result r = library_.ResultOf(library_.create(&handle_), "cudnnCreate"); !r.ok()) return r;
           properties_ = std::make_unique<Descriptor>(library_, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
           properties_->Set(CUDNN_ATTR_DEVICEPROP_HANDLE, handle_).Finalize();
           key_ = "cudnn " + std::to_string(library_.version()) + " " +
                  properties_->GetText(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION) + " driver " +
                  std::to_string(gpu::TheDriver().version) + " ";
           return properties_->result();
         });
}

Result CudnnDevice::Read(gpu::Device& device, const std::vector<ExecutionPlan>& plans, Plans* out) {
  std::lock_guard lock(handle_mutex_);
  auto ready = std::make_shared<std::vector<ReadyPlan>>();
  Result last;
  Result r = device.With([&]() -> Result {
    for (const ExecutionPlan& text : plans) {
      Descriptor plan(library_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle_)
          .SetText(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, text.json)
          .Finalize();
      const auto workspace = static_cast<uint64_t>(plan.Get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
      if (plan.result().ok()) {
        ready->push_back({text.attributes, workspace, std::move(plan)});
      } else {
        last = plan.result();
      }
    }
    return ready->empty() ? last : Result();
  });
  *out = ready;
  return r;
}

Result CudnnDevice::Find(gpu::Device& device, const std::string& shape, const Finder& find, Plans* out) {
  const std::string key = key_ + shape;
  std::vector<ExecutionPlan> plans;
  if (std::string blob; LoadBlob(key, &blob) && ReadPlans(blob, &plans) && Read(device, plans, out).ok()) return {};
  plans.clear();
  if (Result r = device.With([&] { return find(&plans); }); !r.ok()) return r;
  if (Result r = Read(device, plans, out); !r.ok()) return r;
  StoreBlob(key, WritePlans(plans));
  return {};
}

Result CudnnDevice::PlansOf(gpu::Device& device, const std::string& shape, const Finder& find, Plans* out) {
  std::lock_guard lock(mutex_);
  if (Result r = Open(device); !r.ok()) return r;
  const auto [entry, is_new] = known_.try_emplace(shape);
  Known& known = entry->second;
  if (is_new) known.result = Find(device, shape, find, &known.plans);
  *out = known.plans;
  const Result result = known.result;
  if (!result.ok() && result.code() != MGE_UNIMPLEMENTED) known_.erase(entry);  // it may succeed later
  return result;
}

Result CudnnDevice::Execute(const Descriptor& plan, std::span<const int64_t> ids, std::span<void* const> operands,
                            void* workspace, void* stream) {
  Descriptor pack(library_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.SetList(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
      .SetList(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, operands)
      .Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace)
      .Finalize();
  if (!pack.result().ok()) return pack.result();
  std::lock_guard lock(handle_mutex_);
  const auto to = static_cast<cudaStream_t>(stream);
  if (Result r = library_.ResultOf(library_.set_stream(handle_, to), "cudnnSetStream"); !r.ok()) return r;
  return library_.ResultOf(library_.execute(handle_, plan.raw(), pack.raw()), "cudnnBackendExecute");
}

void CudnnDevice::Close(gpu::Device& device) {
  if (!handle_) return;
  device.Always([&] {
    known_.clear();
    properties_.reset();
    library_.destroy(handle_);
  });
}

}  // namespace mge::cuda
