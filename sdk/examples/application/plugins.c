/* SPDX-License-Identifier: Apache-2.0
 *
 * Installs and removes a backend: plugins FILE.so NAME FOLDER
 * NAME is that of the backend in the file, FOLDER receives it. No function here opens the backend. */
#include "example.h"

int main(int argc, char** argv) {
  need_arguments(argc, 3, "plugins FILE.so NAME FOLDER");
  const char* folders[] = {argv[3]};
  mge_runtime_options options;
  mge_runtime_options_init(&options);
  options.plugin_directories = folders;
  options.plugin_directory_count = 1;
  mge_string* text = NULL;

  check(mge_plugins_verify(&options, argv[1], &text)); /* the verdict, as JSON */
  print_text("verdict", text);
  check(mge_plugins_install(&options, argv[1], &text)); /* an error says why a file is not accepted */
  char path[4096];
  snprintf(path, sizeof(path), "%s", mge_string_data(text));
  mge_string_release(text);
  printf("installed: %s\n", path);

  /* Keeps runtimes of this user from opening this build, for example after a crash. */
  check(mge_plugins_quarantine(&options, path, "it crashed in a kernel"));
  check(mge_plugins_verify(&options, path, &text));
  printf("quarantined: %s\n", strstr(mge_string_data(text), "it crashed in a kernel") ? "yes" : "no");
  mge_string_release(text);
  check(mge_plugins_end_quarantine(&options, argv[2]));

  check(mge_plugins_remove(&options, argv[2], &text));
  printf("removed: %s\n", mge_string_data(text));
  mge_string_release(text);
  return 0;
}
