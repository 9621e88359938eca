// SPDX-License-Identifier: Apache-2.0
// A text in pieces, as pre-tokenizers cut it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mge::text {

struct Piece {
  std::string text;
  bool at_start = false;  // the piece begins where the whole text does
  int64_t id = -1;        // of an added token; such a piece is not changed any more
};

using Pieces = std::vector<Piece>;

}  // namespace mge::text
