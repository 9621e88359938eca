/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of all examples: they end the program at an error, and print a text of the library. */
#ifndef EXAMPLE_H_
#define EXAMPLE_H_

#include <stdio.h>
#include <stdlib.h>

#include "mge/mge.h"

/* Ends the program with the exit code of an error, after its text. NULL: success. */
static inline void check(mge_status* status) {
  if (!status) return;
  fprintf(stderr, "%s\n", mge_status_text(status));
  const int32_t code = mge_status_exit_code(status);
  mge_status_release(status);
  exit(code);
}

/* Ends the program unless it has enough arguments. */
static inline void need_arguments(int argc, int count, const char* usage) {
  if (argc > count) return;
  fprintf(stderr, "usage: %s\n", usage);
  exit(2);
}

/* Prints a text under a title, and releases it. */
static inline void print_text(const char* title, mge_string* text) {
  printf("%s: %s\n", title, mge_string_data(text));
  mge_string_release(text);
}

#endif /* EXAMPLE_H_ */
