/* SPDX-License-Identifier: Apache-2.0 */
/* The C interface of a compiler of elementwise chains: a helper library that the CPU backend opens if jit.backend names it.
 *
 * A helper exports one function, mge_jit_query. Its library is lib/mge/jit/libmge_jit_NAME.so; it loads a large compiler, so it is
 * opened only when code is wanted that the host's cache of blobs lacks. */
#ifndef MGE_CPU_COMPILERS_COMPILER_H_
#define MGE_CPU_COMPILERS_COMPILER_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MGE_JIT_INTERFACE 1u

enum {
  MGE_JIT_SINGLE = 1,   /* one element, used for the whole tile */
  MGE_JIT_CONSTANT = 2, /* a single float32 whose value is `number`; has no place */
  MGE_JIT_STORED = 4    /* a result that the code writes to its place */
};

/* A value that steps read or write. One that no step computes is an operand. */
typedef struct mge_jit_value {
  uint32_t type;  /* mge_dtype: F32, F16, BF16, BOOL, I8 or U8 */
  uint32_t flags; /* MGE_JIT_* */
  int32_t place;  /* index of its address */
  float number;
} mge_jit_value;

/* out = op(a, b, c): indices of values; -1: the operand is absent. */
typedef struct mge_jit_step {
  const char* op; /* as in a kept file: "add", "round_to" */
  uint32_t half;  /* the type that round_to rounds to */
  int32_t a, b, c, out;
  float params[2];
} mge_jit_step;

typedef struct mge_jit_chain {
  const mge_jit_value* values;
  const mge_jit_step* steps;
  uint32_t value_count, step_count;
} mge_jit_chain;

typedef struct mge_jit_compiler {
  uint32_t interface_version; /* MGE_JIT_INTERFACE */
  const char* release;        /* as in "Halide 14.0.0" */

  /* Compiles a chain for "avx2" or "avx512". Calls `deliver` for each result, during the call:
   *   "image"   position-independent machine code of void(char* const* places, int64_t count). It begins with the entry, needs
   *             no other code, and may be placed at any address that is a multiple of 64.
   *   "source"  the program in the compiler's own language, for a reader; only if `with_source` is not 0.
   *   "error"   why there is no image.
   * Returns 0 if it has delivered an image. Calls must not overlap. Throws no exception. */
  int (*compile)(const mge_jit_chain* chain, const char* target, int with_source, void* context,
                 void (*deliver)(void* context, const char* kind, const void* data, uint64_t bytes));
} mge_jit_compiler;

/* Returns the compiler, which is valid until the process ends. */
__attribute__((visibility("default"))) const mge_jit_compiler* mge_jit_query(void);

#ifdef __cplusplus
}
#endif

#endif /* MGE_CPU_COMPILERS_COMPILER_H_ */
