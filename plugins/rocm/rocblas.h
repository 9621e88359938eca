// SPDX-License-Identifier: Apache-2.0
// rocBLAS, AMD's library of matrix products: opened when the first product of a model is planned. Debian has no headers of it,
// so its functions are declared here, with the numbers of rocblas-types.h.
#pragma once

#include <cstdint>
#include <mutex>

#include "plugins/gpu/runtime/device.h"

namespace mge::rocm {

enum RocblasOperation : int { kRocblasNone = 111, kRocblasTranspose = 112 };
enum RocblasType : int { kRocblasF16 = 150, kRocblasF32 = 151, kRocblasF64 = 152, kRocblasBf16 = 168 };
enum RocblasStatus : int { kRocblasSuccess = 0, kRocblasNotImplemented = 2, kRocblasMemoryError = 5 };
inline constexpr int kRocblasNoAtomics = 0;
inline constexpr int kRocblasStandard = 0;  // the algorithm that the library chooses

// F(member, function, parameters)
#define MGE_ROCBLAS_FUNCTIONS(F)                                                                                           \
  F(create, rocblas_create_handle, (void** handle))                                                                        \
  F(destroy, rocblas_destroy_handle, (void* handle))                                                                       \
  F(set_stream, rocblas_set_stream, (void* handle, void* stream))                                                          \
  F(set_workspace, rocblas_set_workspace, (void* handle, void* memory, size_t bytes))                                      \
  F(set_atomics, rocblas_set_atomics_mode, (void* handle, int mode))                                                       \
  F(gemm, rocblas_gemm_strided_batched_ex,                                                                                 \
    (void* handle, int left_operation, int right_operation, int m, int n, int k, const void* alpha, const void* left,      \
     int left_type, int left_ld, int64_t left_step, const void* right, int right_type, int right_ld, int64_t right_step,   \
     const void* beta, const void* start, int start_type, int start_ld, int64_t start_step, void* result, int result_type, \
     int result_ld, int64_t result_step, int batch, int compute_type, int algorithm, int32_t solution, uint32_t flags))

// The functions of the opened library.
struct Rocblas {
#define MGE_ROCBLAS_MEMBER(member, function, parameters) int(*member) parameters = nullptr;
  MGE_ROCBLAS_FUNCTIONS(MGE_ROCBLAS_MEMBER)
#undef MGE_ROCBLAS_MEMBER
  const char* (*status_text)(int status) = nullptr;

  // Opens the library of the setting rocm.rocblas, or else that of the system. Fails with MGE_UNAVAILABLE and what to do.
  Result Load();
  // Returns an error with the library's text of the status, unless it is kRocblasSuccess.
  Result ResultOf(int status, const char* function) const;
};

// The library's state of one device, created at its first use. Thread-safe.
class RocblasHandle {
 public:
  // Opens the library and creates the handle. Fails like Rocblas::Load().
  Result Open(gpu::Device& device);
  // Calls f(library, handle), which returns a Result, after the handle got a stream and a workspace. A handle has one of
  // each, so one thread at a time calls the library.
  template <typename F>
  Result Use(void* stream, void* workspace, size_t bytes, F&& f) {
    std::lock_guard lock(mutex_);
    if (Result r = library_.ResultOf(library_.set_stream(handle_, stream), "rocblas_set_stream"); !r.ok()) return r;
    Result r = library_.ResultOf(library_.set_workspace(handle_, workspace, bytes), "rocblas_set_workspace");
    return r.ok() ? f(library_, handle_) : r;
  }
  // Destroys the handle, if there is one.
  void Close(gpu::Device& device);

 private:
  std::mutex mutex_;
  bool tried_ = false;
  Result result_;
  Rocblas library_;
  void* handle_ = nullptr;
};

}  // namespace mge::rocm
