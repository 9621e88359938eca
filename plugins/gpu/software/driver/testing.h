/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the driver in software exports for tests, besides those of the real driver. Find them with dlsym. */
#ifndef MGE_SOFTWARE_DRIVER_TESTING_H
#define MGE_SOFTWARE_DRIVER_TESTING_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets all counts to zero, removes requested failures, and replaces the devices by new ones: `devices` with `memory` bytes
 * each (0: the default). Nothing of the driver may be in use. */
void mge_driver_reset(int devices, uint64_t memory);
/* Sets the version that the driver reports. */
void mge_driver_set_version(int version);
/* Returns the name of function `index`, or NULL after the last one. */
const char* mge_driver_function(int index);
/* Returns the number of calls of a function since the last reset. */
uint64_t mge_driver_calls(const char* function);
/* Makes call number `call` of the function, counted from the last reset, return `code` without doing anything. */
void mge_driver_fail(const char* function, uint64_t call, int code);
/* Adds the emulated twins of kernels that are compiled at run time: `count` pointers to mge::gpu::emulation::Kernel
 * (emulation/device.h). They stay valid as long as the process. */
void mge_driver_add_kernels(const void* const* kernels, uint64_t count);
/* Enqueues work of another library on a stream. In the stream's thread, calls work(data, destination, source), for as many
 * replays as there are, and release(data) at the end. `bytes` of both addresses are memory of the stream's device. */
int mge_driver_enqueue(void* stream, void (*work)(void* data, void* destination, const void* source),
                       void (*release)(void* data), void* data, void* destination, const void* source, uint64_t bytes);
/* Loses a device: all its work fails. */
void mge_driver_lose(int device);
/* Returns the number of objects and allocations that the program has not released. */
int64_t mge_driver_live(void);
/* Returns the text of the last error; valid until the next call of this function. */
const char* mge_driver_error(void);

#ifdef __cplusplus
}
#endif

#endif
