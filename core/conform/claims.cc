// SPDX-License-Identifier: Apache-2.0
// Checks of claims: groups of nodes that a backend offers to compute with one kernel.
#include "core/kernel/claims.h"

#include <algorithm>

#include "core/conform/kernel_checks.h"
#include "core/conform/kernel_run.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

constexpr Check kClaims = {
    "graph.claims", "Groups have a name, a benefit and at least two different existing nodes, and are the same every time."};
constexpr Check kGroups = {"graph.groups", "The kernel of a group gives the same results as its nodes one by one."};
constexpr Check kClaimChecks[] = {kClaims, kGroups};

// Graphs with groups that backends often fuse. The kit replaces the values of the constants by random ones near them.
struct Chain {
  const char* name;
  const char* text;
};
constexpr int kQuickChains = 9;
constexpr Chain kChains[] = {
    {"MatMul of three dimensions, Add of three, Relu",
     "input x : float32[2,5,33]\nconst w = float32[33,17]<0.05>\nconst b = float32[2,1,17]<0.1>\n"
     "m = MatMul@13(x, w)\na = Add@14(m, b)\ny = Relu@14(a)\noutput y\n"},
    {"MatMul of three dimensions, Relu",
     "input x : float32[2,5,33]\nconst w = float32[33,17]<0.05>\nm = MatMul@13(x, w)\ny = Relu@14(m)\noutput y\n"},
    {"Conv, Relu",
     "input x : float32[1,8,9,7]\nconst w = float32[16,8,3,2]<0.05>\nconst b = float32[16]<0.1>\n"
     "c = Conv@22(x, w, b) {pads=[1,0,1,1]}\ny = Relu@14(c)\noutput y\n"},
    {"Conv, Add, Relu",
     "input x : float32[1,8,9,7]\ninput r : float32[1,16,9,7]\nconst w = float32[16,8,3,2]<0.05>\n"
     "c = Conv@22(x, w) {pads=[1,0,1,1]}\na = Add@14(c, r)\ny = Relu@14(a)\noutput y\n"},
    {"Conv, Add of a constant, Relu",
     "input x : float32[1,8,9,7]\nconst w = float32[16,8,3,2]<0.05>\nconst r = float32[1,16,9,7]<0.5>\n"
     "c = Conv@22(x, w) {pads=[1,0,1,1]}\na = Add@14(c, r)\ny = Relu@14(a)\noutput y\n"},
    {"Conv of a constant, Relu",
     "const x = float32[1,8,9,7]<0.5>\ninput w : float32[16,8,3,2]\nc = Conv@22(x, w)\ny = Relu@14(c)\noutput y\n"},
    {"Conv, BatchNormalization",
     "input x : float32[1,4,7,5]\nconst w = float32[8,4,3,2]<0.05>\nconst s = float32[8]<1.5>\n"
     "const b = float32[8]<0.1>\nc = Conv@22(x, w)\ny = BatchNormalization@15(c, s, b, b, s)\noutput y\n"},
    {"Add of a value to itself, Relu", "input x : float32[3,37]\na = Add@14(x, x)\ny = Relu@14(a)\noutput y\n"},
    {"MatMul, Add, Relu",
     "input x : float32[5,33]\nconst w = float32[33,17]<0.05>\nconst b = float32[17]<0.1>\n"
     "m = MatMul@13(x, w)\na = Add@14(m, b)\ny = Relu@14(a)\noutput y\n"},
    {"MatMul of a constant, Add, Relu",
     "const w = float32[5,33]<0.05>\ninput x : float32[33,17]\nconst b = float32[5,1]<0.1>\n"
     "m = MatMul@13(w, x)\na = Add@14(m, b)\ny = Relu@14(a)\noutput y\n"},
    {"MatMul, Add, Gelu, whose argument is read, too",
     "input x : float32[5,33]\nconst w = float32[33,16]<0.05>\nconst b = float32[16]<0.1>\n"
     "m = MatMul@13(x, w)\na = Add@14(m, b)\ny = Gelu@20(a) {approximate=\"tanh\"}\noutput a\noutput y\n"},
    {"Add, Mul, Tanh, Sub",
     "input x : float32[3,37]\ninput z : float32[37]\na = Add@14(x, z)\nm = Mul@14(a, x)\n"
     "t = Tanh@13(m)\ny = Sub@14(t, z)\noutput y\n"},
    {"Sigmoid, Mul", "input x : float32[3,37]\ns = Sigmoid@13(x)\ny = Mul@14(x, s)\noutput y\n"},
    {"Add, Relu, used twice",
     "input x : float32[3,37]\ninput z : float32[3,37]\na = Add@14(x, z)\ny = Relu@14(a)\n"
     "u = Mul@14(a, z)\noutput y\noutput u\n"},
    {"attention",
     "input q : float32[2,5,8]\ninput k : float32[2,8,5]\ninput v : float32[2,5,8]\nconst f = float32[]<0.35>\n"
     "m = MatMul@13(q, k)\nd = Mul@14(m, f)\ns = Softmax@13(d)\ny = MatMul@13(s, v)\noutput y\n"},
};

