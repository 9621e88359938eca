// SPDX-License-Identifier: Apache-2.0
#include "onednn.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <string>

#include "onednn_library.h"
#include "primitive_cache.h"
#include "support/library.h"

namespace mge::cpu::onednn {
namespace {

enum Role { kX, kWeights, kBias, kY, kScratch, kRoles };
constexpr int kArguments[kRoles] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};

// Memory objects in the order of the arguments. Each run sets their addresses.
struct Instance {
  dnnl_stream_t stream = nullptr;
  std::array<dnnl_memory_t, kRoles> memory = {};
  std::array<dnnl_exec_arg_t, kRoles> args = {};
  std::array<Role, kRoles> roles = {};
  int count = 0;

  ~Instance() {
    for (dnnl_memory_t m : memory) {
      if (m) Lib().dnnl_memory_destroy(m);
    }
    if (stream) Lib().dnnl_stream_destroy(stream);
  }
};

class PrimitiveImpl : public Primitive {
 public:
  ~PrimitiveImpl() override {
    if (primitive_) Lib().dnnl_primitive_destroy(primitive_);
    if (desc_) Lib().dnnl_primitive_desc_destroy(desc_);
  }
  std::string_view implementation() const override { return implementation_; }
  uint64_t packed_bytes() const override { return descs_[kWeights].bytes(); }
  uint64_t scratch_bytes() const override { return descs_[kScratch].bytes(); }
  bool PacksAs(const Primitive& other) const override {
    return descs_[kWeights] == static_cast<const PrimitiveImpl&>(other).descs_[kWeights];
  }

  Result Compile() override {
    std::lock_guard lock(compiling_);
    if (primitive_) return {};
    OneThread one;  // the generated code depends on the number of threads
    auto s = CreatePrimitive(&primitive_, desc_);
    return s == dnnl_success ? Result() : Failed("compiling " + implementation_, s);
  }
  std::string packed_form() const override {
    const std::string from = plain_weights_.Text(), to = descs_[kWeights].Text();
    return from.empty() || to.empty() ? std::string() : "onednn f32" + from + " to" + to;
  }

