/* SPDX-License-Identifier: Apache-2.0
 *
 * Language models for applications: continue a sequence of tokens. It belongs to mge.h, whose rules hold here.
 *
 *   mge_generator* generator = NULL;
 *   if ((status = mge_generator_load(runtime, "folder", NULL, &generator))) goto failed;
 *   if ((status = mge_generator_append(generator, prompt, count))) goto failed;
 *   for (int32_t end = 0; !end;) {
 *     if ((status = mge_generator_next(generator, NULL, &id, &end))) goto failed;
 *   }
 */
#ifndef MGE_GENERATE_H_
#define MGE_GENERATE_H_

#include "mge/mge.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A sequence of tokens, and the model that continues it. One thread at a time may use it; a call of a second thread fails with E0207.
 * After any error the sequence is as before the call, and can be continued. It keeps its runtime alive. */
typedef struct mge_generator mge_generator;

/* Options of a generator. The strings are used only during the call. */
typedef struct mge_generator_options {
  size_t struct_size;
  const char* device; /* as in mge_session_options */
  int32_t threads;    /* 0: the runtime's setting */
  int32_t reserved;
  const char* const* settings; /* dynamic settings for its session only, as "NAME=VALUE" */
  size_t setting_count;
  int64_t max_length; /* most tokens of the sequence, the prompt included; 0: what the folder says */
} mge_generator_options;
static inline void mge_generator_options_init(mge_generator_options* options) { MGE_CLEAR_(options); }

/* Loads the model of a folder of ONNX Runtime GenAI: genai_config.json beside a decoder with caches, and perhaps an encoder. Fails with E0403
 * for other kinds of models (a pipeline, images, speech by an own file, recurrent decoders), with E0206 for a wrong genai_config.json, and like
 * mge_session_load. Its unknown keys are one warning. */
MGE_API MGE_NODISCARD mge_status* mge_generator_load(mge_runtime* runtime, const char* folder,
                                                     const mge_generator_options* options /* nullable */,
                                                     mge_generator** out);
MGE_API void mge_generator_release(mge_generator* generator);

/* Facts about a generator. Set struct_size before the call. The pointers are valid as long as the generator. */
typedef struct mge_generator_facts {
  size_t struct_size;
  int64_t vocabulary;             /* ids are less than this; 0: not known */
  int64_t max_length;             /* most tokens of the sequence */
  uint64_t weight_bytes;          /* weights that each token reads */
  uint64_t cache_bytes_per_token; /* memory of a token in the caches, which every later token reads */
  uint64_t cache_bytes;           /* memory of the caches now */
  const int64_t* end_tokens;      /* ids that end a text */
  size_t end_token_count;
  const char* device;
  int32_t threads; /* of its runs */
  int32_t reserved;
} mge_generator_facts;
static inline void mge_generator_facts_init(mge_generator_facts* facts) { MGE_CLEAR_(facts); }
MGE_API MGE_NODISCARD mge_status* mge_generator_describe(mge_generator* generator, mge_generator_facts* out);

/* How the next token is chosen from its logits. The steps are done in the order of the members. */
typedef struct mge_sampling {
  size_t struct_size;
  double repetition_penalty; /* > 0; above 1 makes the tokens of the sequence less probable; 1: no change */
  double temperature;        /* >= 0; 0: the most probable token, and the next members have no effect */
  int64_t top_k;             /* the k most probable tokens may be chosen; 0: all */
  double top_p;              /* in (0, 1]: the fewest most probable tokens with this sum of probabilities; 1: all */
  double min_p;              /* in [0, 1]: tokens with at least this fraction of the largest probability; 0: all */
  uint64_t seed;             /* the choice depends on it and on the position in the sequence only */
} mge_sampling;
/* Sets the size, and the defaults: the most probable token. */
static inline void mge_sampling_init(mge_sampling* sampling) {
  MGE_CLEAR_(sampling);
  sampling->repetition_penalty = 1;
  sampling->top_p = 1;
}
/* Returns the present options: at first those of the folder; its seed is random if it has none. */
MGE_API MGE_NODISCARD mge_status* mge_generator_sampling(mge_generator* generator, mge_sampling* out);
MGE_API MGE_NODISCARD mge_status* mge_generator_set_sampling(mge_generator* generator, const mge_sampling* sampling);

/* Runs the encoder of a model that has one: on the features of speech or the tokens of a text to translate. The tensors are inputs of the encoder,
 * with their names. A mask that is not given is 1 for each token. The tokens of the sequence run again; the first one is usually the model's
 * decoder_start_token_id. Fails with E0207 if the model has no encoder, and like mge_session_run. `control` as in mge_generator_next. */
MGE_API MGE_NODISCARD mge_status* mge_generator_set_source(mge_generator* generator, const char* const* names,
                                                           mge_tensor* const* tensors, size_t count,
                                                           mge_run_control* control /* nullable */);

/* Appends tokens to the sequence. They run when logits are needed: a long prompt in parts. Fails with E0309 for an id outside of the
 * vocabulary, and with E0310, which says how many fit, if the sequence would be longer than max_length. */
