/* SPDX-License-Identifier: Apache-2.0
 *
 * The log level: an extension of the host, for a backend that wants to skip creating messages that nobody reads.
 * host->extension(host->self, MGE_LOG_LEVEL_EXTENSION, 1) returns a mge_log_level_api, or NULL on a host without it.
 */
#ifndef MGE_LOG_LEVEL_H_
#define MGE_LOG_LEVEL_H_

#include "mge/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MGE_LOG_LEVEL_EXTENSION "mge.log_level"

/* The functions of the extension. Valid as long as the host. */
typedef struct mge_log_level_api {
  uint32_t struct_size;
  uint32_t minor;
  void* self; /* first argument of the function below */
  /* Returns the least severity (MGE_LOG_...) that is logged; more than MGE_LOG_ERROR if nothing is logged. [any] */
  int32_t (*least)(void* self);
} mge_log_level_api;

#ifdef __cplusplus
}
#endif

#endif /* MGE_LOG_LEVEL_H_ */
