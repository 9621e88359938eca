// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/host_device.h"

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "core/plugin/host_services.h"
#include "mge/plugin/host_limits.hpp"

namespace mge {
namespace {

constexpr uint64_t kAlignment = 64;

constexpr mge_text Text(std::string_view s) { return {s.data(), s.size()}; }

mge_code FailWith(mge_error* error, mge_code code, std::string text) {
  if (error) {
    error->code = code;
    error->text = std::move(text);
  }
  return code;
}

mge_code Start(const mge_host*, mge_error*) { return MGE_OK; }
void Stop() {}

mge_code Enumerate(const mge_device_sink* sink, mge_error*) {
  mge_device_info info = {};
  info.struct_size = sizeof(info);
  info.class_name = Text("host");
  info.name = Text("reference evaluators in host memory");
  info.device_class = Text("host");
  info.score = 1;
  info.flags = MGE_DEVICE_HOST_ACCESSIBLE | MGE_DEVICE_SURVIVES_FORK | MGE_DEVICE_ONLY_BY_NAME;
  info.memory_total = HostMemoryAmount().total_bytes;
  sink->device(sink->self, &info);
  return MGE_OK;
}

// Opens the device. It has no state; the handle only has to differ from NULL.
mge_code Open(uint32_t index, mge_device** out, mge_error* error) {
  static char handle;
  if (index != 0) return FailWith(error, MGE_NOT_FOUND, "there is one host device");
  *out = reinterpret_cast<mge_device*>(&handle);
  return MGE_OK;
}
void Close(mge_device*) {}

mge_code SlabAcquire(mge_device*, int32_t, uint64_t bytes, mge_slab* out, mge_error* error) {
  uint64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* address = rounded >= bytes ? std::aligned_alloc(kAlignment, rounded) : nullptr;
  if (!address) return FailWith(error, MGE_RESOURCE_EXHAUSTED, "the system has no memory left");
  out->address = out->host_address = out->handle = address;
  out->bytes = bytes;
  return MGE_OK;
}
void SlabRelease(mge_device*, const mge_slab* slab) { std::free(slab->handle); }
void QueryMemory(mge_device*, uint64_t* free_bytes, uint64_t* total_bytes) {
  MemoryAmount amount = HostMemoryAmount();
  *free_bytes = amount.free_bytes;
  *total_bytes = amount.total_bytes;
}

mge_code EnumerateNothing(mge_device*, const mge_problem*, const mge_constraints*, const mge_candidate_sink*, mge_error*) {
  return MGE_OK;
}
mge_code PrepareNothing(mge_device*, const mge_problem*, const mge_candidate*, mge_prepared*, mge_error* error) {
  return FailWith(error, MGE_UNIMPLEMENTED, "the host device was created without kernels");
}
mge_code BindNothing(mge_kernel*, const mge_binding*, void*, mge_step_fn*, mge_error* error) {
  return FailWith(error, MGE_UNIMPLEMENTED, "the host device was created without kernels");
}
void DestroyNothing(mge_kernel*) {}

constexpr mge_device_api kDevice = [] {
  mge_device_api t = {};
  t.struct_size = sizeof(t);
  t.minor = MGE_ABI_MINOR;
  t.enumerate = Enumerate;
  t.open = Open;
  t.close = Close;
  return t;
}();
constexpr mge_memory_api kMemory = [] {
  mge_memory_api t = {};
  t.struct_size = sizeof(t);
  t.minor = MGE_ABI_MINOR;
  t.slab_acquire = SlabAcquire;
  t.slab_release = SlabRelease;
  t.memory_info = QueryMemory;
  t.pool = Text("unpooled");
  t.reserve = Text("none");
  return t;
}();
constexpr mge_kernel_api kNoKernels = [] {
  mge_kernel_api t = {};
  t.struct_size = sizeof(t);
  t.minor = MGE_ABI_MINOR;
  t.set_version = Text("none");
  t.enumerate = EnumerateNothing;
  t.prepare = PrepareNothing;
  t.bind = BindNothing;
  t.destroy = DestroyNothing;
  return t;
}();

}  // namespace

HostDevice::HostDevice(const mge_kernel_api* kernels) {
  plugin_ = {};
  plugin_.struct_size = sizeof(plugin_);
  plugin_.abi_major = MGE_ABI_MAJOR;
  plugin_.abi_minor = MGE_ABI_MINOR;
  plugin_.header_hash = MGE_ABI_HASH;
  plugin_.name = Text("host");
  plugin_.version = Text("built-in");
  plugin_.start = Start;
  plugin_.stop = Stop;
  plugin_.device = &kDevice;
  plugin_.memory = &kMemory;
  plugin_.kernel = kernels ? kernels : &kNoKernels;
}

}  // namespace mge
