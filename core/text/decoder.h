// SPDX-License-Identifier: Apache-2.0
// Decoders: they turn tokens into a text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/text/json_part.h"

namespace mge::text {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Changes, joins or removes tokens. The text is all that remain, one after the other.
  virtual absl::Status Apply(std::vector<std::string>& tokens) const = 0;
};

// Reads a decoder; null: the text is the tokens with blanks between them. Returns null if it fails; the part's status says why.
std::unique_ptr<Decoder> ReadDecoder(const Part& part);

}  // namespace mge::text
