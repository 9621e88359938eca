// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/graph/graph.h"
#include "fmt/format.h"

namespace mge {
namespace {

absl::Status Broken(std::string title, std::string what = "") {
  return Fail(errors::kInvalidGraph, std::move(title), {.what = std::move(what)});
}

std::string Place(const Node& n) { return fmt::format("node '{}' ({})", n.name, n.op); }

// Checks a use of a value. user() returns the text that names the user.
template <typename User>
absl::Status VerifyUse(const Graph& graph, ValueId id, User user) {
  if (id < 0 || id >= graph.value_count()) {
    return Broken(fmt::format("{} uses value number {}, which does not exist", user(), id));
  }
  const Value& v = graph.value(id);
  if (v.dead) return Broken(fmt::format("{} uses value '{}', which was removed", user(), v.name));
  if (v.producer == kNone && v.role == Role::kTemporary) {
    return Broken(fmt::format("{} uses value '{}', which nothing produces", user(), v.name),
                  "it is not an input, a constant or a node's output");
  }
  return absl::OkStatus();
}

absl::Status VerifyBodies(const Node& n, std::vector<const Graph*>& bodies) {
  size_t captured = 0;
  for (const auto& [name, value] : n.attrs) {
    const GraphPtr* body = std::get_if<GraphPtr>(&value);
    if (!body) continue;
    if (!*body) return Broken(fmt::format("{} has an empty body '{}'", Place(n), name));
    bodies.push_back(body->get());
    for (ValueId in : (*body)->inputs()) {
      if (in >= 0 && in < (*body)->value_count() && (*body)->value(in).role == Role::kCapture) ++captured;
    }
  }
  if (captured != n.captures.size()) {
    return Broken(
        fmt::format("{} captures {} values, but its bodies have {} capture inputs", Place(n), n.captures.size(), captured));
  }
  return absl::OkStatus();
}

absl::Status VerifyOne(const Graph& graph, std::vector<const Graph*>& bodies) {
  std::vector<int> given(graph.value_count(), 0);
  bool captures_began = false;
  for (ValueId id : graph.inputs()) {
    if (id < 0 || id >= graph.value_count()) return Broken(fmt::format("input number {} does not exist", id));
    const Value& v = graph.value(id);
    if (v.dead || v.producer != kNone || (v.role != Role::kInput && v.role != Role::kCapture)) {
      return Broken(fmt::format("'{}' is listed as an input but is not one", v.name));
    }
    if (v.role == Role::kCapture) {
      captures_began = true;
    } else if (captures_began) {
      return Broken(fmt::format("input '{}' comes after a capture", v.name));
    }
    if (++given[id] > 1) return Broken(fmt::format("input '{}' is listed twice", v.name));
  }
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& v = graph.value(id);
    if (v.dead) continue;
    if ((v.role == Role::kInput || v.role == Role::kCapture) && !given[id]) {
      return Broken(fmt::format("'{}' has the role of an input but is not listed", v.name));
    }
    if (v.role == Role::kConstant) {
      if (!v.constant.defined()) return Broken(fmt::format("constant '{}' has no tensor", v.name));
      if (v.constant.dtype() != v.type.dtype || !v.type.has_rank || v.constant.shape() != v.type.dims) {
        return Broken(fmt::format("constant '{}' does not match its type {}", v.name, v.type.ToString()),
                      fmt::format("its tensor is {}{}", DTypeName(v.constant.dtype()), ShapeText(v.constant.shape())));
      }
    }
    if (v.producer == kNone) continue;
    if (v.role != Role::kTemporary) {
      return Broken(fmt::format("'{}' is an input or a constant, but a node produces it too", v.name));
    }
    if (v.producer < 0 || v.producer >= graph.node_count() || graph.node(v.producer).dead) {
      return Broken(fmt::format("the producer of '{}' does not exist", v.name));
    }
  }
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& n = graph.node(id);
    if (n.dead) continue;
    const auto place = [&n] { return Place(n); };
    for (ValueId in : n.inputs) {
      if (in != kNone) MGE_RETURN_IF_ERROR(VerifyUse(graph, in, place));
    }
    for (ValueId in : n.captures) MGE_RETURN_IF_ERROR(VerifyUse(graph, in, place));
    for (ValueId out : n.outputs) {
      if (out == kNone) continue;
      if (out < 0 || out >= graph.value_count() || graph.value(out).dead) {
        return Broken(fmt::format("{} produces value number {}, which does not exist", Place(n), out));
      }
      const Value& v = graph.value(out);
      if (++given[out] > 1) return Broken(fmt::format("value '{}' is produced twice", v.name), Place(n));
      if (v.producer != id) {
        return Broken(fmt::format("{} produces '{}', which names another producer", Place(n), v.name));
      }
    }
    MGE_RETURN_IF_ERROR(VerifyBodies(n, bodies));
  }
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& v = graph.value(id);
    if (!v.dead && v.producer != kNone && !given[id]) {
      return Broken(fmt::format("'{}' names a producer that does not list it", v.name));
    }
  }
  for (ValueId id : graph.outputs()) {
    MGE_RETURN_IF_ERROR(VerifyUse(graph, id, [] { return "the graph's output list"; }));
  }
  return graph.TopologicalOrder().status();
}

}  // namespace

absl::Status VerifyGraph(const Graph& graph) {
  std::vector<const Graph*> pending = {&graph};
  while (!pending.empty()) {
    const Graph* next = pending.back();
    pending.pop_back();
    if (absl::Status status = VerifyOne(*next, pending); !status.ok()) {
      return AddWhere(std::move(status), next->name.empty() ? "" : fmt::format("graph '{}'", next->name));
    }
  }
  return absl::OkStatus();
}

}  // namespace mge
