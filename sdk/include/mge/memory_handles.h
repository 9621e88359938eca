/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory by the handle of a driver: an extension that a backend may offer, so that applications can use memory that they
 * have allocated with the driver, and that has a handle (such as cl_mem) but no address (mge_tensor_wrap_handle).
 * mge_plugin.extension(MGE_MEMORY_HANDLES_EXTENSION, 1) returns a mge_memory_handles_api. In C++ see
 * plugin/memory_handles.hpp. In the slabs of a backend that offers it, mge_slab.handle is such a handle, or NULL.
 */
#ifndef MGE_MEMORY_HANDLES_H_
#define MGE_MEMORY_HANDLES_H_

#include "mge/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MGE_MEMORY_HANDLES_EXTENSION "mge.memory_handles"

typedef struct mge_memory_handles_api {
  uint32_t struct_size;
  uint32_t minor;
  /* Describes memory of the application as a slab of class MGE_MEMORY_DEVICE. `handle` is an object of the driver, with at
   * least `bytes` bytes. The address is aligned like that of other slabs. The host replays captured work if all
   * addresses are equal, so a backend with captures gives no address to a second handle. The memory stays the
   * application's. Fails with MGE_INVALID_ARGUMENT if the backend can see that the handle is wrong. [any] */
  mge_code (*wrap)(mge_device* device, void* handle, uint64_t bytes, mge_slab* out, mge_error* error);
  /* Ends the slab. Its memory is no longer accessed, and is not released. [any] */
  void (*unwrap)(mge_device* device, const mge_slab* slab);
} mge_memory_handles_api;

#ifdef __cplusplus
}
#endif

#endif /* MGE_MEMORY_HANDLES_H_ */