std::vector<Claim> ClaimsOf(BackendUnderTest& s, const mge_graph& graph) {
  std::pair<uint64_t, std::vector<Claim>> out = {graph.node_count, {}};
  mge_claim_sink sink = {sizeof(sink), 0, &out, [](void* self, const mge_claim* claim) {
                           auto& [node_count, claims] = *static_cast<decltype(out)*>(self);
                           claims.push_back(ReadClaim(claim, node_count));
                         }};
  Call("asking for claims", s.plugin().graph->claim, s.device(), &graph, &sink);
  return std::move(out.second);
}

// Creates a case from the nodes of a group. Constants keep their values.
Case CaseOfGroup(const Case& whole, const Claim& group) {
  Graph graph = whole.graph;
  std::vector<NodeId> nodes = group.nodes;
  std::ranges::sort(nodes);  // topological, as in the whole graph
  const AbiGraph part(whole.graph, nodes, UsesOf(whole.graph));
  for (NodeId n = 0; n < graph.node_count(); ++n) graph.node(n).dead = std::ranges::count(nodes, n) == 0;
  for (ValueId v = 0; v < graph.value_count(); ++v) graph.value(v).dead = true;
  for (uint64_t i = 0; i < part.graph()->value_count; ++i) graph.value(part.value(static_cast<int32_t>(i))).dead = false;
  graph.outputs() = part.outputs();
  graph.inputs().clear();
  for (ValueId v : part.inputs()) {
    if (graph.value(v).role == Role::kConstant) continue;
    graph.value(v).role = Role::kInput;
    graph.value(v).producer = kNone;
    graph.inputs().push_back(v);
  }
  ThrowIfError(graph.Compact());
  return OrThrow(CaseOfGraph(std::move(graph), fmt::format("{} of {}", group.name, whole.spec), whole.dtype));
}

// Checks the kernels of a group. `failure_seconds` is the time for allocation failures; 0: no allocation fails.
void CheckClaimedGroup(BackendUnderTest& s, Bench& bench, const Case& c, double failure_seconds) {
  Offers offers = Enumerate(s, c);
  if (!offers.malformed.empty()) Broken(offers.malformed);
  if (offers.offered.empty())
    Broken("the group is claimed, but nothing is offered for it{}", offers.refused.empty() ? "" : ": " + offers.refused[0]);
  for (const Candidate& candidate : offers.offered) {
    s.At("{} {}", c.spec, candidate.id);
    {
      KernelRun run(bench, c, candidate);
      for (int set : {0, 1}) run.Expect(run.Run(set, c.inputs[set], 2, set ? 0x5a : 0xff), set, candidate.id + " ");
      if (bench.transfers[0].has_queue()) CheckQueueOrder(run);
    }
    if (failure_seconds > 0) CheckKernelAllocations(bench, c, candidate, failure_seconds);
    s.reporter().Begin(kGroups.name);
  }
}

void CheckChain(BackendUnderTest& s, Bench& bench, const Case& c, double failure_seconds) {
  CheckReporter& w = s.reporter();
  s.At(c.spec);
  AbiProblem problem(c);
  std::vector<Claim> groups;
  const bool valid = Apply(w, kClaims, c.spec, [&] {
    groups = ClaimsOf(s, *problem.get()->graph);
    if (groups != ClaimsOf(s, *problem.get()->graph)) Broken("a second request for claims gets other groups");
    for (const Claim& g : groups) {
      if (!g.fault.empty()) Broken("group '{}': {}", g.name, g.fault);
      if (g.name.empty() || g.nodes.size() < 2)
        Broken("group '{}' has {} nodes; a group has a name and at least two nodes", g.name, g.nodes.size());
    }
  });
  if (!valid) return;
  for (const Claim& g : groups) {
    const std::string where = fmt::format("{} of {}", g.name, c.spec);
    Apply(w, kGroups, where, [&] { CheckClaimedGroup(s, bench, CaseOfGroup(c, g), failure_seconds); });
    w.Write(RecordKind::kRan, g.name, where, {});
  }
}