  Result Pack(const void* source, void* packed) const override {
    OneThread one;
    const Library& l = Lib();
    dnnl_primitive_desc_t desc = nullptr;
    auto s = l.dnnl_reorder_primitive_desc_create(&desc, plain_weights_.raw(), l.engine, descs_[kWeights].raw(), l.engine,
                                                  nullptr);
    if (s != dnnl_success) return Failed("packing", s);
    dnnl_primitive_t reorder = nullptr;
    s = CreatePrimitive(&reorder, desc);
    l.dnnl_primitive_desc_destroy(desc);
    if (s != dnnl_success) return Failed("packing", s);
    Instance i;
    s = l.dnnl_stream_create(&i.stream, l.engine, dnnl_stream_default_flags);
    if (s == dnnl_success) s = l.dnnl_memory_create(&i.memory[0], plain_weights_.raw(), l.engine, const_cast<void*>(source));
    if (s == dnnl_success) s = l.dnnl_memory_create(&i.memory[1], descs_[kWeights].raw(), l.engine, packed);
    if (s == dnnl_success) {
      dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, i.memory[0]}, {DNNL_ARG_TO, i.memory[1]}};
      s = l.dnnl_primitive_execute(reorder, i.stream, 2, args);
    }
    l.dnnl_primitive_destroy(reorder);
    return s == dnnl_success ? Result() : Failed("packing", s);
  }

  Result MakeInstance(void** out) const override {
    const Library& l = Lib();
    auto i = std::make_unique<Instance>();
    auto s = l.dnnl_stream_create(&i->stream, l.engine, dnnl_stream_default_flags);
    for (int role = 0; role < kRoles && s == dnnl_success; ++role) {
      if (descs_[static_cast<size_t>(role)].bytes() == 0) continue;
      auto at = static_cast<size_t>(i->count);
      s = l.dnnl_memory_create(&i->memory[at], descs_[static_cast<size_t>(role)].raw(), l.engine, nullptr);
      i->args[at] = {kArguments[role], i->memory[at]};
      i->roles[at] = static_cast<Role>(role);
      ++i->count;
    }
    if (s != dnnl_success) return Failed("making an instance", s);
    *out = i.release();
    return {};
  }
  void DestroyInstance(void* instance) const override { delete static_cast<Instance*>(instance); }

  mge_code Run(void* instance, const Operands& o) const override {
    OneThread one;
    const Library& l = Lib();
    auto* i = static_cast<Instance*>(instance);
    void* const addresses[kRoles] = {const_cast<void*>(o.x), const_cast<void*>(o.weights), const_cast<void*>(o.bias), o.y,
                                     o.scratch};
    for (int k = 0; k < i->count; ++k) {
      auto at = static_cast<size_t>(k);
      if (l.dnnl_memory_set_data_handle(i->memory[at], addresses[i->roles[at]]) != dnnl_success) return MGE_INTERNAL;
    }
    return l.dnnl_primitive_execute(primitive_, i->stream, i->count, i->args.data()) == dnnl_success ? MGE_OK : MGE_INTERNAL;
  }

 protected:
  // Reads the library's choice from desc_. Fails with MGE_UNIMPLEMENTED if it is reference code, which is a thousand times
  // slower than our kernels.
  Result Finish(bool has_bias) {
    const Library& l = Lib();
    const char* name = nullptr;
    l.dnnl_primitive_desc_query(desc_, dnnl_query_impl_info_str, 0, static_cast<void*>(&name));
    implementation_ = name ? name : "ref:unnamed";
    if (IsReference(implementation_)) return {MGE_UNIMPLEMENTED, "oneDNN has only " + implementation_ + " for it"};
    descs_[kX] = Desc::Copy(l.dnnl_primitive_desc_query_md(desc_, dnnl_query_src_md, 0));
    descs_[kWeights] = Desc::Copy(l.dnnl_primitive_desc_query_md(desc_, dnnl_query_weights_md, 0));  // empty for a pooling
    if (has_bias) descs_[kBias] = Desc::Copy(l.dnnl_primitive_desc_query_md(desc_, dnnl_query_weights_md, 1));
    descs_[kY] = Desc::Copy(l.dnnl_primitive_desc_query_md(desc_, dnnl_query_dst_md, 0));
    descs_[kScratch] = Desc::Copy(l.dnnl_primitive_desc_query_md(desc_, dnnl_query_scratchpad_md, 0));
    return {};
  }

  std::mutex compiling_;
  dnnl_primitive_desc_t desc_ = nullptr;
  dnnl_primitive_t primitive_ = nullptr;
  std::string implementation_;
  std::array<Desc, kRoles> descs_;
  Desc plain_weights_;
};

// One axis of the images: the inputs that outputs o0..o1 read, and the padding around them.
struct Span {
  Span(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad, int64_t o0, int64_t o1) {
    int64_t begin = o0 * stride - pad, end = (o1 - 1) * stride - pad + (kernel - 1) * dilation + 1;
    first = std::max<int64_t>(0, begin);
    count = std::min(in, end) - first;
    before = first - begin;
    after = std::max<int64_t>(0, end - in);
  }
  // Extends the range to the whole axis, because memory strides assume its whole length. The last elements may be unread.
  void Widen(int64_t in) {
    first = 0;
    count = in;
  }
  int64_t first, count, before, after;
};

// The rows and columns of each image that a band reads. The library has fast code only for dense images, so a band of
// several images reads whole images.
struct Reads {
  Reads(const ConvWindows& w, const Band& b)
      : rows(w.h, w.kh, w.sh, w.dh, w.ph, b.columns ? 0 : b.begin, b.columns ? w.oh : b.end),
        columns(w.w, w.kw, w.sw, w.dw, w.pw, b.columns ? b.begin : 0, b.columns ? b.end : w.ow) {
    any = rows.count > 0 && columns.count > 0;
    if (!b.columns || b.images > 1) columns.Widen(w.w);
    if (b.columns || b.images > 1) rows.Widen(w.h);
    before = {rows.before, columns.before};
    after = {rows.after, columns.after};
  }
  Span rows, columns;
  bool any;
  Dims before, after;
};

