/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams for devices of the backend `virtual`, which exist in software: the application implements them itself. They stand in
 * for the streams of a driver (native_stream of mge_run_options) where there is no GPU.
 */
#ifndef MGE_VIRTUAL_STREAM_H_
#define MGE_VIRTUAL_STREAM_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A stream: work that is done in the order in which it was appended. native_stream is its address. The application keeps it until
 * the runs that have it as native_stream have ended. */
typedef struct mge_virtual_stream {
  size_t struct_size;
  void* state;
  /* Appends work: calls work(argument) once when all work that was appended before is done, on any thread. `work` may block until
   * a run has ended. Returns 0, or another number if it cannot; it then does not call `work`. */
  int32_t (*append)(void* state, void (*work)(void* argument), void* argument);
} mge_virtual_stream;
static inline void mge_virtual_stream_init(mge_virtual_stream* stream) {
  memset(stream, 0, sizeof(*stream));
  stream->struct_size = sizeof(*stream);
}

#ifdef __cplusplus
}
#endif

#endif /* MGE_VIRTUAL_STREAM_H_ */
