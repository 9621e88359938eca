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

/* Called on any thread, one call at a time. */
static void show_progress(void* state, const char* stage, uint64_t done, uint64_t total) {
  (void)state;
  if (done == total) printf("%s: done\n", stage);
}

int main(int argc, char** argv) {
  need_arguments(argc, 1, "sources MODEL");
  mge_runtime* runtime = NULL;
  mge_session* session = NULL;
  mge_run_control* control = NULL;
  check(mge_runtime_create(NULL, &runtime));
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
  options.progress = show_progress;
  check(mge_session_load_from(runtime, &source, &options, &session));
  printf("%zu inputs\n", mge_session_input_count(session));

  mge_run_control_release(control);
  mge_session_release(session);
  mge_runtime_release(runtime);
  return 0;
}