Desc Image(int64_t images, int64_t channels, int64_t rows, int64_t columns) {
  return Desc::Strided({images, channels, rows, columns}, {rows * columns * channels, 1, columns * channels, channels});
}
Desc Output(const ConvWindows& w, const Band& b, int64_t channels) {
  int64_t count = b.end - b.begin;
  return Image(b.images, channels, b.columns ? w.oh : count, b.columns ? count : w.ow);
}

constexpr const char* kPadsAlone = "a band that reads padding alone";

class ConvolutionPrimitive : public PrimitiveImpl {
 public:
  Result Init(const Convolution& c, const Band& band) {
    const Library& l = Lib();
    const ConvWindows& w = c.windows;
    Reads r(w, band);
    if (!r.any) return {MGE_UNIMPLEMENTED, kPadsAlone};
    Desc x_desc = Image(band.images, c.channels, r.rows.count, r.columns.count), y_desc = Output(w, band, c.outputs);
    Dims filter = {c.outputs, w.channels, w.kh, w.kw};
    if (c.groups > 1) filter = {c.groups, c.outputs / c.groups, w.channels, w.kh, w.kw};
    plain_weights_ = Dense(filter);
    Desc weights = Desc::Any(filter);
    Desc bias = c.bias >= 0 ? Dense({c.outputs}) : Desc();
    Dims strides = {w.sh, w.sw}, dilates = {w.dh - 1, w.dw - 1};
    Attributes attributes;
    if (Result bad = attributes.Init(c.epilogue, c.add >= 0); !bad.ok()) return bad;
#if DNNL_VERSION_MAJOR >= 3
    auto s = l.dnnl_convolution_forward_primitive_desc_create(
        &desc_, l.engine, dnnl_forward_inference, dnnl_convolution_direct, x_desc.raw(), weights.raw(), bias.raw(),
        y_desc.raw(), strides.data(), dilates.data(), r.before.data(), r.after.data(), attributes.get());
#else
    dnnl_convolution_desc_t d;
    auto s = l.dnnl_dilated_convolution_forward_desc_init(&d, dnnl_forward_inference, dnnl_convolution_direct, x_desc.raw(),
                                                          weights.raw(), bias.raw(), y_desc.raw(), strides.data(),
                                                          dilates.data(), r.before.data(), r.after.data());
    if (s == dnnl_success) s = l.dnnl_primitive_desc_create(&desc_, &d, attributes.get(), l.engine, nullptr);
#endif
    if (s != dnnl_success) return Failed("a convolution", s);
    return Finish(c.bias >= 0);
  }
};

class PoolingPrimitive : public PrimitiveImpl {
 public:
  Result Init(const Pooling& p, const Band& band) {
    const Library& l = Lib();
    const ConvWindows& w = p.windows;
    Reads r(w, band);
    if (!r.any) return {MGE_UNIMPLEMENTED, kPadsAlone};
    Desc x = Image(band.images, p.channels, r.rows.count, r.columns.count), y = Output(w, band, p.channels);
    Dims strides = {w.sh, w.sw}, kernel = {w.kh, w.kw}, dilates = {w.dh - 1, w.dw - 1};
    dnnl_alg_kind_t kind = p.kind == PoolKind::kMax       ? dnnl_pooling_max
                           : p.kind == PoolKind::kAverage ? dnnl_pooling_avg_exclude_padding
                                                          : dnnl_pooling_avg_include_padding;
    Attributes attributes;
    if (Result bad = attributes.Init({}, false); !bad.ok()) return bad;
#if DNNL_VERSION_MAJOR >= 3
    auto s = l.dnnl_pooling_forward_primitive_desc_create(&desc_, l.engine, dnnl_forward_inference, kind, x.raw(), y.raw(),
                                                          strides.data(), kernel.data(), dilates.data(), r.before.data(),
                                                          r.after.data(), attributes.get());
#else
    dnnl_pooling_v2_desc_t d;
    auto s = l.dnnl_pooling_v2_forward_desc_init(&d, dnnl_forward_inference, kind, x.raw(), y.raw(), strides.data(),
                                                 kernel.data(), dilates.data(), r.before.data(), r.after.data());
    if (s == dnnl_success) s = l.dnnl_primitive_desc_create(&desc_, &d, attributes.get(), l.engine, nullptr);
#endif
    if (s != dnnl_success) return Failed("a pooling", s);
    return Finish(false);
  }
};

