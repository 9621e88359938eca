// SPDX-License-Identifier: Apache-2.0
// The function of the program mge-worker that libmge exports, with a version node of its own (core/api/mge.map): the program and
// the library are of the same build and share the core.
#pragma once

// Runs the program: stdin is a file with the request, and the report goes to the descriptor kReportFd. Returns the exit code.
extern "C" __attribute__((visibility("default"))) int mge_private_worker(int argc, char** argv);
