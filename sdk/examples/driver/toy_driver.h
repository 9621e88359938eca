/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake driver of the example: a C library in the style of OpenCL, for devices that exist only in software. It has the
 * habits of real drivers for which the guide has a section: memory has handles and no addresses, waits have no time limit,
 * callbacks run in threads of the driver, programs take long to compile, kernel objects hold their arguments, and
 * toy_start() installs a signal handler. */
#ifndef TOY_DRIVER_H_
#define TOY_DRIVER_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { TOY_OK = 0, TOY_NO_MEMORY = 1, TOY_INVALID = 2, TOY_NOT_BUILT = 3 } toy_status;
typedef struct toy_memory toy_memory;
typedef struct toy_stream toy_stream;
typedef struct toy_event toy_event;
typedef struct toy_program toy_program;
typedef struct toy_kernel toy_kernel;

#define TOY_ALIGNMENT 256 /* of the offset of a kernel's argument in its memory */

toy_status toy_start(void); /* installs a handler of SIGUSR2 */
void toy_stop(void);
const char* toy_version(void);
int toy_device_count(void);
int toy_most_steps(int device); /* in one program; older devices can only do one */
void toy_memory_info(int device, uint64_t* free_bytes, uint64_t* total_bytes);

toy_status toy_memory_create(int device, uint64_t bytes, toy_memory** out);
void toy_memory_destroy(toy_memory* memory);
int toy_memory_device(const toy_memory* memory);
uint64_t toy_memory_bytes(const toy_memory* memory);

/* Work of a stream runs in order. Destroying a stream waits for its work. */
toy_status toy_stream_create(int device, toy_stream** out);
void toy_stream_destroy(toy_stream* stream);
toy_status toy_write(toy_stream* stream, toy_memory* to, uint64_t offset, const void* from, uint64_t bytes);
toy_status toy_read(toy_stream* stream, void* to, toy_memory* from, uint64_t offset, uint64_t bytes);
toy_status toy_copy(toy_stream* stream, toy_memory* to, uint64_t to_offset, toy_memory* from, uint64_t from_offset,
                    uint64_t bytes);
/* Records an event: it is complete when the work enqueued before is done. Work enqueued after toy_wait starts then. */
toy_status toy_record(toy_stream* stream, toy_event** out);
toy_status toy_wait(toy_stream* stream, toy_event* event);
void toy_event_destroy(toy_event* event); /* work that waits for it keeps it */
/* Calls function(data) in a thread of the driver when the work enqueued before is done. It must not call the driver. */
toy_status toy_notify(toy_stream* stream, void (*function)(void* data), void* data);

/* A program computes one float32 from one or two others. The source lists its steps: "add relu". Building is slow. The
 * binary of a program is valid for one version of the driver. */
toy_status toy_program_build(int device, const char* source, toy_program** out);
toy_status toy_program_load(int device, const void* binary, uint64_t bytes, toy_program** out);
uint64_t toy_program_binary(const toy_program* program, const void** out); /* returns its bytes */
void toy_program_destroy(toy_program* program);

/* A kernel object holds the arguments of its next launch, so only one thread at a time may use it. Arguments 0 and 1 are
 * read, argument 2 is written. */
toy_status toy_kernel_create(const toy_program* program, toy_kernel** out);
void toy_kernel_destroy(toy_kernel* kernel);
toy_status toy_kernel_argument(toy_kernel* kernel, int index, toy_memory* memory, uint64_t offset);
toy_status toy_launch(toy_stream* stream, toy_kernel* kernel, uint64_t count);

#ifdef __cplusplus
}
#endif
#endif
