// SPDX-License-Identifier: Apache-2.0
// oneDNN's functions, loaded by name, and its descriptors as objects. Only the sources of its primitives include this file.
// Other files include onednn.h.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <string>
#include <utility>
#include <vector>

#include "mge/plugin.hpp"
#include "support/epilogue.h"

namespace mge::cpu::onednn {

// The functions that are loaded. The library is loaded at its first use, not linked, so that it costs nothing if it is
// unused.
// clang-format off
#define MGE_DNNL_COMMON(X)                                                                                               \
  X(dnnl_engine_create)                                                                                                  \
  X(dnnl_stream_create) X(dnnl_stream_destroy) X(dnnl_memory_create) X(dnnl_memory_destroy)                              \
  X(dnnl_memory_set_data_handle) X(dnnl_memory_desc_get_size) X(dnnl_primitive_attr_create)                              \
  X(dnnl_primitive_attr_destroy) X(dnnl_primitive_attr_set_post_ops) X(dnnl_primitive_attr_set_scratchpad_mode)          \
  X(dnnl_post_ops_create) X(dnnl_post_ops_destroy) X(dnnl_post_ops_append_eltwise) X(dnnl_post_ops_append_sum)           \
  X(dnnl_primitive_desc_query) X(dnnl_primitive_desc_query_md) X(dnnl_memory_desc_equal) X(dnnl_primitive_desc_destroy)    \
  X(dnnl_primitive_create) X(dnnl_primitive_destroy)                                                                     \
  X(dnnl_primitive_execute) X(dnnl_reorder_primitive_desc_create) X(dnnl_set_primitive_cache_capacity)
#if DNNL_VERSION_MAJOR >= 3
#define MGE_DNNL_VERSIONED(X)                                                                                            \
  X(dnnl_memory_desc_create_with_strides) X(dnnl_memory_desc_create_with_tag) X(dnnl_memory_desc_clone)                  \
  X(dnnl_memory_desc_destroy) X(dnnl_memory_desc_query) X(dnnl_convolution_forward_primitive_desc_create)                 \
  X(dnnl_convolution_backward_data_primitive_desc_create)                                                                \
  X(dnnl_convolution_backward_weights_primitive_desc_create)                                                             \
  X(dnnl_matmul_primitive_desc_create) X(dnnl_pooling_forward_primitive_desc_create)
#else
#define MGE_DNNL_VERSIONED(X)                                                                                            \
  X(dnnl_memory_desc_init_by_strides) X(dnnl_memory_desc_init_by_tag) X(dnnl_primitive_desc_create)                      \
  X(dnnl_dilated_convolution_forward_desc_init) X(dnnl_dilated_convolution_backward_data_desc_init)                      \
  X(dnnl_dilated_convolution_backward_weights_desc_init) X(dnnl_matmul_desc_init) X(dnnl_pooling_v2_forward_desc_init)
#endif
// clang-format on
#define MGE_DNNL_FUNCTIONS(X) MGE_DNNL_COMMON(X) MGE_DNNL_VERSIONED(X)

// The loaded library.
struct Library {
#define X(name) decltype(&::name) name = nullptr;
  MGE_DNNL_FUNCTIONS(X)
#undef X
  // Functions of the OpenMP runtime that this build of oneDNN uses; null if it uses none.
  void (*omp_set_num_threads)(int) = nullptr;
  int (*omp_get_max_threads)() = nullptr;
  dnnl_engine_t engine = nullptr;  // never destroyed: the library is never unloaded
  std::string reason;              // why the library cannot be used; empty if it can
};

std::string LibraryName();
// Returns the library. The first call opens it; it stays open until the process ends.
const Library& Lib();

// While it exists, OpenMP uses only the calling thread.
class OneThread {
 public:
  OneThread() : set_(Lib().omp_set_num_threads) {
    if (!set_) return;
    before_ = Lib().omp_get_max_threads();
    if (before_ == 1)
      set_ = nullptr;
    else
      set_(1);
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

// Returns the error for a status. Throws std::bad_alloc if memory ran out, because another kernel would not help.
Result Failed(std::string_view what, dnnl_status_t status);
// Creates a primitive and generates its code.
dnnl_status_t CreatePrimitive(dnnl_primitive_t* out, const_dnnl_primitive_desc_t desc);

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
    Lib().dnnl_memory_desc_create_with_strides(&d.desc_, static_cast<int>(dims.size()), dims.data(), dnnl_f32,
                                               strides.data());
    return d;
  }
  static Desc Any(const Dims& dims) {
    Desc d;
    Lib().dnnl_memory_desc_create_with_tag(&d.desc_, static_cast<int>(dims.size()), dims.data(), dnnl_f32,
                                           dnnl_format_tag_any);
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
  bool operator==(const Desc& other) const {
    return empty() || other.empty() ? empty() == other.empty() : Lib().dnnl_memory_desc_equal(raw(), other.raw()) != 0;
  }
  uint64_t bytes() const { return empty() ? 0 : Lib().dnnl_memory_desc_get_size(raw()); }

  // Returns a text that describes the layout completely, or an empty one if strides and blocks do not.
  std::string Text() const;
};

// Returns the row-major descriptor.
Desc Dense(const Dims& dims);

// The attributes of a primitive, with its epilogue.
class Attributes {
 public:
  ~Attributes() {
    if (attr_) Lib().dnnl_primitive_attr_destroy(attr_);
    if (ops_) Lib().dnnl_post_ops_destroy(ops_);
  }
  Attributes() = default;
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  // Sets the epilogue. If `adds`, first adds the output's old content.
  Result Init(const Epilogue& e, bool adds);
  const_dnnl_primitive_attr_t get() const { return attr_; }

 private:
  Result Append(const Epilogue& e);

  dnnl_primitive_attr_t attr_ = nullptr;
  dnnl_post_ops_t ops_ = nullptr;
};

}  // namespace mge::cpu::onednn
