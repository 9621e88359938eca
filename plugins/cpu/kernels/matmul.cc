// SPDX-License-Identifier: Apache-2.0
// MatMul and Gemm, alone or with an epilogue. float32 and 16-bit floats use the blocked product of vec/gemm.h; float64 and
// integers use plain loops.
#include <algorithm>
#include <bit>
#include <numeric>
#include <string>

#include "support/epilogue.h"
#include "support/gemm.h"
#include "support/kernel.h"
#include "support/product.h"
#include "vec/gemm_plain.h"

namespace mge::cpu {
namespace {

// The position of one product of a batch, in elements.
struct BatchItem {
  int64_t a, b, c;
};

// How C of a Gemm, or an epilogue's operand, enters the sums.
enum class Start : uint8_t { kNone, kBias, kRowBias, kMatrix };

struct Args {
  const GemmTable* table;
  const BatchItem* items;
  GemmTask task;
  GemmSplit split;
  Slot a, b, c, bias, add, workspace;
  bool has_bias, has_add;
  bool row_bias;
  // B is packed in the run.
  bool packs;
  mge_dtype b_type;
  int64_t b_row, b_column, b_batch, b_items;
  float b_scale;
  Chunks pack_chunks;
  // C of a Gemm, scaled or widened into the workspace before the product.
  mge_dtype start_type;
  bool copies_start;
  float start_scale;
  int64_t start_elements;
  uint64_t start_offset;
  // 16-bit outputs are converted from float sums in the workspace.
  mge_dtype c_type;
  uint64_t sums_offset;
};

mge_code Launch(const Args& s, const mge_run* run) {
  GemmTask task = s.task;
  char* workspace = At<char>(run, s.workspace);
  const char* a = At<char>(run, s.a);
  const float* b = At<float>(run, s.b);
  if (s.packs) {
    float* packed = reinterpret_cast<float*>(workspace);
    const char* source = At<char>(run, s.b);
    int64_t panels = s.split.panels, floats = PackedFloats(task.k, task.n, s.table->columns);
    ForChunks(run, s.pack_chunks, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) {
        int64_t item = static_cast<int64_t>(i) / panels, p = static_cast<int64_t>(i) % panels;
        s.table->pack(source + item * s.b_batch * SizeOf(s.b_type), s.b_type, s.b_row, s.b_column, task.k, task.n, s.b_scale,
                      packed + item * floats, p, p + 1);
      }
    });
    b = packed;
  }
  const float* bias = s.has_bias ? At<float>(run, s.bias) : nullptr;
  const float* add = s.has_add ? At<float>(run, s.add) : nullptr;
  if (s.copies_start) {
    auto* copy = reinterpret_cast<float*>(workspace + s.start_offset);
    const float*& start = bias ? bias : add;
    s.table->widen(start, s.start_type, s.start_elements, s.start_scale, copy);
    start = copy;
  }
  (s.row_bias ? task.row_bias : task.bias) = bias;
  bool half = IsHalf(s.c_type);
  char* c = At<char>(run, s.c);
  float* sums = half ? reinterpret_cast<float*>(workspace + s.sums_offset) : reinterpret_cast<float*>(c);
  ForGemmChunks(run, s.split, [&](int64_t i, int64_t m0, int64_t m1, int64_t p0, int64_t p1) {
    const BatchItem& item = s.items[i];
    GemmTask t = task;
    t.a.data = a + item.a * SizeOf(t.a.type);
    t.b = b + item.b;
    t.c = sums + item.c;
    if (add) t.add = add + item.c;
    s.table->run(t, m0, m1, p0, p1);
    if (!half) return;
    int64_t columns = s.table->columns;
    s.table->narrow(t.c, t.ldc, c + item.c * SizeOf(s.c_type), s.c_type, t.ldc, m0, m1, p0 * columns,
                    std::min(p1 * columns, t.n));
  });
  return MGE_OK;
}

Start StartOfMatrix(const Value& v, int64_t m, int64_t n, int64_t* row_stride) {
  *row_stride = 1;
  auto elements = static_cast<int64_t>(v.elements());
  if (elements == 1) {
    *row_stride = 0;
    return Start::kRowBias;
  }
  if (elements == n && (v.rank() == 1 || v.dim(-1) == n)) return Start::kBias;
  if (elements == m && v.rank() == 2 && v.dim(1) == 1) return Start::kRowBias;
  return Start::kMatrix;
}

