// SPDX-License-Identifier: Apache-2.0
#include "onednn.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <vector>

#include "support/library.h"

namespace mge::cpu::onednn {
namespace {

// Functions by name: the library is not linked, so that it costs nothing where it is not used.
#define MGE_DNNL_COMMON(X)                                                                                               \
  X(dnnl_engine_create)                                                                                                  \
  X(dnnl_stream_create) X(dnnl_stream_destroy) X(dnnl_memory_create) X(dnnl_memory_destroy)                              \
  X(dnnl_memory_set_data_handle) X(dnnl_memory_desc_get_size) X(dnnl_primitive_attr_create)                              \
  X(dnnl_primitive_attr_destroy) X(dnnl_primitive_attr_set_post_ops) X(dnnl_primitive_attr_set_scratchpad_mode)          \
  X(dnnl_post_ops_create) X(dnnl_post_ops_destroy) X(dnnl_post_ops_append_eltwise) X(dnnl_post_ops_append_sum)           \
  X(dnnl_primitive_desc_query_md) X(dnnl_primitive_desc_destroy) X(dnnl_primitive_create) X(dnnl_primitive_destroy)      \
  X(dnnl_primitive_execute) X(dnnl_reorder_primitive_desc_create)
#if DNNL_VERSION_MAJOR >= 3
#define MGE_DNNL_VERSIONED(X)                                                                                            \
  X(dnnl_memory_desc_create_with_strides) X(dnnl_memory_desc_create_with_tag) X(dnnl_memory_desc_clone)                  \
  X(dnnl_memory_desc_destroy) X(dnnl_convolution_forward_primitive_desc_create) X(dnnl_matmul_primitive_desc_create)           \
  X(dnnl_pooling_forward_primitive_desc_create)
#else
#define MGE_DNNL_VERSIONED(X)                                                                                            \
  X(dnnl_memory_desc_init_by_strides) X(dnnl_memory_desc_init_by_tag) X(dnnl_primitive_desc_create)                      \
  X(dnnl_dilated_convolution_forward_desc_init) X(dnnl_matmul_desc_init) X(dnnl_pooling_v2_forward_desc_init)
#endif
#define MGE_DNNL_FUNCTIONS(X) MGE_DNNL_COMMON(X) MGE_DNNL_VERSIONED(X)

struct Library {
#define X(name) decltype(&::name) name = nullptr;
  MGE_DNNL_FUNCTIONS(X)
#undef X
  // Of the OpenMP that this build of oneDNN runs on; null if it runs on something else.
  void (*omp_set_num_threads)(int) = nullptr;
  int (*omp_get_max_threads)() = nullptr;
  dnnl_engine_t engine = nullptr;  // lives as long as the process, as the library does
  std::string reason;              // why it cannot be used
};

std::string Name() { return "libdnnl.so." + std::to_string(DNNL_VERSION_MAJOR); }

Library Open() {
  Library l;
  std::string name = Name();
  void* handle = OpenLibrary(name, &l.reason);
  if (!handle) return l;
#define X(function)                                                                \
  l.function = reinterpret_cast<decltype(l.function)>(dlsym(handle, #function));   \
  if (!l.function) l.reason = name + " has no " #function;
  MGE_DNNL_FUNCTIONS(X)
#undef X
  l.omp_set_num_threads = reinterpret_cast<void (*)(int)>(dlsym(handle, "omp_set_num_threads"));
  l.omp_get_max_threads = reinterpret_cast<int (*)()>(dlsym(handle, "omp_get_max_threads"));
  if (!l.omp_get_max_threads) l.omp_set_num_threads = nullptr;
  if (l.reason.empty() && l.dnnl_engine_create(&l.engine, dnnl_cpu, 0) != dnnl_success) l.reason = "oneDNN has no engine for this processor";
  return l;
}

const Library& Lib() {
  static const Library library = Open();
  return library;
}

// While it lives, OpenMP uses the calling thread only.
class OneThread {
 public:
  OneThread() : set_(Lib().omp_set_num_threads) {
    if (!set_) return;
    before_ = Lib().omp_get_max_threads();
    if (before_ == 1) set_ = nullptr;
    else set_(1);
  }
  ~OneThread() {
    if (set_) set_(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  void (*set_)(int);
  int before_ = 1;
};

// A lack of memory is thrown, as everywhere: it is no reason to take another kernel.
Result Failed(std::string_view what, dnnl_status_t status) {
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  return {status == dnnl_unimplemented ? MGE_UNIMPLEMENTED : MGE_INTERNAL,
          "oneDNN: " + std::string(what) + " failed with status " + std::to_string(static_cast<int>(status))};
}

// oneDNN 2.6 generates code into memory that it asks for, without a look whether it got any: a request that is larger than
// all of those comes first.
dnnl_status_t CreatePrimitive(dnnl_primitive_t* out, const_dnnl_primitive_desc_t desc) {
  constexpr size_t kCode = 16 << 20;
  void* probe = mmap(nullptr, kCode, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe == MAP_FAILED) return dnnl_out_of_memory;
  munmap(probe, kCode);
  return Lib().dnnl_primitive_create(out, desc);
}

using Dims = std::vector<dnnl_dim_t>;

// A memory descriptor, in the form of this version of the library.
class Desc {
 public:
  Desc() = default;
  Desc(Desc&& other) noexcept { *this = std::move(other); }
#if DNNL_VERSION_MAJOR >= 3
  using Raw = const_dnnl_memory_desc_t;
  ~Desc() {
    if (desc_) Lib().dnnl_memory_desc_destroy(desc_);
  }
  Desc& operator=(Desc&& other) noexcept {
    std::swap(desc_, other.desc_);
    return *this;
  }
  Raw raw() const { return desc_; }
  bool empty() const { return !desc_; }
  static Desc Copy(Raw raw) {
    Desc d;
    if (raw) Lib().dnnl_memory_desc_clone(&d.desc_, raw);
    return d;
  }
  static Desc Strided(const Dims& dims, const Dims& strides) {
    Desc d;
    Lib().dnnl_memory_desc_create_with_strides(&d.desc_, static_cast<int>(dims.size()), dims.data(), dnnl_f32, strides.data());
    return d;
  }
  static Desc Any(const Dims& dims) {
    Desc d;
    Lib().dnnl_memory_desc_create_with_tag(&d.desc_, static_cast<int>(dims.size()), dims.data(), dnnl_f32, dnnl_format_tag_any);
    return d;
  }

 private:
  dnnl_memory_desc_t desc_ = nullptr;
#else
  using Raw = const dnnl_memory_desc_t*;
  Desc& operator=(Desc&& other) noexcept = default;
  Raw raw() const { return empty_ ? nullptr : &desc_; }
  bool empty() const { return empty_; }
  static Desc Copy(Raw raw) {
    Desc d;
    if (raw) d.desc_ = *raw;
    d.empty_ = !raw;
    return d;
  }
  static Desc Strided(const Dims& dims, const Dims& strides) {
    Desc d;
    d.empty_ = Lib().dnnl_memory_desc_init_by_strides(&d.desc_, static_cast<int>(dims.size()), dims.data(), dnnl_f32,
                                                      strides.data()) != dnnl_success;
    return d;
  }
  static Desc Any(const Dims& dims) {
    Desc d;
    d.empty_ = Lib().dnnl_memory_desc_init_by_tag(&d.desc_, static_cast<int>(dims.size()), dims.data(), dnnl_f32,
                                                  dnnl_format_tag_any) != dnnl_success;
    return d;
  }

 private:
  dnnl_memory_desc_t desc_ = {};
  bool empty_ = true;
#endif
 public:
  uint64_t bytes() const { return empty() ? 0 : Lib().dnnl_memory_desc_get_size(raw()); }
};

// The row-major one.
Desc Dense(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return Desc::Strided(dims, strides);
}

class Attributes {
 public:
  ~Attributes() {
    if (attr_) Lib().dnnl_primitive_attr_destroy(attr_);
    if (ops_) Lib().dnnl_post_ops_destroy(ops_);
  }
  Attributes() = default;
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  Result Init(const Epilogue& e, bool adds) {
    const Library& l = Lib();
    if (auto s = l.dnnl_primitive_attr_create(&attr_); s != dnnl_success) return Failed("making attributes", s);
    l.dnnl_primitive_attr_set_scratchpad_mode(attr_, dnnl_scratchpad_mode_user);
    if (auto s = l.dnnl_post_ops_create(&ops_); s != dnnl_success) return Failed("making post-ops", s);
    if (adds) l.dnnl_post_ops_append_sum(ops_, 1.0f);
    if (Result r = Append(e); !r.ok()) return r;
    if (auto s = l.dnnl_primitive_attr_set_post_ops(attr_, ops_); s != dnnl_success) return Failed("setting post-ops", s);
    return {};
  }
  const_dnnl_primitive_attr_t get() const { return attr_; }

 private:
  Result Append(const Epilogue& e) {
    dnnl_alg_kind_t kind = dnnl_eltwise_relu;
    float alpha = 0, beta = 0;
    switch (e.activation) {
      case Activation::kNone: return {};
      case Activation::kClip:
        if (e.lo != 0 || e.hi < 3e38f) {
          kind = dnnl_eltwise_clip;
          alpha = e.lo;
          beta = e.hi;
        }
        break;
      case Activation::kGelu: kind = dnnl_eltwise_gelu_erf; break;
      case Activation::kGeluTanh: kind = dnnl_eltwise_gelu_tanh; break;
      case Activation::kSigmoid: kind = dnnl_eltwise_logistic; break;
      case Activation::kTanh: kind = dnnl_eltwise_tanh; break;
      case Activation::kLeakyRelu: alpha = e.lo; break;
      case Activation::kHardSwish: return {MGE_UNIMPLEMENTED, "oneDNN's versions differ in HardSwish"};
    }
#if DNNL_VERSION_MAJOR >= 3
    auto s = Lib().dnnl_post_ops_append_eltwise(ops_, kind, alpha, beta);
#else
    auto s = Lib().dnnl_post_ops_append_eltwise(ops_, 1.0f, kind, alpha, beta);
#endif
    return s == dnnl_success ? Result() : Failed("appending an activation", s);
  }

  dnnl_primitive_attr_t attr_ = nullptr;
  dnnl_post_ops_t ops_ = nullptr;
};

enum Role { kX, kWeights, kBias, kY, kScratch, kRoles };
constexpr int kArguments[kRoles] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};

// Memory objects whose addresses a run sets, in the order of the arguments.
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
  uint64_t packed_bytes() const override { return descs_[kWeights].bytes(); }
  uint64_t scratch_bytes() const override { return descs_[kScratch].bytes(); }

  Result Pack(const void* source, void* packed) const override {
    OneThread one;
    const Library& l = Lib();
    dnnl_primitive_desc_t desc = nullptr;
    auto s = l.dnnl_reorder_primitive_desc_create(&desc, plain_weights_.raw(), l.engine, descs_[kWeights].raw(), l.engine, nullptr);
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
    void* const addresses[kRoles] = {const_cast<void*>(o.x), const_cast<void*>(o.weights), const_cast<void*>(o.bias), o.y, o.scratch};
    for (int k = 0; k < i->count; ++k) {
      auto at = static_cast<size_t>(k);
      if (l.dnnl_memory_set_data_handle(i->memory[at], addresses[i->roles[at]]) != dnnl_success) return MGE_INTERNAL;
    }
    return l.dnnl_primitive_execute(primitive_, i->stream, i->count, i->args.data()) == dnnl_success ? MGE_OK : MGE_INTERNAL;
  }

 protected:
  const Desc& packed_desc() const { return descs_[kWeights]; }
  static const Desc& PackedOf(const Primitive* p) { return static_cast<const PrimitiveImpl*>(p)->packed_desc(); }

  // After desc_ is made: the primitive, and what it chose.
  Result Finish(bool has_bias) {
    const Library& l = Lib();
    if (auto s = CreatePrimitive(&primitive_, desc_); s != dnnl_success) return Failed("making a primitive", s);
    descs_[kX] = Desc::Copy(l.dnnl_primitive_desc_query_md(desc_, dnnl_query_src_md, 0));
    descs_[kWeights] = Desc::Copy(l.dnnl_primitive_desc_query_md(desc_, dnnl_query_weights_md, 0));  // empty for a pooling
    if (has_bias) descs_[kBias] = Desc::Copy(l.dnnl_primitive_desc_query_md(desc_, dnnl_query_weights_md, 1));
    descs_[kY] = Desc::Copy(l.dnnl_primitive_desc_query_md(desc_, dnnl_query_dst_md, 0));
    descs_[kScratch] = Desc::Copy(l.dnnl_primitive_desc_query_md(desc_, dnnl_query_scratchpad_md, 0));
    return {};
  }

  dnnl_primitive_desc_t desc_ = nullptr;
  dnnl_primitive_t primitive_ = nullptr;
  std::array<Desc, kRoles> descs_;
  Desc plain_weights_;
};

// What output rows y0..y1 read, and the padding around it.
struct Rows {
  Rows(const ConvWindows& w, int64_t y0, int64_t y1) {
    int64_t top = y0 * w.sh - w.ph, bottom = (y1 - 1) * w.sh - w.ph + (w.kh - 1) * w.dh + 1;
    int64_t in0 = std::max<int64_t>(0, top), in1 = std::min(w.h, bottom);
    int64_t right = (w.ow - 1) * w.sw - w.pw + (w.kw - 1) * w.dw + 1 - w.w;
    any = in1 > in0;
    in_count = in1 - in0;
    before = {in0 - top, w.pw};
    after = {bottom - in1, right};
  }
  bool any;
  int64_t in_count;
  Dims before, after;
};

// `rows` rows of images of `height` rows, channels innermost. Of one image the rows of the slice are all that counts.
Desc Image(int64_t images, int64_t channels, int64_t rows, int64_t height, int64_t width) {
  int64_t row = width * channels;
  return Desc::Strided({images, channels, rows, width}, {(images == 1 ? rows : height) * row, 1, row, channels});
}

class ConvolutionPrimitive : public PrimitiveImpl {
 public:
  Result Init(const Convolution& c, int64_t y0, int64_t y1, const Primitive* first) {
    const Library& l = Lib();
    const ConvWindows& w = c.windows;
    Rows r(w, y0, y1);
    if (!r.any) return {MGE_UNIMPLEMENTED, "a slice that reads padding alone"};
    Desc x_desc = Image(c.images, c.channels, r.in_count, w.h, w.w), y_desc = Image(c.images, c.outputs, y1 - y0, w.oh, w.ow);
    Dims filter = {c.outputs, w.channels, w.kh, w.kw};
    if (c.groups > 1) filter = {c.groups, c.outputs / c.groups, w.channels, w.kh, w.kw};
    plain_weights_ = Dense(filter);
    Desc weights = first ? Desc::Copy(PackedOf(first).raw()) : Desc::Any(filter);
    Desc bias = c.bias >= 0 ? Dense({c.outputs}) : Desc();
    Dims strides = {w.sh, w.sw}, dilates = {w.dh - 1, w.dw - 1};
    Attributes attributes;
    if (Result bad = attributes.Init(c.epilogue, c.add >= 0); !bad.ok()) return bad;
#if DNNL_VERSION_MAJOR >= 3
    auto s = l.dnnl_convolution_forward_primitive_desc_create(
        &desc_, l.engine, dnnl_forward_inference, dnnl_convolution_direct, x_desc.raw(), weights.raw(), bias.raw(), y_desc.raw(),
        strides.data(), dilates.data(), r.before.data(), r.after.data(), attributes.get());
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
  Result Init(const Pooling& p, int64_t y0, int64_t y1) {
    const Library& l = Lib();
    const ConvWindows& w = p.windows;
    Rows r(w, y0, y1);
    if (!r.any) return {MGE_UNIMPLEMENTED, "a slice that reads padding alone"};
    Desc x = Image(p.images, p.channels, r.in_count, w.h, w.w), y = Image(p.images, p.channels, y1 - y0, w.oh, w.ow);
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
    auto s = l.dnnl_pooling_v2_forward_desc_init(&d, dnnl_forward_inference, kind, x.raw(), y.raw(), strides.data(), kernel.data(),
                                                 dilates.data(), r.before.data(), r.after.data());
    if (s == dnnl_success) s = l.dnnl_primitive_desc_create(&desc_, &d, attributes.get(), l.engine, nullptr);
#endif
    if (s != dnnl_success) return Failed("a pooling", s);
    return Finish(false);
  }
};

class ProductPrimitive : public PrimitiveImpl {
 public:
  Result Init(const Product& p, int64_t rows, const Primitive* first) {
    const Library& l = Lib();
    int64_t n = p.size.n, k = p.size.k;
    bool has_bias = p.start >= 0 || p.epilogue_bias >= 0;
    Desc x = Desc::Strided({rows, k}, {p.a_row, p.a_k}), y = Dense({rows, n});
    plain_weights_ = Desc::Strided({k, n}, {p.b_k, p.b_column});
    Desc weights = first ? Desc::Copy(PackedOf(first).raw()) : Desc::Any({k, n});
    Desc bias = has_bias ? Dense({1, n}) : Desc();
    Attributes attributes;
    if (Result r = attributes.Init(p.epilogue, p.epilogue_add >= 0); !r.ok()) return r;
#if DNNL_VERSION_MAJOR >= 3
    auto s = l.dnnl_matmul_primitive_desc_create(&desc_, l.engine, x.raw(), weights.raw(), bias.raw(), y.raw(), attributes.get());
#else
    dnnl_matmul_desc_t d;
    auto s = l.dnnl_matmul_desc_init(&d, x.raw(), weights.raw(), bias.raw(), y.raw());
    if (s == dnnl_success) s = l.dnnl_primitive_desc_create(&desc_, &d, attributes.get(), l.engine, nullptr);
#endif
    if (s != dnnl_success) return Failed("a product", s);
    return Finish(has_bias);
  }
};

template <typename T, typename... A>
Result Make(PrimitivePtr* out, const A&... args) {
  if (!Lib().reason.empty()) return {MGE_UNAVAILABLE, Lib().reason};
  OneThread one;  // what is compiled depends on the number of threads
  auto p = std::make_unique<T>();
  if (Result r = p->Init(args...); !r.ok()) return r;
  *out = std::move(p);
  return {};
}

}  // namespace

bool IsInstalled() {
  static const bool installed = cpu::IsInstalled(Name());
  return installed;
}

Result MakeConvolution(const Convolution& c, int64_t y0, int64_t y1, const Primitive* first, PrimitivePtr* out) {
  return Make<ConvolutionPrimitive>(out, c, y0, y1, first);
}

int64_t FirstInputRow(const ConvWindows& windows, int64_t y0) {
  return std::max<int64_t>(0, y0 * windows.sh - windows.ph);
}

Result MakePooling(const Pooling& p, int64_t y0, int64_t y1, PrimitivePtr* out) {
  return Make<PoolingPrimitive>(out, p, y0, y1);
}

Result MakeProduct(const Product& p, int64_t rows, const Primitive* first, PrimitivePtr* out) {
  return Make<ProductPrimitive>(out, p, rows, first);
}

}  // namespace mge::cpu::onednn
