// SPDX-License-Identifier: Apache-2.0
// A library with the interface of cuBLASLt that records what it is asked for, and computes products with the emulated kernel
// of the driver in software. It knows its own descriptors only.
#include <cublasLt.h>

#include <atomic>
#include <cstring>

#include "plugins/gpu/kernels/matmul.h"
#include "tests/plugins/gpu/vendor/emulated_kernel.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr uint64_t kWorkspace = 1024;  // of the second algorithm

struct Layout {
  cudaDataType type;
  int32_t batch;
  int64_t rows, columns, ld, stride;
};
struct Operation {
  cublasComputeType_t compute;
  cudaDataType scale;
  int32_t transpose[2];
  cublasLtEpilogue_t epilogue;
  const void* bias;
  void* before;
  int64_t before_ld, before_stride;
};
struct Preference {
  uint64_t workspace;
  uint32_t schemes, alignment;
};
template <typename T, typename Opaque>
T& As(Opaque* opaque) {
  static_assert(sizeof(T) <= sizeof(*opaque));
  return *reinterpret_cast<T*>(opaque);
}

bool WritesBefore(cublasLtEpilogue_t e) { return e == CUBLASLT_EPILOGUE_GELU_AUX || e == CUBLASLT_EPILOGUE_GELU_AUX_BIAS; }

std::atomic<uint64_t> g_products{0}, g_with_argument{0}, g_heuristics{0}, g_handles{0};

const mge::EmulatedKernels& Kernels() {
  static const mge::EmulatedKernels kernels(MGE_BINARY_DIR "/lib/mge/test/libcuda.so.1", /*is_hip=*/false);
  return kernels;
}

// Sets the strides of an operand: of a step along the rows of the result, and along k.
void SetStrides(const Layout& l, bool transposed, int64_t* row, int64_t* column) {
  *row = transposed ? l.ld : 1;
  *column = transposed ? 1 : l.ld;
}

mge::gpu::Activation ActivationOf(cublasLtEpilogue_t e) {
  switch (e) {
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_RELU_BIAS: return {mge::gpu::kRelu, 0, 0};
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS: return {mge::gpu::kGeluTanh, 0, 0};
    default: return {mge::gpu::kNoActivation, 0, 0};
  }
}

}  // namespace

EXPORT uint64_t recorded_products() { return g_products; }
EXPORT uint64_t recorded_heuristics() { return g_heuristics; }
EXPORT uint64_t recorded_products_with_argument() { return g_with_argument; }  // of an activation, as a second result
EXPORT uint64_t recorded_handles() { return g_handles; }                       // that are open

EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  void* context = nullptr;
  if (Kernels().Function<int (*)(void**)>("cuCtxPopCurrent_v2", "")(&context) != 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  Kernels().Function<int (*)(void*)>("cuCtxPushCurrent_v2", "")(context);
  ++g_handles;
  *handle = reinterpret_cast<cublasLtHandle_t>(&g_handles);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtDestroy(cublasLtHandle_t) {
  --g_handles;
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT size_t cublasLtGetVersion() {
#ifdef MGE_OLD
  return 120900;
#else
  return CUBLAS_VERSION;
#endif
}
EXPORT const char* cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE" : "CUBLAS_STATUS_NOT_SUPPORTED";
}

EXPORT cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t desc, size_t size, cublasComputeType_t compute,
                                                      cudaDataType_t scale) {
  if (size != sizeof(*desc)) return CUBLAS_STATUS_INVALID_VALUE;
  As<Operation>(desc) = {compute, scale, {0, 0}, CUBLASLT_EPILOGUE_DEFAULT, nullptr, nullptr, 0, 0};
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                                     const void* value, size_t size) {
  auto& op = As<Operation>(desc);
  const auto set = [&](auto* to) {
    if (size != sizeof(*to)) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(to, value, size);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return set(&op.transpose[0]);
    case CUBLASLT_MATMUL_DESC_TRANSB: return set(&op.transpose[1]);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(&op.epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return set(&op.bias);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return set(&op.before);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return set(&op.before_ld);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE: return set(&op.before_stride);
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
}
EXPORT cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size, cudaDataType type,
                                                        uint64_t rows, uint64_t columns, int64_t ld) {
  if (size != sizeof(*layout) || ld < static_cast<int64_t>(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  As<Layout>(layout) = {type, 1, static_cast<int64_t>(rows), static_cast<int64_t>(columns), ld, 0};
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                       cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                       size_t size) {
  auto& l = As<Layout>(layout);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && size == 4) {
    std::memcpy(&l.batch, value, size);
  } else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && size == 8) {
    std::memcpy(&l.stride, value, size);
  } else {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference, size_t size) {
  if (size != sizeof(*preference)) return CUBLAS_STATUS_INVALID_VALUE;
  As<Preference>(preference) = {0, CUBLASLT_REDUCTION_SCHEME_MASK, 256};
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                           cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                           size_t size) {
  auto& p = As<Preference>(preference);
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && size == 8) {
    std::memcpy(&p.workspace, value, size);
  } else if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK && size == 4) {
    std::memcpy(&p.schemes, value, size);
  } else if (size == 4) {
    std::memcpy(&p.alignment, value, size);
  } else {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                                     cublasLtMatrixLayout_t left, cublasLtMatrixLayout_t right,
                                                     cublasLtMatrixLayout_t start, cublasLtMatrixLayout_t result,
                                                     cublasLtMatmulPreference_t preference, int wanted,
                                                     cublasLtMatmulHeuristicResult_t* results, int* count) {
  ++g_heuristics;
  const auto& op = As<Operation>(desc);
  const auto &a = As<Layout>(left), &b = As<Layout>(right), &d = As<Layout>(result);
  const int64_t rows = op.transpose[0] ? a.columns : a.rows, k = op.transpose[0] ? a.rows : a.columns,
                columns = op.transpose[1] ? b.rows : b.columns, other_k = op.transpose[1] ? b.columns : b.rows;
  *count = 0;
  if (rows != d.rows || columns != d.columns || k != other_k || As<Layout>(start).rows != d.rows) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (As<Preference>(preference).schemes & CUBLASLT_REDUCTION_SCHEME_INPLACE) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (WritesBefore(op.epilogue)) {
    const bool aligned = op.before && reinterpret_cast<uintptr_t>(op.before) % 16 == 0 && op.before_ld % 8 == 0;
    if (!aligned || op.before_ld < d.rows || op.before_stride % 8 != 0) return CUBLAS_STATUS_INVALID_VALUE;
    if (d.type == CUDA_R_16BF) return CUBLAS_STATUS_SUCCESS;  // it has no algorithm
  }
  for (; *count < 2 && *count < wanted; ++*count) {
    results[*count] = {};
    results[*count].algo.data[0] = static_cast<uint64_t>(*count) + 1;
    results[*count].workspaceSize = *count ? kWorkspace : 0;
  }
  return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha, const void* left,
                                     cublasLtMatrixLayout_t left_layout, const void* right,
                                     cublasLtMatrixLayout_t right_layout, const void* beta, const void* start,
                                     cublasLtMatrixLayout_t start_layout, void* result, cublasLtMatrixLayout_t result_layout,
                                     const cublasLtMatmulAlgo_t* algo, void* workspace, size_t workspace_bytes,
                                     cudaStream_t stream) {
  ++g_products;
  const auto& op = As<Operation>(desc);
  const auto &a = As<Layout>(left_layout), &b = As<Layout>(right_layout), &d = As<Layout>(result_layout);
  const bool second = algo->data[0] == 2;
  if (algo->data[0] == 0 || (second && (!workspace || workspace_bytes < kWorkspace))) return CUBLAS_STATUS_INVALID_VALUE;
  // The kernel's result is row-major: rows of the kernel are columns of the library, and its factors change places.
  mge::gpu::MatMulArgs args = {};
  args.a = right;
  args.b = left;
  args.y = result;
  args.m = d.columns;
  args.n = d.rows;
  args.k = op.transpose[0] ? a.rows : a.columns;
  SetStrides(b, op.transpose[1] == 0, &args.a_row, &args.a_k);
  SetStrides(a, op.transpose[0] == 0, &args.b_k, &args.b_column);
  args.batch = d.batch;
  args.batch_rank = 1;
  args.batch_dims[0] = d.batch;
  args.a_batch[0] = b.stride;
  args.b_batch[0] = a.stride;
  args.residual_batch[0] = d.stride;
  args.residual_row = args.c_row = As<Layout>(start_layout).ld;
  args.residual_column = args.c_column = 1;
  const bool wide = op.scale == CUDA_R_64F;
  args.alpha = wide ? static_cast<float>(*static_cast<const double*>(alpha)) : *static_cast<const float*>(alpha);
  args.beta = wide ? static_cast<float>(*static_cast<const double*>(beta)) : *static_cast<const float*>(beta);
  if (args.beta == 1) args.residual = start;
  if (args.beta != 0 && args.beta != 1) args.c = start;
  if (args.c && d.batch != 1) return CUBLAS_STATUS_NOT_SUPPORTED;
  args.activation = ActivationOf(op.epilogue);
  switch (op.epilogue) {
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS: args.bias = op.bias; break;
    default: break;
  }
  args.bias_column = 1;
  if (WritesBefore(op.epilogue)) {
    ++g_with_argument;
    if (op.before_ld != d.rows || (d.batch > 1 && op.before_stride != d.stride)) return CUBLAS_STATUS_NOT_SUPPORTED;
    args.before = op.before;
  }
  const char* kernel = d.type == CUDA_R_32F    ? op.compute == CUBLAS_COMPUTE_32F ? "matmul_f32" : "matmul_as_bf16_f32"
                       : d.type == CUDA_R_64F  ? "matmul_f64"
                       : d.type == CUDA_R_16F  ? "matmul_f16"
                       : d.type == CUDA_R_16BF ? "matmul_bf16"
                                               : nullptr;
  return Kernels().Launch(kernel, args, stream) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
