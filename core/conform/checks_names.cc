// SPDX-License-Identifier: Apache-2.0
// Checks of names: those of operators in kernel rows, and those of candidates.
//
// A kernel table does not list its rows, but their operator names are strings in the file. Each string that is similar to an
// operator's name is requested as if it were an operator, to find misspelt ones such as "Tahn". Caches on disk name
// candidates by id, and later processes read them, so the ids of two independent processes are compared.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "core/base/nearest.h"
#include "core/conform/kernel_run.h"
#include "core/conform/task.h"

namespace mge::conform {
namespace {

constexpr size_t kLongestName = 40;  // in bytes
constexpr int kMaxEdits = 2;         // more edits may be an operator that this host does not know, and not a misspelling

// Returns the capitalised, zero-terminated words of a file.
std::set<std::string> WordsOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::set<std::string> words;
  for (absl::string_view text : absl::StrSplit(bytes, absl::ByChar(0))) {
    const auto other =
        std::find_if_not(text.rbegin(), text.rend(), [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
    const std::string word(other.base(), text.end());
    if (word.size() <= kLongestName && absl::ascii_isupper(word[0])) words.insert(word);
  }
  return words;
}

// Returns whether the backend offers or refuses the problem of a case after its operator is replaced by `op`.
bool Answers(BackendUnderTest& s, Case c, const std::string& op) {
  s.At("{} as \"{}\"", c.Name(), op);
  c.graph.node(0).op = op;
  const Offers offers = TryEnumerate(s, c);  // an error is allowed for an unknown operator
  return !offers.offered.empty() || !offers.refused.empty();
}

void CheckNames(BackendUnderTest& s) {
  std::vector<std::string> names;  // operators that a case can be made for
  for (const OpDef* def : CheckableOps()) {
    if (def->domain.empty()) names.emplace_back(def->name);
  }
  for (const std::string& word : WordsOf(s.path())) {
    if (std::ranges::any_of(AllOps(), [&](const OpDef* def) { return def->name == word; })) continue;
    const std::string near(Nearest(word, names));
    if (near.empty() || EditDistance(word, near, kMaxEdits) > kMaxEdits) continue;
    const OpDef& def = *FindOp("", near);
    absl::StatusOr<Case> c = MakeCase(def, TypesOf(def).front(), SpecsFor(def).front());
    if (!c.ok() || !Answers(s, *c, word)) continue;
    if (Answers(s, *c, "NoSuchOperator")) NotOffered("the backend refuses unknown operators like known ones");
    Broken("a kernel row names the operator \"{}\", which does not exist.{}", word, DidYouMean(near));
  }
}

void CheckStableIds(BackendUnderTest& s) {
  std::vector<Case> cases;
  for (const OpDef* def : CheckableOps()) {
    absl::StatusOr<Case> c = MakeCase(*def, TypesOf(*def).front(), SpecsFor(*def).front());
    if (c.ok()) cases.push_back(*std::move(c));
  }
  auto offer_all = [&](CheckReporter& reporter) {
    BackendUnderTest tested(s.path(), s.given(), reporter);
    if (!StatusOf([&] { tested.Prepare(Needs::kDevice); }).ok()) return;  // other checks report it
    for (const Case& c : cases) reporter.Write(RecordKind::kSupported, {}, {}, TryEnumerate(tested, c).Ids());
  };
  std::vector<std::string> offers;  // the candidates of each case in one process, and then in another one
  const Task task = {"", offer_all, 10};
  RunTasks({task, task}, 1, [&](const CheckRecord& r) {
    if (r.kind == RecordKind::kSupported) offers.push_back(r.what);
  }).IgnoreError();
  if (offers.size() != 2 * cases.size() || std::ranges::all_of(offers, &std::string::empty))
    NotOffered("no process is offered a candidate");
  for (size_t i = 0; i < cases.size(); ++i) {
    if (const std::string& first = offers[i], &second = offers[cases.size() + i]; first != second)
      Broken("for {} one process is offered '{}', another one '{}'; caches on disk name candidates by their ids",
             cases[i].def->name, first, second);
  }
}

constexpr Check kNameChecks[] = {
    {"kernel.names", "No kernel row names an operator that does not exist.", CheckNames},
    {"kernel.stable_ids", "Candidates have the same ids in every process: caches name them by id.", CheckStableIds,
     Needs::kLives},
};

}  // namespace

std::span<const Check> NameChecks() { return kNameChecks; }

}  // namespace mge::conform