class MatMulKernel : public Kernel {
 public:
  // `items` is the product's list; empty if only the workspace is needed for an offer.
  MatMulKernel(Product product, const std::vector<Product::Item>& items, Isa isa, bool in_place_b) {
    const GemmTable& table = Gemm(isa);
    const Product& p = product;
    b_ = p.b;
    args_.table = &table;
    GemmTask& t = args_.task;
    t.a = {nullptr, p.type, p.a_row, p.a_k, 1.0f, nullptr};
    t.m = p.size.m;
    t.n = p.size.n;
    t.k = p.size.k;
    t.ldc = p.size.n;
    t.activation = p.epilogue.activation;
    t.lo = p.epilogue.lo;
    t.hi = p.epilogue.hi;
    double serial = GemmSerialUs(p.size, isa);
    args_.split = SplitGemm(p.size, table.columns, serial);
    int64_t floats = PackedFloats(p.size.k, p.size.n, table.columns);
    float scale = p.alpha * p.epilogue.scale;
    ahead_ = p.b_constant || (p.b_state && !in_place_b);
    bool packs = ahead_ || !in_place_b;
    if (packs) {
      args_.b_type = p.type;
      args_.b_row = p.b_k;
      args_.b_column = p.b_column;
      args_.b_batch = p.size.k * p.size.n;
      args_.b_items = p.b_items;
      args_.b_scale = scale;
      args_.packs = !ahead_;
      packed_bytes_ = static_cast<uint64_t>(p.b_items * floats) * sizeof(float);
      if (args_.packs) {
        auto panels = static_cast<uint64_t>(p.b_items * args_.split.panels);
        double us = 2 * StreamUs(static_cast<double>(packed_bytes_));
        args_.pack_chunks = SplitWork(panels, panels ? us / static_cast<double>(panels) : 0);
        workspace_ = Aligned(packed_bytes_);
      }
    } else {
      t.ldb = p.b_k;
      t.a.scale = scale;
    }
    items_.reserve(items.size());
    for (const Product::Item& i : items) {
      items_.push_back({i.a, packs ? i.b * floats : i.b * p.size.k * p.size.n, i.c});
    }
    args_.items = items_.data();
    args_.c_type = p.type;
    SetStart(p);
    if (IsHalf(p.type)) {
      args_.sums_offset = workspace_;
      workspace_ += Aligned(static_cast<uint64_t>(p.size.batch * p.size.m * p.size.n) * sizeof(float));
    }
    product_ = std::move(product);
  }

  uint32_t args_bytes() const override { return sizeof(Args); }
  uint64_t workspace_bytes() const override { return workspace_; }
  uint64_t prepack_bytes(int input) const override { return ahead_ && input == b_ ? packed_bytes_ : 0; }
  Result Prepack(int, const void* source, void* destination) override {
    int64_t floats = PackedFloats(args_.task.k, args_.task.n, args_.table->columns);
    for (int64_t i = 0; i < args_.b_items; ++i) {
      args_.table->pack(static_cast<const char*>(source) + i * args_.b_batch * SizeOf(args_.b_type), args_.b_type,
                        args_.b_row, args_.b_column, args_.task.k, args_.task.n, args_.b_scale,
                        static_cast<float*>(destination) + i * floats, 0, args_.split.panels);
    }
    return {};
  }
  std::string prepack_form(int) const override {
    const Args& a = args_;
    std::string form = "product panels";
    for (int64_t n : {int64_t{a.b_type}, a.b_items, a.b_batch, a.b_row, a.b_column, a.task.k, a.task.n,
                      int64_t{a.table->columns}, int64_t{std::bit_cast<int32_t>(a.b_scale)}}) {
      form += " " + std::to_string(n);
    }
    return form;
  }
  Result Bind(const Binding& binding, void* args, StepFn* step) override {
    Args* a = new (args) Args(args_);
    a->a = binding.input(product_.a);
    a->b = binding.input(product_.b);
    a->c = binding.output(0);
    a->workspace = binding.workspace();
    if (a->has_bias) a->bias = binding.input(bias_);
    if (a->has_add) a->add = product_.adds ? binding.output(0) : binding.input(add_);
    *step = StepFn::Of<Launch>();
    return {};
  }

