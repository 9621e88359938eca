/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports on a model: model MODEL INPUT.npy FOLDER
 * Prints what the library knows of a model's file, of a session with it, and of its plan. FOLDER receives the output. */
#include "example.h"

int main(int argc, char** argv) {
  need_arguments(argc, 3, "model MODEL INPUT.npy FOLDER");
  mge_runtime* runtime = NULL;
  mge_session* session = NULL;
  mge_string* text = NULL;
  check(mge_runtime_create(NULL, &runtime));

  /* The file. It need not be possible to run the model. */
  check(mge_model_report(runtime, argv[1], "mge.model/1", &text));
  print_text("file", text);

  check(mge_session_load(runtime, argv[1], NULL, &session));
  for (size_t i = 0; i < mge_session_metadata_count(session); ++i) {
    printf("metadata %s = %s\n", mge_session_metadata_key(session, i), mge_session_metadata_value(session, i));
  }
  for (size_t i = 0; i < mge_session_device_count(session); ++i) printf("device %s\n", mge_session_device(session, i));
  printf("%d threads\n", (int)mge_session_threads(session));
  check(mge_session_report(session, "mge.inspect/1", &text));
  print_text("session", text);

  /* A file is read as the kind of value that the model declares: also as a sequence, an optional or a map. */
  mge_tensor *input = NULL, *output = NULL, *expected = NULL;
  check(mge_session_read_input(session, 0, argv[2], &input));

  /* The plan, before a run. */
  check(mge_session_plan(session, &input, 1, "text", 0, &text));
  print_text("plan", text);

  /* Without data of one's own: the library generates inputs. */
  mge_example_options options;
  mge_example_options_init(&options);
  options.seed = 7;
  mge_tensor* generated = NULL; /* NULL: to be generated */
  check(mge_session_example_inputs(session, &options, &generated, 1, &text));
  print_text("inputs", text);
  check(mge_session_run(session, &generated, 1, &output, 1, NULL, NULL));

  char path[4096];
  snprintf(path, sizeof(path), "%s/output.npy", argv[3]);
  check(mge_tensor_write_npy(output, path));
  check(mge_session_read_output(session, 0, path, &expected)); /* as a test would, to compare */
  printf("output of %llu elements\n", (unsigned long long)mge_tensor_elements(expected));

  mge_memory_facts memory;
  mge_memory_facts_init(&memory);
  check(mge_session_memory(session, &memory));
  printf("%u steps, %llu bytes at most\n", (unsigned)memory.steps, (unsigned long long)memory.planned_peak_bytes);

  mge_tensor_release(generated);
  mge_tensor_release(input);
  mge_tensor_release(expected);
  mge_tensor_release(output);
  mge_session_release(session);
  mge_runtime_release(runtime);
  return 0;
}
