// SPDX-License-Identifier: Apache-2.0
// The driver of a vendor: a library that is opened when the backend starts, and a table of its functions. CUDA and ROCm
// share the code of this folder. They differ in the Vendor, which their backends define.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "mge/plugin.hpp"
#include "plugins/gpu/runtime/functions.h"

namespace mge::gpu {

inline constexpr unsigned kForAllContexts = 1;  // flag of host_allocate: CU_MEMHOSTALLOC_PORTABLE, hipHostMallocPortable

class Compiler;
struct LibraryFacts;

// A function of the driver. Null until the driver is loaded.
template <typename... Parameters>
struct DriverFunction {
  using Type = int (*)(Parameters...);
  Type call = nullptr;
  const char* name = "";  // the driver's symbol
};
template <typename T>
struct DriverFunctionOf;
template <typename... Parameters>
struct DriverFunctionOf<int(Parameters...)> {
  using type = DriverFunction<Parameters...>;
};

// The functions of the loaded driver. Members of the other vendor stay null, and so do old functions that it lacks.
struct Driver {
#define GPU_DRIVER_MEMBER(member, cuda, hip, parameters, arguments) DriverFunctionOf<int parameters>::type member;
  GPU_DRIVER_FUNCTIONS(GPU_DRIVER_MEMBER)
  GPU_CUDA_FUNCTIONS(GPU_DRIVER_MEMBER)
  GPU_HIP_FUNCTIONS(GPU_DRIVER_MEMBER)
  GPU_HIP_OLD_FUNCTIONS(GPU_DRIVER_MEMBER)
#undef GPU_DRIVER_MEMBER
  int version = 0;
};

// Codes of both drivers.
enum DriverCode : int {
  kDriverOk = 0,
  kDriverOutOfMemory = 2,
  kDriverBusy = 46,
  kDriverNoDevice = 100,
  kDriverNoCode = 209,
  kDriverBadProgram = 218,
  kDriverNewerProgram = 222,
  kDriverNotReady = 600,
  kDriverPeerEnabled = 704,
  kDriverUpdateFailed = 910,
};
// Returns whether a code means that the device no longer works in this process.
bool IsLoss(int code);

// The numbers of the driver's device attributes; -1: it has no such attribute.
struct AttributeNumbers {
  int multiprocessors, major, minor, clock_khz, memory_clock_khz, bus_bits, compute_mode, virtual_memory;
  int native_atomics;  // of a pair of devices
};

// The structs of both drivers for physical memory (CUmemAllocationProp) and for access to it (CUmemAccessDesc).
struct PhysicalProperties {
  int type = 1;  // pinned
  int handle_types = 0;
  int location_type = 1;  // a device
  int location = 0;
  void* reserved = nullptr;
  unsigned char flags[8] = {};
};
struct PhysicalAccess {
  int location_type = 1;
  int location = 0;
  int flags = 3;  // read and write
};

// The settings with rates that were measured on the devices, for estimates; 0: not measured.
struct MeasuredRates {
  const mge_setting* memory;   // GB/s
  const mge_setting* compute;  // TFLOP/s of float32 without matrix units
  const mge_setting* matrix;   // TFLOP/s of float16 by matrix units; null: kernels use none
};

// The properties of one vendor. Defined by its backend.
struct Vendor {
  const char* name;                        // the device class: "cuda"
  const char* product;                     // "CUDA"
  std::span<const char* const> libraries;  // the names to try, newest first: "libcuda.so.1"
  const char* device_file;                 // absent if the kernel has no driver for such devices; nullptr: none
  const char* install;                     // advice if the driver is missing or too old
  const char* visible;                     // the environment variable that hides devices from the driver
  const char* architectures;               // the CMake variable that lists the architectures of the embedded code
  bool is_hip;                             // which symbols of functions.h the library has
  int minimum_version;                     // of the driver
  AttributeNumbers numbers;
  const mge_setting* driver_setting;  // path of another library
  const mge_setting* queues_setting;  // number of compute queues
  MeasuredRates rates;
  // Returns the capability as users write it ("9.0").
  std::string (*capability)(int major, int minor);
  // Returns the float32 operations of a multiprocessor in each clock, without matrix units.
  int (*operations_per_clock)(int major, int minor);
  // Returns why the backend's kernels cannot run on a device, or "".
  std::string (*refusal)(int major, int minor);
  // Returns the capability (10 * major + minor) for which the embedded code was compiled that runs on a device. Null if it has
  // no matrix units that kernels use.
  int (*code_capability)(int major, int minor) = nullptr;
  // Returns a version as users write it ("13.0").
  std::string (*version_text)(int version);
  Compiler* compiler;               // of kernels at run time
  const LibraryFacts* collectives;  // NCCL, RCCL
  // Returns the compiler's name for a device's architecture, or "" if the driver does not tell. Nullable.
  std::string (*architecture_name)(int device) = nullptr;
};
const Vendor& TheVendor();

// Opens the driver's library and starts the driver. The compiler and NCCL are opened again at their next use, because settings
// may have changed since the last start. Called by the backend's Start().
Result LoadDriver();
// Returns the loaded driver. Valid after LoadDriver() has succeeded.
const Driver& TheDriver();

// Returns an error with the driver's name of the code, unless the code is kDriverOk.
Result ResultOf(int code, const char* function);
template <typename... Parameters, typename... Arguments>
Result Call(const DriverFunction<Parameters...>& function, Arguments... arguments) {
  return ResultOf(function.call(arguments...), function.name);
}

}  // namespace mge::gpu
