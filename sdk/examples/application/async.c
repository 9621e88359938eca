/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs that do not wait: async MODEL INPUT.npy DEVICE
 * First with an inbox, for a loop of events; then enqueued on the device, one run behind another. */
#include <poll.h>

#include "example.h"

int main(int argc, char** argv) {
  need_arguments(argc, 3, "async MODEL INPUT.npy DEVICE");
  mge_runtime* runtime = NULL;
  mge_session* session = NULL;
  mge_inbox* inbox = NULL;
  mge_run_control* control = NULL;
  mge_tensor* input = NULL;
  check(mge_inbox_create(&inbox));
  mge_runtime_options runtime_options;
  mge_runtime_options_init(&runtime_options);
  runtime_options.log_inbox = inbox; /* messages come there, too */
  check(mge_runtime_create(&runtime_options, &runtime));
  mge_session_options session_options;
  mge_session_options_init(&session_options);
  session_options.device = argv[3];
  check(mge_session_load(runtime, argv[1], &session_options, &session));
  check(mge_tensor_read(argv[2], &input));

  /* The runs that begin with this control have a time limit, a priority and a seed. */
  check(mge_run_control_create(&control));
  mge_run_control_set_timeout(control, 30); /* seconds per run */
  mge_run_control_set_priority(control, 1);
  mge_run_control_set_seed(control, 42);

  mge_run_options options;
  mge_run_options_init(&options);
  options.control = control;
  options.inbox = inbox;
  for (uint64_t i = 0; i < 3; ++i) {
    options.tag = i;
    check(mge_session_run(session, &input, 1, NULL, 0, &options, NULL)); /* returns at once */
  }
  double seconds = 0;
  mge_string* place = NULL;
  check(mge_run_control_overdue(control, &seconds, &place)); /* for a watchdog */
  printf("over the limit by %g seconds\n", seconds);
  mge_string_release(place);

  for (uint64_t tags = 0, ended = 0; ended < 3;) {
    struct pollfd event = {mge_inbox_descriptor(inbox), POLLIN, 0};
    poll(&event, 1, -1); /* a program waits here for its other events, too */
    mge_string* message = NULL;
    mge_status* status = NULL;
    mge_tensor* output = NULL;
    int32_t level = 0;
    uint64_t tag = 0;
    size_t count = 0;
    while (mge_inbox_take_message(inbox, &level, &message)) print_text("message", message);
    while (mge_inbox_take_run(inbox, &tag, &status, &output, 1, &count)) {
      check(status);
      tags += tag;
      mge_tensor_release(output);
      if (++ended == 3) printf("3 runs ended, sum of their tags %llu\n", (unsigned long long)tags);
    }
  }

  /* Enqueued: the device does the second run when the first one has ended. On a device without queues, the call runs it. */
  mge_tensor *first = NULL, *second = NULL;
  mge_run_fence *one = NULL, *two = NULL;
  mge_run_options_init(&options);
  check(mge_session_run(session, &input, 1, &first, 1, NULL, &one));
  options.after = &one;
  options.after_count = 1;
  check(mge_session_run(session, &input, 1, &second, 1, &options, &two));
  int32_t reached = 0;
  check(mge_run_fence_wait(two, 30, &reached)); /* the errors of the device arrive here */
  printf("enqueued runs ended: %s\n", reached ? "yes" : "no");
  mge_run_fence_release(one);
  mge_run_fence_release(two);

  /* Cancels the runs in progress, and every later one until the reset. */
  mge_run_control_cancel(control);
  mge_tensor* none = NULL;
  mge_run_options_init(&options);
  options.control = control;
  mge_status* status = mge_session_run(session, &input, 1, &none, 1, &options, NULL);
  printf("cancelled: %s\n", mge_status_code(status) == MGE_CANCELLED ? "yes" : "no");
  mge_status_release(status);
  mge_run_control_reset(control);
  check(mge_session_run(session, &input, 1, &none, 1, &options, NULL));

  mge_tensor_release(none);
  mge_tensor_release(first);
  mge_tensor_release(second);
  mge_tensor_release(input);
  mge_run_control_release(control);
  mge_session_release(session);
  mge_runtime_release(runtime);
  mge_inbox_release(inbox);
  return 0;
}
