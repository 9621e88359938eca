/* SPDX-License-Identifier: Apache-2.0
 *
 * Language models: generate FOLDER ID...
 * Continues a prompt of token ids, goes back to it, and continues it in another way; then two sequences at once. */
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

/* Continues the prompt and its last token as two sequences, with common runs where the model allows. */
static void continue_both(mge_runtime* runtime, const char* folder, const int64_t* prompt, size_t count) {
  mge_batch_options options;
  mge_batch* batch = NULL;
  int64_t whole = 0, last = 0;
  mge_batch_options_init(&options);
  options.device = "cpu0";
  check(mge_batch_load(runtime, folder, &options, &batch));
  check(mge_batch_add(batch, prompt, count, NULL, 4, &whole));
  check(mge_batch_add(batch, prompt + count - 1, 1, NULL, 4, &last));
  const mge_batch_token* tokens = NULL;
  const int64_t* ids = NULL;
  do {
    check(mge_batch_step(batch, NULL, &tokens, &count));
    for (size_t i = 0; i < count; ++i) printf(" %lld:%lld", (long long)tokens[i].sequence, (long long)tokens[i].id);
  } while (count > 0);
  check(mge_batch_tokens(batch, last, &ids, &count));
  printf(" (%zu tokens in sequence %lld)\n", count, (long long)last);
  check(mge_batch_remove(batch, last));
  mge_batch_release(batch);
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
  mge_generator_facts facts;
  mge_generator_facts_init(&facts);
  check(mge_generator_describe(generator, &facts));
  printf("at most %lld tokens on %s; each adds %llu bytes to the caches\n", (long long)facts.max_length, facts.device,
         (unsigned long long)facts.cache_bytes_per_token);

  /* A model with an encoder reads a source first. */
  mge_status* status = mge_generator_set_source(generator, NULL, NULL, 0, NULL);
  printf("source: %s\n", mge_status_title(status));
  mge_status_release(status);

  int64_t prompt[16];
  size_t length = 0;
  for (int i = 2; i < argc && length < 16; ++i) prompt[length++] = atoll(argv[i]);
  check(mge_generator_append(generator, prompt, length));
  printf("most probable:");
  continue_text(generator, 8);

  /* Back to the prompt, whose work need not be done again. */
  check(mge_generator_rewind(generator, length));
  mge_sampling sampling;
  mge_sampling_init(&sampling);
  check(mge_generator_sampling(generator, &sampling)); /* the folder's options */
  sampling.temperature = 0.8;
  sampling.seed = 1;
  check(mge_generator_set_sampling(generator, &sampling));
  printf("sampled:");
  continue_text(generator, 8);

  /* Own rules: the most probable token must not come next. */
  check(mge_generator_rewind(generator, length));
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

  printf("together:");
  continue_both(runtime, argv[1], prompt, length);
  mge_runtime_release(runtime);
  return 0;
}
