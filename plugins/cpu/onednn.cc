// SPDX-License-Identifier: Apache-2.0
#include "onednn.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "onednn_library.h"
#include "onednn_nan.h"
#include "primitive_cache.h"
#include "support/library.h"

namespace mge::cpu::onednn {
namespace {

enum Role { kX, kWeights, kBias, kY, kScratch, kRoles };
// The library's names of the operands: as arguments of a run, and in questions about their descriptors.
struct Names {
  int arguments[kRoles];
  dnnl_query_t x, weights, y;
};
constexpr Names kForward = {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD},
                            dnnl_query_src_md,
                            dnnl_query_weights_md,
                            dnnl_query_dst_md};
constexpr Names kInputGradient = {
    {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DIFF_DST, DNNL_ARG_SCRATCHPAD},
    dnnl_query_diff_src_md,
    dnnl_query_weights_md,
    dnnl_query_diff_dst_md};
constexpr Names kWeightGradient = {
    {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS, DNNL_ARG_DIFF_DST, DNNL_ARG_SCRATCHPAD},
    dnnl_query_src_md,
    dnnl_query_diff_weights_md,
    dnnl_query_diff_dst_md};

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
    for (dnnl_primitive_t p : {primitive_, pack_, unpack_}) {
      if (p) Lib().dnnl_primitive_destroy(p);
    }
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
    return Reorder(pack_, plain_weights_, source, descs_[kWeights], packed);
  }
  Result Unpack(const void* packed, void* plain) const override {
    return Reorder(unpack_, descs_[kWeights], packed, plain_weights_, plain);
  }

  Result MakeInstance(void** out) const override {
    const Library& l = Lib();
    auto i = std::make_unique<Instance>();
    auto s = l.dnnl_stream_create(&i->stream, l.engine, dnnl_stream_default_flags);
    for (int role = 0; role < kRoles && s == dnnl_success; ++role) {
      if (descs_[static_cast<size_t>(role)].bytes() == 0) continue;
      auto at = static_cast<size_t>(i->count);
      s = l.dnnl_memory_create(&i->memory[at], descs_[static_cast<size_t>(role)].raw(), l.engine, nullptr);
      i->args[at] = {names_->arguments[role], i->memory[at]};
      i->roles[at] = static_cast<Role>(role);
      ++i->count;
    }
    if (s != dnnl_success) return Failed("making an instance", s);
    *out = i.release();
    return {};
  }
  void DestroyInstance(void* instance) const override { delete static_cast<Instance*>(instance); }

  mge_code Run(void* instance, const Operands& o) const override { return Execute(instance, o); }

 protected:
  mge_code Execute(void* instance, const Operands& o) const {
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

  // Reads the library's choice from desc_. Fails with MGE_UNIMPLEMENTED if it is reference code, which is a thousand times
  // slower than our kernels, unless `may_be_reference`.
  Result Finish(bool has_bias, bool may_be_reference = false) {
    const Library& l = Lib();
    const char* name = nullptr;
    l.dnnl_primitive_desc_query(desc_, dnnl_query_impl_info_str, 0, static_cast<void*>(&name));
    implementation_ = name ? name : "ref:unnamed";
    if (IsReference(implementation_) && !may_be_reference)
      return {MGE_UNIMPLEMENTED, "oneDNN has only " + implementation_ + " for it"};
    descs_[kX] = Desc::Copy(l.dnnl_primitive_desc_query_md(desc_, names_->x, 0));
    descs_[kWeights] = Desc::Copy(l.dnnl_primitive_desc_query_md(desc_, names_->weights, 0));  // empty for a pooling
    if (has_bias) descs_[kBias] = Desc::Copy(l.dnnl_primitive_desc_query_md(desc_, dnnl_query_weights_md, 1));
    descs_[kY] = Desc::Copy(l.dnnl_primitive_desc_query_md(desc_, names_->y, 0));
    descs_[kScratch] = Desc::Copy(l.dnnl_primitive_desc_query_md(desc_, dnnl_query_scratchpad_md, 0));
    return {};
  }

  // Copies between two forms of the weights. `kept` is the primitive for it, made by the first call: a state is packed in
  // every run.
  Result Reorder(dnnl_primitive_t& kept, const Desc& from, const void* source, const Desc& to, void* target) const {
    OneThread one;
    const Library& l = Lib();
    {
      std::lock_guard lock(compiling_);
      dnnl_primitive_desc_t desc = nullptr;
      auto s = kept ? dnnl_success
                    : l.dnnl_reorder_primitive_desc_create(&desc, from.raw(), l.engine, to.raw(), l.engine, nullptr);
      if (s == dnnl_success && !kept) {
        s = CreatePrimitive(&kept, desc);
        l.dnnl_primitive_desc_destroy(desc);
      }
      if (s != dnnl_success) return Failed("packing", s);
    }
    Instance i;
    auto s = l.dnnl_stream_create(&i.stream, l.engine, dnnl_stream_default_flags);
    if (s == dnnl_success) s = l.dnnl_memory_create(&i.memory[0], from.raw(), l.engine, const_cast<void*>(source));
    if (s == dnnl_success) s = l.dnnl_memory_create(&i.memory[1], to.raw(), l.engine, target);
    if (s == dnnl_success) {
      dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, i.memory[0]}, {DNNL_ARG_TO, i.memory[1]}};
      s = l.dnnl_primitive_execute(kept, i.stream, 2, args);
    }
    return s == dnnl_success ? Result() : Failed("packing", s);
  }

  const Names* names_ = &kForward;
  mutable std::mutex compiling_;
  dnnl_primitive_desc_t desc_ = nullptr;
  dnnl_primitive_t primitive_ = nullptr;
  mutable dnnl_primitive_t pack_ = nullptr, unpack_ = nullptr;
  std::string implementation_;
  std::array<Desc, kRoles> descs_;
  Desc plain_weights_;
};

