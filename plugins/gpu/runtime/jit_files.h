// SPDX-License-Identifier: Apache-2.0
// The files of kernels that are generated at run time, for a user who wants to read them (settings jit.keep_files and
// jit.work_dir of the host).
#pragma once

#include <string>

#include "plugins/gpu/generate/chain_source.h"

namespace mge::gpu {

// Does nothing unless jit.keep_files is true. Writes NAME.cu, the source, and the image unless it is empty: NAME.cubin or
// NAME.ptx of CUDA, NAME.hsaco of HIP. They are written to jit.work_dir, which is created if it is missing, or else to a new
// directory in /tmp, which the process uses until its end. Logs the name of the directory once, and a warning if a file cannot
// be written. Thread-safe.
void KeepJitFiles(const KernelSource& source, const std::string& image);

}  // namespace mge::gpu
