// SPDX-License-Identifier: Apache-2.0
// What this backend is made of. A part that is not named here is the ready-made one of mge::BackendDefaults.
#include "backend.h"
#include "kernels/kernels.h"
#include "settings.h"

namespace backend {
namespace {

struct Backend : mge::BackendDefaults {
  // The host reads the name, the classes and the instruction sets in the file, before any code of it can run.
  static constexpr std::string_view kName = "null";
  static constexpr std::string_view kVersion = BACKEND_VERSION;
  // The class of its devices, here the name. With "null,gpu", devices that say MGE_DEVICE_GPU answer to gpu0, too.
  static constexpr std::string_view kClasses = kName;
  // MGE_ISA_AVX2 if all of it is compiled with -mavx2; 0 if it asks the processor at run time, or needs nothing.
  static constexpr uint32_t kIsa = 0;
  // Change it when a kernel changes what it computes or how fast: the host then forgets what it has measured.
  static constexpr std::string_view kKernelSet = "1";

  static constexpr const mge_setting* kSettings[] = {&kDevices};
  using Device = backend::Device;
  using Memory = backend::Memory;
  using Pool = mge::pool::Naive;       // or Round, Unpooled, Growing, or a class of your own
  using Reserve = mge::reserve::None;  // or Percent<5>, Bytes<64 << 20>, All, or a class of your own
  using Strategy = backend::Strategy;
  using Queue = backend::Queue;        // leave out these three where kernels run in the calling thread
  using Fence = backend::Fence;
  using Stamp = backend::Stamp;
  using Kernels = backend::Kernels;
  using Claims = mge::Claims<FindClaims>;
  // using Layouts = ...: layouts that only this backend knows. See LayoutQuestion in mge/plugin/backend.hpp.
  // static const void* Extension(std::string_view name, uint32_t min_version): a table of C for what the interface has no
  // slot for, by a name such as "org.example.power"; nullptr for any other. `mge sdk test` asks for that of mge/faults.h.

  // Load the driver's library here, with dlopen. MGE_UNAVAILABLE and a sentence, such as "libdriver.so.2 is not installed;
  // install the package driver2", if it is not there: the host goes on without this backend, and shows the sentence to whom
  // asks for the device.
  static mge::Result Start() { return {}; }
  // Join every thread, release every handle of the driver. The library stays mapped, and Start() may come again.
  static void Stop() {}
};

}  // namespace
}  // namespace backend

MGE_BACKEND(backend::Backend);