// A convolution or a product with an epilogue that keeps NaN (onednn_nan.h). If the epilogue may have lost one, the result is
// repaired with that of its linear part: the same operation on the same packed weights, without addition and activation.
class EpiloguePrimitive : public PrimitiveImpl {
 public:
  mge_code Run(void* instance, const Operands& o) const override {
    if (epilogue_.activation == Activation::kNone) return Execute(instance, o);
    auto* y = static_cast<float*>(o.y);
    const uint64_t count = descs_[kY].bytes() / sizeof(float);
    // The repair of a sum needs its addend, which the primitive overwrites.
    if (adds_ && !AllFinite(y, count))
      return WithLinear(o, [&](const float* linear) { Activate(epilogue_, true, linear, y, count); });
    InvalidFlag invalid;
    if (const mge_code code = Execute(instance, o); code != MGE_OK || !invalid.is_set()) return code;
    return WithLinear(o, [&](const float* linear) {
      if (adds_) return CopyNaN(linear, y, count);
      Activate(epilogue_, false, linear, y, count);
    });
  }

 protected:
  // Describes the linear part. `weights` is the form in which this primitive reads its weights.
  virtual Result DescribeLinear(const Desc& weights, std::unique_ptr<EpiloguePrimitive>* out) const = 0;

  Epilogue epilogue_;
  bool adds_ = false;  // y contains the addend

 private:
  Result MakeLinear() const {
    std::lock_guard lock(compiling_);
    if (linear_) return {};
    OneThread one;
    std::unique_ptr<EpiloguePrimitive> linear;
    if (Result r = DescribeLinear(descs_[kWeights], &linear); !r.ok()) return r;
    if (Result r = linear->Compile(); !r.ok()) return r;
    linear_ = std::move(linear);
    return {};
  }
  // Calls repair(result of the linear part).
  template <typename F>
  mge_code WithLinear(const Operands& o, F repair) const try {
    if (!MakeLinear().ok()) return MGE_INTERNAL;
    std::vector<float> linear(descs_[kY].bytes() / sizeof(float));
    constexpr uint64_t kLine = 64;
    std::vector<char> scratch(linear_->scratch_bytes() + kLine);
    Operands operands = o;
    operands.y = linear.data();
    const auto address = reinterpret_cast<uintptr_t>(scratch.data());
    operands.scratch = scratch.data() + (kLine - address % kLine);
    void* instance = nullptr;
    if (!linear_->MakeInstance(&instance).ok()) return MGE_INTERNAL;
    const mge_code code = linear_->Execute(instance, operands);
    linear_->DestroyInstance(instance);
    if (code == MGE_OK) repair(linear.data());
    return code;
  } catch (const std::bad_alloc&) {
    return MGE_RESOURCE_EXHAUSTED;
  }

