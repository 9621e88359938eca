// SPDX-License-Identifier: Apache-2.0
// The parts of this backend. A part that is not named here is the ready-made one of mge::BackendDefaults.
#include "backend.h"
#include "kernels/kernels.h"
#include "mge_kernel_set.h"
#include "settings.h"

namespace backend {
namespace {

struct Backend : mge::BackendDefaults {
  // The host reads the name, the classes and the instruction sets from the file before it runs any code of it.
  static constexpr std::string_view kName = "null";
  static constexpr std::string_view kVersion = BACKEND_VERSION;
  // The device classes, here only the name. With "null,gpu", devices with MGE_DEVICE_GPU are also selectable as gpu0.
  static constexpr std::string_view kClasses = kName;
  // MGE_ISA_AVX2 if the whole library is compiled with -mavx2; 0 if it checks the processor at run time or needs nothing.
  static constexpr uint32_t kIsa = 0;
  // Changes when a kernel changes its results or its speed: the host then deletes its measured times. mge_backend() of CMake
  // computes this hash of all files in kernels/. Other builds write a number here, and increase it.
  static constexpr std::string_view kKernelSet = MGE_KERNEL_SET;

  static constexpr const mge_setting* kSettings[] = {&kDevices};
  using Device = backend::Device;
  using Memory = backend::Memory;
  using Pool = mge::pool::Naive;       // or Round, Unpooled, Growing, or a class of your own
  using Reserve = mge::reserve::None;  // or Percent<5>, Bytes<64 << 20>, All, or a class of your own
  using Strategy = backend::Strategy;
  using Queue = backend::Queue;  // omit these three if kernels run in the calling thread
  using Fence = backend::Fence;
  using Stamp = backend::Stamp;
  using Kernels = backend::Kernels;
  using Claims = mge::Claims<FindClaims>;
  // static bool AllowRewrite(Device&, std::string_view name): returns false to keep the host from applying one of its
  // rewrites (`mge plan` lists them) to models on a device, for example because a claim needs the pattern that it replaces.
  // using Communicator = ...: collectives between devices. See mge/plugin/collective.hpp.
  // using Layouts = ...: layouts known only to this backend. See LayoutQuestion in mge/plugin/backend.hpp.
  // static const void* Extension(std::string_view name, uint32_t min_version): returns a C table for a name such as
  // "org.example.power", or nullptr for an unknown name. `mge sdk test` uses the extension of mge/faults.h.

  // Starts the backend: load the driver's library here, with dlopen. If it is missing, return MGE_UNAVAILABLE and a
  // sentence, such as "libdriver.so.2 is not installed; install the package driver2". The host then continues without this
  // backend, and shows the sentence to users who request the device.
  static mge::Result Start() { return {}; }
  // Stops the backend: join every thread, release every handle of the driver. The library stays loaded; Start() may follow.
  static void Stop() {}
};

}  // namespace
}  // namespace backend

MGE_BACKEND(backend::Backend);
