/* SPDX-License-Identifier: Apache-2.0
 *
 * Eager mode for applications: single operators at once, and their gradients. It belongs to mge.h, whose rules hold here.
 */
#ifndef MGE_EAGER_H_
#define MGE_EAGER_H_

#include "mge/mge.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mge_eager mge_eager;               /* eager mode: single operators at once */
typedef struct mge_eager_tensor mge_eager_tensor; /* the result of an operator, which may not be computed yet */
typedef struct mge_eager_tape mge_eager_tape;     /* records operators, and computes gradients */

/* A call of an operator appends a command to a queue, and a thread executes the commands in their order. Names, attributes,
 * types and shapes are checked in the call, as far as they are known. An error of the execution arrives where a result is
 * read. An operator that reads a failed result fails too; others go on. The settings eager.* change that: with
 * eager.async_level = sync, each call executes its command and returns its error.
 *
 * Eager tensors are immutable. They keep their mge_eager alive, and that keeps the runtime. */

MGE_API MGE_NODISCARD mge_status* mge_eager_create(mge_runtime* runtime, mge_eager** out);
MGE_API void mge_eager_release(mge_eager* eager);

/* Creates a tensor with a copy of the elements on a device, such as "gpu0". A list, such as "gpu0,cpu0", lets later devices
 * compute what the first one cannot. NULL: the context of the thread, otherwise the default device. */
MGE_API MGE_NODISCARD mge_status* mge_eager_put(mge_eager* eager, const mge_tensor* value, const char* device /* nullable */,
                                                mge_eager_tensor** out);
/* Creates a host operand: a scalar, axes, a shape. It has no device; an operator reads it on the device of its other inputs.
 * If the shape of a result depends on its elements, each value of them has plans of its own. Copies the elements. */
MGE_API MGE_NODISCARD mge_status* mge_eager_host_operand(mge_eager* eager, const mge_tensor* value, mge_eager_tensor** out);

/* An attribute of an operator. `type` tells which pointer is used, and `count` how many elements it has: 1 for INT, FLOAT, TEXT
 * and TENSOR. */
enum {
  MGE_ATTRIBUTE_INT = 0,
  MGE_ATTRIBUTE_FLOAT = 1,
  MGE_ATTRIBUTE_TEXT = 2,
  MGE_ATTRIBUTE_INTS = 3,
  MGE_ATTRIBUTE_FLOATS = 4,
  MGE_ATTRIBUTE_TEXTS = 5,
  MGE_ATTRIBUTE_TENSOR = 6
};
typedef struct mge_attribute {
  const char* name;
  int32_t type; /* MGE_ATTRIBUTE_... */
  int32_t reserved;
  const int64_t* ints;
  const float* floats;
  const char* const* texts;
  const mge_tensor* tensor; /* in host memory */
  size_t count;
} mge_attribute;

/* The operator of a call. Used only during the call. */
typedef struct mge_eager_operator {
  size_t struct_size;
  const char* op;     /* "MatMul" */
  const char* domain; /* NULL: ONNX's */
  int32_t version;    /* of the domain's operator set; 0: the newest one */
  int32_t reserved;
  const mge_attribute* attributes;
  size_t attribute_count;
  size_t attribute_size; /* sizeof(mge_attribute) */
  /* 0: the outputs that the operator requires, or as many as its attribute num_outputs says. */
  size_t output_count;
  const char* device; /* for a call whose inputs are all host operands; NULL: as for mge_eager_put */
} mge_eager_operator;
static inline void mge_eager_operator_init(mge_eager_operator* op) {
  MGE_CLEAR_(op);
  op->attribute_size = sizeof(mge_attribute);
}

/* Calls an operator on the device of its inputs. `inputs[i]` is NULL for an optional input that is absent. `outputs` has room
 * for `capacity` tensors; *count receives their number. Fails with E0207 if the room does not suffice, and with E0307 if inputs
 * are on different devices. Element types are never converted. Waits while the queue is full (eager.queue_commands). */
MGE_API MGE_NODISCARD mge_status* mge_eager_apply(mge_eager* eager, const mge_eager_operator* op,
                                                  mge_eager_tensor* const* inputs, size_t input_count,
                                                  mge_eager_tensor** outputs, size_t capacity, size_t* count);
