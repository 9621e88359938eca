/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a model: run MODEL INPUT.npy
 * Prints the inputs and outputs of the model, and for each row of the first output the index of its largest element. */
#include "example.h"

static void print_value(const char* side, const mge_value_facts* value) {
  printf("%s %s: %s[", side, value->name, mge_dtype_name(value->dtype));
  for (int32_t d = 0; d < value->rank; ++d) printf(d ? ",%lld" : "%lld", (long long)value->dims[d]); /* -1: unknown */
  printf("]\n");
}

int main(int argc, char** argv) {
  need_arguments(argc, 2, "run MODEL INPUT.npy");
  mge_runtime* runtime = NULL;
  mge_session* session = NULL;
  mge_tensor *input = NULL, *output = NULL;
  check(mge_runtime_create(NULL, &runtime));
  check(mge_session_load(runtime, argv[1], NULL, &session));

  mge_value_facts facts;
  mge_value_facts_init(&facts);
  for (size_t i = 0; i < mge_session_input_count(session); ++i) {
    check(mge_session_input(session, i, &facts));
    print_value("input", &facts);
  }
  for (size_t i = 0; i < mge_session_output_count(session); ++i) {
    check(mge_session_output(session, i, &facts));
    print_value("output", &facts);
  }

  check(mge_tensor_read(argv[2], &input));
  check(mge_session_run(session, &input, 1, &output, 1, NULL, NULL));

  if (mge_tensor_dtype(output) == MGE_DTYPE_F32 && mge_tensor_rank(output) == 2) {
    const int64_t rows = mge_tensor_dims(output)[0], columns = mge_tensor_dims(output)[1];
    const float* row = mge_tensor_data(output);
    printf("largest:");
    for (int64_t i = 0; i < rows; ++i, row += columns) {
      int64_t best = 0;
      for (int64_t k = 1; k < columns; ++k) best = row[k] > row[best] ? k : best;
      printf(" %lld", (long long)best);
    }
    printf("\n");
  }

  mge_tensor_release(input);
  mge_tensor_release(output);
  mge_session_release(session);
  mge_runtime_release(runtime);
  return 0;
}
