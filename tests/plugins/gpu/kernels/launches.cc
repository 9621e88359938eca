// SPDX-License-Identifier: Apache-2.0
#include "tests/plugins/gpu/kernels/launches.h"

#include <cmath>
#include <tuple>

#include "mge/types.h"
#include "plugins/gpu/kernels/attention.h"
#include "plugins/gpu/kernels/chain.h"
#include "plugins/gpu/kernels/copy.h"
#include "plugins/gpu/kernels/index.h"
#include "plugins/gpu/kernels/matmul.h"
#include "plugins/gpu/kernels/norm.h"
#include "plugins/gpu/kernels/packed_weights.h"
#include "plugins/gpu/kernels/random.h"
#include "plugins/gpu/kernels/recurrent.h"
#include "plugins/gpu/kernels/reduce.h"
#include "plugins/gpu/kernels/resize.h"
#include "tests/plugins/gpu/kernels/convolution_launches.h"
#include "tests/plugins/gpu/kernels/quantized_launches.h"

namespace mge::gpu {
namespace {

// Attention of 2 heads of 40 queries and 70 keys. `each` elements of q, k, v and y are as large as a float.
AttentionArgs AttentionOf(Memory& m, size_t head_size, size_t value_size, size_t each) {
  AttentionArgs args = {};
  args.q = m.Floats(2 * 40 * head_size / each);
  args.k = m.Floats(2 * 70 * head_size / each);
  args.v = m.Floats(2 * 70 * value_size / each);
  args.mask = m.Floats(40 * 70);
  args.y = m.Floats(2 * 40 * value_size / each);
  args.queries = 40;
  args.keys = 70;
  args.batch = 2;
  args.head_size = static_cast<int32_t>(head_size);
  args.value_size = static_cast<int32_t>(value_size);
  args.q_row = args.k_row = args.head_size;
  args.v_row = args.y_row = args.value_size;
  args.q_column = args.k_column = args.v_column = args.mask_column = args.y_column = 1;
  args.mask_row = 70;
  args.batch_rank = 1;
  args.batch_dims[0] = 2;
  args.q_batch[0] = 40 * args.q_row;
  args.k_batch[0] = 70 * args.k_row;
  args.v_batch[0] = 70 * args.v_row;
  args.y_batch[0] = 40 * args.y_row;
  args.scale = 0.5f;
  args.mask_kind = kMaskAddsFloats;
  return args;
}

void Attentions(Memory& m, const Check& check) {
  AttentionArgs args = AttentionOf(m, 10, 20, 1);
  check("masked", LaunchOf("attention64x32_f32", args, 256, 3));
  check("masked, large tiles", LaunchOf("attention64x64_f32", args, 256, 2));
  args.mask = nullptr;
  args.causal = {kCausalAdds, 1, -1e9f, -5e8f};
  check("causal", LaunchOf("attention64x32_f32", args, 256, 3));
  args.causal.enough = INFINITY;
  check("causal, with all keys", LaunchOf("attention64x64_f32", args, 256, 3));
  args = AttentionOf(m, 10, 20, 2);
  check("of 16 bits", LaunchOf("attention64x32_f16", args, 256, 3));
  args.mask = m.Bytes(40 * 70);
  args.mask_kind = kMaskReplaces;
  check("masked by bool", LaunchOf("attention64x32_bf16", args, 256, 3));
  check("of heads of middle size", LaunchOf("attention128x32_f32", AttentionOf(m, 70, 100, 1), 256, 3));
  check("of large heads", LaunchOf("attention256x16_f32", AttentionOf(m, 140, 200, 1), 256, 3));
}

void PartsOfAttention(Memory& m, const Check& check) {
  for (const auto& [kernel, head, value, bytes] : {std::tuple("attention_parts64_f32", 10, 20, 1),
                                                   {"attention_parts128_f16", 70, 100, 2},
                                                   {"attention_parts256_f32", 140, 200, 1}}) {
    AttentionArgs args = AttentionOf(m, head, value, bytes);
    args.parts = 1;
    args.work = m.Floats(static_cast<size_t>(args.batch * args.queries * (2 + value)));
    check(kernel, LaunchOf(kernel, args, kPartThreads, 2));
    check("joined", LaunchOf(bytes == 1 ? "attention_join_f32" : "attention_join_f16", args, 64, 2));
  }
}

// Rows of whole vectors of 16 bytes, which are copied in the background, and others. One block computes two heads.
void MatrixUnitsOfAttention(Memory& m, const Check& check) {
  AttentionArgs args = AttentionOf(m, 40, 24, 2);
  check("masked", LaunchOf("attention_mma64_f16", args, 128, 1));
  args.mask = nullptr;
  args.causal = {kCausalReplaces, 1, -1e9f, -5e8f};
  check("causal", LaunchOf("attention_mma64_bf16", args, 128, 2));
  args.causal.enough = INFINITY;
  check("causal, with all keys", LaunchOf("attention_mma64_bf16", args, 128, 2));
  args = AttentionOf(m, 20, 72, 2);
  check("large, rows that are not aligned", LaunchOf("attention_mma128_f16", args, 128, 2));
  check("of floats", LaunchOf("attention_mma64_f32", AttentionOf(m, 10, 20, 1), 128, 2));
  check("of large heads", LaunchOf("attention_mma256_f16", AttentionOf(m, 200, 136, 2), 128, 3));
  check("large, of floats", LaunchOf("attention_mma128_f32", AttentionOf(m, 128, 12, 1), 128, 1));
}

void Binaries(Memory& m, const Check& check) {
  float* x = m.Floats(300);
  BinaryArgs args = {x, m.Floats(300), x, &m.fault, 300, {}, {}, {}, 1, 1};
  check("in place", LaunchOf("add_f32", args, 64, 3));
  args = {x, m.Floats(1), m.Bytes(300), &m.fault, 300, {}, {}, {}, 1, 0};
  check("with one element", LaunchOf("less_f32", args, 64, 3));
  const Walk walk = {2, 0, {15, 20}};
  args = {m.Floats(15), m.Floats(20), x, &m.fault, 300, walk, {1, 0}, {0, 1}, 0, 0};
  check("broadcast", LaunchOf("mul_f32", args, 64, 3));
  WhereArgs where = {m.Bytes(300), m.Floats(300), x, m.Floats(300), 300, {}, {}, {}, {}, 1, 1, 1};
  check("where", LaunchOf("where_4", where, 64, 3));
  where = {m.Bytes(15), m.Floats(20), x, m.Floats(300), 300, walk, {1, 0}, {0, 1}, {20, 1}, 0, 0, 0};
  check("where, broadcast", LaunchOf("where_4", where, 64, 3));
  check("clip", LaunchOf("clip_f32", ClipArgs{x, m.Floats(1), m.Floats(1), x, 300}, 64, 3));
}

void Casts(Memory& m, const Check& check) {
  check("narrower", LaunchOf("cast_to_u8", CastArgs{m.Floats(300), m.Bytes(300), 300, MGE_DTYPE_F32, 0}, 64, 3));
  check("wider", LaunchOf("cast_to_i64", CastArgs{m.Bytes(300), m.Longs(300), 300, MGE_DTYPE_BOOL, 0}, 64, 3));
}

void Chains(Memory& m, const Check& check) {
  ChainArgs chain = {};
  chain.inputs[0] = chain.output = m.Floats(400);  // in place
  chain.inputs[1] = m.Floats(20);
  chain.n = 400;
  chain.walk = {2, 0, {20, 20}};
  chain.strides[0][0] = 20;
  chain.strides[0][1] = chain.strides[1][1] = 1;
  chain.input_count = chain.step_count = 2;
  chain.steps[0] = {kChain_add, 0, 1, 0, 0, -1, 0};
  chain.steps[1] = {kChain_relu, 2, 0, 0, 0, -1, 0};
  check("chain", LaunchOf("chain_f32", chain, 64, 3));
  chain = {};
  chain.inputs[0] = m.Bytes(400);
  chain.inputs[1] = m.Floats(1);
  chain.input_types[0] = kChainU8;
  chain.output = m.Bytes(400);
  chain.output_type = kChainI8;
  chain.extras[0] = m.Floats(400);
  chain.n = 400;
  chain.steps_of[0] = 1;
  chain.input_count = chain.step_count = 2;
  chain.extra_count = 1;
  chain.steps[0] = {kChainDequantize, 0, 1, 0, 0, -1, 0};
  chain.steps[1] = {kChainQuantizeToI8, 2, 1, 0, 0, -1, 0};
  check("dequantizes and quantizes", LaunchOf("chain_f32", chain, 64, 3));
}

void Copies(Memory& m, const Check& check) {
  check("transpose", LaunchOf("transpose_4", TransposeArgs{m.Floats(6300), m.Floats(6300), 2, 45, 70}, 256, 12));
  CopyArgs copy = {m.Floats(300), m.Floats(300) + 285, 300, 2, 0, {20, 15}, {1, 20}, {-15, 1}};  // reverses the rows
  check("copy", LaunchOf("copy_4", copy, 64, 3));
  check("fill", LaunchOf("fill_4", FillArgs{m.Floats(300), 300, 7}, 64, 3));
  PlacesArgs pad = {m.Floats(16 * 11), m.Floats(300), 300, 2, 1, {20, 15}, {16, 11}, {11, 1}, {2, 2}, {30, 20}, {30, 20}};
  check("pad", LaunchOf("pad_4", pad, 64, 3));
}

void Gathers(Memory& m, const Check& check) {
  // Indices from first to last, so that every element of the indexed array is read.
  auto up_to_5 = [](size_t i) { return static_cast<int64_t>(i % 5); };
  GatherArgs gather = {
      m.Floats(3 * 5 * 4), m.Longs(8, up_to_5), m.Floats(3 * 8 * 4), &m.fault, 3 * 8 * 4, 4, 8, 5, 0, 0, {}, {}, -1, 1};
  check("slices", LaunchOf("gather_4", gather, 64, 2));
  const int64_t* pairs = m.Longs(2 * 6 * 2, [](size_t i) { return static_cast<int64_t>(i / 2 % 6 % 5); });
  GatherArgs tuples = {m.Floats(2 * 5 * 5), pairs, m.Floats(2 * 6), &m.fault, 2 * 6, 1, 0, 0, 6, 25, {5, 5}, {5, 1}, 2, 1};
  check("tuples", LaunchOf("gather_4", tuples, 64, 1));
  const int64_t* rows = m.Longs(8 * 20, [](size_t i) { return static_cast<int64_t>(i / 20 % 5); });
  GatherElementsArgs elements = {
      m.Floats(5 * 20), rows, m.Floats(8 * 20), &m.fault, 8 * 20, 5, {8, 20}, {20, 1}, 2, 0, 1, 0};
  check("elements", LaunchOf("gather_elements_4", elements, 64, 2));
  OneHotArgs hot = {m.Longs(3 * 4, up_to_5), m.Floats(2), m.Floats(3 * 5 * 4), 3 * 5 * 4, 5, 4, 1, 0};
  check("one hot", LaunchOf("one_hot_4", hot, 64, 1));
  float* x = m.Floats(2 * 10 * 15);
  TriluArgs triangle = {x, m.Longs(1, [](size_t) { return int64_t{-20}; }), x, 2 * 10 * 15, 10, 15, 1, 0};  // in place
  check("triangle", LaunchOf("trilu_4", triangle, 64, 3));
}

void Products(Memory& m, const Check& check) {
  MatMulArgs product = {};
  product.a = m.Floats(70 * 50);
  product.b = m.Floats(50 * 90);
  product.y = m.Floats(70 * 90);
  product.m = 70;
  product.n = 90;
  product.k = 50;
  product.batch = 1;
  product.a_row = 50;
  product.a_k = product.b_column = product.alpha = 1;
  product.b_k = 90;
  product.before = m.Floats(70 * 90);
  check("tiles", LaunchOf("matmul_f32", product, 256, 4));
  SiblingsArgs siblings = {};
  siblings.a = product.a;
  siblings.count = 2;
  siblings.product = product;
  for (int i = 0; i < 2; ++i) {
    siblings.b[i] = m.Floats(50 * 90);
    siblings.y[i] = m.Floats(70 * 90);
  }
  siblings.bias[1] = m.Floats(90);
  siblings.product.bias_column = 1;
  check("siblings", LaunchOf("matmul_siblings_f32", siblings, 256, 3));
  check("plain", LaunchOf("matmul_plain_u32", product, 64, 5));
  product.splits = 2;
  product.y = m.Floats(2 * 70 * 90);
  check("parts", LaunchOf("matmul_part_f32", product, 256, 8));
  MatMulArgs join = product;
  join.a = product.y;
  join.residual = join.y = m.Floats(70 * 90);  // overwrites the residual
  join.residual_row = 90;
  join.residual_column = 1;
  check("join", LaunchOf("matmul_join_f32", join, 64, 5));
}

void MatrixUnits(Memory& m, const Check& check) {
  MatMulArgs product = {};
  const auto* a = m.Floats(140 * 50);
  const auto* b = m.Floats(50 * 90);
  auto* y = m.Floats(140 * 90);
  product.a = m.Floats(140 * 25);  // 140 x 50 of 16 bits
  product.b = m.Floats(25 * 90);
  product.y = m.Floats(140 * 45);
  product.m = 140;
  product.n = 90;
  product.k = 50;
  product.batch = 1;
  product.a_row = 50;
  product.a_k = product.b_column = product.alpha = 1;
  product.b_k = 90;
  check("64 x 64", LaunchOf("matmul_mma64_f16", product, 128, 4));
  check("128 x 128", LaunchOf("matmul_mma128_bf16", product, 256, 2));
  product.b_k = 1;
  product.b_column = 50;
  check("transposed", LaunchOf("matmul_mma64_bf16", product, 128, 3));
  product.a = a;
  product.b = b;
  product.y = y;
  check("float, transposed", LaunchOf("matmul_mma64_f32", product, 128, 3));
  product.b_k = 90;
  product.b_column = 1;
  check("float", LaunchOf("matmul_mma128_f32", product, 256, 2));
  product.splits = 2;
  product.y = m.Floats(2 * 140 * 90);
  check("float, parts", LaunchOf("matmul_part_mma64_f32", product, 128, 4));

  SiblingsArgs siblings = {};
  siblings.a = m.Floats(140 * 25);
  siblings.count = 2;
  siblings.product = product;
  for (int i = 0; i < 2; ++i) {
    siblings.b[i] = m.Floats(50 * 45);
    siblings.y[i] = m.Floats(140 * 45);
  }
  siblings.bias[1] = m.Floats(45);
  siblings.product.bias_column = 1;
  check("siblings", LaunchOf("matmul_siblings_mma64_f16", siblings, 128, 5));
}

void Norms(Memory& m, const Check& check) {
  for (bool in_place : {false, true}) {
    auto onto = [&](float* x, size_t n) { return in_place ? x : m.Floats(n); };
    float* x = m.Floats(6 * 300);
    float* y = onto(x, 6 * 300);
    check("softmax of a block", LaunchOf("softmax_block_f32", SoftmaxArgs{x, y, 6, 300, 1, 0, 0}, 128, 3));
    NormArgs norm = {x, m.Floats(300), m.Floats(300), y, m.Floats(6), m.Floats(6), 6, 300, 1, 300, 1, 1e-5, 1, 0, 0};
    check("norm", LaunchOf("norm_f32", norm, 128, 3));
    x = m.Floats(90 * 7);
    y = onto(x, 90 * 7);
    check("softmax of a thread", LaunchOf("softmax_thread_f32", SoftmaxArgs{x, y, 90, 7, 9, 1, 0}, 64, 2));
    x = m.Floats(400);
    BatchNormArgs batch = {x, m.Floats(5), m.Floats(5), m.Floats(5), m.Floats(5), onto(x, 400), 400, 5, 8, 1e-5};
    check("batch norm", LaunchOf("batch_norm_f32", batch, 64, 3));
  }
  check("lrn", LaunchOf("lrn_f32", LrnArgs{m.Floats(400), m.Floats(400), 400, 5, 8, 3, 1, 0.75, 1}, 64, 3));
}

void Rows(Memory& m, const Check& check) {
  for (bool in_place : {false, true}) {
    for (int64_t n : {300, 301}) {  // whole packs, and single elements
      const auto count = static_cast<size_t>(6 * n);
      float* rows = m.Floats(count);
      const SoftmaxArgs softmax = {rows, in_place ? rows : m.Floats(count), 6, n, 1, 0, 0};
      check("softmax of a warp", LaunchOf("softmax_warp_f32", softmax, kRowThreads, 1));
      check("softmax of a row", LaunchOf("softmax_row_f32", softmax, kRowThreads, 3));
      const auto size = static_cast<size_t>(n);
      const NormArgs of_row = {rows,
                               m.Floats(size),
                               m.Floats(size),
                               in_place ? rows : m.Floats(count),
                               m.Floats(6),
                               m.Floats(6),
                               6,
                               n,
                               1,
                               0,
                               1,
                               1e-5,
                               1,
                               0,
                               0};
      check("norm of a warp", LaunchOf("norm_warp_f32", of_row, kRowThreads, 1));
      check("norm of a row", LaunchOf("norm_row_f32", of_row, kRowThreads, 3));
    }
  }
}

void Recurrences(Memory& m, const Check& check) {
  for (int32_t kind : {kRnn, kGru, kLstm}) {
    const size_t gates = kind == kLstm ? 4 : kind == kGru ? 3 : 1, steps = 3, batch = 2, hidden = 70, width = gates * hidden;
    RecurrentArgs args = {};
    args.sums = m.Floats(2 * steps * batch * width);
    args.weights = m.Floats(2 * hidden * width);
    args.bias = m.Floats(2 * 2 * width);
    args.initial_h = m.Floats(2 * batch * hidden);
    args.y = m.Floats(steps * 2 * batch * hidden);
    args.y_h = m.Floats(2 * batch * hidden);
    if (kind == kLstm) {
      args.initial_c = m.Floats(2 * batch * hidden);
      args.peepholes = m.Floats(2 * 3 * hidden);
      args.y_c = m.Floats(2 * batch * hidden);
    }
    args.chain_work = RecurrentWork(kind, static_cast<int64_t>(gates), hidden);
    args.work = m.Floats(2 * batch * static_cast<size_t>(args.chain_work));
    args.fault = &m.fault;
    args.steps = steps;
    args.batch = batch;
    args.hidden = hidden;
    args.gates = static_cast<int64_t>(gates);
    args.directions = 2;
    args.kind = kind;
    args.clip = 1;
    check("steps", LaunchOf("recurrent_f32", args, 256, 3));
  }
}

void Reductions(Memory& m, const Check& check) {
  ReduceArgs reduce = {};
  reduce.x = m.Floats(5 * 700);
  reduce.y = m.Floats(5);
  reduce.outputs = 5;
  reduce.count = 700;
  reduce.kept = {1, 0, {5}, {700}};
  reduce.reduced = {1, 0, {700}, {1}};
  reduce.splits = 3;
  check("block", LaunchOf("reduce_sum_block_f32", reduce, 128, 5));
  check("atomic", LaunchOf("reduce_atomic_sum_f32", reduce, 128, 15));
  reduce.y = m.Floats(3 * 5);
  check("parts by blocks", LaunchOf("reduce_sum_parts_block_f32", reduce, 128, 15));
  check("parts by threads", LaunchOf("reduce_max_parts_thread_f32", reduce, 128, 1));
  reduce.x = m.Floats(3 * 5);
  reduce.y = m.Floats(5);
  check("join of parts", LaunchOf("reduce_mean_join_f32", reduce, 128, 1));
  reduce.x = m.Floats(100 * 9);
  reduce.y = m.Floats(100);
  reduce.outputs = 100;
  reduce.count = 9;
  reduce.kept = {1, 0, {100}, {9}};
  reduce.reduced = {1, 0, {9}, {1}};
  check("thread", LaunchOf("reduce_sum_thread_f32", reduce, 64, 2));
  check("log of a sum", LaunchOf("reduce_log_sum_exp_thread_f32", reduce, 64, 2));
}

void Resizes(Memory& m, const Check& check) {
  ResizeArgs resize = {};
  resize.x = m.Floats(7 * 14);
  resize.y = m.Floats(14 * 21);
  resize.n = 14 * 21;
  resize.rank = 2;
  resize.axis[0] = {7, 14, 14, 2, 0, 0};
  resize.axis[1] = {14, 21, 1, 1.5, 0, 0};
  check("nearest", LaunchOf("resize_nearest_4", resize, 64, 3));
  for (int32_t mode : {kLinear, kCubic}) {
    resize.mode = mode;
    check("smooth", LaunchOf("resize_smooth_f32", resize, 64, 3));
  }
}

void Scans(Memory& m, const Check& check) {
  ArgReduceArgs extreme = {m.Floats(150 * 7), m.Longs(150), 150, 7, 15, 0, 1};
  check("position of an extreme", LaunchOf("arg_reduce_f32", extreme, 64, 3));
  for (bool in_place : {false, true}) {
    float* x = m.Floats(900);
    const int64_t* axis = m.Longs(1, [](size_t) { return int64_t{1}; });
    RunningSumArgs sums = {x, axis, in_place ? x : m.Floats(900), &m.fault, 900, {10, 9, 10}, 3, 1, 0, 1};
    check("running sum", LaunchOf("running_sum_f32", sums, 64, 2));
    x = m.Floats(90 * 7);
    check("hardmax", LaunchOf("hardmax_f32", HardmaxArgs{x, in_place ? x : m.Floats(90 * 7), 90, 7, 9}, 64, 2));
  }
  TopKArgs top = {m.Floats(90 * 12), m.Floats(90 * 5), m.Longs(90 * 5), 90, 12, 9, 5, 1, 0};
  check("largest", LaunchOf("top_k_f32", top, 64, 2));
}

void Scatters(Memory& m, const Check& check) {
  ScatterArgs nd = {};
  nd.fault = &m.fault;
  nd.wide = 1;
  nd.reduction = kScatterAdd;
  ScatterArgs elements = nd;

  nd.indices = m.Longs(8, [](size_t i) { return static_cast<int64_t>(i % 5); });
  nd.updates = m.Floats(8 * 100);
  nd.y = m.Floats(5 * 100);
  nd.lines = 100;
  nd.along = 8;
  nd.rank = 1;
  nd.dims[0] = 5;
  nd.strides[0] = 100;
  check("by tuples", LaunchOf("scatter_nd_f32", nd, 64, 2));

  ScatterTuplesArgs tuples = {};
  tuples.indices = nd.indices;
  tuples.updates = nd.updates;
  tuples.y = m.Floats(5 * 100);
  tuples.fault = &m.fault;
  tuples.places = m.Longs(8);
  tuples.next = reinterpret_cast<int32_t*>(m.Floats(8));
  tuples.first = reinterpret_cast<int32_t*>(m.Floats(8));
  tuples.tuples = 8;
  tuples.piece = 100;
  tuples.dims[0] = 5;
  tuples.strides[0] = 100;
  tuples.rank = tuples.wide = 1;
  tuples.reduction = kScatterAdd;
  check("places of tuples", LaunchOf("scatter_places", tuples, 64, 1));
  check("links of tuples", LaunchOf("scatter_links", tuples, 64, 1));
  check("tuples side by side", LaunchOf("scatter_tuples_f32", tuples, 64, 2));

  elements.indices = m.Longs(8 * 100, [](size_t i) { return static_cast<int64_t>(i / 100 % 5); });
  elements.updates = m.Floats(8 * 100);
  elements.y = m.Floats(5 * 100);
  elements.lines = 100;
  elements.along = 8;
  elements.bound = 5;
  elements.rank = 2;
  elements.dims[0] = 8;
  elements.dims[1] = 100;
  elements.strides[0] = 100;
  elements.strides[1] = 1;
  check("along an axis", LaunchOf("scatter_elements_f32", elements, 64, 2));
}

void PackedProducts(Memory& m, const Check& check) {
  PackedWeightsArgs args = {};
  args.m = 5;
  args.n = 7;
  args.k = 60;
  args.blocks = 2;
  args.block = 32;
  args.word_block = 4;
  args.column_bytes = 32;
  args.zero_bytes = 1;
  args.bits = 4;
  args.packed_zeros = 1;
  args.a = m.Floats(5 * 60);
  args.b = reinterpret_cast<const uint8_t*>(m.Floats(7 * 8));
  args.scales = m.Floats(7 * 2);
  args.zeros = m.Floats(2);
  args.bias = m.Floats(7);
  args.y = m.Floats(5 * 7);
  check("few rows", LaunchOf("packed_product4_f32", args, 256, 2));
  args.y = m.Floats(7 * 60);
  check("as numbers", LaunchOf("unpack_weights_f32", args, 64, 2));
}

void Draws(Memory& m, const Check& check) {
  auto* state = reinterpret_cast<const RandomState*>(m.Longs(sizeof(RandomState) / sizeof(int64_t)));
  check("uniform", LaunchOf("random_uniform_f32", RandomArgs{state, m.Floats(333), 333, -1, 2}, 64, 2));
  check("normal", LaunchOf("random_normal_f32", RandomArgs{state, m.Floats(333), 333, 0, 1}, 64, 2));
  float* x = m.Floats(333);
  check("dropout in place", LaunchOf("dropout_f32", DropoutArgs{state, x, x, m.Bytes(333), 333, 0.5}, 64, 2));
}

void Unaries(Memory& m, const Check& check) {
  float* x = m.Floats(300);
  check("in place", LaunchOf("relu_f32", UnaryArgs{x, x, 300, 0, 0}, 64, 3));
  check("activation", LaunchOf("activate_f32", ActivateArgs{x, x, 300, {kGelu, 0, 0}}, 64, 3));
  check("into bytes", LaunchOf("is_nan_f32", UnaryArgs{x, m.Bytes(300), 300, 0, 0}, 64, 3));
}

constexpr KernelFile kFiles[] = {{"attention", Attentions},
                                 {"attention_mma", MatrixUnitsOfAttention},
                                 {"attention_split", PartsOfAttention},
                                 {"binary", Binaries},
                                 {"cast", Casts},
                                 {"chain", Chains},
                                 {"conv", Convolutions},
                                 {"conv_depthwise", DepthwiseConvolutions},
                                 {"conv_gradient", GradientsOfConvolutions},
                                 {"conv_mma", MatrixUnitsOfConvolutions},
                                 {"conv_nhwc", ConvolutionsWithChannelsLast},
                                 {"conv_nhwc_mma", MatrixUnitsWithChannelsLast},
                                 {"copy", Copies},
                                 {"gather", Gathers},
                                 {"integer_conv", IntegerConvolutions},
                                 {"integer_conv_mma", MatrixUnitsOfIntegerConvolutions},
                                 {"integer_matmul", IntegerProducts},
                                 {"integer_matmul_mma", MatrixUnitsOfIntegers},
                                 {"matmul", Products},
                                 {"matmul_mma", MatrixUnits},
                                 {"norm", Norms},
                                 {"packed_weights", PackedProducts},
                                 {"pool", Pools},
                                 {"pool_gradient", GradientsOfPools},
                                 {"quantize", Quantizations},
                                 {"random", Draws},
                                 {"recurrent", Recurrences},
                                 {"reduce", Reductions},
                                 {"resize", Resizes},
                                 {"rows", Rows},
                                 {"scan", Scans},
                                 {"scatter", Scatters},
                                 {"unary", Unaries}};

}  // namespace

std::span<const KernelFile> KernelFiles() { return kFiles; }

}  // namespace mge::gpu
