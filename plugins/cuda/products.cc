// SPDX-License-Identifier: Apache-2.0
// Products by cuBLASLt. In its column-major terms a bias per column of y is one per row, as its epilogues need it.
#include "products.h"

#include <algorithm>
#include <array>

#include "device.h"
#include "plugins/gpu/runtime/queue.h"
#include "plugins/gpu/support/column_major.h"
#include "plugins/gpu/support/library_epilogue.h"
#include "plugins/gpu/support/row.h"

namespace mge::cuda {
namespace {

using gpu::ColumnMajorProduct;
using gpu::Stored;

constexpr uint64_t kMaxWorkspace = uint64_t{32} << 20;  // what the library's documentation recommends for newer devices
constexpr uint32_t kAlignment = 16;                     // of operands that are views of others
constexpr int kMaxChoices = 3;                          // candidates per way to compute

// A way to compute.
struct Mode {
  const char* id;
  mge_dtype type;
  cudaDataType data, scale;
  cublasComputeType_t compute;
  uint64_t attributes;
  int32_t rank;  // before the kernels of plugins/gpu
};
constexpr uint64_t kOrdinary =
    MGE_KERNEL_CAPTURE_SAFE | MGE_KERNEL_READS_ARGS_FIRST | MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_ALLOCATES;
constexpr Mode kModes[] = {
    {"cuda.cublaslt", MGE_DTYPE_F32, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, kOrdinary, -3},
    {"cuda.cublaslt.tf32", MGE_DTYPE_F32, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32,
     kOrdinary | MGE_KERNEL_REDUCED_PRECISION | MGE_KERNEL_TENSOR_CORE, -6},
    {"cuda.cublaslt", MGE_DTYPE_F64, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, kOrdinary, -3},
    {"cuda.cublaslt", MGE_DTYPE_F16, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, kOrdinary | MGE_KERNEL_TENSOR_CORE, -3},
    {"cuda.cublaslt", MGE_DTYPE_BF16, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, kOrdinary | MGE_KERNEL_TENSOR_CORE, -3}};

// A product in the terms of the library. Its descriptors hold no pointers, so copies are independent.
struct Operation {
  cublasLtMatmulDescOpaque_t desc = {};
  cublasLtMatrixLayoutOpaque_t left = {}, right = {}, start = {}, result = {};
  cublasLtMatmulPreferenceOpaque_t preference = {};
  std::array<cublasLtMatmulHeuristicResult_t, kMaxChoices> choices = {};
  int choice_count = 0;
  bool has_double_scale = false;
  ColumnMajorProduct product;
  bool activation_epilogue = false;  // computed by a kernel of its own
  bool writes_before = false;        // the library also writes the activation's argument
};

// Sets descriptors of the library, and remembers the first error.
class Builder {
 public:
  explicit Builder(const CublasLt& library) : library_(library) {}
  const Result& result() const { return result_; }

