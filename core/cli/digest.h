// SPDX-License-Identifier: Apache-2.0
// The digest of a run's outputs, by which runs are compared bit for bit.
#pragma once

#include <string>
#include <vector>

#include "mge/mge.hpp"

namespace mge::cli {

// Sets `out` to the SHA-256 of all outputs in order: name, kind, element type, shape and bytes of each, and those of the
// parts of sequences and optionals.
Status DigestOf(const Session& session, const std::vector<Tensor>& outputs, std::string* out);

}  // namespace mge::cli
