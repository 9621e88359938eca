// SPDX-License-Identifier: Apache-2.0
// Devices, primary contexts and peers.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "plugins/gpu/software/driver/attributes.h"
#include "plugins/gpu/software/driver/functions.h"
#include "plugins/gpu/software/driver/state.h"

namespace mge::software::driver {
namespace {

int Copy(const std::string& text, char* to, int bytes) {
  if (!to || bytes <= 0) return kInvalidValue;
  std::snprintf(to, static_cast<size_t>(bytes), "%s", text.c_str());
  return kOk;
}

}  // namespace

int init(unsigned flags) {
  if (flags) return kInvalidValue;
  Driver& d = Driver::Get();
  std::lock_guard lock(d.mutex);
  if (d.configuration.devices == 0) return kNoDevice;
  if (d.initialized) return kOk;
  if (d.configuration.links.size() > 0 && d.configuration.links.size() < d.configuration.devices) return kInvalidValue;
  for (int i = 0; i < d.configuration.devices; ++i) {
    DeviceOptions options;
    options.number = i;
    options.name = "software GPU " + std::to_string(i);
    options.memory_bytes = d.configuration.memory;
    options.bandwidth_gb_s = d.configuration.bandwidth_gb_s;
    options.launch_latency_us = d.configuration.launch_latency_us;
    options.links = d.configuration.links;
    options.emulator.warp = kWarp;
    d.contexts.push_back(std::make_unique<Context>(std::move(options)));
  }
  d.initialized = true;
  return kOk;
}

// Writes the name of an architecture at its place in hipDeviceProp_t of HIP 5. The other members are zero.
int hip_properties(void* properties, int device) {
  constexpr size_t kBytes = 792, kArchitecture = 396;
  if (!Driver::Get().Find(device)) return kInvalidDevice;
  std::memset(properties, 0, kBytes);
  return Copy("gfx90a", static_cast<char*>(properties) + kArchitecture, 256);
}

int driver_version(int* version) {
  *version = Driver::Get().configuration.version;
  return kOk;
}

int device_count(int* count) {
  Driver& d = Driver::Get();
  std::lock_guard lock(d.mutex);
  if (!d.initialized) return kNotInitialized;
  *count = static_cast<int>(d.contexts.size());
  return kOk;
}

int device_get(int* device, int ordinal) {
  if (!Driver::Get().Find(ordinal)) return kInvalidDevice;
  *device = ordinal;
  return kOk;
}

int device_name(char* name, int bytes, int device) {
  return Driver::Get().Find(device) ? Copy("GPU in software, emulated on the processor", name, bytes) : kInvalidDevice;
}

int device_uuid(void* uuid, int device) {
  if (!Driver::Get().Find(device)) return kInvalidDevice;
  std::memcpy(uuid, "software driver", 16);
  static_cast<char*>(uuid)[15] = static_cast<char>(device);
  return kOk;
}

int device_pci(char* id, int bytes, int device) {
  if (!Driver::Get().Find(device)) return kInvalidDevice;
  char text[16];
  std::snprintf(text, sizeof(text), "ffff:%02x:00.0", static_cast<unsigned>(device + 1) & 0xff);
  return Copy(text, id, bytes);
}

int device_memory(size_t* bytes, int device) {
  const Context* c = Driver::Get().Find(device);
  if (!c) return kInvalidDevice;
  *bytes = c->device.options().memory_bytes;
  return kOk;
}

int device_attribute(int* value, int attribute, int device) {
  Driver& d = Driver::Get();
  if (!d.Find(device)) return kInvalidDevice;
  const int capability = d.configuration.capability;
  switch (static_cast<Attribute>(attribute)) {
    case Attribute::kMultiprocessors: *value = d.configuration.multiprocessors; return kOk;
    case Attribute::kClock: *value = 1000000; return kOk;        // in kHz
    case Attribute::kMemoryClock: *value = 1000000; return kOk;  // in kHz
    case Attribute::kBusBits: *value = 64; return kOk;
    case Attribute::kMajor: *value = capability / 10; return kOk;
    case Attribute::kMinor: *value = capability % 10; return kOk;
    case Attribute::kVirtualMemory: *value = 1; return kOk;
    default: *value = 0; return kOk;
  }
}

int context_retain(void** context, int device) {
  Driver& d = Driver::Get();
  Context* c = d.Find(device);
  if (!c) return kInvalidDevice;
  std::lock_guard lock(d.mutex);
  if (c->references++ == 0) ++d.live;
  *context = c;
  return kOk;
}

int context_release(int device) {
  Driver& d = Driver::Get();
  Context* c = d.Find(device);
  if (!c) return kInvalidDevice;
  std::lock_guard lock(d.mutex);
  if (c->references == 0) return kInvalidContext;
  if (--c->references == 0) --d.live;
  return kOk;
}

int context_push(void* context) { return Driver::Push(static_cast<Context*>(context)) ? kOk : kInvalidContext; }

int context_pop(void** context) {
  Context* c = Driver::Pop();
  if (context) *context = c;
  return c ? kOk : kInvalidContext;
}

int can_access_peer(int* can, int device, int peer) {
  const Context *from = Driver::Get().Find(device), *to = Driver::Get().Find(peer);
  if (!from || !to) return kInvalidDevice;
  *can = device != peer && from->device.LinkTo(to->device).peer;
  return kOk;
}

int enable_peer(void* context, unsigned flags) {
  Driver& d = Driver::Get();
  Context* c = Driver::Current();
  if (!c || !context || context == c || flags) return kInvalidContext;
  std::lock_guard lock(d.mutex);
  auto* peer = static_cast<const Context*>(context);
  if (std::find(c->peers.begin(), c->peers.end(), peer) != c->peers.end()) return kPeerEnabled;
  c->peers.push_back(peer);
  return kOk;
}

int peer_attribute(int* value, int /*attribute*/, int device, int peer) {
  if (!Driver::Get().Find(device) || !Driver::Get().Find(peer)) return kInvalidDevice;
  *value = 1;
  return kOk;
}

int cuda_error_name(int code, const char** name) {
  switch (code) {
    case kOk: *name = "CUDA_SUCCESS"; return kOk;
    case kInvalidValue: *name = "CUDA_ERROR_INVALID_VALUE"; return kOk;
    case kOutOfMemory: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return kOk;
    case kNotInitialized: *name = "CUDA_ERROR_NOT_INITIALIZED"; return kOk;
    case kNoDevice: *name = "CUDA_ERROR_NO_DEVICE"; return kOk;
    case kInvalidDevice: *name = "CUDA_ERROR_INVALID_DEVICE"; return kOk;
    case kInvalidImage: *name = "CUDA_ERROR_INVALID_IMAGE"; return kOk;
    case kInvalidContext: *name = "CUDA_ERROR_INVALID_CONTEXT"; return kOk;
    case kInvalidHandle: *name = "CUDA_ERROR_INVALID_HANDLE"; return kOk;
    case kNotFound: *name = "CUDA_ERROR_NOT_FOUND"; return kOk;
    case kNotReady: *name = "CUDA_ERROR_NOT_READY"; return kOk;
    case kPeerEnabled: *name = "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"; return kOk;
    case kLaunchFailed: *name = "CUDA_ERROR_LAUNCH_FAILED"; return kOk;
    case kNotSupported: *name = "CUDA_ERROR_NOT_SUPPORTED"; return kOk;
    case kCaptureRefused: *name = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"; return kOk;
    case kUpdateFailed: *name = "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"; return kOk;
    default: *name = nullptr; return kInvalidValue;
  }
}

}  // namespace mge::software::driver
