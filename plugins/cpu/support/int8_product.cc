// SPDX-License-Identifier: Apache-2.0
#include "support/int8_product.h"

#include <algorithm>
#include <string>
#include <utility>

#include "support/conv_threads.h"
#include "support/kernel.h"

namespace mge::cpu {
namespace {

Result FindMatrices(const Problem& p, Int8Product* out) {
  Node n = p.node();
  Value a = n.input(Int8LeftInput(n)), b = n.input(Int8RightInput(n));
  Product product;
  if (Result r = FindMatMul(a, b, &product); !r.ok()) return r;
  out->size = product.size;
  out->b_items = product.b_items;
  out->batch_axes = product.batch_axes;
  out->ldc = product.size.n;
  out->a = p.operand(0, Int8LeftInput(n));
  out->b = p.operand(0, Int8RightInput(n));
  out->a_constant = a.is_constant();
  out->b_constant = b.is_constant();
  out->source = {nullptr, 1, product.size.k, product.size.n, 0, product.b_k, product.b_column, false, false};
  return FindInt8Parameters(p, ChannelAxis::kLast, product.size.n, &out->parameters);
}

Result FindWindows(const Problem& p, Int8Product* out) {
  Node n = p.node();
  Convolution& c = out->convolution;
  if (Result r = FindConvolution(p, Int8LeftInput(n), Int8RightInput(n), &c); !r.ok()) return r;
  out->windowed = true;
  out->pointwise = c.pointwise();
  out->size = {c.rows(), c.outputs / c.groups, c.k(), c.groups};
  out->b_items = c.groups;
  out->sets_differ = true;
  out->taps = c.taps();
  out->ldc = c.outputs;
  out->a = c.x;
  out->b = c.weights;
  out->a_constant = c.x_constant;
  out->b_constant = c.weights_constant;
  out->source = {nullptr, c.taps(), c.windows.channels, out->size.n, 1, c.taps(), c.k(), false, false};
  return FindInt8Parameters(p, ChannelAxis::kSecond, c.outputs, &out->parameters);
}

// The position of one product: bytes of A, the number of the matrix of B, elements of C.
struct Item {
  int64_t a, b, c;
};

struct Args {
  const Int8Table* table;
  void (*run)(const Int8Task&, int64_t, int64_t, int64_t, int64_t);
  Int8Task task;
  const Item* items;
  GemmSplit split;
  uint64_t threads;  // of a convolution: ConvThreads()
  Int8Parameters parameters;
  Int8Columns columns;
  Int8Source source;
  int64_t b_bytes;                    // bytes between matrices of B
  int64_t packed_bytes, panel_bytes;  // of one packed matrix with its sums, and of its panels
  bool packs;                         // B is packed in the run
  Chunks pack_chunks;
  int32_t b_moved;
  uint64_t packed_at, columns_at, tasks_at;  // in the workspace
  uint32_t result_bytes;
  Slot a, b, c, workspace;
};

void PackItem(const Args& s, const char* from, int64_t item, int64_t p0, int64_t p1, char* packed) {
  Int8Source source = s.source;
  source.data = from + item * s.b_bytes;
  char* to = packed + item * s.packed_bytes;
  s.table->pack(source, p0, p1, to, reinterpret_cast<int32_t*>(to + s.panel_bytes));
}

mge_code Launch(const Args& s, const mge_run* run) {
  char* workspace = At<char>(run, s.workspace);
  const char* packed = At<char>(run, s.b);
  const int64_t panels = s.split.panels;
  if (s.packs) {
    char* to = workspace + s.packed_at;
    ForChunks(run, s.pack_chunks, [&](uint64_t begin, uint64_t end) {
      for (auto i = static_cast<int64_t>(begin); i < static_cast<int64_t>(end); ++i) {
        PackItem(s, packed, i / panels, i % panels, i % panels + 1, to);
      }
    });
    packed = to;
  }
  auto* tasks = reinterpret_cast<Int8Task*>(workspace + s.tasks_at);
  for (int64_t set = 0; set < s.columns.sets; ++set) {
    const char* b = packed + set * s.packed_bytes;
    Int8Task& t = tasks[set] = s.task;
    t.b = b;
    WriteInt8Columns(s.parameters, s.columns, run, set, reinterpret_cast<const int32_t*>(b + s.panel_bytes), 0, s.b_moved,
                     workspace + s.columns_at, t);
    if (s.parameters.a_zero.present()) t.a.outside = static_cast<uint8_t>(s.parameters.a_zero.Integer(run, 0));
  }
  const char* a = At<char>(run, s.a);
  char* c = At<char>(run, s.c);
  ForConvChunks(run, s.threads, s.split, [&](int64_t i, int64_t m0, int64_t m1, int64_t p0, int64_t p1) {
    const Item& item = s.items[i];
    Int8Task t = tasks[item.b];
    t.a.data = a + item.a;
    t.c = c + item.c * s.result_bytes;
    s.run(t, m0, m1, p0, p1);
  });
  return MGE_OK;
}

class Int8Kernel : public Kernel {
 public:
  // `items`: whether the kernel will run, and needs the list of products.
  Int8Kernel(const Int8Product& product, Isa isa, bool items) : product_(product) {
    const Int8Product& p = product_;
    const Int8Parameters& q = p.parameters;
    Args& a = args_;
    a.table = &Int8(isa);
    a.run = AllowsVnni(isa) ? a.table->run_vnni : a.table->run;
    a.split = SplitGemm(p.size, static_cast<int>(kInt8Columns), p.serial_us(isa));
    a.threads = p.windowed ? ConvThreads() : 0;
    a.parameters = q;
    a.source = p.source;
    a.source.is_signed = q.b_signed;
    a.source.packs_signed = !q.a_signed;
    a.b_moved = q.b_signed == a.source.packs_signed ? 0 : q.b_signed ? 128 : -128;
    a.b_bytes = p.size.k * p.size.n;
    a.panel_bytes = a.split.panels * kInt8Columns * Int8Bytes(p.size.k);
    a.packed_bytes = a.panel_bytes + a.split.panels * kInt8Columns * 4;
    a.columns = {p.b_items, p.size.n, a.split.panels * kInt8Columns, p.sets_differ};
    a.result_bytes = q.result == Int8Result::kUint8 || q.result == Int8Result::kInt8 ? 1 : 4;
    const bool windows = p.windowed && !p.pointwise;
    const ConvWindows& w = p.convolution.windows;
    a.task.a = {nullptr, q.a_signed, p.windowed ? w.pixel : p.size.k, p.size.k % 4 == 0, windows ? &w : nullptr, 0};
    a.task.k = p.size.k;
    a.task.n = p.size.n;
    a.task.ldc = p.ldc;
    a.packs = !p.b_constant || p.b == p.a || q.Has(p.b);
    uint64_t at = 0;
    auto take = [&](uint64_t bytes) { return std::exchange(at, at + Aligned64(bytes)); };
    if (a.packs) {
      const auto count = static_cast<uint64_t>(p.b_items * a.split.panels);
      const double us = 1e-3 * static_cast<double>(p.b_items * a.packed_bytes);
      a.pack_chunks = SplitWork(count, count ? us / static_cast<double>(count) : 0);
      a.packed_at = take(static_cast<uint64_t>(p.b_items * a.packed_bytes));
    }
    a.columns_at = take(a.columns.bytes());
    a.tasks_at = take(static_cast<uint64_t>(p.b_items) * sizeof(Int8Task));
    workspace_ = at;
    if (items) ListItems();
  }

