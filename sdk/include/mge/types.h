/* SPDX-License-Identifier: Apache-2.0
 *
 * Result codes and element types, used by applications (mge.h) and backends (plugin.h). Plain C99.
 */
#ifndef MGE_TYPES_H_
#define MGE_TYPES_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Result of a call: 0 is success. 1..15 are the canonical codes that gRPC and Abseil use. */
typedef int32_t mge_code;

enum {
  MGE_OK = 0,
  MGE_CANCELLED = 1,
  MGE_UNKNOWN = 2,
  MGE_INVALID_ARGUMENT = 3,
  MGE_DEADLINE_EXCEEDED = 4,
  MGE_NOT_FOUND = 5,
  MGE_ALREADY_EXISTS = 6,
  MGE_PERMISSION_DENIED = 7,
  MGE_RESOURCE_EXHAUSTED = 8,
  MGE_FAILED_PRECONDITION = 9,
  MGE_ABORTED = 10,
  MGE_OUT_OF_RANGE = 11,
  MGE_UNIMPLEMENTED = 12,
  MGE_INTERNAL = 13,
  MGE_UNAVAILABLE = 14,
  MGE_DATA_LOSS = 15,
  MGE_DEVICE_LOST = 100, /* permanent: every later call on the device fails with it */
  MGE_FORKED = 101,      /* the process was forked, and the device does not survive a fork */
  /* Results of a memory request, in addition to MGE_RESOURCE_EXHAUSTED. */
  MGE_OVER_BUDGET = 102,     /* the device has memory, but the configured limit forbids it */
  MGE_GROWTH_REQUIRED = 103, /* no free block fits, and the request forbids growth */
  MGE_NEEDS_WAIT = 104       /* memory was returned; it may be used once a fence is reached */
};

/* Element types. The numbers are those of ONNX's TensorProto.DataType. */
typedef int32_t mge_dtype;

enum {
  MGE_DTYPE_UNDEFINED = 0,
  MGE_DTYPE_F32 = 1,
  MGE_DTYPE_U8 = 2,
  MGE_DTYPE_I8 = 3,
  MGE_DTYPE_U16 = 4,
  MGE_DTYPE_I16 = 5,
  MGE_DTYPE_I32 = 6,
  MGE_DTYPE_I64 = 7,
  MGE_DTYPE_STRING = 8, /* host memory only, never given to a backend */
  MGE_DTYPE_BOOL = 9,   /* one byte, 0 or 1 */
  MGE_DTYPE_F16 = 10,
  MGE_DTYPE_F64 = 11,
  MGE_DTYPE_U32 = 12,
  MGE_DTYPE_U64 = 13,
  MGE_DTYPE_C64 = 14,
  MGE_DTYPE_C128 = 15,
  MGE_DTYPE_BF16 = 16,
  /* Types of 8 bits and less: host memory only, never given to a backend. Each element has a byte of its own, with the element
   * in its lowest bits and zeros above, as in NumPy's package ml_dtypes. */
  MGE_DTYPE_F8E4M3FN = 17,
  MGE_DTYPE_F8E4M3FNUZ = 18,
  MGE_DTYPE_F8E5M2 = 19,
  MGE_DTYPE_F8E5M2FNUZ = 20,
  MGE_DTYPE_U4 = 21,
  MGE_DTYPE_I4 = 22,
  MGE_DTYPE_F4E2M1 = 23,
  MGE_DTYPE_F8E8M0 = 24,
  MGE_DTYPE_U2 = 25,
  MGE_DTYPE_I2 = 26
};

/* Text with a length; not necessarily zero-terminated. */
typedef struct mge_text {
  const char* data;
  uint64_t size;
} mge_text;

#ifdef __cplusplus
}
#endif

#endif /* MGE_TYPES_H_ */
