// SPDX-License-Identifier: Apache-2.0
// cuBLASLt, NVIDIA's library of matrix products: opened when the first product of a model is planned.
#pragma once

#include <cublasLt.h>

#include <mutex>

#include "plugins/gpu/runtime/device.h"

namespace mge::cuda {

// F(member, function)
#define MGE_CUBLASLT_FUNCTIONS(F)                           \
  F(create, cublasLtCreate)                                 \
  F(destroy, cublasLtDestroy)                               \
  F(version, cublasLtGetVersion)                            \
  F(status_name, cublasLtGetStatusName)                     \
  F(matmul, cublasLtMatmul)                                 \
  F(heuristic, cublasLtMatmulAlgoGetHeuristic)              \
  F(init_operation, cublasLtMatmulDescInit_internal)        \
  F(set_operation, cublasLtMatmulDescSetAttribute)          \
  F(init_layout, cublasLtMatrixLayoutInit_internal)         \
  F(set_layout, cublasLtMatrixLayoutSetAttribute)           \
  F(init_preference, cublasLtMatmulPreferenceInit_internal) \
  F(set_preference, cublasLtMatmulPreferenceSetAttribute)

// The functions of the opened library.
struct CublasLt {
#define MGE_CUBLASLT_MEMBER(member, function) decltype(&::function) member = nullptr;
  MGE_CUBLASLT_FUNCTIONS(MGE_CUBLASLT_MEMBER)
#undef MGE_CUBLASLT_MEMBER

  // Opens the library of the setting cuda.cublaslt, or else that of the system. Fails with MGE_UNAVAILABLE and what to do if
  // there is none, or one of another major version.
  Result Load();
  // Returns an error with the library's name of the status, unless it is CUBLAS_STATUS_SUCCESS.
  Result ResultOf(cublasStatus_t status, const char* function) const;
};

// The library's state of one device, created at its first use. Thread-safe.
class CublasLtHandle {
 public:
  struct Open {
    const CublasLt* library = nullptr;
    cublasLtHandle_t handle = nullptr;
  };
  // Returns the handle. Fails like CublasLt::Load().
  Result Get(gpu::Device& device, Open* out);
  // Destroys the handle, if there is one.
  void Close(gpu::Device& device);

 private:
  std::mutex mutex_;
  bool tried_ = false;
  Result result_;
  CublasLt library_;
  cublasLtHandle_t handle_ = nullptr;
};

}  // namespace mge::cuda