class ProductPrimitive : public PrimitiveImpl {
 public:
  Result Init(const Product& p, int64_t rows) {
    const Library& l = Lib();
    int64_t n = p.size.n, k = p.size.k;
    bool has_bias = p.start >= 0 || p.epilogue_bias >= 0;
    Desc x = Desc::Strided({rows, k}, {p.a_row, p.a_k}), y = Dense({rows, n});
    plain_weights_ = Desc::Strided({k, n}, {p.b_k, p.b_column});
    Desc weights = Desc::Any({k, n});
    Desc bias = has_bias ? Dense({1, n}) : Desc();
    Attributes attributes;
    if (Result r = attributes.Init(p.epilogue, p.epilogue_add >= 0); !r.ok()) return r;
#if DNNL_VERSION_MAJOR >= 3
    auto s =
        l.dnnl_matmul_primitive_desc_create(&desc_, l.engine, x.raw(), weights.raw(), bias.raw(), y.raw(), attributes.get());
#else
    dnnl_matmul_desc_t d;
    auto s = l.dnnl_matmul_desc_init(&d, x.raw(), weights.raw(), bias.raw(), y.raw());
    if (s == dnnl_success) s = l.dnnl_primitive_desc_create(&desc_, &d, attributes.get(), l.engine, nullptr);
#endif
    if (s != dnnl_success) return Failed("a product", s);
    return Finish(has_bias);
  }
};

enum class Kind : int32_t { kConvolution, kPooling, kProduct };

PrimitiveCache& Cache() {
  static PrimitiveCache cache;
  return cache;
}

template <typename T, typename... A>
Result Describe(PrimitivePtr* out, const PrimitiveKey& key, const A&... args) {
  if (!Lib().reason.empty()) return {MGE_UNAVAILABLE, Lib().reason};
  auto create = [&](PrimitivePtr* made) -> Result {
    OneThread one;  // the choice depends on the number of threads
    auto p = std::make_shared<T>();
    if (Result r = p->Init(args...); !r.ok()) return r;
    *made = std::move(p);
    return {};
  };
  return Cache().Find(key, create, out);
}

}  // namespace

bool IsInstalled() {
  static const bool installed = cpu::IsInstalled(LibraryName());
  return installed;
}

bool IsReference(std::string_view implementation) {
  for (size_t begin = 0; begin <= implementation.size();) {
    size_t end = std::min(implementation.find(':', begin), implementation.size());
    if (implementation.substr(begin, end - begin).starts_with("ref")) return true;
    begin = end + 1;
  }
  return false;
}

Start StartOf(const ConvWindows& w, const Band& band) {
  Reads r(w, band);
  if (band.columns) return {r.columns.first, band.begin};
  return {r.rows.first * w.w, band.begin * w.ow};
}

Result DescribeConvolution(const Convolution& c, const Band& band, PrimitivePtr* out) {
  const Epilogue& e = c.epilogue;
  const PrimitiveKey key(Kind::kConvolution, c.channels, c.outputs, c.groups, c.windows, c.bias >= 0, c.add >= 0,
                         e.activation, e.scale, e.lo, e.hi, band.images, band.begin, band.end, band.columns);
  return Describe<ConvolutionPrimitive>(out, key, c, band);
}

Result DescribePooling(const Pooling& p, const Band& band, PrimitivePtr* out) {
  const PrimitiveKey key(Kind::kPooling, p.kind, p.channels, p.windows, band.images, band.begin, band.end, band.columns);
  return Describe<PoolingPrimitive>(out, key, p, band);
}

Result DescribeProduct(const Product& p, int64_t rows, PrimitivePtr* out) {
  const Epilogue& e = p.epilogue;
  const bool bias = p.start >= 0 || p.epilogue_bias >= 0;
  const PrimitiveKey key(Kind::kProduct, rows, p.size.n, p.size.k, p.a_row, p.a_k, p.b_k, p.b_column, bias,
                         p.epilogue_add >= 0, e.activation, e.scale, e.lo, e.hi);
  return Describe<ProductPrimitive>(out, key, p, rows);
}

}  // namespace mge::cpu::onednn
