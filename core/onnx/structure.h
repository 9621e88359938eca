// SPDX-License-Identifier: Apache-2.0
// Reads the structure of a model's file without the elements of its large tensors, which take nearly all of its bytes.
#pragma once

#include <memory>

#include "core/base/file.h"
#include "core/base/source_file.h"

namespace mge::onnx {

// Reads the file into memory at the same offsets. The elements of raw tensors of kLazyBytes or more are left out: they are
// zeros that take no memory. If the bytes are malformed, reads up to a place after the fault, for the parser's message. The
// owner of the result frees it. Errors: kFileAccess, kOutOfMemory.
absl::StatusOr<std::shared_ptr<const std::byte>> ReadStructure(const SourceFile& file);

}  // namespace mge::onnx
