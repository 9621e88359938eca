/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds tensors of several devices: collective DEVICE DEVICE...
 * Each device is a rank: a session whose model exchanges tensors with those of the other ranks. */
#include "example.h"

enum { kMaxRanks = 8 };

/* The model y = mge.AllReduce(x), with x and y of type float32[2]. */
static const char kModel[] =
    "\x08\x08:=\x0a\x16\x0a\x01x\x12\x01y\"\x09"
    "AllReduce:\x03mge\x12\x01gZ\x0f\x0a\x01x\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x02"
    "b\x0f\x0a\x01y\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x02"
    "B\x04\x0a\x00\x10\x0d"
    "B\x07\x0a\x03mge\x10\x01";

int main(int argc, char** argv) {
  need_arguments(argc, 2, "collective DEVICE DEVICE...");
  const int ranks = argc - 1;
  if (ranks > kMaxRanks) return 2;
  mge_runtime* runtime = NULL;
  mge_string* id = NULL;
  mge_inbox* inbox = NULL;
  check(mge_runtime_create(NULL, &runtime));
  check(mge_inbox_create(&inbox));
  /* One process creates the id, and sends it to the others if the ranks are in several processes. */
  check(mge_collective_id(runtime, argv[1], &id));

  mge_session* sessions[kMaxRanks] = {NULL};
  for (int rank = 0; rank < ranks; ++rank) {
    char id_text[1024], ranks_text[64], rank_text[64];
    snprintf(id_text, sizeof(id_text), "collective.id=%s", mge_string_data(id));
    snprintf(ranks_text, sizeof(ranks_text), "collective.ranks=%d", ranks);
    snprintf(rank_text, sizeof(rank_text), "collective.rank=%d", rank);
    const char* settings[] = {id_text, ranks_text, rank_text};
    mge_session_options options;
    mge_session_options_init(&options);
    options.device = argv[1 + rank];
    options.settings = settings;
    options.setting_count = 3;
    mge_model_source source;
    mge_model_source_init(&source);
    source.data = kModel;
    source.size = sizeof(kModel) - 1;
    check(mge_session_load_from(runtime, &source, &options, &sessions[rank]));
  }

  /* The runs of all ranks must be in progress at the same time, so none of these calls waits. */
  for (int rank = 0; rank < ranks; ++rank) {
    const int64_t dims[] = {2};
    mge_tensor* x = NULL;
    check(mge_tensor_create(MGE_DTYPE_F32, dims, 1, &x));
    ((float*)mge_tensor_data(x))[0] = 1;
    ((float*)mge_tensor_data(x))[1] = (float)rank;
    mge_run_options options;
    mge_run_options_init(&options);
    options.inbox = inbox;
    options.tag = (uint64_t)rank;
    check(mge_session_run(sessions[rank], &x, 1, NULL, 0, &options, NULL));
    mge_tensor_release(x);
  }
  for (int ended = 0; ended < ranks;) {
    uint64_t rank = 0;
    mge_status* status = NULL;
    mge_tensor* y = NULL;
    size_t count = 0;
    if (!mge_inbox_take_run(inbox, &rank, &status, &y, 1, &count)) continue; /* see async.c for a wait that sleeps */
    check(status);
    printf("rank %d: %g %g\n", (int)rank, ((float*)mge_tensor_data(y))[0], ((float*)mge_tensor_data(y))[1]);
    mge_tensor_release(y);
    ++ended;
  }

  for (int rank = 0; rank < ranks; ++rank) mge_session_release(sessions[rank]);
  mge_string_release(id);
  mge_inbox_release(inbox);
  mge_runtime_release(runtime);
  return 0;
}
