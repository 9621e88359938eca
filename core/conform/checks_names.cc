// SPDX-License-Identifier: Apache-2.0
// Checks of names: those of operators in kernel rows, and those of candidates.
//
// A kernel table does not list its rows, but their operator names are strings in the file. Each string that is similar to an
// operator's name is requested as if it were an operator, to find misspelt ones such as "Tahn". Caches on disk name
// candidates by id, and later processes read them, so the ids of two independent processes are compared.
#include <cctype>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "core/base/nearest.h"
#include "core/conform/kernel_run.h"
#include "core/conform/task.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

constexpr size_t kLongestName = 40;  // longest name in bytes
constexpr int kMostEdits = 2;        // more edits may be an operator that this host does not know, and not a misspelling

// Returns the capitalised, zero-terminated words of a file.
std::set<std::string> WordsOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Broken("it cannot be read");
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::set<std::string> words;
  size_t begin = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (std::isalnum(static_cast<unsigned char>(bytes[i])) || bytes[i] == '_') continue;
    if (bytes[i] == 0 && i - begin <= kLongestName && std::isupper(static_cast<unsigned char>(bytes[begin])))
      words.insert(bytes.substr(begin, i - begin));
    begin = i + 1;
  }
  return words;
}

// Returns whether the backend offers or refuses the problem of a case after its operator is replaced by `op`.
bool Answers(BackendUnderTest& s, const Case& c, const std::string& op) {
  s.At("{} as \"{}\"", c.Name(), op);
  AbiProblem problem(c, MGE_WRITE);
  mge_graph graph = *problem.get()->graph;
  mge_node node = *graph.nodes[0];
  node.op = {op.data(), op.size()};
  const mge_node* nodes[] = {&node};
  graph.nodes = nodes;
  problem.get()->graph = &graph;
  const Offers offers = TryEnumerate(s, *problem.get());  // an error is allowed for an unknown operator
  return !offers.offered.empty() || !offers.refused.empty();
}

void CheckNames(BackendUnderTest& s) {
  std::vector<std::string> names;  // operators that a case can be made for
  for (const OpDef* def : CheckableOps()) {
    if (def->domain.empty()) names.emplace_back(def->name);
  }
  std::string wrong;
  for (const std::string& word : WordsOf(s.path())) {
    if (std::ranges::any_of(AllOps(), [&](const OpDef* def) { return def->name == word; })) continue;
    const std::string near(Nearest(word, names));
    if (near.empty() || EditDistance(word, near, kMostEdits) > kMostEdits) continue;
    const OpDef& def = *FindOp("", near);
    absl::StatusOr<Case> c = MakeCase(def, TypesOf(def).front(), SpecsFor(def).front());
    if (!c.ok()) continue;
    if (!Answers(s, *c, word)) continue;
    if (Answers(s, *c, "NoSuchOperator")) NotOffered("the backend refuses unknown operators like known ones");
    wrong += fmt::format("{}a kernel row names the operator \"{}\", which does not exist.{}", wrong.empty() ? "" : " ", word,
                         DidYouMean(near));
  }
  if (!wrong.empty()) Broken(wrong);
}

// Returns the ids of the candidates that a new process is offered, by operator. Failures are ignored, because other checks
// report them.
std::map<std::string, std::string> IdsInChild(BackendUnderTest& s, const std::vector<Case>& cases) {
  auto body = [&](CheckReporter& reporter) {
    BackendUnderTest tested(s.path(), s.given(), reporter);
    tested.Prepare(Needs::kDevice);
    for (const Case& c : cases) {
      const Offers offers = TryEnumerate(tested, c);
      if (!offers.offered.empty()) reporter.Support(c.def->name, "", true, offers.Ids());
    }
  };
  std::map<std::string, std::string> ids;
  auto take = [&](const Task&, const CheckRecord& r) {
    if (r.kind == RecordKind::kSupported) ids[r.check] = r.what;
  };
  constexpr double kSeconds = 10;
  RunTasks({{"candidates", "", body, kSeconds}}, 1, take, [](const Task&, double) {}).IgnoreError();
  return ids;
}

void CheckStableIds(BackendUnderTest& s) {
  std::vector<Case> cases;
  for (const OpDef* def : CheckableOps()) {
    absl::StatusOr<Case> c = MakeCase(*def, TypesOf(*def).front(), SpecsFor(*def).front());
    if (c.ok()) cases.push_back(*std::move(c));
  }
  const std::map<std::string, std::string> first = IdsInChild(s, cases), second = IdsInChild(s, cases);
  if (first.empty() || second.empty()) NotOffered("no process is offered a candidate");
  for (const auto& [op, ids] : first) {
    auto other = second.find(op);
    if (other == second.end() || other->second == ids) continue;
    Broken(
        "for {} one process is offered '{}', another one '{}'; use the same ids in every process, "
        "because caches on disk contain them",
        op, ids, other->second);
  }
}

constexpr Check kNameChecks[] = {
    {"kernel.names", "No kernel row names an operator that does not exist.", CheckNames},
    {"kernel.stable_ids", "Candidates have the same ids in every process: caches name them by id.", CheckStableIds,
     Needs::kNothing},
};

}  // namespace

std::span<const Check> NameChecks() { return kNameChecks; }

}  // namespace mge::conform
