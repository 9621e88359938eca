// SPDX-License-Identifier: Apache-2.0
// MatMul and Gemm, alone or with an epilogue, and products of one tensor with several matrices.
#include "plugins/gpu/kernels/matmul.h"

#include <algorithm>

#include "plugins/gpu/support/epilogue.h"
#include "plugins/gpu/support/moves.h"
#include "plugins/gpu/support/siblings.h"

namespace mge::gpu {
namespace {

enum Kind : uint32_t { kTiles = 0, kSplitK = 1, kAsBf16 = 2, kPlainLoops = 3 };
constexpr int64_t kTile = 64;

struct Product {
  MatMulArgs args = {};
  mge_dtype type = MGE_DTYPE_UNDEFINED;
  int a = -1, b = -1, c = -1, bias = -1, residual = -1;  // operand numbers
  bool adds = false;                                     // the result is added to what the output holds
  int64_t tiles() const { return (args.m + kTile - 1) / kTile * ((args.n + kTile - 1) / kTile) * args.batch; }
  double flops() const { return 2.0 * static_cast<double>(args.m * args.n * args.batch) * static_cast<double>(args.k); }
};

Result FindGemm(const Node& n, MatMulArgs* args) {
  Value a = n.input(0), b = n.input(1);
  if (a.rank() != 2 || b.rank() != 2) return Refusal("Gemm needs matrices");
  bool ta = n.Int("transA", 0) != 0, tb = n.Int("transB", 0) != 0;
  args->m = a.dim(ta ? 1 : 0);
  args->k = a.dim(ta ? 0 : 1);
  args->n = b.dim(tb ? 0 : 1);
  args->batch = 1;
  if (b.dim(tb ? 1 : 0) != args->k) return Refusal("the matrix sizes do not match");
  args->a_row = ta ? 1 : a.dim(1);
  args->a_k = ta ? a.dim(1) : 1;
  args->b_k = tb ? 1 : b.dim(1);
  args->b_column = tb ? b.dim(1) : 1;
  args->alpha = n.Float("alpha", 1.0f);
  args->beta = n.Float("beta", 1.0f);
  if (!n.has_input(2)) return {};
  Value c = n.input(2);  // broadcast to (m, n)
  int64_t rows = c.rank() == 2 ? c.dim(0) : 1, columns = c.rank() ? c.dim(-1) : 1;
  args->c_row = rows == 1 ? 0 : columns;
  args->c_column = columns == 1 ? 0 : 1;
  return {};
}

Result FindMatMul(const Node& n, MatMulArgs* args) {
  Value a = n.input(0), b = n.input(1);
  if (a.rank() < 1 || b.rank() < 1) return Refusal("MatMul needs operands with at least one dimension");
  args->m = a.rank() == 1 ? 1 : a.dim(-2);
  args->k = a.dim(-1);
  args->n = b.rank() == 1 ? 1 : b.dim(-1);
  if ((b.rank() == 1 ? b.dim(0) : b.dim(-2)) != args->k) return Refusal("the matrix sizes do not match");
  args->a_row = args->k;
  args->b_k = args->n;
  args->a_k = args->b_column = args->alpha = 1;
  int a_batch = std::max(0, a.rank() - 2), b_batch = std::max(0, b.rank() - 2), rank = std::max(a_batch, b_batch);
  args->batch_rank = rank;
  args->batch = 1;
  int64_t a_step = args->m * args->k, b_step = args->k * args->n;
  for (int i = 1; i <= rank; ++i) {
    int64_t da = i <= a_batch ? a.dim(a_batch - i) : 1, db = i <= b_batch ? b.dim(b_batch - i) : 1;
    int at = rank - i;
    args->batch_dims[at] = da == 1 ? db : da;
    args->a_batch[at] = da == 1 ? 0 : a_step;
    args->b_batch[at] = db == 1 ? 0 : b_step;
    args->residual_batch[at] = args->batch * args->m * args->n;
    a_step *= da;
    b_step *= db;
    args->batch *= args->batch_dims[at];
  }
  bool same_b = std::all_of(args->b_batch, args->b_batch + rank, [](int64_t s) { return s == 0; });
  if (rank && same_b &&
      a_step == args->batch * args->m * args->k) {  // the same B for all batches: the rows of all batches form one matrix
    args->m *= args->batch;
    args->batch = 1;
    args->batch_rank = 0;
  }
  return {};
}

Result Find(const Problem& p, Product* out) {
  Node n = p.node();
  bool gemm = n.Is("Gemm");
  if (Result r = gemm ? FindGemm(n, &out->args) : FindMatMul(n, &out->args); !r.ok()) return r;
  out->type = n.output(0).dtype();
  out->a = InputOf(p, 0);
  out->b = InputOf(p, 1);
  if (gemm && n.has_input(2) && out->args.beta != 0) out->c = InputOf(p, 2);
  if (n.input(0).dtype() != out->type || n.input(1).dtype() != out->type ||
      (out->c >= 0 && n.input(2).dtype() != out->type)) {
    return Refusal("operands of different types");
  }
  Epilogue e;
  if (!FindEpilogue(p, ChannelAxis::kLast, &e)) return Refusal("unsupported epilogue");
  out->bias = p.operand(e.bias);
  out->residual = p.operand(e.residual);
  out->args.bias_column = out->bias >= 0 && p.input(out->bias).elements() > 1;
  out->args.residual_row = out->args.n;
  out->args.residual_column = 1;
  out->args.activation = e.activation;
  out->adds = p.adds(0);
  if (out->adds && (p.node_count() > 1 || !IsFloating(out->type))) {
    return Refusal("adds only a product of floats alone to its output");
  }
  return {};
}

int64_t SplitsOf(const Product& product) {
  constexpr int64_t kBlocks = 128;  // number of blocks that keep a device busy
  return std::min<int64_t>({(product.args.k + 255) / 256, kBlocks / std::max<int64_t>(1, product.tiles()), 16});
}
uint64_t PartBytes(const Product& product) {
  uint64_t element = product.type == MGE_DTYPE_F64 ? 8 : 4;
  return static_cast<uint64_t>(SplitsOf(product) * product.args.batch * product.args.m * product.args.n) * element;
}

// Estimate the time of a tile and the number of tiles that follow one another: each tile is computed by one block, so few
// tiles leave the device idle.
double TileUs(int64_t k) { return 0.05 * static_cast<double>((k + 15) / 16); }
double WavesOf(int64_t tiles) { return static_cast<double>((tiles + 127) / 128); }

struct MatMulRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers, /*groups=*/true, /*adds=*/true)) return;
    Product product;
    if (Result r = Find(p, &product); !r.ok()) return offers.Refuse(r.text());
    const MatMulArgs& args = product.args;
    std::vector<mge_in_place> in_place;
    if (product.residual >= 0 && product.residual != product.a && product.residual != product.b) {
      in_place.push_back({0, static_cast<uint32_t>(product.residual)});
    }
    if (IsInteger(product.type)) {
      if (ElementBytes(product.type) < 4 || p.node_count() > 1 || p.node().Is("Gemm")) {
        return offers.Refuse("no kernel for " + std::string(TypeName(product.type)));
      }
      return offers.Add({.id = "gpu.matmul.plain",
                         .attributes = kExact,
                         .cost_us = GpuUs(BytesOf(p), 20 * product.flops()),
                         .variant = kPlainLoops});
    }
    if (!IsFloating(product.type)) return offers.Refuse("no kernel for " + std::string(TypeName(product.type)));
    const double tile_us = TileUs(args.k), us = GpuUs(BytesOf(p), product.flops()) + tile_us * WavesOf(product.tiles());
    offers.Add({.id = "gpu.matmul.tiles", .attributes = kExact, .cost_us = us, .variant = kTiles, .in_place = in_place});
    if (int64_t splits = SplitsOf(product); splits > 1 && args.m && args.n) {
      offers.Add({.id = "gpu.matmul.split_k",
                  .rank = 1,
                  .attributes = kLaunched | MGE_KERNEL_DETERMINISTIC,
                  .workspace = PartBytes(product),
                  .cost_us = GpuUs(BytesOf(p) + 2.0 * static_cast<double>(PartBytes(product)), product.flops(), 2) +
                             tile_us / static_cast<double>(splits),
                  .variant = kSplitK,
                  .in_place = in_place});
    }
    if (product.type == MGE_DTYPE_F32) {  // the result of matrix units, computed with ordinary instructions
      offers.Add({.id = "gpu.matmul.as_bf16",
                  .rank = 20,
                  .attributes = kExact | MGE_KERNEL_REDUCED_PRECISION | MGE_KERNEL_TENSOR_CORE,
                  .cost_us = us * 1.1,
                  .variant = kAsBf16,
                  .in_place = in_place});
    }
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Product product;
    if (!Find(p, &product).ok()) return nullptr;
    MatMulArgs& args = product.args;
    Recipe recipe;
    int64_t outputs = args.batch * args.m * args.n;
    if (outputs == 0) return std::move(recipe).Make();
    bool one_use =
        product.b != product.a && product.b != product.c && product.b != product.bias && product.b != product.residual;
    // A constant factor is stored by columns (Gemm with transB). Tiles are loaded by rows.
    if (args.b_k == 1 && args.b_column == args.k && args.batch_rank == 0 && one_use && p.input(product.b).is_constant() &&
        recipe.Transpose(product.b, 1, args.n, args.k, ElementBytes(product.type))) {
      args.b_k = args.n;
      args.b_column = 1;
    }
    auto a = Operand::In(product.a), b = Operand::In(product.b), null = Operand::Null();
    auto start = Operand::MaybeIn(product.c), bias = Operand::MaybeIn(product.bias),
         residual = product.adds ? Operand::Out() : Operand::MaybeIn(product.residual);
    if (c.variant == kPlainLoops) {
      recipe.Add(ElementBytes(product.type) == 8 ? "matmul_plain_u64" : "matmul_plain_u32", Spread(outputs), args,
                 {a, b, null, null, null, Operand::Out()});
    } else if (c.variant == kSplitK) {
      args.splits = static_cast<int32_t>(SplitsOf(product));
      recipe.SetWorkspace(PartBytes(product));
      recipe.Add(KernelFor("matmul_part", product.type), Rows(product.tiles() * args.splits), args,
                 {a, b, null, null, null, Operand::Work()});
      recipe.Add(KernelFor("matmul_join", product.type), Spread(outputs), args,
                 {Operand::Work(), null, start, bias, residual, Operand::Out()});
    } else {
      std::string kernel = c.variant == kAsBf16 ? "matmul_as_bf16_f32" : KernelFor("matmul", product.type);
      recipe.Add(kernel, Rows(product.tiles()), args, {a, b, start, bias, residual, Operand::Out()});
    }
    return std::move(recipe).Make();
  }
};

