// SPDX-License-Identifier: Apache-2.0
// Normalizers: they change a text before it is cut into tokens.
#pragma once

#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/text/json_part.h"

namespace mge::text {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual absl::Status Apply(std::string& text) const = 0;
};

// Reads a normalizer; null: none. Returns null if it fails; the part's status says why.
std::unique_ptr<Normalizer> ReadNormalizer(const Part& part);

// Reads a table of replacements in the format of SentencePiece, `precompiled_charsmap`, in base64.
std::unique_ptr<Normalizer> ReadReplacements(const Part& part);

}  // namespace mge::text
