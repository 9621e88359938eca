/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract between MGE and a transport, in plain C99. A transport is a plugin without devices: it moves messages between the
 * processes that a launcher such as mpirun started for one training. It is one shared object that
 *   - carries an ELF note (MGE_TRANSPORT_NOTE), which the host checks before it opens the library,
 *   - exports one symbol, mge_transport_query, and imports nothing from the host.
 * The host opens it only if a launcher started the process and a training on several processes begins. It computes sums and the
 * like itself; a transport only moves bytes. The rules of mge/plugin.h hold here too: structs, errors, ownership, threads.
 *
 * Version: host and transport must have equal MGE_TRANSPORT_VERSION, and while MGE_ABI_MAJOR is 0, equal headers.
 */
#ifndef MGE_TRANSPORT_H_
#define MGE_TRANSPORT_H_

#include <stdint.h>

#include "mge/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MGE_TRANSPORT_VERSION 1u
#define MGE_TRANSPORT_NOTE_TYPE 2u

typedef struct mge_exchange mge_exchange; /* transport: messages on their way */

/* The services of the host. Valid until leave() has returned. */
typedef struct mge_transport_host {
  uint32_t struct_size;
  uint32_t reserved;
  void* self; /* first argument of the functions below */
  /* Copies the text into `error` and returns `code`. [any] */
  mge_code (*fail)(void* self, mge_error* error, mge_code code, const char* text, uint64_t size);
  void (*log)(void* self, int32_t severity, const char* text, uint64_t size); /* [any] */
} mge_transport_host;

/* The result of join(). */
typedef struct mge_transport_place {
  uint32_t struct_size;
  uint32_t rank;  /* of this process, from 0 */
  uint32_t ranks; /* number of processes */
  uint32_t reserved;
  mge_text library; /* name and version of the library that moves the messages; static */
} mge_transport_place;

/* A message to or from another process. */
typedef struct mge_message {
  void* data; /* valid until the exchange is released; sent bytes do not change */
  uint64_t bytes;
  uint32_t peer; /* rank of the other process, not the own one */
  int32_t sends; /* 1: to the peer; 0: from it, with as many bytes as the peer sends */
  int32_t done;  /* written by wait(): 1 if the message has arrived or has left */
  int32_t reserved;
} mge_message;

typedef struct mge_transport {
  uint32_t struct_size;
  uint32_t version; /* MGE_TRANSPORT_VERSION */
  mge_text name;    /* as in the note */
  /* Joins the processes, once per process. Returns when all have joined, or MGE_DEADLINE_EXCEEDED after the timeout. If the
   * process has left before, fails with MGE_FAILED_PRECONDITION. [one] */
  mge_code (*join)(const mge_transport_host* host, uint64_t timeout_ns, mge_transport_place* out, mge_error* error);
  /* Starts to move messages on a channel from 0 to 32767. Messages of one channel between two processes arrive in the order in
   * which they were started. The list is valid until the exchange is released. [any] */
  mge_code (*start)(uint32_t channel, mge_message* messages, uint64_t count, mge_exchange** out, mge_error* error);
  /* Waits until all messages are done, or returns MGE_DEADLINE_EXCEEDED after the timeout. [one] */
  mge_code (*wait)(mge_exchange* exchange, uint64_t timeout_ns, mge_error* error);
  /* Ends an exchange. Receives that are not done are cancelled. The data of sends that are not done must stay valid until
   * leave() has returned. [one] */
  void (*release)(mge_exchange* exchange);
  /* Returns when all processes have called it; `timeout_ns` = 0: however long that takes. After the timeout, ends all processes,
   * this one included, with the exit code. [one] */
  void (*leave)(uint64_t timeout_ns, int32_t exit_code);
} mge_transport;

/* The only exported symbol. Returns a static table, or NULL if the transport does not support the host's version. */
typedef const mge_transport* (*mge_transport_query_fn)(uint32_t version);
#define MGE_TRANSPORT_QUERY_SYMBOL "mge_transport_query"

#define MGE_TRANSPORT_NOTE(transport_name, transport_version)                                               \
  __attribute__((section(MGE_NOTE_SECTION), used, aligned(4))) static const mge_note_section mge_note_ = {  \
      4,                                                                                                    \
      (uint32_t)sizeof(mge_note),                                                                           \
      MGE_TRANSPORT_NOTE_TYPE,                                                                              \
      {'M', 'G', 'E', 0},                                                                                   \
      {(uint32_t)sizeof(mge_note), MGE_ABI_MAJOR, MGE_ABI_MINOR, 0, (uint32_t)(MGE_ABI_HASH & 0xffffffffu), \
       (uint32_t)(MGE_ABI_HASH >> 32), 0, 0, transport_name, transport_version, ""}}

#ifdef __cplusplus
}
#endif

#endif /* MGE_TRANSPORT_H_ */
