// SPDX-License-Identifier: Apache-2.0
// Pre-tokenizers: they cut a text into pieces, such as words, which the model then cuts into tokens.
#pragma once

#include <memory>

#include "core/base/status.h"
#include "core/text/json_part.h"
#include "core/text/pieces.h"

namespace mge::text {

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Cuts the pieces that are not added tokens. Empty pieces are left out.
  virtual absl::Status Apply(Pieces& pieces) const = 0;
};

// Reads a pre-tokenizer; null: none. Returns null if it fails; the part's status says why.
std::unique_ptr<PreTokenizer> ReadPreTokenizer(const Part& part);

// The letter that stands for a blank, and whether a text that begins without one gets one: also used by the decoder of this kind.
struct Metaspace {
  enum class Prepend { kAlways, kFirst, kNever };
  uint32_t letter;
  Prepend prepend;
};
Metaspace ReadMetaspace(const Part& part);

}  // namespace mge::text
