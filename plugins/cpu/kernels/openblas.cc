// SPDX-License-Identifier: Apache-2.0
// OpenBLAS's products, offered beside our own kernels: float32 and float64, without an epilogue, B unpacked.
#include "openblas.h"

#include <algorithm>
#include <limits>

#include "isa.h"
#include "settings.h"
#include "support/gemm.h"
#include "support/kernel.h"
#include "support/product.h"

namespace mge::cpu {
namespace {

// The library allocates buffers when it first runs on a thread.
constexpr uint64_t kAttributes = MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_ALLOCATES;
constexpr double kMinSerialUs = 20;
constexpr int kRank = 21;

struct Args {
  openblas::Product product;
  const Product::Item* items;
  Slot a, b, c, start;
  bool has_start;
  int64_t start_row, start_column;
  int64_t row_a;  // elements between rows of A
  int64_t b_elements;
  uint32_t bytes;
  int64_t m, batch, row_chunks;
};

// Copies the addend to rows m0..m1 of C.
template <typename T>
void Fill(const Args& s, const void* start, void* c, int64_t m0, int64_t m1) {
  const T* from = static_cast<const T*>(start);
  T* to = static_cast<T*>(c);
  for (int64_t i = m0; i < m1; ++i) {
    for (int64_t j = 0; j < s.product.n; ++j) to[i * s.product.n + j] = from[i * s.start_row + j * s.start_column];
  }
}

mge_code Launch(const Args& s, const mge_run* run) {
  ParallelFor(run, static_cast<uint64_t>(s.batch * s.row_chunks), [&](uint64_t chunk) {
    int64_t item = static_cast<int64_t>(chunk) / s.row_chunks, part = static_cast<int64_t>(chunk) % s.row_chunks;
    int64_t m0 = s.m * part / s.row_chunks, m1 = s.m * (part + 1) / s.row_chunks;
    const Product::Item& at = s.items[item];
    openblas::Product p = s.product;
    char* c = At<char>(run, s.c) + at.c * s.bytes;
    if (s.has_start) {
      if (p.wide)
        Fill<double>(s, At<char>(run, s.start), c, m0, m1);
      else
        Fill<float>(s, At<char>(run, s.start), c, m0, m1);
    }
    p.m = m1 - m0;
    p.a = At<char>(run, s.a) + (at.a + m0 * s.row_a) * s.bytes;
    p.b = At<char>(run, s.b) + at.b * s.b_elements * s.bytes;
    p.c = c + m0 * p.ldc * s.bytes;
    openblas::Multiply(p);
  });
  return MGE_OK;
}

double SerialUs(const Product& p) {
  // The library reaches more of the processor's peak if it knows the processor. Half of the peak is a safe estimate.
  double us = 2 * GemmSerialUs(p.size, ThisProcessor().isa);
  return p.type == MGE_DTYPE_F64 ? 2 * us : us;
}

class OpenblasKernel : public Kernel {
 public:
  explicit OpenblasKernel(Product product) : product_(std::move(product)), items_(product_.Items()) {
    const Product& p = product_;
    bool ta = p.a_k != 1, tb = p.b_column != 1;
    int64_t m = p.size.m, n = p.size.n, k = p.size.k;
    args_.product = {p.type == MGE_DTYPE_F64,
                     ta,
                     tb,
                     m,
                     n,
                     k,
                     p.alpha,
                     p.start >= 0 ? p.beta : 0.0,
                     nullptr,
                     ta ? p.a_k : k,
                     nullptr,
                     tb ? p.b_column : n,
                     nullptr,
                     n};
    args_.items = items_.data();
    args_.has_start = p.start >= 0;
    args_.start_row = p.start_row;
    args_.start_column = p.start_column;
    args_.row_a = p.a_row;
    args_.b_elements = k * n;
    args_.bytes = p.type == MGE_DTYPE_F64 ? 8 : 4;
    args_.m = m;
    args_.batch = p.size.batch;
    const double each_us = SerialUs(p) / static_cast<double>(std::max<int64_t>(p.size.batch, 1));
    const int64_t most = std::max<int64_t>(p.size.batch >= 8 ? 1 : 8, static_cast<int64_t>(each_us / kLongUs));
    args_.row_chunks = std::clamp<int64_t>(m / 64, 1, most);
  }
  uint32_t args_bytes() const override { return sizeof(Args); }
  Result Bind(const Binding& binding, void* args, StepFn* step) override {
    auto* a = new (args) Args(args_);
    a->a = binding.input(product_.a);
    a->b = binding.input(product_.b);
    a->c = binding.output(0);
    if (a->has_start) a->start = binding.input(product_.start);
    *step = StepFn::Of<Launch>();
    return {};
  }

 private:
  Product product_;
  std::vector<Product::Item> items_;
  Args args_ = {};
};

struct OpenblasRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    if (!ToBool(SettingOf(kOpenblasSetting))) return offers.Refuse("OpenBLAS: switched off by cpu.openblas");
    Product product;
    if (Result r = FindProduct(p, &product); !r.ok()) return offers.Refuse("OpenBLAS: " + r.text());
    if (product.type != MGE_DTYPE_F32 && product.type != MGE_DTYPE_F64)
      return offers.Refuse("OpenBLAS: only float32 and float64");
    constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
    const GemmSize& s = product.size;
    if (s.m > kMax || s.n > kMax || s.k > kMax)
      return offers.Refuse("OpenBLAS: a dimension has more than 2^31 - 1 elements");
    if (s.m == 0 || s.n == 0 || s.k == 0) return offers.Refuse("OpenBLAS: an operand is empty");
    if (AllowedIsa() != ThisProcessor().isa) {
      return offers.Refuse("OpenBLAS: chooses its instruction set itself, which cpu.isa forbids");
    }
    double us = SerialUs(product);
    if (us < kMinSerialUs) return offers.Refuse("OpenBLAS: too little work for its calls");
    if (!openblas::IsInstalled()) return offers.Refuse("OpenBLAS: the library is not installed");
    Add(offers, AllowedIsa(), {.id = "openblas.matmul", .rank = kRank, .attributes = kAttributes, .cost_us = RunUs(p, us)});
  }

  static KernelPtr Make(const Problem& p, const Candidate&) {
    Product product;
    if (!FindProduct(p, &product).ok() || !openblas::Load().ok()) return nullptr;
    return std::make_unique<OpenblasKernel>(std::move(product));
  }
};

constexpr KernelRow kRows[] = {Row<OpenblasRow>("MatMul"), Row<OpenblasRow>("Gemm")};

}  // namespace

MGE_KERNELS(openblas) = kRows;

}  // namespace mge::cpu
