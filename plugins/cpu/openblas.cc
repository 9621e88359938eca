// SPDX-License-Identifier: Apache-2.0
#include "openblas.h"

#include <dlfcn.h>

#include <string>

#include "support/library.h"

namespace mge::cpu::openblas {
namespace {

// The C interface of BLAS with 32-bit integers, as distributions build it.
constexpr char kName[] = "libopenblas.so.0";
constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112;

struct Library {
  void (*sgemm)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int) = nullptr;
  void (*dgemm)(int, int, int, int, int, int, double, const double*, int, const double*, int, double, double*,
                int) = nullptr;
  std::string reason;  // why the library cannot be used
};

Library Open() {
  Library l;
  void* handle = OpenLibrary(kName, &l.reason);
  if (!handle) return l;
  auto set_threads = reinterpret_cast<void (*)(int)>(dlsym(handle, "openblas_set_num_threads"));
  l.sgemm = reinterpret_cast<decltype(l.sgemm)>(dlsym(handle, "cblas_sgemm"));
  l.dgemm = reinterpret_cast<decltype(l.dgemm)>(dlsym(handle, "cblas_dgemm"));
  if (!set_threads || !l.sgemm || !l.dgemm) {
    l.reason = std::string(kName) + " lacks a function that we need";
    return l;
  }
  set_threads(1);  // the host's compute pool runs in parallel instead
  return l;
}

const Library& Lib() {
  static const Library library = Open();
  return library;
}

}  // namespace

bool IsInstalled() {
  static const bool installed = cpu::IsInstalled(kName);
  return installed;
}

Result Load() {
  const Library& l = Lib();
  return l.reason.empty() ? Result() : Result(MGE_UNAVAILABLE, l.reason);
}

void Multiply(const Product& p) {
  const Library& l = Lib();
  int ta = p.transposed_a ? kTrans : kNoTrans, tb = p.transposed_b ? kTrans : kNoTrans;
  auto n = [](int64_t x) { return static_cast<int>(x); };
  if (p.wide) {
    l.dgemm(kRowMajor, ta, tb, n(p.m), n(p.n), n(p.k), p.alpha, static_cast<const double*>(p.a), n(p.lda),
            static_cast<const double*>(p.b), n(p.ldb), p.beta, static_cast<double*>(p.c), n(p.ldc));
  } else {
    l.sgemm(kRowMajor, ta, tb, n(p.m), n(p.n), n(p.k), static_cast<float>(p.alpha), static_cast<const float*>(p.a), n(p.lda),
            static_cast<const float*>(p.b), n(p.ldb), static_cast<float>(p.beta), static_cast<float*>(p.c), n(p.ldc));
  }
}

}  // namespace mge::cpu::openblas
