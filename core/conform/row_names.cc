// SPDX-License-Identifier: Apache-2.0
// Finds kernel rows with a misspelt operator, such as "Tahn". A kernel table does not list its rows, but their operator
// names are strings in the file. Each string that is similar to an operator's name is requested as if it were an operator.
#include <cctype>
#include <fstream>
#include <iterator>
#include <set>

#include "core/base/nearest.h"
#include "core/conform/kernel_run.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

constexpr size_t kLongest = 40;  // longest name in bytes
constexpr int kMostEdits = 2;    // more edits may be an operator that this host does not know, and not a misspelling

// Returns the capitalised, zero-terminated words of a file.
absl::StatusOr<std::set<std::string>> WordsOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Broken("it cannot be read");
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::set<std::string> words;
  size_t begin = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (std::isalnum(static_cast<unsigned char>(bytes[i])) || bytes[i] == '_') continue;
    if (bytes[i] == 0 && i - begin <= kLongest && std::isupper(static_cast<unsigned char>(bytes[begin])))
      words.insert(bytes.substr(begin, i - begin));
    begin = i + 1;
  }
  return words;
}

// Returns whether the backend offers or refuses the problem of a case after its operator is replaced by `op`.
absl::StatusOr<bool> Answers(BackendUnderTest& s, const Case& c, const std::string& op) {
  s.At("{} as \"{}\"", c.Name(), op);
  AbiProblem problem(c, MGE_WRITE);
  mge_graph graph = *problem.get()->graph;
  mge_node node = *graph.nodes[0];
  node.op = {op.data(), op.size()};
  const mge_node* nodes[] = {&node};
  graph.nodes = nodes;
  problem.get()->graph = &graph;
  absl::StatusOr<Offers> offers = Enumerate(s, *problem.get());
  if (!offers.ok()) return false;  // an error is allowed for an unknown operator
  return !offers->offered.empty() || !offers->refused.empty();
}

absl::Status CheckNames(BackendUnderTest& s) {
  std::set<std::string_view> known;
  for (const OpDef* def : AllOps()) known.insert(def->name);
  std::vector<std::string> names;  // operators that a case can be made for
  for (const OpDef* def : CheckableOps()) {
    if (def->domain.empty()) names.emplace_back(def->name);
  }
  MGE_ASSIGN_OR_RETURN(std::set<std::string> words, WordsOf(s.path()));
  std::string wrong;
  for (const std::string& word : words) {
    if (known.contains(word)) continue;
    const std::string near(Nearest(word, names));
    if (near.empty() || EditDistance(word, near, kMostEdits) > kMostEdits) continue;
    const OpDef& def = *FindOp("", near);
    absl::StatusOr<Case> c = MakeCase(def, TypesOf(def).front(), SpecsFor(def).front());
    if (!c.ok()) continue;
    MGE_ASSIGN_OR_RETURN(bool answers, Answers(s, *c, word));
    if (!answers) continue;
    MGE_ASSIGN_OR_RETURN(bool answers_all, Answers(s, *c, "NoSuchOperator"));
    if (answers_all) return NotOffered("the backend refuses unknown operators like known ones");
    wrong += fmt::format("{}a kernel row names the operator \"{}\", which does not exist.{}", wrong.empty() ? "" : " ", word,
                         DidYouMean(near));
  }
  return wrong.empty() ? absl::OkStatus() : Broken(wrong);
}

constexpr Check kRows[] = {
    {"kernel.names", "No kernel row names an operator that does not exist.", Needs::kDevice, CheckNames},
};

}  // namespace

std::span<const Check> RowChecks() { return kRows; }

}  // namespace mge::conform