  void Layout(cublasLtMatrixLayoutOpaque_t* layout, cudaDataType type, const Stored& m, int64_t batch, int64_t stride) {
    Keep(library_.init_layout(layout, sizeof(*layout), type, static_cast<uint64_t>(m.rows), static_cast<uint64_t>(m.columns),
                              m.ld),
         "cublasLtMatrixLayoutInit");
    const auto count = static_cast<int32_t>(batch);
    Set(library_.set_layout, layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
    Set(library_.set_layout, layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
  }
  template <typename F, typename Desc, typename Attribute, typename T>
  void Set(F function, Desc* desc, Attribute attribute, const T& value) {
    Keep(function(desc, attribute, &value, sizeof(value)), "cublasLt...SetAttribute");
  }
  void Keep(cublasStatus_t status, const char* function) {
    if (result_.ok()) result_ = library_.ResultOf(status, function);
  }

 private:
  const CublasLt& library_;
  Result result_;
};

// Finds the epilogue of the library. Returns false if it has none.
bool EpilogueOf(int32_t activation, bool bias, cublasLtEpilogue_t* out) {
  switch (activation) {
    case gpu::kNoActivation: return *out = bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT, true;
    case gpu::kRelu: return *out = bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU, true;
    case gpu::kGeluTanh: return *out = bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU, true;
    default: return false;
  }
}

// Returns whether the library can write the activation's argument beside the result: that of a tanh-Gelu, in columns of a
// multiple of 8 elements.
bool CanWriteBefore(const ColumnMajorProduct& p) {
  return p.before >= 0 && p.activation.kind == gpu::kGeluTanh && p.columns % 8 == 0;
}

// Describes the product of the operation. `before`: the library writes the activation's argument, too.
Result Describe(const CublasLt& library, const Mode& mode, bool before, Operation* op) {
  const ColumnMajorProduct& p = op->product;
  op->has_double_scale = mode.scale == CUDA_R_64F;
  cublasLtEpilogue_t epilogue;
  op->writes_before = before;
  op->activation_epilogue = (p.before >= 0 && !before) || !EpilogueOf(p.activation.kind, p.bias >= 0, &epilogue);
  if (op->activation_epilogue) EpilogueOf(gpu::kNoActivation, p.bias >= 0, &epilogue);
  if (before) epilogue = p.bias >= 0 ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;

  Builder b(library);
  b.Keep(library.init_operation(&op->desc, sizeof(op->desc), mode.compute, mode.scale), "cublasLtMatmulDescInit");
  const int32_t transpose_left = p.left.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                transpose_right = p.right.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  b.Set(library.set_operation, &op->desc, CUBLASLT_MATMUL_DESC_TRANSA, transpose_left);
  b.Set(library.set_operation, &op->desc, CUBLASLT_MATMUL_DESC_TRANSB, transpose_right);
  b.Set(library.set_operation, &op->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  if (before) {
    const int64_t stride = p.rows * p.columns;
    const auto aligned = reinterpret_cast<void*>(uintptr_t{kAlignment});  // only for the choice of algorithms
    b.Set(library.set_operation, &op->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aligned);
    b.Set(library.set_operation, &op->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.columns);
    b.Set(library.set_operation, &op->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, stride);
  }
  const Stored result = {p.columns, p.rows, p.columns, false};
  b.Layout(&op->left, mode.data, p.left, p.batch, p.left_step);
  b.Layout(&op->right, mode.data, p.right, p.batch, p.right_step);
  b.Layout(&op->start, mode.data, result, p.batch, p.rows * p.columns);
  b.Layout(&op->result, mode.data, result, p.batch, p.rows * p.columns);
  b.Keep(library.init_preference(&op->preference, sizeof(op->preference)), "cublasLtMatmulPreferenceInit");
  b.Set(library.set_preference, &op->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMaxWorkspace);
  // Sums in place use atomic operations, so their order is not fixed.
  const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  b.Set(library.set_preference, &op->preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
  for (auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                     CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    b.Set(library.set_preference, &op->preference, which, kAlignment);
  }
  return b.result();
}

// Describes the products, and asks the library for the best algorithms of each, the best one first.
Result Choose(const Problem& p, const Mode& mode, CublasLtHandle::Open* open, std::vector<Operation>* ops) {
  std::vector<ColumnMajorProduct> products;
  if (Result r = gpu::FindColumnMajor(p, "cuBLASLt", &products); !r.ok()) return r;
  auto& device = p.device<Device>();
  if (Result r = device.cublaslt.Get(device, open); !r.ok()) return r;
  const CublasLt& library = *open->library;
  for (const ColumnMajorProduct& product : products) {
    Operation& op = ops->emplace_back();
    op.product = product;
    // Where the library cannot write the activation's argument, it is the result, and a kernel computes the activation.
    Result r;
    for (const bool before : {true, false}) {
      if (before && !CanWriteBefore(product)) continue;
      if (r = Describe(library, mode, before, &op); !r.ok()) return r;
      r = device.With([&] {
        return library.ResultOf(library.heuristic(open->handle, &op.desc, &op.left, &op.right, &op.start, &op.result,
                                                  &op.preference, kMaxChoices, op.choices.data(), &op.choice_count),
                                "cublasLtMatmulAlgoGetHeuristic");
      });
      if (r.ok() && op.choice_count > 0) break;
    }
    if (!r.ok()) return r;
  }
  return {};
}
int ChoicesOf(const std::vector<Operation>& ops) {
  int count = kMaxChoices;
  for (const Operation& op : ops) count = std::min(count, op.choice_count);
  return count;
}
uint64_t WorkspaceOf(const std::vector<Operation>& ops, int choice) {
  uint64_t bytes = 0;
  for (const Operation& op : ops) bytes = std::max<uint64_t>(bytes, op.choices[static_cast<size_t>(choice)].workspaceSize);
  return bytes;
}

// One or several products, one after the other.
class ProductKernel : public Kernel {
 public:
  ProductKernel(const CublasLtHandle::Open& open, std::vector<Operation> ops, int choice)
      : open_(open), ops_(std::move(ops)), choice_(static_cast<size_t>(choice)), workspace_(WorkspaceOf(ops_, choice)) {}
  bool Init() { return activation_.Init(ops_.front().product.type); }
  uint32_t args_bytes() const override {
    return static_cast<uint32_t>(sizeof(Bound) + ops_.size() * sizeof(gpu::ProductSlots));
  }
  uint64_t workspace_bytes() const override { return workspace_; }
  Result Bind(const Binding& binding, void* args, StepFn* step) override {
    auto* slots = reinterpret_cast<gpu::ProductSlots*>(new (args) Bound{this, binding.workspace()} + 1);
    for (const Operation& op : ops_) new (slots++) gpu::ProductSlots(gpu::SlotsOf(binding, op.product));
    *step = StepFn::Of<Run>();
    return {};
  }

 private:
  struct Bound {  // followed by slots for each product
    const ProductKernel* kernel;
    Slot workspace;
  };
  static mge_code Run(const Bound& bound, const mge_run* run) {
    const ProductKernel& k = *bound.kernel;
    auto* slots = reinterpret_cast<const gpu::ProductSlots*>(&bound + 1);
    for (size_t i = 0; i < k.ops_.size(); ++i) {
      if (Result r = k.Multiply(k.ops_[i], slots[i], bound.workspace, run); !r.ok()) {
        return Report(run->error, r.code(), r.text());
      }
      if (!k.ops_[i].activation_epilogue) continue;
      const ColumnMajorProduct& p = k.ops_[i].product;
      const mge_code code =
          k.activation_.Run(run, At<void>(run, slots[i].before), At<void>(run, slots[i].y), p.elements(), p.activation);
      if (code != MGE_OK) return code;
    }
    return MGE_OK;
  }

  Result Multiply(const Operation& op, const gpu::ProductSlots& x, const Slot& workspace, const mge_run* run) const {
    const CublasLt& library = *open_.library;
    cublasLtMatmulDescOpaque_t desc = op.desc;
    if (op.product.bias >= 0) {
      const void* bias = At<void>(run, x.bias);
      const cublasStatus_t status = library.set_operation(&desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
      if (Result r = library.ResultOf(status, "cublasLtMatmulDescSetAttribute"); !r.ok()) return r;
    }
    if (op.writes_before) {
      const void* before = At<void>(run, x.before);
      const cublasStatus_t status =
          library.set_operation(&desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &before, sizeof(before));
      if (Result r = library.ResultOf(status, "cublasLtMatmulDescSetAttribute"); !r.ok()) return r;
    }
    const Slot& y = op.activation_epilogue ? x.before : x.y;
    const float alpha = static_cast<float>(op.product.alpha), beta = static_cast<float>(op.product.beta);
    const void* alpha_at = op.has_double_scale ? static_cast<const void*>(&op.product.alpha) : &alpha;
    const void* beta_at = op.has_double_scale ? static_cast<const void*>(&op.product.beta) : &beta;
    const cublasLtMatmulHeuristicResult_t& choice = op.choices[choice_];
    // The library does not change layouts, though it takes them as pointers to what is not const.
    auto layout = [](const cublasLtMatrixLayoutOpaque_t& l) { return const_cast<cublasLtMatrixLayoutOpaque_t*>(&l); };
    return QueueOf<gpu::Queue>(run).Enqueue([&](void* stream) {
      const cublasStatus_t status =
          library.matmul(open_.handle, &desc, alpha_at, At<void>(run, x.b), layout(op.left), At<void>(run, x.a),
                         layout(op.right), beta_at, At<void>(run, x.start), layout(op.start), At<void>(run, y),
                         layout(op.result), &choice.algo, choice.workspaceSize ? At<void>(run, workspace) : nullptr,
                         choice.workspaceSize, static_cast<cudaStream_t>(stream));
      return library.ResultOf(status, "cublasLtMatmul");
    });
  }

  const CublasLtHandle::Open open_;
  const std::vector<Operation> ops_;
  const size_t choice_;
  const uint64_t workspace_;
  gpu::ActivationEpilogue activation_;
};

struct ProductRow {
  static void Offer(const Problem& p, Offers& offers) {
    std::vector<ColumnMajorProduct> products;
    if (!p.is_static()) return;
    if (Result r = gpu::FindColumnMajor(p, "cuBLASLt", &products); !r.ok()) return offers.Refuse(r.text());
    const ColumnMajorProduct& first = products.front();
    if (first.elements() == 0 || first.depth == 0) return;
    for (size_t m = 0; m < std::size(kModes); ++m) {
      const Mode& mode = kModes[m];
      if (mode.type != first.type) continue;
      CublasLtHandle::Open open;
      std::vector<Operation> ops;
      if (Result r = Choose(p, mode, &open, &ops); !r.ok()) return offers.Refuse(r.text());
      for (int i = 0; i < ChoicesOf(ops); ++i) {
        offers.Add({.id = std::string(mode.id) + "." + std::to_string(i),
                    .rank = mode.rank + i,
                    .attributes = mode.attributes,
                    .workspace = WorkspaceOf(ops, i),
                    .variant = m * kMaxChoices + static_cast<uint64_t>(i),
                    .in_place = gpu::InPlaceOf(products)});
      }
    }
  }
  static KernelPtr Make(const Problem& p, const Candidate& c) {
    const auto choice = static_cast<int>(c.variant % kMaxChoices);
    CublasLtHandle::Open open;
    std::vector<Operation> ops;
    if (!Choose(p, kModes[c.variant / kMaxChoices], &open, &ops).ok() || choice >= ChoicesOf(ops)) return nullptr;
    auto kernel = std::make_unique<ProductKernel>(open, std::move(ops), choice);
    return kernel->Init() ? std::move(kernel) : nullptr;
  }
};

constexpr KernelRow kRows[] = {Row<ProductRow>("MatMul"), Row<ProductRow>("Gemm")};

}  // namespace

MGE_KERNELS(products) = kRows;

}  // namespace mge::cuda

namespace mge::gpu {

bool HasLibraryOfProducts(mge_device* device, mge_dtype type) {
  auto& d = DeviceOf<cuda::Device>(device);
  const Architecture a = d.architecture();
  cuda::CublasLtHandle::Open open;
  return a.major >= (type == MGE_DTYPE_F16 ? 7 : 8) && d.cublaslt.Get(d, &open).ok();
}

}  // namespace mge::gpu
