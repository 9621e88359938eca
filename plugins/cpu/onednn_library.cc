// SPDX-License-Identifier: Apache-2.0
#include "onednn_library.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <new>
#include <string_view>

#include "support/library.h"

namespace mge::cpu::onednn {
namespace {

Library Open() {
  Library l;
  std::string name = LibraryName();
  void* handle = OpenLibrary(name, &l.reason);
  if (!handle) return l;
#define X(function)                                                              \
  l.function = reinterpret_cast<decltype(l.function)>(dlsym(handle, #function)); \
  if (!l.function) l.reason = name + " has no " #function;
  MGE_DNNL_FUNCTIONS(X)
#undef X
  l.omp_set_num_threads = reinterpret_cast<void (*)(int)>(dlsym(handle, "omp_set_num_threads"));
  l.omp_get_max_threads = reinterpret_cast<int (*)()>(dlsym(handle, "omp_get_max_threads"));
  if (!l.omp_get_max_threads) l.omp_set_num_threads = nullptr;
  if (l.reason.empty() && l.dnnl_engine_create(&l.engine, dnnl_cpu, 0) != dnnl_success)
    l.reason = "oneDNN has no engine for this processor";
  return l;
}

std::string TextOf(std::string_view name, const dnnl_dim_t* dims, int count) {
  std::string out(name);
  for (int i = 0; i < count; ++i) out += (i ? "," : " ") + std::to_string(dims[i]);
  return out;
}

}  // namespace

std::string LibraryName() { return "libdnnl.so." + std::to_string(DNNL_VERSION_MAJOR); }

const Library& Lib() {
  static const Library library = Open();
  return library;
}

Result Failed(std::string_view what, dnnl_status_t status) {
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  return {status == dnnl_unimplemented ? MGE_UNIMPLEMENTED : MGE_INTERNAL,
          "oneDNN: " + std::string(what) + " failed with status " + std::to_string(static_cast<int>(status))};
}

// oneDNN 2.6 does not check whether memory for generated code was allocated. So a larger mapping is tried first.
dnnl_status_t CreatePrimitive(dnnl_primitive_t* out, const_dnnl_primitive_desc_t desc) {
  constexpr size_t kCode = 16 << 20;
  void* probe = mmap(nullptr, kCode, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe == MAP_FAILED) return dnnl_out_of_memory;
  munmap(probe, kCode);
  return Lib().dnnl_primitive_create(out, desc);
}

std::string Desc::Text() const {
  if (empty()) return {};
#if DNNL_VERSION_MAJOR >= 3
  // The queries return pointers into the descriptor.
  auto ask = [&](dnnl_query_t what, auto* to) { return Lib().dnnl_memory_desc_query(raw(), what, to) == dnnl_success; };
  int rank = 0, blocks = 0;
  dnnl_format_kind_t kind = dnnl_format_kind_undef;
  const dnnl_dims_t *dims = nullptr, *padded = nullptr, *strides = nullptr, *sizes = nullptr, *axes = nullptr;
  if (!ask(dnnl_query_format_kind, &kind) || kind != dnnl_blocked || !ask(dnnl_query_ndims_s32, &rank) ||
      !ask(dnnl_query_dims, &dims) || !ask(dnnl_query_padded_dims, &padded) || !ask(dnnl_query_strides, &strides) ||
      !ask(dnnl_query_inner_nblks_s32, &blocks) || !ask(dnnl_query_inner_blks, &sizes) ||
      !ask(dnnl_query_inner_idxs, &axes)) {
    return {};
  }
  return TextOf("", *dims, rank) + TextOf(" padded", *padded, rank) + TextOf(" strides", *strides, rank) +
         TextOf(" blocks", *sizes, blocks) + TextOf(" of", *axes, blocks);
#else
  if (desc_.format_kind != dnnl_blocked || desc_.extra.flags != dnnl_memory_extra_flag_none || desc_.offset0 != 0) return {};
  const dnnl_blocking_desc_t& b = desc_.format_desc.blocking;
  return TextOf("", desc_.dims, desc_.ndims) + TextOf(" padded", desc_.padded_dims, desc_.ndims) +
         TextOf(" strides", b.strides, desc_.ndims) + TextOf(" blocks", b.inner_blks, b.inner_nblks) +
         TextOf(" of", b.inner_idxs, b.inner_nblks);
#endif
}

Desc Dense(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return Desc::Strided(dims, strides);
}

Result Attributes::Init(const Epilogue& e, bool adds) {
  const Library& l = Lib();
  if (auto s = l.dnnl_primitive_attr_create(&attr_); s != dnnl_success) return Failed("making attributes", s);
  l.dnnl_primitive_attr_set_scratchpad_mode(attr_, dnnl_scratchpad_mode_user);
  if (auto s = l.dnnl_post_ops_create(&ops_); s != dnnl_success) return Failed("making post-ops", s);
  if (adds) l.dnnl_post_ops_append_sum(ops_, 1.0f);
  if (Result r = Append(e); !r.ok()) return r;
  if (auto s = l.dnnl_primitive_attr_set_post_ops(attr_, ops_); s != dnnl_success) return Failed("setting post-ops", s);
  return {};
}

Result Attributes::Append(const Epilogue& e) {
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
    case Activation::kSwish:
      kind = dnnl_eltwise_swish;
      alpha = 1;
      break;
    case Activation::kLeakyRelu: alpha = e.lo; break;
    case Activation::kHardSwish:  // version 2 always uses these values and ignores its arguments
      kind = dnnl_eltwise_hardswish;
      alpha = 1.0f / 6;
      beta = 0.5f;
      break;
  }
#if DNNL_VERSION_MAJOR >= 3
  auto s = Lib().dnnl_post_ops_append_eltwise(ops_, kind, alpha, beta);
#else
  auto s = Lib().dnnl_post_ops_append_eltwise(ops_, 1.0f, kind, alpha, beta);
#endif
  return s == dnnl_success ? Result() : Failed("appending an activation", s);
}

}  // namespace mge::cpu::onednn
