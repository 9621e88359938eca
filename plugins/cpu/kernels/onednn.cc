// SPDX-License-Identifier: Apache-2.0
// oneDNN's convolutions and products beside our own: one primitive for every thread, each on a slice of the rows.
#include "onednn.h"

#include <cstring>
#include <string>

#include "kernel_table.h"
#include "settings.h"
#include "support/gemm.h"
#include "support/kernel.h"

namespace mge::cpu {
namespace {

// May take heap memory while it runs; its code is compiled for the thread count and the machine.
constexpr uint64_t kAttributes = MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_ALLOCATES;
constexpr double kCallUs = 0.4;       // of one primitive
constexpr double kLeastSerialUs = 20; // below that a call is not worth it
constexpr int kRank = 20;

struct Slice {
  onednn::PrimitivePtr primitive;
  uint64_t x = 0, y = 0;  // bytes from the operands' beginnings
  uint64_t scratch = 0;   // in the workspace
};

// Of one plan instance.
struct State {
  std::vector<void*> instances;
  std::vector<mge_code> codes;
};

struct Args {
  const std::vector<Slice>* slices;
  Slot x, weights, bias, add, y, workspace;
  bool has_bias, has_add;
  uint64_t y_bytes;
  uint32_t state;
};

mge_code Launch(const Args& a, const mge_run* run) {
  auto& state = *static_cast<State*>(run->states[a.state]);
  const auto& slices = *a.slices;
  const char* x = At<char>(run, a.x);
  char* y = At<char>(run, a.y);
  const char* add = a.has_add ? At<char>(run, a.add) : y;
  if (add != y) {  // the primitives add to what is in y
    uint64_t part = (a.y_bytes / slices.size() + 63) / 64 * 64;
    ParallelFor(run, slices.size(), [&](uint64_t i) {
      uint64_t begin = std::min(a.y_bytes, i * part), end = std::min(a.y_bytes, begin + part);
      if (i + 1 == slices.size()) end = a.y_bytes;
      std::memcpy(y + begin, add + begin, end - begin);
    });
  }
  onednn::Operands shared = {x, At<char>(run, a.weights), a.has_bias ? At<char>(run, a.bias) : nullptr, y, nullptr};
  char* workspace = At<char>(run, a.workspace);
  ParallelFor(run, slices.size(), [&](uint64_t i) {
    const Slice& s = slices[i];
    onednn::Operands o = shared;
    o.x = x + s.x;
    o.y = y + s.y;
    o.scratch = workspace + s.scratch;
    state.codes[i] = s.primitive->Run(state.instances[i], o);
  });
  for (mge_code code : state.codes) {
    if (code != MGE_OK) return Report(run->error, code, "oneDNN failed to run a primitive");
  }
  return MGE_OK;
}

// Where a problem's operands are.
struct Places {
  int x = -1, weights = -1, bias = -1, add = -1;
  uint64_t y_bytes = 0;
};

class OnednnKernel : public Kernel {
 public:
  OnednnKernel(const Places& places, std::vector<Slice> slices) : places_(places), slices_(std::move(slices)) {
    for (Slice& s : slices_) {
      s.scratch = workspace_;
      workspace_ += (s.primitive->scratch_bytes() + 63) / 64 * 64;
    }
  }
  uint32_t args_bytes() const override { return sizeof(Args); }
  uint64_t workspace_bytes() const override { return workspace_; }
  uint64_t prepack_bytes(int input) const override { return input == places_.weights ? slices_[0].primitive->packed_bytes() : 0; }
  Result Prepack(int, const void* source, void* out) override { return slices_[0].primitive->Pack(source, out); }
  bool has_state() const override { return true; }
  Result CreateState(void** out) override {
    auto state = std::make_unique<State>();
    state->codes.assign(slices_.size(), MGE_OK);
    for (const Slice& s : slices_) {
      void* instance = nullptr;
      if (Result r = s.primitive->MakeInstance(&instance); !r.ok()) {
        DestroyState(state.release());
        return r;
      }
      state->instances.push_back(instance);
    }
    *out = state.release();
    return {};
  }
  void DestroyState(void* p) override {
    std::unique_ptr<State> state(static_cast<State*>(p));
    for (size_t i = 0; i < state->instances.size(); ++i) slices_[i].primitive->DestroyInstance(state->instances[i]);
  }
  Result Bind(const Binding& b, void* args, mge_step_fn* fn) override {
    auto* a = new (args) Args();
    a->slices = &slices_;
    a->x = b.input(places_.x);
    a->weights = b.input(places_.weights);
    a->has_bias = places_.bias >= 0;
    a->has_add = places_.add >= 0;
    if (a->has_bias) a->bias = b.input(places_.bias);
    if (a->has_add) a->add = b.input(places_.add);
    a->y = b.output(0);
    a->workspace = b.workspace();
    a->y_bytes = places_.y_bytes;
    a->state = b.state_index();
    *fn = [](const void* s, const mge_run* run) { return Launch(*static_cast<const Args*>(s), run); };
    return {};
  }

