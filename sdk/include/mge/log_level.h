/* SPDX-License-Identifier: Apache-2.0
 *
 * Which messages are wanted: an extension of the host, for a backend to which the making of a text is dear.
 * host->extension(host->self, MGE_LOG_LEVEL_EXTENSION, 1) answers a mge_log_level_api, or NULL on a host that has none.
 */
#ifndef MGE_LOG_LEVEL_H_
#define MGE_LOG_LEVEL_H_

#include "mge/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MGE_LOG_LEVEL_EXTENSION "mge.log_level"

/* Lives as long as the host. */
typedef struct mge_log_level_api {
  uint32_t struct_size;
  uint32_t minor;
  void* self; /* first argument of the function below */
  /* The least severity (MGE_LOG_...) of which messages go anywhere now; above MGE_LOG_ERROR if none do. [any] */
  int32_t (*least)(void* self);
} mge_log_level_api;

#ifdef __cplusplus
}
#endif

#endif /* MGE_LOG_LEVEL_H_ */
