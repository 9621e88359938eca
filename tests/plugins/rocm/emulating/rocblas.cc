// SPDX-License-Identifier: Apache-2.0
// A library with the interface of rocBLAS that computes products with the emulated kernel of the driver in software.
#include <cstdint>

#include "plugins/gpu/kernels/matmul.h"
#include "tests/plugins/gpu/vendor/emulated_kernel.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0, kNotImplemented = 2, kInvalidPointer = 3, kInvalidSize = 4;
constexpr int kNone = 111, kTranspose = 112, kF16 = 150, kF32 = 151, kF64 = 152, kBf16 = 168;

struct Handle {
  void* stream = nullptr;
  void* workspace = nullptr;
  int atomics = 1;
};

// Sets the strides of an operand: of a step along the rows of the result, and along k.
void SetStrides(int operation, int64_t ld, int64_t* row, int64_t* column) {
  *row = operation == kTranspose ? ld : 1;
  *column = operation == kTranspose ? 1 : ld;
}

}  // namespace

EXPORT const char* rocblas_status_to_string(int status) {
  return status == kNotImplemented ? "rocblas_status_not_implemented" : "rocblas_status_invalid_value";
}
EXPORT int rocblas_create_handle(void** handle) { return *handle = new Handle, kSuccess; }
EXPORT int rocblas_destroy_handle(void* handle) { return delete static_cast<Handle*>(handle), kSuccess; }
EXPORT int rocblas_set_stream(void* handle, void* stream) { return static_cast<Handle*>(handle)->stream = stream, kSuccess; }
EXPORT int rocblas_set_workspace(void* handle, void* memory, size_t) {
  return static_cast<Handle*>(handle)->workspace = memory, kSuccess;
}
EXPORT int rocblas_set_atomics_mode(void* handle, int mode) {
  return static_cast<Handle*>(handle)->atomics = mode, kSuccess;
}
EXPORT int rocblas_gemm_strided_batched_ex(void* handle, int left_operation, int right_operation, int m, int n, int k,
                                           const void* alpha, const void* left, int left_type, int left_ld,
                                           int64_t left_step, const void* right, int right_type, int right_ld,
                                           int64_t right_step, const void* beta, const void* start, int start_type,
                                           int start_ld, int64_t start_step, void* result, int result_type, int result_ld,
                                           int64_t result_step, int batch, int compute_type, int algorithm, int32_t solution,
                                           uint32_t flags) {
  const auto& h = *static_cast<const Handle*>(handle);
  if (!h.workspace || h.atomics != 0) return kInvalidPointer;
  const bool wide = result_type == kF64;
  if (left_ld < (left_operation == kNone ? m : k) || right_ld < (right_operation == kNone ? k : n) || result_ld < m ||
      start_ld != result_ld || start_step != result_step) {
    return kInvalidSize;
  }
  if (left_type != result_type || right_type != result_type || start_type != result_type ||
      compute_type != (wide ? kF64 : kF32) || algorithm || solution || flags) {
    return kNotImplemented;
  }
  // The kernel's result is row-major: rows of the kernel are columns of the library, and its factors change places.
  mge::gpu::MatMulArgs args = {};
  args.a = right;
  args.b = left;
  args.y = result;
  args.m = n;
  args.n = m;
  args.k = k;
  SetStrides(right_operation == kNone ? kTranspose : kNone, right_ld, &args.a_row, &args.a_k);
  SetStrides(left_operation == kNone ? kTranspose : kNone, left_ld, &args.b_k, &args.b_column);
  args.batch = batch;
  args.batch_rank = 1;
  args.batch_dims[0] = batch;
  args.a_batch[0] = right_step;
  args.b_batch[0] = left_step;
  args.residual_batch[0] = result_step;
  args.residual_row = args.c_row = result_ld;
  args.residual_column = args.c_column = 1;
  args.alpha = wide ? static_cast<float>(*static_cast<const double*>(alpha)) : *static_cast<const float*>(alpha);
  args.beta = wide ? static_cast<float>(*static_cast<const double*>(beta)) : *static_cast<const float*>(beta);
  if (args.beta == 1) args.residual = start;
  if (args.beta != 0 && args.beta != 1) args.c = start;
  if (args.c && batch != 1) return kNotImplemented;
  args.activation = {mge::gpu::kNoActivation, 0, 0};
  const char* kernel = result_type == kF32    ? "matmul_f32"
                       : result_type == kF64  ? "matmul_f64"
                       : result_type == kF16  ? "matmul_f16"
                       : result_type == kBf16 ? "matmul_bf16"
                                              : nullptr;
  static const mge::EmulatedKernels kernels(MGE_BINARY_DIR "/lib/mge/test/libamdhip64.so.5", /*is_hip=*/true);
  return kernels.Launch(kernel, args, h.stream) ? kSuccess : kNotImplemented;
}