MGE_API MGE_NODISCARD mge_status* mge_generator_append(mge_generator* generator, const int64_t* ids, size_t count);

enum {
  MGE_END_NONE = 0,
  MGE_END_TOKEN = 1, /* the token ends a text */
  MGE_END_LENGTH = 2 /* the sequence has max_length tokens */
};
/* Chooses the next token and appends it. *end receives MGE_END_...; the sequence may be continued behind an end token. `control` cancels
 * the run or limits its time; its profile does not record it. Fails with E0310 if the sequence has max_length tokens, and with
 * E0311 if the logits are not numbers. */
MGE_API MGE_NODISCARD mge_status* mge_generator_next(mge_generator* generator, mge_run_control* control /* nullable */,
                                                     int64_t* id, int32_t* end);
/* Returns the logits of the next token, one for each id. The caller may change them, for example set those of forbidden tokens to
 * -INFINITY, before mge_generator_next uses them; or choose a token itself and append it. The pointer is valid until the
 * sequence changes. `control` as above. */
MGE_API MGE_NODISCARD mge_status* mge_generator_logits(mge_generator* generator, mge_run_control* control /* nullable */,
                                                       float** logits, size_t* count);
/* Keeps the first `count` tokens, and what the caches know of them. A model with states of fixed size runs them again. */
MGE_API MGE_NODISCARD mge_status* mge_generator_rewind(mge_generator* generator, size_t count);
/* Returns the sequence. The pointer is valid until the sequence changes. */
MGE_API const int64_t* mge_generator_tokens(const mge_generator* generator, size_t* count);

/* Several sequences of one model, whose next tokens one run computes. Sequences join and leave at any time. The tokens of a sequence are
 * those that a generator would choose for it alone, but for rounding. One thread at a time may use it; a call of a second thread fails
 * with E0207. After any error the sequences are as before the call. It keeps its runtime alive.
 *
 * One run for all needs a mask, positions (or GroupQueryAttention), a batch of any size in the model, and caches in the memory of the
 * host. Otherwise each sequence has runs of its own, with the same tokens. */
typedef struct mge_batch mge_batch;

/* Options of a batch. The strings are used only during the call. */
typedef struct mge_batch_options {
  size_t struct_size;
  const char* device; /* as in mge_session_options */
  int32_t threads;    /* 0: the runtime's setting */
  int32_t reserved;
  const char* const* settings; /* dynamic settings for its session only, as "NAME=VALUE" */
  size_t setting_count;
  int64_t max_length; /* most tokens of each sequence, the prompt included; 0: what the folder says */
  /* Most memory of the caches of all sequences; 0: no limit but that of the device. While sequences join or leave, caches are
   * copied and need twice as much. */
  uint64_t cache_bytes;
} mge_batch_options;
static inline void mge_batch_options_init(mge_batch_options* options) { MGE_CLEAR_(options); }

/* Loads the model of a folder. Fails like mge_generator_load. */
MGE_API MGE_NODISCARD mge_status* mge_batch_load(mge_runtime* runtime, const char* folder,
                                                 const mge_batch_options* options /* nullable */, mge_batch** out);
MGE_API void mge_batch_release(mge_batch* batch);

/* Adds a sequence that begins with a prompt of at least one token; *sequence receives its number. It ends after max_tokens new tokens;
 * 0: at max_length. `sampling`: NULL for the folder's options. Fails like mge_generator_append and mge_generator_set_sampling, and with
 * E0602, which says how many tokens fit, if the caches of all sequences could need more than cache_bytes. */
MGE_API MGE_NODISCARD mge_status* mge_batch_add(mge_batch* batch, const int64_t* ids, size_t count,
                                                const mge_sampling* sampling /* nullable */, int64_t max_tokens,
                                                int64_t* sequence);

/* The next token of a sequence. */
typedef struct mge_batch_token {
  int64_t sequence;
  int64_t id;
  int32_t end; /* MGE_END_...; the sequence then leaves the batch's runs, and its tokens stay until it is removed */
  int32_t reserved;
} mge_batch_token;
/* Computes the next token of each sequence that has not ended; *count is 0 if all have. A prompt runs in the first call after its
 * addition. *tokens is valid until the next call. `control` cancels the run or limits its time. Fails like mge_generator_next; an error
 * that belongs to one sequence names it, and the others go on when it is removed. */
MGE_API MGE_NODISCARD mge_status* mge_batch_step(mge_batch* batch, mge_run_control* control /* nullable */,
                                                 const mge_batch_token** tokens, size_t* count);
/* Returns the prompt and the new tokens of a sequence. The pointer is valid until it changes. */
MGE_API MGE_NODISCARD mge_status* mge_batch_tokens(mge_batch* batch, int64_t sequence, const int64_t** ids, size_t* count);
/* Ends and forgets a sequence. */
MGE_API MGE_NODISCARD mge_status* mge_batch_remove(mge_batch* batch, int64_t sequence);

#ifdef __cplusplus
}
#endif
#endif /* MGE_GENERATE_H_ */