/* Waits for all commands that were given before. Fails with the first error since the last call of this function. */
MGE_API MGE_NODISCARD mge_status* mge_eager_synchronize(mge_eager* eager);
/* Returns counters as JSON "mge.eager/1": commands, runs, operators, memory, evictions, recomputations. */
MGE_API MGE_NODISCARD mge_status* mge_eager_report(mge_eager* eager, const char* schema, mge_string** out);

MGE_API void mge_eager_tensor_release(mge_eager_tensor* tensor);
/* Waits for the tensor, and returns it where it lies, on a device or in host memory. It shares the memory, which must not be
 * written. Fails with the error of the operator that should have computed it. */
MGE_API MGE_NODISCARD mge_status* mge_eager_tensor_get(mge_eager_tensor* tensor, mge_tensor** out);
/* Waits until the tensor is computed. Fails like mge_eager_tensor_get. */
MGE_API MGE_NODISCARD mge_status* mge_eager_tensor_wait(mge_eager_tensor* tensor);
/* Returns the kind (MGE_VALUE_...), element type, rank and dimensions. Waits if they are not known yet. *dims is valid as long as
 * the tensor. A value of another kind than MGE_VALUE_TENSOR has the rank 0. */
MGE_API MGE_NODISCARD mge_status* mge_eager_tensor_type(mge_eager_tensor* tensor, int32_t* kind, mge_dtype* dtype,
                                                        size_t* rank, const int64_t** dims);
enum {
  MGE_EAGER_PENDING = 0, /* not executed yet */
  MGE_EAGER_READY = 1,
  MGE_EAGER_DROPPED = 2, /* computed again when it is used */
  MGE_EAGER_SWAPPED = 3, /* in host memory until it is used */
  MGE_EAGER_FAILED = 4
};
MGE_API int32_t mge_eager_tensor_state(const mge_eager_tensor* tensor);      /* MGE_EAGER_... at this moment */
MGE_API const char* mge_eager_tensor_device(const mge_eager_tensor* tensor); /* as given; "" for a host operand */

/* Releases the tensor's memory. The tensor is computed again when it is used. Fails with E0207 unless eager.drop is on. If its
 * computation is not recorded (eager.record_computing_path), logs a warning and does nothing. */
MGE_API MGE_NODISCARD mge_status* mge_eager_tensor_drop(mge_eager_tensor* tensor);
/* Moves a tensor on a device to host memory until it is used, or back. Fails with E0207 unless eager.swap is on. */
MGE_API MGE_NODISCARD mge_status* mge_eager_tensor_swap_out(mge_eager_tensor* tensor);
MGE_API MGE_NODISCARD mge_status* mge_eager_tensor_swap_in(mge_eager_tensor* tensor);

/* Creates a tape. From start to stop it records the operators that depend on watched tensors, on any thread, and keeps their
 * tensors. */
MGE_API MGE_NODISCARD mge_status* mge_eager_tape_create(mge_eager* eager, mge_eager_tape** out);
MGE_API void mge_eager_tape_release(mge_eager_tape* tape); /* stops it */
MGE_API MGE_NODISCARD mge_status* mge_eager_tape_start(mge_eager_tape* tape);
MGE_API MGE_NODISCARD mge_status* mge_eager_tape_stop(mge_eager_tape* tape);
MGE_API MGE_NODISCARD mge_status* mge_eager_tape_watch(mge_eager_tape* tape, mge_eager_tensor* tensor);
/* Computes the gradients of the sum of the target's elements, each multiplied by that of `weights` (NULL: 1), by the sources.
 * May be called again. Sets outputs[i] to NULL if the target does not depend on source i, or source i is neither watched nor
 * computed from a watched tensor. Gradients are eager tensors, whose operators other tapes record. Fails with E0403, which names
 * the operator, if an operator has no gradient. */
MGE_API MGE_NODISCARD mge_status* mge_eager_tape_gradient(mge_eager_tape* tape, mge_eager_tensor* target,
                                                          mge_eager_tensor* weights /* nullable */,
                                                          mge_eager_tensor* const* sources, size_t count,
                                                          mge_eager_tensor** outputs);

#ifdef __cplusplus
}
#endif

#endif /* MGE_EAGER_H_ */
