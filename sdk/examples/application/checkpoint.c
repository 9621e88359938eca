/* SPDX-License-Identifier: Apache-2.0
 *
 * Trains a classifier that can be stopped at any time: checkpoint MODEL INPUT.npy LABELS.npy FILE.ckpt TRAINED.onnx
 * Continues from FILE.ckpt if it exists. Evaluates the model before and after the steps, and saves it for inference. */
#include <stdlib.h>
#include <string.h>

#include "example.h"

enum { kSteps = 5 };

/* Returns the loss of one run. `inputs` has the learning rate at its end, which an evaluation leaves out. */
static float loss_of(mge_session* session, mge_tensor* const* inputs, size_t count) {
  mge_value_facts loss_facts;
  mge_value_facts_init(&loss_facts);
  check(mge_session_output(session, 0, &loss_facts));
  mge_run_options run;
  mge_run_options_init(&run);
  run.output_names = &loss_facts.name;
  mge_tensor* loss = NULL;
  check(mge_session_run(session, inputs, count, &loss, 1, &run, NULL));
  const float value = *(const float*)mge_tensor_data(loss);
  mge_tensor_release(loss);
  return value;
}

int main(int argc, char** argv) {
  need_arguments(argc, 5, "checkpoint MODEL INPUT.npy LABELS.npy FILE.ckpt TRAINED.onnx");
  mge_runtime* runtime = NULL;
  mge_session *session = NULL, *evaluation = NULL;
  check(mge_runtime_create(NULL, &runtime));

  mge_training_options training;
  mge_training_options_init(&training);
  training.optimizer = "adam";
  training.on_nan = "skip"; /* a bad batch changes nothing */
  mge_session_options options;
  mge_session_options_init(&options);
  options.training = &training;
  check(mge_session_load(runtime, argv[1], &options, &session));
  check(mge_session_evaluation(session, &evaluation));

  /* The notes are a text of the program's own: here, the number of steps so far. */
  int step = 0;
  mge_string* notes = NULL;
  mge_status* loaded = mge_session_load_checkpoint(session, argv[4], &notes);
  if (loaded) {
    mge_status_release(loaded); /* there is no file yet */
  } else {
    step = atoi(mge_string_data(notes));
    mge_string_release(notes);
  }
  printf("begins at step %d\n", step);

  mge_tensor* inputs[3] = {NULL, NULL, NULL};
  check(mge_tensor_read(argv[2], &inputs[0]));
  check(mge_tensor_read(argv[3], &inputs[1]));
  check(mge_tensor_create(MGE_DTYPE_F32, NULL, 0, &inputs[2]));
  *(float*)mge_tensor_data(inputs[2]) = 0.001f;

  const float before = loss_of(evaluation, inputs, 2);
  for (const int end = step + kSteps; step < end;) {
    loss_of(session, inputs, 3);
    char text[16];
    snprintf(text, sizeof(text), "%d", ++step);
    check(mge_session_save_checkpoint(session, argv[4], text));
  }
  printf("the loss has become %s\n", loss_of(evaluation, inputs, 2) < before ? "smaller" : "larger");
  check(mge_session_save_for_inference(session, argv[5]));
  printf("saved after step %d\n", step);

  for (int i = 0; i < 3; ++i) mge_tensor_release(inputs[i]);
  mge_session_release(evaluation);
  mge_session_release(session);
  mge_runtime_release(runtime);
  return 0;
}