 private:
  static uint64_t Aligned(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

  void SetStart(const Product& p) {
    Start start = Start::kNone;
    int operand = p.start;
    if (operand >= 0) {
      start = StartOfMatrix(p.start_value, p.size.m, p.size.n, &args_.task.row_bias_stride);
      args_.start_type = p.type;
      args_.start_scale = p.beta;
      args_.start_elements = static_cast<int64_t>(p.start_value.elements());
      args_.copies_start = p.beta != 1.0f || IsHalf(p.type);
      if (args_.copies_start) {
        args_.start_offset = workspace_;
        workspace_ += Aligned(p.start_value.elements() * sizeof(float));
      }
    }
    if (start == Start::kMatrix) add_ = operand;
    if (start == Start::kBias || start == Start::kRowBias) bias_ = operand;
    args_.row_bias = start == Start::kRowBias;
    if (p.epilogue_bias >= 0) bias_ = p.epilogue_bias;
    if (p.epilogue_add >= 0) add_ = p.epilogue_add;
    args_.has_bias = bias_ >= 0;
    args_.has_add = add_ >= 0 || p.adds;
    args_.task.ld_add = p.size.n;
  }

  Product product_;
  Args args_ = {};
  std::vector<BatchItem> items_;
  uint64_t packed_bytes_ = 0, workspace_ = 0;
  int b_ = -1, bias_ = -1, add_ = -1;
  bool ahead_ = false;  // the host packs B before the step
};

// ---------------------------------------------------------------- float64 and integers

struct PlainArgs {
  PlainGemm gemm;
  void (*rows)(const PlainGemm&, int64_t, int64_t);
  const BatchItem* items;
  Slot a, b, c, start;
  bool has_start;
  uint32_t bytes;
  int64_t m;
  int64_t rows_of_batch;
  int64_t unit;   // rows that a chunk is a multiple of
  Chunks chunks;  // chunks of the units
};

mge_code LaunchPlain(const PlainArgs& s, const mge_run* run) {
  ForChunks(run, s.chunks, [&](uint64_t begin, uint64_t end) {
    const int64_t last = std::min(s.rows_of_batch, static_cast<int64_t>(end) * s.unit);
    for (int64_t row = static_cast<int64_t>(begin) * s.unit; row < last;) {
      int64_t i = row / s.m, m0 = row % s.m, m1 = std::min(s.m, m0 + last - row);
      PlainGemm g = s.gemm;
      g.a = At<char>(run, s.a) + s.items[i].a * s.bytes;
      g.b = At<char>(run, s.b) + s.items[i].b * s.bytes;
      g.c = At<char>(run, s.c) + s.items[i].c * s.bytes;
      if (s.has_start) g.init = At<char>(run, s.start);
      s.rows(g, m0, m1);
      row += m1 - m0;
    }
  });
  return MGE_OK;
}

// Returns whether the product is computed by tiles of several rows.
bool HasTiles(const Product& p) { return p.type == MGE_DTYPE_F64; }

double PlainSerialUs(const Product& p, Isa isa) {
  const GemmSize& s = p.size;
  double flops = 2.0 * static_cast<double>(s.batch * s.m) * static_cast<double>(s.n * s.k);
  double per_us = isa == Isa::kAvx512 ? 6e3 : isa == Isa::kAvx2 ? 4e3 : 1.5e3;
  return flops / (HasTiles(p) ? 8 * per_us : per_us) + 0.05;
}

class PlainKernel : public Kernel {
 public:
  PlainKernel(Product product, Isa isa) : product_(std::move(product)) {
    const Product& p = product_;
    for (const Product::Item& i : p.Items()) items_.push_back({i.a, i.b * p.size.k * p.size.n, i.c});
    args_.gemm = {nullptr, p.a_row, p.a_k,    nullptr,  p.b_k,    p.b_column, nullptr, 0,
                  0,       nullptr, p.size.n, p.size.n, p.size.k, p.alpha,    p.beta};
    args_.has_start = p.start >= 0;
    args_.gemm.init_row = p.start_row;
    args_.gemm.init_column = p.start_column;
    args_.rows = GemmPlain(isa).find(p.type);
    args_.items = items_.data();
    args_.bytes = SizeOf(p.type);
    args_.m = p.size.m;
    constexpr int64_t kTileRows = 32;  // several tiles, so that each strip of B is used often
    args_.rows_of_batch = p.size.n ? p.size.batch * p.size.m : 0;
    args_.unit = HasTiles(p) ? kTileRows : 1;
    const auto units = static_cast<uint64_t>((args_.rows_of_batch + args_.unit - 1) / args_.unit);
    args_.chunks = SplitWork(units, units ? PlainSerialUs(p, isa) / static_cast<double>(units) : 0);
  }
  uint32_t args_bytes() const override { return sizeof(PlainArgs); }
  Result Bind(const Binding& binding, void* args, StepFn* step) override {
    auto* a = new (args) PlainArgs(args_);
    a->a = binding.input(product_.a);
    a->b = binding.input(product_.b);
    a->c = binding.output(0);
    if (a->has_start) a->start = binding.input(product_.start);
    *step = StepFn::Of<LaunchPlain>();
    return {};
  }

