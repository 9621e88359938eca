// SPDX-License-Identifier: Apache-2.0
// Replaces sequences of known parts, as PyTorch's exporter writes a split without its optimizer.
#pragma once

#include "absl/status/status.h"
#include "core/graph/graph.h"

namespace mge {

// Replaces each SplitToSequence by a Split if its parts and the positions of all SequenceAt that read it are known. The shapes that a
// SequenceAt hides are then known, which the states of an optimizer need. Call InferTypes() before and after.
absl::Status UnpackSequences(Graph& graph);

}  // namespace mge