  mutable std::unique_ptr<EpiloguePrimitive> linear_;  // made at the first repair
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

class ConvolutionPrimitive : public EpiloguePrimitive {
 public:
  // `packed` is the form of the weights; null: the library chooses it.
  Result Init(const Convolution& c, const Band& band, const Desc* packed = nullptr) {
    convolution_ = c;
    band_ = band;
    epilogue_ = c.epilogue;
    adds_ = c.add >= 0;
    const Library& l = Lib();
    const ConvWindows& w = c.windows;
    Reads r(w, band);
    if (!r.any) return {MGE_UNIMPLEMENTED, kPadsAlone};
    Desc x_desc = Image(band.images, c.channels, r.rows.count, r.columns.count), y_desc = Output(w, band, c.outputs);
    Dims filter = {c.outputs, w.channels, w.kh, w.kw};
    if (c.groups > 1) filter = {c.groups, c.outputs / c.groups, w.channels, w.kh, w.kw};
    plain_weights_ = Dense(filter);
    Desc weights = packed ? Desc::Copy(packed->raw()) : Desc::Any(filter);
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
    return Finish(c.bias >= 0, packed != nullptr);
  }

 protected:
  Result DescribeLinear(const Desc& weights, std::unique_ptr<EpiloguePrimitive>* out) const override {
    Convolution c = convolution_;
    c.epilogue.activation = Activation::kNone;
    c.add = -1;
    auto linear = std::make_unique<ConvolutionPrimitive>();
    if (Result r = linear->Init(c, band_, &weights); !r.ok()) return r;
    *out = std::move(linear);
    return {};
  }

 private:
  Convolution convolution_;
  Band band_;
};

class GradientPrimitive : public PrimitiveImpl {
 public:
  ~GradientPrimitive() override {
    if (forward_) Lib().dnnl_primitive_desc_destroy(forward_);
  }
  Result Init(const Convolution& c, int64_t images, ConvGradient gradient) {
    const Library& l = Lib();
    const ConvWindows& w = c.windows;
    const bool input = gradient == ConvGradient::kInput;
    names_ = input ? &kInputGradient : &kWeightGradient;
    const Reads r(w, {images, 0, w.oh});
    if (!r.any) return {MGE_UNIMPLEMENTED, kPadsAlone};
    const Desc x = Image(images, c.channels, w.h, w.w), y = Image(images, c.outputs, w.oh, w.ow);
    const Dims filter = c.groups > 1 ? Dims{c.groups, c.outputs / c.groups, w.channels, w.kh, w.kw}
                                     : Dims{c.outputs, w.channels, w.kh, w.kw};
    plain_weights_ = Dense(filter);
    const Desc weights = Desc::Any(filter), bias;
    const Dims strides = {w.sh, w.sw}, dilates = {w.dh - 1, w.dw - 1};
    Attributes attributes;
    if (Result bad = attributes.Init({}, false); !bad.ok()) return bad;
      // The library wants to see the forward convolution.
#if DNNL_VERSION_MAJOR >= 3
    auto s = l.dnnl_convolution_forward_primitive_desc_create(
        &forward_, l.engine, dnnl_forward_training, dnnl_convolution_direct, x.raw(), weights.raw(), bias.raw(), y.raw(),
        strides.data(), dilates.data(), r.before.data(), r.after.data(), attributes.get());
    if (s == dnnl_success && input) {
      s = l.dnnl_convolution_backward_data_primitive_desc_create(
          &desc_, l.engine, dnnl_convolution_direct, x.raw(), weights.raw(), y.raw(), strides.data(), dilates.data(),
          r.before.data(), r.after.data(), forward_, attributes.get());
    } else if (s == dnnl_success) {
      s = l.dnnl_convolution_backward_weights_primitive_desc_create(
          &desc_, l.engine, dnnl_convolution_direct, x.raw(), weights.raw(), bias.raw(), y.raw(), strides.data(),
          dilates.data(), r.before.data(), r.after.data(), forward_, attributes.get());
    }
#else
    dnnl_convolution_desc_t d;
    auto s = l.dnnl_dilated_convolution_forward_desc_init(&d, dnnl_forward_training, dnnl_convolution_direct, x.raw(),
                                                          weights.raw(), bias.raw(), y.raw(), strides.data(), dilates.data(),
                                                          r.before.data(), r.after.data());
    if (s == dnnl_success) s = l.dnnl_primitive_desc_create(&forward_, &d, attributes.get(), l.engine, nullptr);
    if (s == dnnl_success && input) {
      s = l.dnnl_dilated_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, x.raw(), weights.raw(), y.raw(),
                                                             strides.data(), dilates.data(), r.before.data(),
                                                             r.after.data());
    } else if (s == dnnl_success) {
      s = l.dnnl_dilated_convolution_backward_weights_desc_init(&d, dnnl_convolution_direct, x.raw(), weights.raw(),
                                                                bias.raw(), y.raw(), strides.data(), dilates.data(),
                                                                r.before.data(), r.after.data());
    }
    if (s == dnnl_success) s = l.dnnl_primitive_desc_create(&desc_, &d, attributes.get(), l.engine, forward_);
#endif
    if (s != dnnl_success) return Failed("a gradient of a convolution", s);
    return Finish(false);
  }

