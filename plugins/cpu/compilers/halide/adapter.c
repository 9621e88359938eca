/* SPDX-License-Identifier: Apache-2.0 */
/* The entry of Halide's code: makes the buffers that Halide wants from plain addresses. Compiled when MGE is built, and joined with
 * the code of each chain, so it must call nothing else. */
#include <HalideRuntime.h>
#include <stdint.h>

#include "argument.h"

/* The arguments of the chain's function, in order; the first has `count`. Written by compile.cc. */
extern const struct mge_jit_argument mge_jit_arguments[] __attribute__((visibility("hidden")));

__attribute__((visibility("hidden"))) int mge_jit_chain_argv(void** arguments);

void mge_jit_enter(char* const* places, int64_t count);
void mge_jit_enter(char* const* places, int64_t count) {
  enum { kMaxElements = 1 << 30 }; /* Halide counts by 32 bits */
  const int32_t arguments = mge_jit_arguments[0].place;
  struct halide_buffer_t buffers[MGE_JIT_MAX_ARGUMENTS];
  void* pointers[MGE_JIT_MAX_ARGUMENTS];
  for (int64_t done = 0; done < count; done += kMaxElements) {
    const int64_t left = count - done;
    halide_dimension_t dimensions[2]; /* of tiles, and of single elements */
    for (int i = 0; i < 2; ++i) {
      dimensions[i].min = 0;
      dimensions[i].extent = i == 1 ? 1 : (int32_t)(left < kMaxElements ? left : kMaxElements);
      dimensions[i].stride = 1;
      dimensions[i].flags = 0;
    }
    for (int32_t i = 0; i < arguments; ++i) {
      const struct mge_jit_argument* a = &mge_jit_arguments[i + 1];
      struct halide_buffer_t* b = &buffers[i];
      b->device = 0;
      b->device_interface = 0;
      b->host = (uint8_t*)places[a->place] + (a->single ? 0 : done * a->bytes);
      b->flags = 0;
      b->type.code = (uint8_t)a->code;
      b->type.bits = (uint8_t)(a->bytes * 8);
      b->type.lanes = 1;
      b->dimensions = 1;
      b->dim = &dimensions[a->single];
      b->padding = 0;
      pointers[i] = b;
    }
    mge_jit_chain_argv(pointers);
  }
}
