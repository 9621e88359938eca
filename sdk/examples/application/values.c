/* SPDX-License-Identifier: Apache-2.0
 *
 * Strings, sequences, optionals and maps: values
 * Creates the inputs of models that are no tensors of numbers, and reads such outputs. */
#include "example.h"

/* Creates a map from two words to their scores. */
static mge_tensor* scores(float a, float b) {
  const int64_t dims[] = {2};
  const char bytes[] = "catdog"; /* the strings follow one another */
  const uint64_t ends[] = {3, 6};
  mge_tensor *keys = NULL, *values = NULL, *map = NULL;
  check(mge_tensor_create_strings(dims, 1, bytes, ends, &keys));
  check(mge_tensor_create(MGE_DTYPE_F32, dims, 1, &values));
  float* numbers = mge_tensor_data(values);
  numbers[0] = a;
  numbers[1] = b;
  mge_tensor* parts[] = {keys, values};
  check(mge_value_create(MGE_VALUE_MAP, parts, 2, &map)); /* shares the memory of its parts */
  mge_tensor_release(keys);
  mge_tensor_release(values);
  return map;
}

int main(void) {
  /* Strings, one by one. */
  const int64_t dims[] = {2};
  mge_tensor* words = NULL;
  check(mge_tensor_create(MGE_DTYPE_STRING, dims, 1, &words));
  check(mge_tensor_set_string(words, 0, "one", 3));
  check(mge_tensor_set_string(words, 1, "three", 5));
  const mge_text word = mge_tensor_string(words, 1);
  printf("word 1: %.*s\n", (int)word.size, word.data);

  /* All strings as one block of bytes: first the size, then the block. */
  uint64_t ends[2];
  char block[16];
  check(mge_tensor_read_strings(words, ends, NULL, 0));
  check(mge_tensor_read_strings(words, ends, block, sizeof(block)));
  printf("block: %.*s\n", (int)ends[1], block);

  /* A sequence of maps, as a classifier returns it, and its table: a row for each map. */
  mge_tensor* maps[] = {scores(0.25f, 0.75f), scores(1, 0)};
  mge_tensor *sequence = NULL, *first = NULL, *keys = NULL, *table = NULL;
  check(mge_value_create(MGE_VALUE_SEQUENCE, maps, 2, &sequence));
  printf("kind %d with %zu parts\n", (int)mge_tensor_kind(sequence), mge_tensor_part_count(sequence));
  check(mge_tensor_part(sequence, 0, &first));
  printf("part 0 is a map: %s\n", mge_tensor_kind(first) == MGE_VALUE_MAP ? "yes" : "no");
  check(mge_value_table(sequence, &keys, &table));
  const float* rows = mge_tensor_data(table);
  const mge_text dog = mge_tensor_string(keys, 1);
  printf("%.*s: %g and %g\n", (int)dog.size, dog.data, rows[1], rows[3]);

  mge_tensor* all[] = {words, maps[0], maps[1], sequence, first, keys, table};
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i) mge_tensor_release(all[i]);
  return 0;
}