struct SiblingsRow {
  // Finds the products if they are the whole problem.
  static bool FindWhole(const Problem& p, Siblings* found) {
    return p.node_count() > 1 && FindSiblings(p.graph(), 0, found) &&
           static_cast<int>(found->nodes.size()) == p.node_count() &&
           static_cast<int>(found->products.size()) == p.output_count();
  }
  static Product ProductOf(const Problem& p) {
    Product product;
    const Value a = p.node().input(0), b = p.node().input(1);
    MatMulArgs& args = product.args;
    args.k = a.dim(-1);
    args.m = static_cast<int64_t>(a.elements()) / args.k;
    args.n = b.dim(1);
    args.a_row = args.k;
    args.b_k = args.n;
    args.batch = args.a_k = args.b_column = args.bias_column = 1;
    args.alpha = 1;
    return product;
  }

  static void Offer(const Problem& p, Offers& offers) {
    Siblings found;
    if (!FindWhole(p, &found) || !Accept(p, offers, /*groups=*/true)) return;
    const Product product = ProductOf(p);
    const auto count = static_cast<int64_t>(found.products.size());
    offers.Add({.id = "gpu.matmul.siblings",
                .attributes = kExact,
                .cost_us = GpuUs(BytesOf(p), static_cast<double>(count) * product.flops()) +
                           TileUs(product.args.k) * WavesOf(count * product.tiles())});
  }
  static KernelPtr Make(const Problem& p, const Candidate&) {
    Siblings found;
    if (!FindWhole(p, &found)) return nullptr;
    const Product product = ProductOf(p);
    SiblingsArgs args = {};
    args.product = product.args;
    args.count = static_cast<int64_t>(found.products.size());
    std::vector<Operand> b, bias, y;
    for (const Siblings::Product& one : found.products) {
      b.push_back(Operand::In(p.operand(one.b)));
      bias.push_back(Operand::MaybeIn(one.bias < 0 ? -1 : p.operand(one.bias)));
      y.push_back(Operand::Out(OutputOf(p, one.output)));
    }
    std::vector<Operand> pointers = {Operand::In(p.operand(found.a))};
    for (std::vector<Operand>* list : {&b, &bias, &y}) {
      list->resize(kMaxSiblings, Operand::Null());
      pointers.insert(pointers.end(), list->begin(), list->end());
    }
    Recipe recipe;
    recipe.Add("matmul_siblings_f32", Rows(args.count * product.tiles()), args, std::span<const Operand>(pointers));
    return std::move(recipe).Make();
  }

 private:
  // Returns the number of the output with this id.
  static int OutputOf(const Problem& p, int32_t value) {
    const mge_graph* g = p.graph().raw();
    return static_cast<int>(std::find(g->outputs, g->outputs + g->output_count, value) - g->outputs);
  }
};

constexpr KernelRow kRows[] = {Row<MatMulRow>("MatMul"), Row<MatMulRow>("Gemm"), Row<SiblingsRow>("MatMul")};

}  // namespace

MGE_KERNELS(matmul) = kRows;

}  // namespace mge::gpu
