/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams of the application: an extension that a backend with queues may offer, so that runs can be ordered with work that the
 * application gives to the driver (native_stream of mge_run_options). mge_plugin.extension(MGE_NATIVE_STREAMS_EXTENSION, 1)
 * returns a mge_native_streams_api. In C++ see plugin/native_streams.hpp.
 */
#ifndef MGE_NATIVE_STREAMS_H_
#define MGE_NATIVE_STREAMS_H_

#include "mge/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MGE_NATIVE_STREAMS_EXTENSION "mge.native_streams"

/* `stream` is an object of the driver, such as a cudaStream_t, and stays the application's. The fence is one of this device, for
 * `signal`, or of any device of this backend, for `wait`. The rules are those of signal and wait of mge_queue_api. */
typedef struct mge_native_streams_api {
  uint32_t struct_size;
  uint32_t minor;
  /* Sets the fence to `value`, or to a failure, when all work that is now on the stream is done. Fails with MGE_INVALID_ARGUMENT if
   * the backend can see that the stream is not one of this device. [any] */
  mge_code (*signal)(mge_device* device, void* stream, mge_fence* fence, uint64_t value, mge_error* error);
  /* Delays later work of the stream until the fence has reached `value`, which was enqueued. [any] */
  mge_code (*wait)(mge_device* device, void* stream, mge_fence* fence, uint64_t value, mge_error* error);
} mge_native_streams_api;

#ifdef __cplusplus
}
#endif

#endif /* MGE_NATIVE_STREAMS_H_ */
