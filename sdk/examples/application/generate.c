/* SPDX-License-Identifier: Apache-2.0
 *
 * Language models: generate FOLDER ID...
 * Continues a prompt of token ids, goes back to it, and continues it in another way. */
#include "mge/generate.h"

#include <math.h>

#include "example.h"

/* Generates until the end of the text, at most `most` tokens. */
static void continue_text(mge_generator* generator, int most) {
  int32_t end = MGE_END_NONE;
  for (int i = 0; i < most && end == MGE_END_NONE; ++i) {
    int64_t id = 0;
    check(mge_generator_next(generator, NULL, &id, &end));
    printf(" %lld", (long long)id);
    fflush(stdout);
  }
  printf(end == MGE_END_TOKEN ? " (end of the text)\n" : "\n");
}

int main(int argc, char** argv) {
  need_arguments(argc, 2, "generate FOLDER ID...");
  mge_runtime* runtime = NULL;
  mge_generator_options options;
  mge_generator* generator = NULL;
  check(mge_runtime_create(NULL, &runtime));
  mge_generator_options_init(&options);
  options.device = "cpu0";
  check(mge_generator_load(runtime, argv[1], &options, &generator));
  mge_runtime_release(runtime); /* the generator keeps it */

  mge_generator_facts facts;
  mge_generator_facts_init(&facts);
  check(mge_generator_describe(generator, &facts));
  printf("at most %lld tokens on %s; each adds %llu bytes to the caches\n", (long long)facts.max_length, facts.device,
         (unsigned long long)facts.cache_bytes_per_token);

  for (int i = 2; i < argc; ++i) {
    const int64_t id = atoll(argv[i]);
    check(mge_generator_append(generator, &id, 1));
  }
  printf("most probable:");
  continue_text(generator, 8);

  /* Back to the prompt, whose work need not be done again. */
  check(mge_generator_rewind(generator, (size_t)(argc - 2)));
  mge_sampling sampling;
  mge_sampling_init(&sampling);
  check(mge_generator_sampling(generator, &sampling)); /* the folder's options */
  sampling.temperature = 0.8;
  sampling.seed = 1;
  check(mge_generator_set_sampling(generator, &sampling));
  printf("sampled:");
  continue_text(generator, 8);

  /* Own rules: the most probable token must not come next. */
  check(mge_generator_rewind(generator, (size_t)(argc - 2)));
  float* logits = NULL;
  size_t count = 0, largest = 0;
  check(mge_generator_logits(generator, NULL, &logits, &count));
  for (size_t i = 1; i < count; ++i) {
    if (logits[i] > logits[largest]) largest = i;
  }
  logits[largest] = -INFINITY;
  printf("not %zu:", largest);
  continue_text(generator, 1);

  const int64_t* tokens = mge_generator_tokens(generator, &count);
  printf("%zu tokens, the last one is %lld\n", count, (long long)tokens[count - 1]);
  mge_generator_release(generator);
  return 0;
}
