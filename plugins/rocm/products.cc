// SPDX-License-Identifier: Apache-2.0
// Products by rocBLAS: one call each, with a start value. It has no bias and no activation: kernels of plugins/gpu compute
// these behind it.
#include "products.h"

#include <algorithm>
#include <climits>
#include <memory>

#include "device.h"
#include "plugins/gpu/runtime/queue.h"
#include "plugins/gpu/support/column_major.h"
#include "plugins/gpu/support/library_epilogue.h"
#include "plugins/gpu/support/row.h"

namespace mge::rocm {
namespace {

using gpu::ColumnMajorProduct;

constexpr uint64_t kWorkspace = uint64_t{4} << 20;  // for products that are split along k; with less, others are chosen
constexpr int32_t kRank = -3;                       // before the kernels of plugins/gpu
constexpr uint64_t kOrdinary =
    MGE_KERNEL_CAPTURE_SAFE | MGE_KERNEL_READS_ARGS_FIRST | MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_ALLOCATES;

struct Types {
  mge_dtype type;
  int data, compute;
  uint64_t attributes;
};
constexpr Types kTypes[] = {{MGE_DTYPE_F32, kRocblasF32, kRocblasF32, kOrdinary},
                            {MGE_DTYPE_F64, kRocblasF64, kRocblasF64, kOrdinary},
                            {MGE_DTYPE_F16, kRocblasF16, kRocblasF32, kOrdinary | MGE_KERNEL_TENSOR_CORE},
                            {MGE_DTYPE_BF16, kRocblasBf16, kRocblasF32, kOrdinary | MGE_KERNEL_TENSOR_CORE}};

// The architectures with matrix units begin with these names.
constexpr const char* kWithMatrixUnits[] = {"gfx908", "gfx90a", "gfx94", "gfx95", "gfx11", "gfx12"};

const Types* FindTypes(mge_dtype type) {
  for (const Types& t : kTypes) {
    if (t.type == type) return &t;
  }
  return nullptr;
}

bool FitsInt(const ColumnMajorProduct& p) {
  for (const int64_t n : {p.rows, p.columns, p.depth, p.batch, p.left.ld, p.right.ld}) {
    if (n > INT_MAX) return false;
  }
  return true;
}

class ProductKernel : public Kernel {
 public:
  ProductKernel(Device& device, std::vector<ColumnMajorProduct> products, const Types& types)
      : device_(device), products_(std::move(products)), types_(types) {}
  // Finds the kernels behind the library's. Returns false if the backend's image lacks one.
  bool Init() { return activation_.Init(types_.type) && bias_.Init(types_.type); }
  uint32_t args_bytes() const override {
    return static_cast<uint32_t>(sizeof(Bound) + products_.size() * sizeof(gpu::ProductSlots));
  }
  uint64_t workspace_bytes() const override { return kWorkspace; }
  Result Bind(const Binding& binding, void* args, StepFn* step) override {
    auto* slots = reinterpret_cast<gpu::ProductSlots*>(new (args) Bound{this, binding.workspace()} + 1);
    for (const ColumnMajorProduct& p : products_) new (slots++) gpu::ProductSlots(gpu::SlotsOf(binding, p));
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
    for (size_t i = 0; i < k.products_.size(); ++i) {
      const ColumnMajorProduct& p = k.products_[i];
      if (Result r = k.Multiply(p, slots[i], bound.workspace, run); !r.ok()) return Report(run->error, r.code(), r.text());
      void* before = At<void>(run, slots[i].before);
      if (p.bias >= 0) {
        const mge_code code = k.bias_.Run(run, before, At<void>(run, slots[i].bias), p.batch * p.rows, p.columns, 1);
        if (code != MGE_OK) return code;
      }
      const mge_code code = k.activation_.Run(run, before, At<void>(run, slots[i].y), p.elements(), p.activation);
      if (code != MGE_OK) return code;
    }
    return MGE_OK;
  }

  Result Multiply(const ColumnMajorProduct& p, const gpu::ProductSlots& x, const Slot& workspace, const mge_run* run) const {
    const float alpha = static_cast<float>(p.alpha), beta = static_cast<float>(p.beta);
    const bool wide = types_.compute == kRocblasF64;
    const auto number = [](int64_t n) { return static_cast<int>(n); };
    const auto operation = [](const gpu::Stored& m) { return m.transposed ? kRocblasTranspose : kRocblasNone; };
    const int64_t step = p.rows * p.columns;
    return QueueOf<gpu::Queue>(run).Enqueue([&](void* stream) {
      return device_.rocblas.Use(stream, At<void>(run, workspace), kWorkspace, [&](const Rocblas& library, void* handle) {
        const int status =
            library.gemm(handle, operation(p.left), operation(p.right), number(p.columns), number(p.rows), number(p.depth),
                         wide ? static_cast<const void*>(&p.alpha) : &alpha, At<void>(run, x.b), types_.data,
                         number(p.left.ld), p.left_step, At<void>(run, x.a), types_.data, number(p.right.ld), p.right_step,
                         wide ? static_cast<const void*>(&p.beta) : &beta, At<void>(run, x.start), types_.data,
                         number(p.columns), step, At<void>(run, x.before), types_.data, number(p.columns), step,
                         number(p.batch), types_.compute, kRocblasStandard, 0, 0);
        return library.ResultOf(status, "rocblas_gemm_strided_batched_ex");
      });
    });
  }

  Device& device_;
  const std::vector<ColumnMajorProduct> products_;
  const Types& types_;
  gpu::ActivationEpilogue activation_;
  gpu::BiasEpilogue bias_;
};

struct ProductRow {
  static void Offer(const Problem& p, Offers& offers) {
    std::vector<ColumnMajorProduct> products;
    if (!p.is_static()) return;
    if (Result r = gpu::FindColumnMajor(p, "rocBLAS", &products); !r.ok()) return offers.Refuse(r.text());
    const ColumnMajorProduct& first = products.front();
    const Types* types = FindTypes(first.type);
    if (!types || first.elements() == 0 || first.depth == 0) return;
    if (!FitsInt(first)) return offers.Refuse("rocBLAS: a size above 2^31 - 1");
    auto& device = p.device<Device>();
    if (Result r = device.rocblas.Open(device); !r.ok()) return offers.Refuse(r.text());
    offers.Add({.id = "rocm.rocblas",
                .rank = kRank,
                .attributes = types->attributes,
                .workspace = kWorkspace,
                .in_place = gpu::InPlaceOf(products)});
  }
  static KernelPtr Make(const Problem& p, const Candidate&) {
    std::vector<ColumnMajorProduct> products;
    if (!gpu::FindColumnMajor(p, "rocBLAS", &products).ok()) return nullptr;
    const Types& types = *FindTypes(products.front().type);
    auto kernel = std::make_unique<ProductKernel>(p.device<Device>(), std::move(products), types);
    return kernel->Init() ? std::move(kernel) : nullptr;
  }
};

constexpr KernelRow kRows[] = {Row<ProductRow>("MatMul"), Row<ProductRow>("Gemm")};

}  // namespace

MGE_KERNELS(products) = kRows;

}  // namespace mge::rocm

namespace mge::gpu {

bool HasLibraryOfProducts(mge_device* device, mge_dtype) {
  auto& d = DeviceOf<rocm::Device>(device);
  const std::string name = d.architecture().name;
  const bool has_units = std::ranges::any_of(rocm::kWithMatrixUnits, [&](const char* a) { return name.starts_with(a); });
  return has_units && d.rocblas.Open(d).ok();
}

}  // namespace mge::gpu