 private:
  Product product_;
  PlainArgs args_ = {};
  std::vector<BatchItem> items_;
};

// ---------------------------------------------------------------- the rows

enum Kind : uint32_t { kPacked = 0, kInPlace = 1, kPlainLoops = 2 };

struct MatMulRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers, /*groups=*/true, /*adds=*/true)) return;
    Product product;
    if (Result r = FindProduct(p, &product); !r.ok()) return offers.Refuse(r.text());
    Isa isa = AllowedIsa();
    if (product.type == MGE_DTYPE_F64 || IsInteger(product.type)) {
      if (!GemmPlain(isa).find(product.type)) return offers.Refuse("no product of " + std::string(TypeName(product.type)));
      if (p.node_count() > 1) return offers.Refuse("an epilogue is computed for float32 only");
      if (IsInteger(product.type) && (product.alpha != 1 || product.beta != 1)) {
        return offers.Refuse("alpha and beta are not supported for integers");
      }
      Add(offers, isa,
          {.id = "cpu.matmul.loops",
           .rank = 10,
           .attributes = kExact,
           .cost_us = RunUs(p, PlainSerialUs(product, isa)),
           .variant = kPlainLoops});
      return;
    }
    double serial = kGemmOwn * GemmSerialUs(product.size, isa) +
                    StreamUs(static_cast<double>(product.epilogue_add >= 0 ? p.output(0).bytes() : 0));
    auto offer = [&](Kind kind, std::string_view id, double us) {
      MatMulKernel kernel(product, {}, isa, kind == kInPlace);
      Candidate c = {.id = std::string(id),
                     .rank = kind == kPacked ? 0 : 1,
                     .attributes = kExact,
                     .workspace = kernel.workspace_bytes(),
                     .cost_us = RunUs(p, us),
                     .variant = kind};
      if (product.epilogue_add >= 0 && product.epilogue_add != product.a && product.epilogue_add != product.b) {
        c.in_place.push_back({0, static_cast<uint32_t>(product.epilogue_add)});
      }
      Add(offers, isa, std::move(c));
    };
    double b_bytes = 4.0 * static_cast<double>(product.b_items * product.size.k * product.size.n);
    // A state is packed in a step of its own, which costs about the same as packing in the kernel.
    offer(kPacked, "cpu.matmul.packed", serial + (product.b_constant ? 0 : 2.5 * StreamUs(b_bytes) + 0.05));
    if (product.b_constant || product.type != MGE_DTYPE_F32 || product.b_column != 1) return;
    // Distant rows of B cost TLB misses and share cache sets. With few rows of A, packing never pays.
    bool far = product.size.n >= 512 && product.size.k >= 64;
    offer(kInPlace, "cpu.matmul.in_place", serial * (far ? 1.7 : 1.15));
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Product product;
    if (!FindProduct(p, &product).ok()) return nullptr;
    if (KindOf(c) == kPlainLoops) return std::make_unique<PlainKernel>(std::move(product), IsaOf(c));
    return std::make_unique<MatMulKernel>(product, product.Items(), IsaOf(c), KindOf(c) == kInPlace);
  }
};

constexpr KernelRow kRows[] = {Row<MatMulRow>("MatMul"), Row<MatMulRow>("Gemm")};

}  // namespace

MGE_KERNELS(matmul) = kRows;

}  // namespace mge::cpu
