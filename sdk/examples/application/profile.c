/* SPDX-License-Identifier: Apache-2.0
 *
 * Shows where the time of runs goes: profile MODEL INPUT.npy TRACE.json
 * The trace is for the viewers of Chrome and Perfetto. */
#include "example.h"

int main(int argc, char** argv) {
  need_arguments(argc, 3, "profile MODEL INPUT.npy TRACE.json");
  mge_runtime* runtime = NULL;
  mge_session* session = NULL;
  mge_run_control* control = NULL;
  mge_profile* profile = NULL;
  mge_tensor *input = NULL, *output = NULL;
  mge_string* text = NULL;
  check(mge_runtime_create(NULL, &runtime));
  check(mge_session_load(runtime, argv[1], NULL, &session));
  check(mge_tensor_read(argv[2], &input));

  check(mge_profile_create(&profile));
  check(mge_run_control_create(&control));
  mge_run_control_set_profile(control, profile);
  mge_run_options options;
  mge_run_options_init(&options);
  options.control = control;
  for (int i = 0; i < 10; ++i) {
    check(mge_session_run(session, &input, 1, &output, 1, &options, NULL));
    if (i == 1) mge_profile_reset(profile); /* without the runs that planned and warmed up */
  }

  check(mge_profile_report(profile, "mge.profile/1", &text));
  print_text("profile", text);
  check(mge_session_plan_measured(session, &input, 1, profile, "text", 0, &text));
  print_text("plan", text);
  check(mge_profile_report(profile, "trace", &text));
  FILE* file = fopen(argv[3], "w");
  if (!file || fwrite(mge_string_data(text), 1, mge_string_size(text), file) != mge_string_size(text) || fclose(file)) {
    perror(argv[3]);
    return 1;
  }
  printf("trace written\n");
  mge_string_release(text);

  mge_run_control_set_profile(control, NULL); /* later runs are not measured */
  mge_profile_release(profile);
  mge_run_control_release(control);
  mge_tensor_release(input);
  mge_tensor_release(output);
  mge_session_release(session);
  mge_runtime_release(runtime);
  return 0;
}
