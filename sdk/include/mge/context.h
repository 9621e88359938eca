/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts, with the names of mxnet.context: a device type and an id. A thin layer over the texts by which mge.h names devices.
 */
#ifndef MGE_CONTEXT_H_
#define MGE_CONTEXT_H_

#include <stdio.h>

#include "mge/mge.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A device type and an id, such as gpu(1). Whether the device exists is checked when the context is used. */
typedef struct mge_context {
  char device_type[64]; /* "cpu", "gpu", "cpu_pinned", or a class of devices such as "cuda" */
  int32_t device_id;    /* from 0; a CPU ignores it. cpu_pinned(1): host memory that the driver of gpu(1) page-locks */
} mge_context;

/* The text of a context, such as "gpu(1)", for every function of mge.h that takes the name of a device. */
typedef struct mge_context_text {
  char text[80];
} mge_context_text;
static inline mge_context_text mge_context_format(const mge_context* context) {
  mge_context_text out;
  (void)snprintf(out.text, sizeof(out.text), "%.63s(%d)", context->device_type, (int)context->device_id);
  return out;
}

/* Creates a context. Fails with E0501 if the type is not known. */
MGE_API MGE_NODISCARD mge_status* mge_context_create(const char* device_type, int32_t device_id, mge_context* out);
/* Parses "gpu(1)" or any other name of one device, such as "cuda0". */
MGE_API MGE_NODISCARD mge_status* mge_context_parse(const char* text, mge_context* out);
/* Returns the thread's context; see mge_device_current. */
MGE_API MGE_NODISCARD mge_status* mge_context_current(mge_runtime* runtime, mge_context* out);
/* Returns the context in which the tensor lies; cpu(0) for plain host memory. */
MGE_API mge_context mge_tensor_context(const mge_tensor* tensor);

/* Sets this thread's context until the matching pop; see mge_device_push. */
MGE_NODISCARD static inline mge_status* mge_context_push(const mge_context* context) {
  return mge_device_push(mge_context_format(context).text);
}
MGE_NODISCARD static inline mge_status* mge_context_pop(void) { return mge_device_pop(); }
/* Returns unused memory of this context's device to the driver; see mge_device_empty_cache. */
MGE_NODISCARD static inline mge_status* mge_empty_cache(mge_runtime* runtime, const mge_context* context) {
  return mge_device_empty_cache(runtime, mge_context_format(context).text);
}

/* Returns the number of usable GPUs: 0 without a driver. */
MGE_API int32_t mge_num_gpus(mge_runtime* runtime);
/* Returns the free and total bytes of a GPU. Fails with E0502 if it does not exist, or with the error of its driver. */
MGE_API MGE_NODISCARD mge_status* mge_gpu_memory_info(mge_runtime* runtime, int32_t gpu, uint64_t* free_bytes,
                                                      uint64_t* total_bytes);

#ifdef __cplusplus
}
#endif

#endif /* MGE_CONTEXT_H_ */
