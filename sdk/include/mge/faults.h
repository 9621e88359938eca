/* SPDX-License-Identifier: Apache-2.0
 *
 * Failures on demand: an extension that a backend may offer, so that `mge sdk test` can check how failures are reported.
 * mge_plugin.extension(MGE_FAULTS_EXTENSION, 1) returns a mge_faults_api.
 */
#ifndef MGE_FAULTS_H_
#define MGE_FAULTS_H_

#include "mge/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MGE_FAULTS_EXTENSION "mge.faults"

typedef struct mge_faults_api {
  uint32_t struct_size;
  uint32_t minor;
  /* Makes the next work enqueued on the queue fail with that code and text. It fails when it runs, not when it is
   * enqueued. [one] */
  mge_code (*fail_next)(mge_queue* queue, mge_code code, mge_text text, mge_error* error);
  /* Makes the device lost from this call on. [any] */
  mge_code (*lose)(mge_device* device, mge_error* error);
} mge_faults_api;

#ifdef __cplusplus
}
#endif

#endif /* MGE_FAULTS_H_ */
