// SPDX-License-Identifier: Apache-2.0
// cuBLASLt has column-major matrices. A row-major y = a b is the column-major transpose of y = (transpose of b) (transpose
// of a), so the operands change places, and a bias per column of y is one per row, as the library's epilogues need it.
#include "products.h"

#include <algorithm>
#include <array>

#include "behind.h"
#include "device.h"
#include "plugins/gpu/runtime/queue.h"
#include "plugins/gpu/support/product.h"
#include "plugins/gpu/support/row.h"
#include "plugins/gpu/support/siblings.h"

namespace mge::cuda {
namespace {

using gpu::MatMulArgs;
using gpu::Product;
using gpu::Refusal;

constexpr uint64_t kMaxWorkspace = uint64_t{32} << 20;  // what the library's documentation recommends for newer devices
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
constexpr uint64_t kOrdinary = MGE_KERNEL_CAPTURE_SAFE | MGE_KERNEL_READS_ARGS_FIRST | MGE_KERNEL_DETERMINISTIC;
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
  double alpha = 1, beta = 0;
  bool has_double_scale = false;
  int a = -1, b = -1, bias = -1;  // inputs of the problem
  int start_operand = -1;         // input that is multiplied by beta; -1: none, or the output
  int output = 0;
  gpu::Activation activation = {gpu::kNoActivation, 0, 0};  // computed by a kernel of its own behind the product
  int64_t elements = 0;                                     // of the output
};

// A matrix of rows x columns in memory, in the order of columns. `transposed`: memory has the transposed matrix.
struct Stored {
  uint64_t rows, columns;
  int64_t ld;
  bool transposed;
};
// Returns how a matrix with these strides is stored. Returns false if neither rows nor columns are dense.
bool StoredAs(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride, Stored* out) {
  if ((row_stride == 1 || rows == 1) && (column_stride >= rows || columns == 1)) {
    *out = {static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), std::max(column_stride, rows), false};
    return true;
  }
  if ((column_stride == 1 || columns == 1) && (row_stride >= columns || rows == 1)) {
    *out = {static_cast<uint64_t>(columns), static_cast<uint64_t>(rows), std::max(row_stride, columns), true};
    return true;
  }
  return false;
}

// Returns the distance between neighbouring batches. Returns false if it is not the same for all.
bool BatchStride(const MatMulArgs& args, const int64_t* strides, int64_t* out) {
  *out = 0;
  int64_t inner = -1;  // the stride that a dimension further out must have
  for (int d = args.batch_rank - 1; d >= 0; --d) {
    if (args.batch_dims[d] == 1) continue;
    if (inner < 0) {
      *out = strides[d];
    } else if (strides[d] != inner) {
      return false;
    }
    inner = strides[d] * args.batch_dims[d];
  }
  return true;
}

// Sets descriptors of the library, and remembers the first error.
class Builder {
 public:
  explicit Builder(const CublasLt& library) : library_(library) {}
  const Result& result() const { return result_; }