// Checks a chain, then the same chain with the operands of one node exchanged.
void CheckChain(BackendUnderTest& s, Bench& bench, const Chain& chain, double failure_seconds) {
  const Graph written = OrThrow(ParseGraphText(chain.text));
  for (NodeId exchanged = -1; exchanged < written.node_count(); ++exchanged) {
    Graph graph = written;
    std::string name = chain.name;
    if (exchanged >= 0) {
      Node& node = graph.node(exchanged);
      if (node.inputs.size() != 2 || node.inputs[0] == node.inputs[1]) continue;
      if (!FindOp(node.domain, node.op)->Is(kElementwise)) continue;
      std::swap(node.inputs[0], node.inputs[1]);
      name += fmt::format(", operands of {} exchanged", node.op);
    }
    for (ValueId v = 0; v < graph.value_count(); ++v) {
      Value& value = graph.value(v);
      if (value.role != Role::kConstant) continue;
      const double fill = value.constant.Data<float>()[0];
      value.constant =
          RandomTensor(DType::kF32, value.constant.shape(), 0.5 * fill, 1.5 * fill, 41 + static_cast<uint64_t>(v));
    }
    const Case c = OrThrow(CaseOfGraph(std::move(graph), std::move(name), DType::kF32));
    CheckChain(s, bench, c, exchanged < 0 ? failure_seconds : 0);
  }
}

// Returns the graph of a case followed by an elementwise node, whose second operand, if it has one, is an input or a
// constant.
absl::StatusOr<Graph> Follow(const Case& first, Node node, bool constant, bool exchanged) {
  Graph graph = first.graph;
  node.name = "second";
  node.inputs[0] = graph.outputs()[0];
  const TensorType type = graph.value(node.inputs[0]).type;
  if (node.inputs.size() == 2)
    node.inputs[1] =
        constant ? graph.AddConstant("other", RandomTensor(type.dtype, type.dims, -2, 2, 5)) : graph.AddInput("other", type);
  if (exchanged) std::swap(node.inputs[0], node.inputs[1]);
  node.outputs = {graph.AddTemporary("end")};
  graph.outputs() = node.outputs;
  graph.AddNode(std::move(node));
  MGE_RETURN_IF_ERROR(InferTypes(graph));
  return graph;
}

// Checks pairs of operators, the second one elementwise, to find claims that the graphs above do not contain.
void CheckPairs(BackendUnderTest& s, Bench& bench, const std::vector<const OpDef*>& begins) {
  constexpr const char* kForms[] = {"", ", its operands exchanged", " of a constant"};
  constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kF64, DType::kI32, DType::kI64};
  std::vector<Node> followers;
  for (const OpDef* def : CheckableOps()) {
    const absl::StatusOr<Case> c = MakeCase(*def, DType::kF32, SpecsFor(*def).front());
    if (def->Is(kElementwise) && c.ok() && c->graph.node(0).inputs.size() <= 2) followers.push_back(c->graph.node(0));
  }
  for (const OpDef* def : begins) {
    for (DType dtype : kTypes) {
      const absl::StatusOr<Case> first = MakeCase(*def, dtype, SpecsFor(*def).front());
      if (!first.ok() || first->expected[0].size() != 1 || first->expected[0][0].dtype() != dtype) continue;
      for (const Node& second : followers) {
        // A claim of another type than float32 is usually right in every form, or wrong in every form.
        for (int form = 0; form < (second.inputs.size() == 2 && dtype == DType::kF32 ? 3 : 1); ++form) {
          absl::StatusOr<Graph> graph = Follow(*first, second, form == 2, form > 0);
          if (!graph.ok()) break;  // the second operator does not accept this type or shape
          Case unfilled;
          unfilled.graph = *graph;
          if (ClaimsOf(s, *AbiProblem(unfilled).get()->graph).empty()) continue;
          std::string name = fmt::format("{}, {}{} T={}", def->name, second.op, kForms[form], DTypeName(dtype));
          absl::StatusOr<Case> c = CaseOfGraph(*std::move(graph), std::move(name), dtype);
          if (c.ok()) CheckChain(s, bench, *c, 0);
        }
      }
    }
  }
}

}  // namespace

std::span<const Check> ClaimChecks() { return kClaimChecks; }

void CheckClaims(BackendUnderTest& tested, bool quick) {
  CheckReporter& w = tested.reporter();
  if (!tested.plugin().graph) {
    for (const Check& row : kClaimChecks) w.NotOffered(row.name, "the backend claims no groups");
    return;
  }
  Bench bench(tested);
  for (const Chain& chain : std::span(kChains).first(quick ? kQuickChains : std::size(kChains)))
    Apply(w, kClaims, chain.name, [&] { CheckChain(tested, bench, chain, FailureSeconds(quick)); });
  Apply(w, kClaims, "two operators in a row", [&] { CheckPairs(tested, bench, quick ? QuickOps() : CheckableOps()); });
}

}  // namespace mge::conform
