/* SPDX-License-Identifier: Apache-2.0
 *
 * Single operators and gradients: eager DEVICE
 * Fits w in y = w * x by one step of gradient descent, and shows how tensors leave the memory of the device. */
#include "mge/eager.h"

#include "example.h"

/* Creates a vector of three floats on the device. */
static mge_eager_tensor* put(mge_eager* eager, const char* device, float a, float b, float c) {
  const int64_t dims[] = {3};
  float numbers[] = {a, b, c};
  mge_tensor* host = NULL;
  mge_eager_tensor* out = NULL;
  check(mge_tensor_wrap(MGE_DTYPE_F32, dims, 1, numbers, sizeof(numbers), &host));
  check(mge_eager_put(eager, host, device, &out)); /* copies */
  mge_tensor_release(host);
  return out;
}

/* Calls an operator of one output. */
static mge_eager_tensor* apply(mge_eager* eager, const char* name, mge_eager_tensor* a, mge_eager_tensor* b) {
  mge_eager_operator op;
  mge_eager_operator_init(&op);
  op.op = name;
  mge_eager_tensor* inputs[] = {a, b};
  mge_eager_tensor* out = NULL;
  size_t count = 0;
  check(mge_eager_apply(eager, &op, inputs, b ? 2 : 1, &out, 1, &count));
  return out;
}

/* Returns the sum of a vector as a scalar: an operator with an attribute, and with axes as an operand of the host. */
static mge_eager_tensor* sum(mge_eager* eager, mge_eager_tensor* x) {
  const int64_t dims[] = {1}, keep = 0;
  mge_tensor* axes = NULL;
  mge_eager_tensor *operand = NULL, *out = NULL;
  check(mge_tensor_create(MGE_DTYPE_I64, dims, 1, &axes)); /* {0} */
  check(mge_eager_host_operand(eager, axes, &operand));
  mge_tensor_release(axes);

  mge_attribute attribute = {"keepdims", MGE_ATTRIBUTE_INT, 0, &keep, NULL, NULL, NULL, 1};
  mge_eager_operator op;
  mge_eager_operator_init(&op);
  op.op = "ReduceSum";
  op.attributes = &attribute;
  op.attribute_count = 1;
  mge_eager_tensor* inputs[] = {x, operand};
  size_t count = 0;
  check(mge_eager_apply(eager, &op, inputs, 2, &out, 1, &count));
  mge_eager_tensor_release(operand);
  return out;
}

/* Prints the first element of a tensor, which may lie on a device. */
static void print_first(const char* name, mge_eager_tensor* tensor) {
  mge_tensor *where_it_lies = NULL, *host = NULL;
  check(mge_eager_tensor_get(tensor, &where_it_lies)); /* waits; errors of the operator arrive here */
  check(mge_tensor_create(mge_tensor_dtype(where_it_lies), mge_tensor_dims(where_it_lies), mge_tensor_rank(where_it_lies),
                          &host));
  check(mge_tensor_copy(where_it_lies, host));
  printf("%s: %g\n", name, *(const float*)mge_tensor_data(host));
  mge_tensor_release(where_it_lies);
  mge_tensor_release(host);
}

int main(int argc, char** argv) {
  need_arguments(argc, 1, "eager DEVICE");
  const char* settings[] = {"eager.drop=1", "eager.swap=1", "eager.dtr_minimum_bytes=0",
                            "eager.record_computing_path=1"}; /* for the end of this example */
  mge_runtime_options options;
  mge_runtime_options_init(&options);
  options.settings = settings;
  options.setting_count = 4;
  mge_runtime* runtime = NULL;
  mge_eager* eager = NULL;
  check(mge_runtime_create(&options, &runtime));
  check(mge_eager_create(runtime, &eager));
  mge_runtime_release(runtime); /* eager mode keeps it */

  mge_eager_tensor* x = put(eager, argv[1], 1, 2, 3);
  mge_eager_tensor* y = put(eager, argv[1], 2, 4, 6);
  mge_eager_tensor* w = put(eager, argv[1], 0, 0, 0);

  /* loss = sum((w * x - y)^2), recorded from start to stop. */
  mge_eager_tape* tape = NULL;
  mge_eager_tensor* gradient = NULL;
  check(mge_eager_tape_create(eager, &tape));
  check(mge_eager_tape_watch(tape, w));
  check(mge_eager_tape_start(tape));
  mge_eager_tensor* guess = apply(eager, "Mul", w, x);
  mge_eager_tensor* error = apply(eager, "Sub", guess, y);
  mge_eager_tensor* square = apply(eager, "Mul", error, error);
  mge_eager_tensor* loss = sum(eager, square);
  check(mge_eager_tape_stop(tape));
  check(mge_eager_tape_gradient(tape, loss, NULL, &w, 1, &gradient));
  mge_eager_tape_release(tape);
  print_first("loss", loss);
  print_first("gradient", gradient);

  int32_t kind = 0;
  mge_dtype dtype = 0;
  size_t rank = 0;
  const int64_t* dims = NULL;
  check(mge_eager_tensor_type(gradient, &kind, &dtype, &rank, &dims));
  printf("gradient: %s of rank %zu with %lld elements on %s\n", mge_dtype_name(dtype), rank, (long long)dims[0],
         mge_eager_tensor_device(gradient));

  /* Frees memory: a dropped tensor is computed again when it is used, a swapped one waits in memory of the host. */
  check(mge_eager_tensor_wait(square));
  check(mge_eager_tensor_drop(square));
  check(mge_eager_tensor_swap_out(x));
  check(mge_eager_synchronize(eager));
  printf("dropped: %s\n", mge_eager_tensor_state(square) == MGE_EAGER_DROPPED ? "yes" : "no");
  check(mge_eager_tensor_swap_in(x));
  print_first("computed again", square);

  mge_string* text = NULL;
  check(mge_eager_report(eager, "mge.eager/1", &text)); /* counters */
  print_text("report", text);
  mge_eager_tensor* all[] = {x, y, w, guess, error, square, loss, gradient};
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i) mge_eager_tensor_release(all[i]);
  mge_eager_release(eager);
  return 0;
}
