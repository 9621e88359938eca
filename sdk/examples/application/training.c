/* SPDX-License-Identifier: Apache-2.0
 *
 * Trains a classifier: training MODEL INPUT.npy LABELS.npy TRAINED.onnx
 * Each run is one step on the whole batch. The states of the best step are kept and restored before the model is saved. */
#include "example.h"

enum { kSteps = 20, kMaxStates = 64 };

int main(int argc, char** argv) {
  need_arguments(argc, 4, "training MODEL INPUT.npy LABELS.npy TRAINED.onnx");
  mge_runtime* runtime = NULL;
  mge_session* session = NULL;
  check(mge_runtime_create(NULL, &runtime));

  mge_training_options training;
  mge_training_options_init(&training);
  training.optimizer = "adam";
  training.data_parallel = 1; /* on all devices of the session and, under mpirun, of all processes */
  mge_session_options options;
  mge_session_options_init(&options);
  options.training = &training;
  check(mge_session_load(runtime, argv[1], &options, &session));
  printf("%zu parameters, the first is %s\n", mge_session_parameter_count(session), mge_session_parameter_name(session, 0));

  /* The inputs are those of the model, then the labels, then the learning rate. */
  mge_tensor* inputs[3] = {NULL, NULL, NULL};
  check(mge_tensor_read(argv[2], &inputs[0]));
  check(mge_tensor_read(argv[3], &inputs[1]));
  check(mge_tensor_create(MGE_DTYPE_F32, NULL, 0, &inputs[2]));
  mge_schedule schedule; /* the learning rate falls along half a wave */
  mge_schedule_init(&schedule);
  schedule.name = "cosine";
  schedule.rate = 0.002;

  /* Each process computes a part of every batch. Other rows of its inputs are not read. */
  int64_t begin = 0, part = 0;
  const int64_t examples = mge_tensor_dims(inputs[1])[0];
  check(mge_session_part(session, examples, &begin, &part));
  printf("computes %d of %d examples\n", (int)part, (int)examples);

  /* The outputs are the loss, then those of the model. */
  mge_value_facts loss_facts;
  mge_value_facts_init(&loss_facts);
  check(mge_session_output(session, 0, &loss_facts));
  mge_run_options run;
  mge_run_options_init(&run);
  run.output_names = &loss_facts.name; /* only the loss */

  const size_t states = mge_session_state_count(session); /* the parameters, and values of the optimizer */
  mge_tensor* best[kMaxStates] = {NULL};
  if (states > kMaxStates) return 1;
  float first = 0, least = 0;
  for (int step = 0; step < kSteps; ++step) {
    mge_tensor* loss = NULL;
    double rate = 0;
    check(mge_schedule_rate(&schedule, (double)step / kSteps, &rate));
    *(float*)mge_tensor_data(inputs[2]) = (float)rate;
    check(mge_session_run(session, inputs, 3, &loss, 1, &run, NULL));
    const float now = *(const float*)mge_tensor_data(loss);
    mge_tensor_release(loss);
    if (step == 0) first = now;
    if (step > 0 && now >= least) continue;
    least = now;
    for (size_t i = 0; i < states; ++i) {
      mge_tensor_release(best[i]);
      check(mge_session_read_state(session, mge_session_state_name(session, i), &best[i]));
    }
  }
  printf("the loss has become %s\n", least < first ? "smaller" : "larger");

  for (size_t i = 0; i < states; ++i) check(mge_session_write_state(session, mge_session_state_name(session, i), best[i]));
  check(mge_session_save(session, argv[4]));
  printf("saved\n");

  for (size_t i = 0; i < states; ++i) mge_tensor_release(best[i]);
  for (int i = 0; i < 3; ++i) mge_tensor_release(inputs[i]);
  mge_session_release(session);
  mge_runtime_release(runtime);
  return 0;
}
