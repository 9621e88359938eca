// SPDX-License-Identifier: Apache-2.0
// Contexts: device types with ids, the stack of each thread, and the tensors that are created in them.
#include "core/plugin/context.h"

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "core/api/objects.h"
#include "core/base/errors.h"
#include "core/env/settings.h"
#include "core/plugin/device_tensor.h"
#include "fmt/format.h"

using mge::Context;
using mge::DeviceMemory;
using mge::DType;
using mge::Tensor;
using mge::api::Misuse;
using mge::api::Wrap;

namespace {

// The open scopes of mge_context_push in one thread, outermost first. A thread may end with open scopes.
struct OpenScopes {
  OpenScopes() { (void)mge::ScopedContext(); }  // creates the thread's contexts, which must be destroyed after the scopes
  ~OpenScopes() {
    while (!scopes.empty()) scopes.pop_back();  // the innermost first: each is then the last of the thread's contexts
  }
  std::vector<std::unique_ptr<mge::ContextScope>> scopes;
};

std::vector<std::unique_ptr<mge::ContextScope>>& Scopes() {
  thread_local OpenScopes open;
  return open.scopes;
}

absl::StatusOr<Context> Current(mge::Runtime& runtime) {
  std::shared_ptr<const mge::Snapshot> settings = runtime.registry().snapshot();
  std::optional<mge::DeviceSpec> fallback;
  if (settings->IsSet<mge::kDefaultDevice>()) {
    MGE_ASSIGN_OR_RETURN(fallback, mge::ParseDeviceSpec(settings->Get<mge::kDefaultDevice>()));
  }
  return mge::CurrentContext(runtime.devices(), fallback);
}

absl::StatusOr<Context> Checked(const mge_context& given) {
  return Context::Create({given.device_type, strnlen(given.device_type, sizeof(given.device_type))}, given.device_id);
}

mge_context Public(const Context& context) {
  mge_context out = {};
  context.device_type().copy(out.device_type, sizeof(out.device_type) - 1);
  out.device_id = context.device_id();
  return out;
}

// Creates a tensor in plain host memory, set to zero.
absl::StatusOr<Tensor> CreateOnHost(DType dtype, mge::Shape shape) {
  MGE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(dtype, std::move(shape)));
  if (dtype != DType::kString && tensor.bytes()) {
    std::memset(tensor.mutable_data(), 0, static_cast<size_t>(tensor.bytes()));
  }
  return tensor;
}

absl::StatusOr<Tensor> CreateIn(const std::shared_ptr<mge::Runtime>& runtime, const Context& context, DType dtype,
                                mge::Shape shape) {
  const bool pinned = context.device_type() == "cpu_pinned";
  if (context.device_type() == "cpu") return CreateOnHost(dtype, std::move(shape));
  MGE_ASSIGN_OR_RETURN(mge::DeviceUse use, pinned ? mge::PinnedDevice(runtime->devices(), context.device_id())
                                                  : runtime->devices().Find(context.name(), context.ToString()));
  if (!use.device) return CreateOnHost(dtype, std::move(shape));
  MGE_ASSIGN_OR_RETURN(Tensor tensor, DeviceMemory::Create(*use.device, pinned ? MGE_MEMORY_PINNED : MGE_MEMORY_DEVICE,
                                                           dtype, std::move(shape), runtime));
  if (DeviceMemory::OnHost(tensor) && tensor.bytes()) {
    std::memset(tensor.mutable_data(), 0, static_cast<size_t>(tensor.bytes()));
  }
  return tensor;
}

}  // namespace

mge_status* mge_context_create(const char* device_type, int32_t device_id, mge_context* out) try {
  MGE_API_NEEDS({"device_type", device_type}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(const Context context, Context::Create(device_type, device_id));
  *out = Public(context);
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_context_parse(const char* text, mge_context* out) try {
  MGE_API_NEEDS({"text", text}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(const Context context, Context::FromString(text));
  *out = Public(context);
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_context_push(mge_runtime* runtime, const mge_context* context) try {
  MGE_API_NEEDS({"runtime", runtime}, {"context", context});
  MGE_API_ASSIGN_OR_RETURN(Context c, Checked(*context));
  Scopes().push_back(std::make_unique<mge::ContextScope>(std::move(c)));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_context_pop(mge_runtime*) try {
  if (Scopes().empty()) return Misuse("mge_context_pop", "no scope of this thread is open");
  Scopes().pop_back();
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_context_current(mge_runtime* runtime, mge_context* out) try {
  MGE_API_NEEDS({"runtime", runtime}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(const Context context, Current(*runtime->runtime));
  *out = Public(context);
  return nullptr;
}
MGE_API_CATCH

int32_t mge_num_gpus(mge_runtime* runtime) { return runtime ? mge::NumGpus(runtime->runtime->devices()) : 0; }

mge_status* mge_gpu_memory_info(mge_runtime* runtime, int32_t gpu, uint64_t* free_bytes, uint64_t* total_bytes) try {
  MGE_API_NEEDS({"runtime", runtime}, {"free_bytes", free_bytes}, {"total_bytes", total_bytes});
  MGE_API_ASSIGN_OR_RETURN(mge::MemoryInfo info, mge::GpuMemoryInfo(runtime->runtime->devices(), gpu));
  *free_bytes = info.free_bytes;
  *total_bytes = info.total_bytes;
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_empty_cache(mge_runtime* runtime, const mge_context* context) try {
  MGE_API_NEEDS({"runtime", runtime}, {"context", context});
  MGE_API_ASSIGN_OR_RETURN(const Context c, Checked(*context));
  return Wrap(mge::EmptyCache(runtime->runtime->devices(), c));
}
MGE_API_CATCH

mge_status* mge_tensor_create_in(mge_runtime* runtime, const mge_context* context, mge_dtype dtype, const int64_t* dims,
                                 size_t rank, mge_tensor** out) try {
  MGE_API_NEEDS({"runtime", runtime}, {"dims", rank == 0 || dims != nullptr}, {"out", out});
  if (dtype <= 0 || !mge::kAnyType.Contains(static_cast<DType>(dtype))) {
    return Misuse("mge_tensor_create_in", fmt::format("dtype {} is not an element type", dtype));
  }
  MGE_API_ASSIGN_OR_RETURN(const Context c, context ? Checked(*context) : Current(*runtime->runtime));
  MGE_API_ASSIGN_OR_RETURN(Tensor tensor,
                           CreateIn(runtime->runtime, c, static_cast<DType>(dtype), mge::Shape(dims, dims + rank)));
  auto made = std::make_unique<mge_tensor>();
  made->value.tensor = std::move(tensor);
  *out = made.release();
  return nullptr;
}
MGE_API_CATCH

mge_context mge_tensor_context(const mge_tensor* tensor) {
  const DeviceMemory* memory = DeviceMemory::Of(tensor->value.tensor);
  if (!memory) return Public(Context());
  const Context device = Context::Of(memory->device());
  return Public(memory->pinned() ? mge::CpuPinned(device.device_id()) : device);
}
