// SPDX-License-Identifier: Apache-2.0
// The device to which new work of a thread goes, as a text (mge.h) and as a context (context.h).
#include "mge/context.h"

#include <memory>
#include <optional>
#include <vector>

#include "core/api/objects.h"
#include "core/env/settings.h"
#include "core/plugin/context.h"
#include "core/plugin/device_tensor.h"

using mge::Context;
using mge::DeviceMemory;
using mge::api::Misuse;
using mge::api::Wrap;

namespace {

// The open scopes of mge_device_push in one thread, outermost first. A thread may end with open scopes.
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

mge_context Public(const Context& context) {
  mge_context out = {};
  context.device_type().copy(out.device_type, sizeof(out.device_type) - 1);
  out.device_id = context.device_id();
  return out;
}

}  // namespace

absl::StatusOr<Context> mge::api::CurrentContextOf(Runtime& runtime) {
  std::shared_ptr<const Snapshot> settings = runtime.registry().snapshot();
  std::optional<DeviceSpec> fallback;
  if (settings->IsSet<kDefaultDevice>()) {
    MGE_ASSIGN_OR_RETURN(fallback, ParseDeviceSpec(settings->Get<kDefaultDevice>()));
  }
  return CurrentContext(runtime.devices(), fallback);
}

mge_status* mge_device_push(const char* device) try {
  MGE_API_NEEDS({"device", device});
  MGE_API_ASSIGN_OR_RETURN(Context context, Context::FromString(device));
  Scopes().push_back(std::make_unique<mge::ContextScope>(std::move(context)));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_device_pop() try {
  if (Scopes().empty()) return Misuse("mge_device_pop", "no scope of this thread is open");
  Scopes().pop_back();
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_device_current(mge_runtime* runtime, mge_string** out) try {
  MGE_API_NEEDS({"runtime", runtime}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(const Context context, mge::api::CurrentContextOf(*runtime->runtime));
  *out = mge::api::NewString(context.ToString());
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_device_empty_cache(mge_runtime* runtime, const char* device) try {
  MGE_API_NEEDS({"runtime", runtime}, {"device", device});
  MGE_API_ASSIGN_OR_RETURN(const Context context, Context::FromString(device));
  return Wrap(mge::EmptyCache(runtime->runtime->devices(), context));
}
MGE_API_CATCH

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

mge_status* mge_context_current(mge_runtime* runtime, mge_context* out) try {
  MGE_API_NEEDS({"runtime", runtime}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(const Context context, mge::api::CurrentContextOf(*runtime->runtime));
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

mge_context mge_tensor_context(const mge_tensor* tensor) {
  const DeviceMemory* memory = DeviceMemory::Of(tensor->value.tensor);
  if (!memory) return Public(Context());
  const Context device = Context::Of(memory->device());
  return Public(memory->pinned() ? mge::CpuPinned(device.device_id()) : device);
}
