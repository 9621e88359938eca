// SPDX-License-Identifier: Apache-2.0
// mge-worker: times kernels of backends that may crash or hang, for a process that must not. It is installed beside the
// folder of the backends and is not for users.
#include "core/worker/tool/entry.h"

int main(int argc, char** argv) { return mge_private_worker(argc, argv); }
