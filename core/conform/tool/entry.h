// SPDX-License-Identifier: Apache-2.0
// The functions of the program mge-conform that libmge exports, with a version node of their own (core/api/mge.map): the program
// and the library are of the same build and share the core.
#pragma once

#pragma GCC visibility push(default)
extern "C" {

// Runs the program, whose only argument is the request as JSON. Returns the exit code.
int mge_private_conform(int argc, char** argv);

// Functions for the allocator of the program, see core/conform/allocations.h.
int mge_private_allocation_fails(const void* caller) noexcept;
void mge_private_count_object(int change) noexcept;

}  // extern "C"
#pragma GCC visibility pop
