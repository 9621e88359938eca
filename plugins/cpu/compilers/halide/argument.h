/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a buffer for adapter.c. */
#ifndef MGE_CPU_COMPILERS_HALIDE_ARGUMENT_H_
#define MGE_CPU_COMPILERS_HALIDE_ARGUMENT_H_

#include <stdint.h>

enum { MGE_JIT_MAX_ARGUMENTS = 64 };

/* The first of a list has the number of arguments as `place`. */
struct mge_jit_argument {
  int32_t place;  /* index of its address */
  uint8_t single; /* 1: one element */
  uint8_t bytes;  /* per element */
  uint8_t code;   /* halide_type_code_t */
  uint8_t unused;
};

#endif /* MGE_CPU_COMPILERS_HALIDE_ARGUMENT_H_ */
