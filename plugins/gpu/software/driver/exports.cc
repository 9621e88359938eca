// SPDX-License-Identifier: Apache-2.0
// The symbols of libcuda, or of libamdhip64. Each counts its calls, fails if a test asks for it, and converts exceptions to
// codes.
#include <cstring>
#include <exception>
#include <new>

#include "plugins/gpu/emulation/emulator.h"
#include "plugins/gpu/software/driver/functions.h"
#include "plugins/gpu/software/driver/state.h"
#include "plugins/gpu/software/driver/testing.h"

// OWN_FUNCTIONS are those that only this vendor has; SYMBOL chooses its name.
#ifdef MGE_SOFTWARE_HIP
#define OWN_FUNCTIONS(F) GPU_HIP_FUNCTIONS(F) GPU_HIP_OLD_FUNCTIONS(F)
#define SYMBOL(cuda, hip) hip
#else
#define OWN_FUNCTIONS GPU_CUDA_FUNCTIONS
#define SYMBOL(cuda, hip) cuda
#endif
#define TEXT_OF(symbol) #symbol
#define NAME(symbol) TEXT_OF(symbol)
#define EXPORT extern "C" __attribute__((visibility("default")))

namespace mge::software::driver {
namespace {

#define GPU_DRIVER_NUMBER(member, cuda, hip, parameters, arguments) k_##member,
enum FunctionNumber : int { GPU_DRIVER_FUNCTIONS(GPU_DRIVER_NUMBER) OWN_FUNCTIONS(GPU_DRIVER_NUMBER) };

template <typename F>
int Call(FunctionNumber number, F&& f) noexcept {
  try {
    const int code = Driver::Get().Count(number);
    return code == kOk ? f() : code;
  } catch (const std::bad_alloc&) {
    return kOutOfMemory;
  } catch (const std::exception&) {
    return kLaunchFailed;
  }
}

// Work of another library.
class ForeignWork : public HostWork {
 public:
  ForeignWork(void (*work)(void*, void*, const void*), void (*release)(void*), void* data)
      : work_(work), release_(release), data_(data) {}
  ~ForeignWork() override { release_(data_); }
  Result Run(const HostWorkCall& call) override {
    work_(data_, call.destination, call.source);
    return {};
  }

 private:
  void (*work_)(void*, void*, const void*);
  void (*release_)(void*);
  void* data_;
};

int Find(const char* name) {
  for (int i = 0; kFunctionNames[i]; ++i) {
    if (std::strcmp(kFunctionNames[i], name) == 0) return i;
  }
  return -1;
}

}  // namespace

#define GPU_DRIVER_NAME(member, cuda, hip, parameters, arguments) NAME(SYMBOL(cuda, hip)),
const char* const kFunctionNames[] = {GPU_DRIVER_FUNCTIONS(GPU_DRIVER_NAME) OWN_FUNCTIONS(GPU_DRIVER_NAME) nullptr};

}  // namespace mge::software::driver

using namespace mge::software;  // NOLINT: the functions below are the interface

#define GPU_DRIVER_EXPORT(member, cuda, hip, parameters, arguments)                    \
  EXPORT int SYMBOL(cuda, hip) parameters {                                            \
    return driver::Call(driver::k_##member, [&] { return driver::member arguments; }); \
  }
GPU_DRIVER_FUNCTIONS(GPU_DRIVER_EXPORT)
OWN_FUNCTIONS(GPU_DRIVER_EXPORT)

EXPORT void mge_driver_reset(int devices, uint64_t memory) {
  driver::Driver& d = driver::Driver::Get();
  d.Reset();
  d.configuration.devices = devices;
  if (memory) d.configuration.memory = memory;
}

EXPORT void mge_driver_set_version(int version) { driver::Driver::Get().configuration.version = version; }

EXPORT const char* mge_driver_function(int index) {
  for (int i = 0; i < index; ++i) {
    if (!driver::kFunctionNames[i]) return nullptr;
  }
  return driver::kFunctionNames[index];
}

EXPORT uint64_t mge_driver_calls(const char* function) {
  driver::Driver& d = driver::Driver::Get();
  const int number = driver::Find(function);
  std::lock_guard lock(d.mutex);
  return number < 0 ? 0 : d.counts[static_cast<size_t>(number)];
}

EXPORT void mge_driver_fail(const char* function, uint64_t call, int code) {
  driver::Driver& d = driver::Driver::Get();
  std::lock_guard lock(d.mutex);
  d.failures.push_back({function, call, code});
}

EXPORT void mge_driver_add_kernels(const void* const* kernels, uint64_t count) {
  mge::gpu::AddKernels({reinterpret_cast<const mge::gpu::emulation::Kernel* const*>(kernels), count});
}

EXPORT int mge_driver_enqueue(void* stream, void (*work)(void* data, void* destination, const void* source),
                              void (*release)(void* data), void* data, void* destination, const void* source,
                              uint64_t bytes) {
  return driver::Enqueue(stream, std::make_shared<driver::ForeignWork>(work, release, data), {destination, source, bytes});
}

EXPORT void mge_driver_lose(int device) {
  driver::Driver& d = driver::Driver::Get();
  if (driver::Context* c = d.Find(device)) d.MarkLost(*c, "a test asked for it");
}

EXPORT int64_t mge_driver_live(void) { return driver::Driver::Get().live; }

EXPORT const char* mge_driver_error(void) {
  static thread_local std::string text;
  driver::Driver& d = driver::Driver::Get();
  std::lock_guard lock(d.mutex);
  text = d.error;
  return text.c_str();
}
