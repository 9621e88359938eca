// SPDX-License-Identifier: Apache-2.0
// Models: they cut a piece of text into tokens of a vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "core/text/json_part.h"

namespace mge::text {

// Tokens and their ids.
class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;
  // Reads an object of tokens with their ids.
  static Vocabulary Read(const Part& part);

  void Add(std::string token, int64_t id);
  int64_t Id(std::string_view token) const;  // -1: not there
  const std::string* Token(int64_t id) const;
  int64_t size() const { return size_; }  // the number of tokens that were added, equal ones included
  // Returns the id of the token that stands for a byte, such as <0x0A>, or -1.
  int64_t IdOfByte(unsigned char byte) const;
  // Appends the tokens of all bytes. Returns false, without a change, if one has none.
  bool AppendBytes(std::string_view bytes, std::vector<int64_t>& ids) const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> ids_;
  int64_t size_ = 0;
  std::unordered_map<int64_t, const std::string*> tokens_;  // keys of ids_, which do not move
};

class Model {
 public:
  virtual ~Model() = default;
  // Appends the ids of the piece, which is not empty. Fails with kNoResult if the vocabulary has no token for a part of it, nor one
  // for unknown parts.
  virtual absl::Status Tokenize(std::string_view piece, std::vector<int64_t>& ids) const = 0;
  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  explicit Model(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  // The error of a part without a token.
  absl::Status NoToken(std::string_view part) const;

  Vocabulary vocabulary_;
  int64_t unknown_ = -1;  // the id of the token for unknown parts; -1: there is none
};

// Reads a model. Returns null if it fails; the part's status says why.
std::unique_ptr<Model> ReadModel(const Part& part);

std::unique_ptr<Model> ReadBpe(const Part& part);
std::unique_ptr<Model> ReadUnigram(const Part& part);
// WordPiece and WordLevel.
std::unique_ptr<Model> ReadWordPiece(const Part& part);
std::unique_ptr<Model> ReadWordLevel(const Part& part);

}  // namespace mge::text
