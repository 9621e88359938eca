/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads a model that is not a file, with progress and a time limit: sources MODEL
 * The program reads the model itself, piece by piece, as it would from a network or an archive. */
#include "example.h"

static int64_t read_piece(void* file, void* buffer, uint64_t capacity) {
  const size_t read = fread(buffer, 1, (size_t)capacity, file);
  return ferror((FILE*)file) ? -1 : (int64_t)read; /* 0: the end */
}

static void close_file(void* file) { fclose(file); }

int main(int argc, char** argv) {
  need_arguments(argc, 1, "sources MODEL");
  mge_runtime* runtime = NULL;
  mge_session* session = NULL;
  mge_run_control* control = NULL;
  mge_inbox* inbox = NULL;
  check(mge_runtime_create(NULL, &runtime));
  check(mge_inbox_create(&inbox));
  check(mge_run_control_create(&control));
  mge_run_control_set_timeout(control, 60); /* seconds */

  FILE* file = fopen(argv[1], "rb");
  if (!file) {
    perror(argv[1]);
    return 1;
  }
  mge_model_source source;
  mge_model_source_init(&source);
  source.read = read_piece;
  source.release = close_file; /* called once, also if the load fails */
  source.state = file;
  mge_session_options options;
  mge_session_options_init(&options);
  options.control = control; /* mge_run_control_cancel, on another thread, would end the load */
  /* An inbox keeps the progress for another thread; `progress` would be called on threads of the library. */
  options.progress_inbox = inbox;
  check(mge_session_load_from(runtime, &source, &options, &session));
  mge_string* stage = NULL;
  uint64_t done = 0, total = 0;
  while (mge_inbox_take_progress(inbox, &stage, &done, &total)) {
    printf("%s: %llu of %llu\n", mge_string_data(stage), (unsigned long long)done, (unsigned long long)total);
    mge_string_release(stage);
  }
  printf("%zu inputs\n", mge_session_input_count(session));

  mge_inbox_release(inbox);
  mge_run_control_release(control);
  mge_session_release(session);
  mge_runtime_release(runtime);
  return 0;
}
