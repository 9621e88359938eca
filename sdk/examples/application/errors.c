/* SPDX-License-Identifier: Apache-2.0
 *
 * Shows the parts of an error: errors MODEL
 * Tries to load a model that does not exist, and a session on a device that does not exist. */
#include "example.h"

static void explain(mge_status* status) {
  if (!status) {
    printf("it worked\n");
    return;
  }
  printf("E%04d: %s\n", (int)mge_status_id(status), mge_status_title(status));
  printf("  what:  %s\n", mge_status_what(status)); /* "" if a part is empty */
  printf("  where: %s\n", mge_status_where(status));
  printf("  fix:   %s\n", mge_status_fix(status));
  /* Programs decide by the code. */
  if (mge_status_code(status) == MGE_NOT_FOUND) printf("  the code is MGE_NOT_FOUND\n");
  printf("  a program would end with %d\n", (int)mge_status_exit_code(status));
  mge_status_release(status);
}

int main(int argc, char** argv) {
  need_arguments(argc, 1, "errors MODEL");
  printf("compiled for %d, loaded %s\n", MGE_VERSION, mge_version());
  if (mge_version_number() < MGE_VERSION) { /* the program may call functions that this library lacks */
    fprintf(stderr, "libmge is older than this program\n");
    return 1;
  }

  mge_runtime* runtime = NULL;
  mge_session* session = NULL;
  check(mge_runtime_create(NULL, &runtime));
  explain(mge_session_load(runtime, "/no/such/model.onnx", NULL, &session));

  mge_session_options options;
  mge_session_options_init(&options);
  options.device = "virtual99";
  explain(mge_session_load(runtime, argv[1], &options, &session)); /* never another device than the one named */

  mge_session_release(session); /* it is NULL: releases nothing */
  mge_runtime_release(runtime);
  return 0;
}