  uint32_t args_bytes() const override { return sizeof(Args); }
  uint64_t workspace_bytes() const override { return workspace_; }
  uint64_t prepack_bytes(int input) const override {
    if (input == product_.b && !args_.packs) return static_cast<uint64_t>(product_.b_items * args_.packed_bytes);
    const Convolution& c = product_.convolution;
    return PacksImage(input) ? static_cast<uint64_t>(c.images * c.in_pixels() * c.channels) : 0;
  }
  Result Prepack(int input, const void* source, void* destination) override {
    auto* from = static_cast<const char*>(source);
    auto* to = static_cast<char*>(destination);
    if (input == product_.b) {
      for (int64_t i = 0; i < product_.b_items; ++i) PackItem(args_, from, i, 0, args_.split.panels, to);
      return {};
    }
    const Convolution& c = product_.convolution;
    const int64_t pixels = c.images / c.batch * c.in_pixels();
    for (int64_t i = 0; i < c.batch; ++i) {
      for (int64_t k = 0; k < pixels * c.channels; ++k) to[k] = from[k % c.channels * pixels + k / c.channels];
      from += pixels * c.channels;
      to += pixels * c.channels;
    }
    return {};
  }
  std::string prepack_form(int input) const override {
    const Convolution& c = product_.convolution;
    if (input != product_.b) {
      return "channels last " + std::to_string(c.batch) + "," + std::to_string(c.channels) + "," +
             std::to_string(c.images / c.batch * c.in_pixels());
    }
    std::string form = args_.source.packs_signed ? "int8 panels" : "uint8 panels";
    for (int64_t n : {product_.b_items, args_.source.taps, args_.source.channels, args_.source.n,
                      args_.source.channel_stride, int64_t{args_.source.is_signed}}) {
      form += " " + std::to_string(n);
    }
    return form;
  }
  Result Bind(const Binding& b, void* args, StepFn* step) override {
    Args* a = new (args) Args(args_);
    a->a = b.input(product_.a);
    a->b = b.input(product_.b);
    a->c = b.output(0);
    a->workspace = b.workspace();
    a->parameters.Bind(b);
    *step = StepFn::Of<Launch>();
    return {};
  }