 private:
  Places places_;
  std::vector<Slice> slices_;
  uint64_t workspace_ = 0;
};

// Refuses, and answers false, where oneDNN may not or cannot serve.
bool Usable(Offers& offers, double serial_us) {
  if (!SettingIsOn(kSettingOnednn)) {
    offers.Refuse("oneDNN: switched off by cpu.onednn");
    return false;
  }
  if (AllowedIsa() != ThisProcessor().isa) {
    offers.Refuse("oneDNN: chooses its instruction set itself, which cpu.isa forbids");
    return false;
  }
  if (serial_us < kLeastSerialUs) {
    offers.Refuse("oneDNN: too little work for its calls");
    return false;
  }
  if (!onednn::IsInstalled()) {
    offers.Refuse("oneDNN: the library is not installed");
    return false;
  }
  return true;
}

int64_t WaysFor(const Problem& p, double serial_us) { return serial_us < 2 * kLeastSerialUs ? 1 : p.threads(); }

double CostUs(double serial_us, int64_t ways) {
  return kCallUs + (ways > 1 ? 1.0 : 0.0) + serial_us / static_cast<double>(ways);
}

// More than any of its algorithms asks for: copies of the operands, padded, and some.
uint64_t WorkspaceBound(const Problem& p, int64_t ways) {
  uint64_t bytes = p.output(0).bytes();
  for (int i = 0; i < p.input_count(); ++i) bytes += p.input(i).bytes();
  return 2 * bytes + static_cast<uint64_t>(ways) * (4 << 20);
}

// ---------------------------------------------------------------- Conv

double ConvUs(const Convolution& c) {
  Isa isa = AllowedIsa();
  if (c.depthwise()) {
    double flops = 2.0 * static_cast<double>(c.rows() * c.outputs * c.windows.kh * c.windows.kw);
    return flops / 75e3 + 0.5 * StreamUs(4.0 * static_cast<double>(c.images * c.channels * c.windows.h * c.windows.w + c.rows() * c.outputs));
  }
  return GemmSerialUs({c.rows(), c.outputs / c.groups, c.k(), c.groups}, isa, c.pointwise() ? 0.03 : 0);
}

// Images if there are several, else rows of the one.
int64_t ConvWays(const Problem& p, const Convolution& c) {
  int64_t ways = WaysFor(p, ConvUs(c));
  return c.images > 1 ? (c.images >= ways ? ways : 1) : std::min(ways, c.windows.oh);
}

void OfferConv(const Problem& p, Offers& offers) {
  if (!Accept(p, offers, /*groups=*/true)) return;
  Convolution c;
  if (Result r = FindConvolution(p, &c); !r.ok()) return offers.Refuse("oneDNN: " + r.text());
  if (c.rank != 4 || !c.weights_constant) return offers.Refuse("oneDNN: only images, and filters that can be packed in advance");
  if (c.epilogue.activation == Activation::kHardSwish) return offers.Refuse("oneDNN: HardSwish is our own kernels'");
  double us = ConvUs(c);
  if (!Usable(offers, us)) return;
  int64_t ways = ConvWays(p, c);
  Candidate candidate = {.id = "onednn.conv",
                         .rank = kRank,
                         .attributes = kAttributes,
                         .workspace = WorkspaceBound(p, ways),
                         .cost_us = CostUs(us + (c.add >= 0 ? StreamUs(static_cast<double>(p.output(0).bytes())) : 0), ways)};
  candidate.inputs.assign(static_cast<size_t>(p.input_count()), PlainLayout());
  candidate.inputs[static_cast<size_t>(c.x)] = ChannelsLast(4);
  if (c.add >= 0) candidate.inputs[static_cast<size_t>(c.add)] = ChannelsLast(4);
  candidate.outputs = {ChannelsLast(4)};
  if (c.add >= 0 && c.add != c.x) candidate.in_place.push_back({0, static_cast<uint32_t>(c.add)});
  Add(offers, AllowedIsa(), std::move(candidate));
}

KernelPtr MakeConv(const Problem& p, const Candidate& candidate) {
  Convolution c;
  if (!FindConvolution(p, &c).ok()) return nullptr;
  const ConvWindows& w = c.windows;
  int64_t ways = ConvWays(p, c);
  std::vector<Slice> slices;
  for (int64_t i = 0; i < ways; ++i) {
    Slice s;
    const onednn::Primitive* first = slices.empty() ? nullptr : slices[0].primitive.get();
    Result r;
    if (c.images > 1) {
      int64_t n0 = c.images * i / ways, n1 = c.images * (i + 1) / ways;
      Convolution part = c;
      part.images = n1 - n0;
      // An image cut out of several is followed by nothing that counts, so one image's strides do for it.
      r = onednn::MakeConvolution(part, 0, w.oh, first, &s.primitive);
      s.x = static_cast<uint64_t>(n0 * w.h * w.w * c.channels) * sizeof(float);
      s.y = static_cast<uint64_t>(n0 * w.oh * w.ow * c.outputs) * sizeof(float);
    } else {
      int64_t y0 = w.oh * i / ways, y1 = w.oh * (i + 1) / ways;
      r = onednn::MakeConvolution(c, y0, y1, first, &s.primitive);
      s.x = static_cast<uint64_t>(onednn::FirstInputRow(c, y0) * w.w * c.channels) * sizeof(float);
      s.y = static_cast<uint64_t>(y0 * w.ow * c.outputs) * sizeof(float);
    }
    if (!r.ok()) return nullptr;
    slices.push_back(std::move(s));
  }
  Places places = {c.x, c.weights, c.bias, c.add, p.output(0).bytes()};
  auto kernel = std::make_unique<OnednnKernel>(places, std::move(slices));
  if (kernel->workspace_bytes() > candidate.workspace) return nullptr;
  return kernel;
}

// ---------------------------------------------------------------- MatMul, Gemm

// Why oneDNN's product is not offered for p; empty if it is.
std::string_view WhyNot(const Product& p) {
  if (p.type != MGE_DTYPE_F32) return "oneDNN: only float32";
  if (p.size.batch != 1 || p.items.size() != 1 || !p.b_constant || p.size.k == 0) return "oneDNN: only one product with a constant B";
  if (p.alpha != 1 || p.epilogue.scale != 1) return "oneDNN: no scale";
  if (p.start >= 0 && (p.beta != 1 || p.start_value.elements() != static_cast<uint64_t>(p.size.n) || p.start_value.dim(-1) != p.size.n)) {
    return "oneDNN: only one addend per column";
  }
  if (p.epilogue.activation == Activation::kHardSwish) return "oneDNN: HardSwish is our own kernels'";
  return {};
}

int64_t ProductWays(const Problem& p, const Product& product, double us) {
  return std::min(WaysFor(p, us), std::max<int64_t>(1, product.size.m / 8));
}

void OfferProduct(const Problem& p, Offers& offers) {
  if (!Accept(p, offers, /*groups=*/true)) return;
  Product product;
  if (Result r = FindProduct(p, &product); !r.ok()) return offers.Refuse("oneDNN: " + r.text());
  if (std::string_view why = WhyNot(product); !why.empty()) return offers.Refuse(why);
  double us = GemmSerialUs(product.size, AllowedIsa());
  if (!Usable(offers, us)) return;
  int64_t ways = ProductWays(p, product, us);
  Candidate c = {.id = "onednn.matmul",
                 .rank = kRank,
                 .attributes = kAttributes,
                 .workspace = WorkspaceBound(p, ways),
                 .cost_us = CostUs(us * 1.02, ways)};
  if (product.epilogue_add >= 0 && product.epilogue_add != product.a) {
    c.in_place.push_back({0, static_cast<uint32_t>(product.epilogue_add)});
  }
  Add(offers, AllowedIsa(), std::move(c));
}

KernelPtr MakeProduct(const Problem& p, const Candidate& candidate) {
  Product product;
  if (!FindProduct(p, &product).ok() || !WhyNot(product).empty()) return nullptr;
  int64_t m = product.size.m, ways = ProductWays(p, product, GemmSerialUs(product.size, AllowedIsa()));
  std::vector<Slice> slices;
  for (int64_t i = 0; i < ways; ++i) {
    int64_t m0 = m * i / ways, m1 = m * (i + 1) / ways;
    Slice s;
    const onednn::Primitive* first = slices.empty() ? nullptr : slices[0].primitive.get();
    if (!onednn::MakeProduct(product, m1 - m0, first, &s.primitive).ok()) return nullptr;
    s.x = static_cast<uint64_t>(m0 * product.a_row) * sizeof(float);
    s.y = static_cast<uint64_t>(m0 * product.size.n) * sizeof(float);
    slices.push_back(std::move(s));
  }
  Places places = {product.a, product.b, product.start >= 0 ? product.start : product.epilogue_bias, product.epilogue_add,
                   p.output(0).bytes()};
  auto kernel = std::make_unique<OnednnKernel>(places, std::move(slices));
  if (kernel->workspace_bytes() > candidate.workspace) return nullptr;
  return kernel;
}

constexpr KernelRow kRows[] = {{"Conv", OfferConv, MakeConv}, {"MatMul", OfferProduct, MakeProduct}, {"Gemm", OfferProduct, MakeProduct}};

}  // namespace

MGE_CPU_KERNELS(onednn) = kRows;

}  // namespace mge::cpu
