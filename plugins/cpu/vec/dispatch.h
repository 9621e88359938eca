// SPDX-License-Identifier: Apache-2.0
// Selects a function table by instruction set. Each source of vec/ is compiled into one namespace per instruction set.
//
//   // vec/softmax.h                                   // vec/softmax.cc (compiled once per instruction set)
//   struct SoftmaxTable { RowsFn rows; };              namespace mge::cpu::MGE_CPU_ISA {
//   MGE_CPU_DISPATCH(SoftmaxTable, Softmax)            extern const SoftmaxTable kSoftmax = {Rows};
//                                                      }
//   // kernels/softmax.cc
//   const SoftmaxTable& table = Softmax(isa);
#pragma once

#include "isa.h"

#if defined(__x86_64__)
#define MGE_CPU_DISPATCH(Table, Name)            \
  namespace portable {                           \
  extern const Table k##Name;                    \
  }                                              \
  namespace avx2 {                               \
  extern const Table k##Name;                    \
  }                                              \
  namespace avx512 {                             \
  extern const Table k##Name;                    \
  }                                              \
  inline const Table& Name(Isa isa) {            \
    switch (isa) {                               \
      case Isa::kAvx512: return avx512::k##Name; \
      case Isa::kAvx2: return avx2::k##Name;     \
      case Isa::kPortable: break;                \
    }                                            \
    return portable::k##Name;                    \
  }
#else
#define MGE_CPU_DISPATCH(Table, Name) \
  namespace portable {                \
  extern const Table k##Name;         \
  }                                   \
  inline const Table& Name(Isa) { return portable::k##Name; }
#endif