 private:
  bool PacksImage(int input) const { return product_.windowed && product_.a_constant && input == product_.a; }

  void ListItems() {
    const Int8Product& p = product_;
    if (p.windowed) {
      for (int64_t g = 0; g < p.size.batch; ++g) items_.push_back({g * p.convolution.windows.channels, g, g * p.size.n});
    } else {
      Product product;
      product.size = p.size;
      product.batch_axes = p.batch_axes;
      for (const Product::Item& i : product.Items()) items_.push_back({i.a, i.b, i.c});
    }
    args_.items = items_.data();
  }

  const Int8Product product_;
  Args args_ = {};
  std::vector<Item> items_;
  uint64_t workspace_ = 0;
};

}  // namespace

double Int8Product::serial_us(Isa isa) const {
  double copies_ns = 0;
  if (copies()) {
    const ConvWindows& w = convolution.windows;
    const bool whole = windowed && convolution.groups == 1 && w.dw == 1;
    copies_ns = 0.015 + (windowed ? 1.5 / static_cast<double>((whole ? w.kw : 1) * w.channels) : 0);
  }
  double us = Int8SerialUs(size, isa, copies_ns);
  if (!b_constant) us += 1e-3 * static_cast<double>(b_items * size.k * size.n);
  return us;
}

Result FindInt8Product(const Problem& p, Int8Product* out) {
  const bool matrices = p.node().Is("MatMulInteger") || p.node().Is("QLinearMatMul");
  if (Result r = matrices ? FindMatrices(p, out) : FindWindows(p, out); !r.ok()) return r;
  if (out->copies() && out->size.k > kInt8MaxCopied) return {MGE_UNIMPLEMENTED, "the rows are too long to be copied"};
  if (out->windowed && out->a_constant && (out->a == out->b || out->parameters.Has(out->a))) {
    return {MGE_UNIMPLEMENTED, "the image is also another operand"};
  }
  return {};
}

KernelPtr MakeInt8Kernel(const Int8Product& product, Isa isa) { return std::make_unique<Int8Kernel>(product, isa, true); }
uint64_t Int8Workspace(const Int8Product& product, Isa isa) { return Int8Kernel(product, isa, false).workspace_bytes(); }

}  // namespace mge::cpu