 private:
  dnnl_primitive_desc_t forward_ = nullptr;
};

class PoolingPrimitive : public PrimitiveImpl {
 public:
  mge_code Run(void* instance, const Operands& o) const override {
    if (kind_ != PoolKind::kMax) return Execute(instance, o);
    InvalidFlag invalid;
    const mge_code code = Execute(instance, o);
    if (code == MGE_OK && invalid.is_set()) PoolNaN(images_, static_cast<const float*>(o.x), static_cast<float*>(o.y));
    return code;
  }
  Result Init(const Pooling& p, const Band& band) {
    const Library& l = Lib();
    windows_ = p.windows;
    kind_ = p.kind;
    const ConvWindows& w = windows_;
    Reads r(w, band);
    if (!r.any) return {MGE_UNIMPLEMENTED, kPadsAlone};
    images_ = {band.images,
               p.channels,
               r.rows.count,
               r.columns.count,
               r.rows.first,
               r.columns.first,
               band.columns ? 0 : band.begin,
               band.columns ? w.oh : band.end,
               band.columns ? band.begin : 0,
               band.columns ? band.end : w.ow,
               &windows_};
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

 private:
  PoolKind kind_ = PoolKind::kMax;
  ConvWindows windows_ = {};
  PooledImages images_ = {};
};

class ProductPrimitive : public EpiloguePrimitive {
 public:
  // `packed` is the form of the weights; null: the library chooses it.
  Result Init(const Product& p, int64_t rows, const Desc* packed = nullptr) {
    const Library& l = Lib();
    product_ = p;
    product_.start_value = Value(nullptr);  // belongs to the problem, which ends before the primitive
    rows_ = rows;
    epilogue_ = p.epilogue;
    adds_ = p.epilogue_add >= 0;
    int64_t n = p.size.n, k = p.size.k;
    bool has_bias = p.start >= 0 || p.epilogue_bias >= 0;
    Desc x = Desc::Strided({rows, k}, {p.a_row, p.a_k}), y = Dense({rows, n});
    plain_weights_ = Desc::Strided({k, n}, {p.b_k, p.b_column});
    Desc weights = packed ? Desc::Copy(packed->raw()) : Desc::Any({k, n});
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
    return Finish(has_bias, packed != nullptr);
  }

 protected:
  Result DescribeLinear(const Desc& weights, std::unique_ptr<EpiloguePrimitive>* out) const override {
    Product p = product_;
    p.epilogue.activation = Activation::kNone;
    p.epilogue_add = -1;
    auto linear = std::make_unique<ProductPrimitive>();
    if (Result r = linear->Init(p, rows_, &weights); !r.ok()) return r;
    *out = std::move(linear);
    return {};
  }

 private:
  Product product_;
  int64_t rows_ = 0;
};

enum class Kind : int32_t { kConvolution, kGradient, kPooling, kProduct };

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

Result DescribeGradient(const Convolution& c, int64_t images, ConvGradient gradient, PrimitivePtr* out) {
  const PrimitiveKey key(Kind::kGradient, gradient, c.channels, c.outputs, c.groups, c.windows, images);
  return Describe<GradientPrimitive>(out, key, c, images, gradient);
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