  void Layout(cublasLtMatrixLayoutOpaque_t* layout, cudaDataType type, const Stored& m, int64_t batch, int64_t stride) {
    Keep(library_.init_layout(layout, sizeof(*layout), type, m.rows, m.columns, m.ld), "cublasLtMatrixLayoutInit");
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

// Describes the product. Refuses what the library does not compute in one call.
Result Describe(const CublasLt& library, const Mode& mode, const Product& p, Operation* op) {
  const MatMulArgs& args = p.args;
  Stored left, right;
  if (!StoredAs(args.n, args.k, args.b_column, args.b_k, &left) || !StoredAs(args.k, args.m, args.a_k, args.a_row, &right)) {
    return Refusal("cuBLASLt: strides of an operand");
  }
  int64_t a_step, b_step;
  if (!BatchStride(args, args.a_batch, &a_step) || !BatchStride(args, args.b_batch, &b_step)) {
    return Refusal("cuBLASLt: batches at irregular distances");
  }
  op->alpha = args.alpha;
  op->a = p.a;
  op->b = p.b;
  op->bias = p.bias;
  op->elements = args.batch * args.m * args.n;
  op->has_double_scale = mode.scale == CUDA_R_64F;
  if (p.bias >= 0 && args.bias_column == 0) return Refusal("cuBLASLt: a bias of one element");
  if (p.c >= 0) {  // a Gemm with an operand C
    const bool whole = (args.c_row == args.n || args.m == 1) && (args.c_column == 1 || args.n == 1);
    const bool per_column = args.c_row == 0 && args.c_column == 1 && args.beta == 1 && p.bias < 0;
    if (whole && p.residual < 0 && !p.adds && args.c_row != 0) {
      op->start_operand = p.c;
      op->beta = args.beta;
    } else if (per_column) {
      op->bias = p.c;
    } else {
      return Refusal("cuBLASLt: the shape of C");
    }
  }
  if (p.residual >= 0) op->start_operand = p.residual;
  if (p.residual >= 0 || p.adds) op->beta = 1;
  cublasLtEpilogue_t epilogue;
  if (!EpilogueOf(args.activation.kind, op->bias >= 0, &epilogue)) {
    op->activation = args.activation;
    EpilogueOf(gpu::kNoActivation, op->bias >= 0, &epilogue);
  }

  Builder b(library);
  b.Keep(library.init_operation(&op->desc, sizeof(op->desc), mode.compute, mode.scale), "cublasLtMatmulDescInit");
  const int32_t transpose_left = left.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                transpose_right = right.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  b.Set(library.set_operation, &op->desc, CUBLASLT_MATMUL_DESC_TRANSA, transpose_left);
  b.Set(library.set_operation, &op->desc, CUBLASLT_MATMUL_DESC_TRANSB, transpose_right);
  b.Set(library.set_operation, &op->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  const Stored result = {static_cast<uint64_t>(args.n), static_cast<uint64_t>(args.m), args.n, false};
  b.Layout(&op->left, mode.data, left, args.batch, b_step);
  b.Layout(&op->right, mode.data, right, args.batch, a_step);
  b.Layout(&op->start, mode.data, result, args.batch, args.m * args.n);
  b.Layout(&op->result, mode.data, result, args.batch, args.m * args.n);
  b.Keep(library.init_preference(&op->preference, sizeof(op->preference)), "cublasLtMatmulPreferenceInit");
  b.Set(library.set_preference, &op->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMaxWorkspace);
  // Sums in place use atomic operations, so their order is not fixed.
  const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  b.Set(library.set_preference, &op->preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
  const uint32_t alignment = 16;  // of operands that are views of others
  for (auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                     CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    b.Set(library.set_preference, &op->preference, which, alignment);
  }
  return b.result();
}

// Finds the products of a problem: one, or several of the same tensor. Refuses what no kernel computes.
Result FindProducts(const Problem& p, std::vector<std::pair<Product, int>>* out) {
  if (gpu::Siblings siblings; gpu::FindSiblings(p, &siblings)) {
    for (const auto& one : siblings.products) out->emplace_back(gpu::ProductOf(p, one), gpu::OutputNumber(p, one.output));
    return {};
  }
  out->emplace_back(Product(), 0);
  return gpu::FindProduct(p, &out->front().first);
}

// Describes the products, and asks the library for the best algorithms of each, the best one first.
Result Choose(const Problem& p, const Mode& mode, CublasLtHandle::Open* open, std::vector<Operation>* ops) {
  std::vector<std::pair<Product, int>> products;
  if (Result r = FindProducts(p, &products); !r.ok()) return r;
  auto& device = p.device<Device>();
  if (Result r = device.cublaslt.Get(device, open); !r.ok()) return r;
  const CublasLt& library = *open->library;
  for (const auto& [product, output] : products) {
    Operation& op = ops->emplace_back();
    op.output = output;
    if (Result r = Describe(library, mode, product, &op); !r.ok()) return r;
    Result r = device.With([&] {
      return library.ResultOf(library.heuristic(open->handle, &op.desc, &op.left, &op.right, &op.start, &op.result,
                                                &op.preference, kMaxChoices, op.choices.data(), &op.choice_count),
                              "cublasLtMatmulAlgoGetHeuristic");
    });
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
  bool Init() { return activation_.Init(); }
  uint32_t args_bytes() const override { return static_cast<uint32_t>(sizeof(Bound) + ops_.size() * sizeof(Slots)); }
  uint64_t workspace_bytes() const override { return workspace_; }
  Result Bind(const Binding& binding, void* args, StepFn* step) override {
    auto* slots = reinterpret_cast<Slots*>(new (args) Bound{this, binding.workspace()} + 1);
    for (const Operation& op : ops_) {
      const Slot y = binding.output(op.output);
      new (slots++)
          Slots{binding.input(op.a), binding.input(op.b), op.start_operand >= 0 ? binding.input(op.start_operand) : y,
                op.bias >= 0 ? binding.input(op.bias) : y, y};
    }
    *step = StepFn::Of<Run>();
    return {};
  }

 private:
  struct Bound {  // followed by Slots for each product
    const ProductKernel* kernel;
    Slot workspace;
  };
  struct Slots {
    Slot a, b, start, bias, y;
  };
  static mge_code Run(const Bound& bound, const mge_run* run) {
    const ProductKernel& k = *bound.kernel;
    auto* slots = reinterpret_cast<const Slots*>(&bound + 1);
    for (size_t i = 0; i < k.ops_.size(); ++i) {
      if (Result r = k.Multiply(k.ops_[i], slots[i], bound.workspace, run); !r.ok()) {
        return Report(run->error, r.code(), r.text());
      }
      const Operation& op = k.ops_[i];
      const mge_code code = k.activation_.Run(run, At<void>(run, slots[i].y), op.elements, op.activation);
      if (code != MGE_OK) return code;
    }
    return MGE_OK;
  }

  Result Multiply(const Operation& op, const Slots& x, const Slot& workspace, const mge_run* run) const {
    const CublasLt& library = *open_.library;
    cublasLtMatmulDescOpaque_t desc = op.desc;
    if (op.bias >= 0) {
      const void* bias = At<void>(run, x.bias);
      const cublasStatus_t status = library.set_operation(&desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
      if (Result r = library.ResultOf(status, "cublasLtMatmulDescSetAttribute"); !r.ok()) return r;
    }
    const float alpha = static_cast<float>(op.alpha), beta = static_cast<float>(op.beta);
    const void* alpha_at = op.has_double_scale ? static_cast<const void*>(&op.alpha) : &alpha;
    const void* beta_at = op.has_double_scale ? static_cast<const void*>(&op.beta) : &beta;
    const cublasLtMatmulHeuristicResult_t& choice = op.choices[choice_];
    // The library does not change layouts, though it takes them as pointers to what is not const.
    auto layout = [](const cublasLtMatrixLayoutOpaque_t& l) { return const_cast<cublasLtMatrixLayoutOpaque_t*>(&l); };
    return QueueOf<gpu::Queue>(run).Enqueue([&](void* stream) {
      const cublasStatus_t status =
          library.matmul(open_.handle, &desc, alpha_at, At<void>(run, x.b), layout(op.left), At<void>(run, x.a),
                         layout(op.right), beta_at, At<void>(run, x.start), layout(op.start), At<void>(run, x.y),
                         layout(op.result), &choice.algo, choice.workspaceSize ? At<void>(run, workspace) : nullptr,
                         choice.workspaceSize, static_cast<cudaStream_t>(stream));
      return library.ResultOf(status, "cublasLtMatmul");
    });
  }

  const CublasLtHandle::Open open_;
  const std::vector<Operation> ops_;
  const size_t choice_;
  const uint64_t workspace_;
  ActivationBehind activation_;
};

struct ProductRow {
  static void Offer(const Problem& p, Offers& offers) {
    std::vector<std::pair<Product, int>> products;
    if (!p.is_static() || !FindProducts(p, &products).ok()) return;  // the row of plugins/gpu says why
    const Product& first = products.front().first;
    if (first.args.m == 0 || first.args.n == 0 || first.args.k == 0 || first.args.batch == 0) return;
    std::vector<mge_in_place> in_place;
    if (first.residual >= 0 && first.residual != first.a && first.residual != first.b) {
      in_place.push_back({0, static_cast<uint32_t>(first.residual)});
    }
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
                    .in_place = in_place});
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
