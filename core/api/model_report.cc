// SPDX-License-Identifier: Apache-2.0
// The reports "mge.model/1" and "mge.nodes/1" on a model's file, also for a model that cannot be loaded.
#include "core/api/json.h"
#include "core/api/objects.h"
#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/kernel/operator_query.h"
#include "core/onnx/outline.h"
#include "core/ops/op.h"
#include "fmt/format.h"

using mge::api::Misuse;

namespace mge::api {
namespace {

// Returns the reason why MGE does not support the operator, or "" if it does.
std::string WhyUnsupported(const onnx::OperatorUse& use) {
  if (use.is_function) return {};
  const OpDef* op = FindOp(use.domain, use.name);
  const std::string domain = use.domain.empty() ? "ai.onnx" : use.domain;
  if (use.version == 0) return fmt::format("the model uses domain '{}' and does not import it", domain);
  if (!op) {
    std::vector<std::string> known;
    bool has_domain = false;
    for (const OpDef* other : AllOps()) {
      if (other->domain != use.domain) continue;
      has_domain = true;
      known.emplace_back(other->name);
    }
    if (!has_domain) return fmt::format("MGE has no operator of domain '{}'", domain);
    return fmt::format("MGE has no operator '{}' in domain '{}'.{}", use.name, domain, DidYouMean(Nearest(use.name, known)));
  }
  if (use.version < op->since) return fmt::format("it exists since operator set {}", op->since);
  if (use.version > op->until) return fmt::format("it exists up to operator set {}", op->until);
  return {};
}

const onnx::OutlineNode* FindNode(const onnx::Outline& outline, const onnx::OperatorUse& use) {
  for (const onnx::OutlineNode& node : outline.nodes) {
    if (node.op == use.name && node.domain == use.domain) return &node;
  }
  return nullptr;
}

Json Model(Runtime& runtime, const onnx::Outline& outline) {
  const onnx::ModelInfo& info = outline.info;
  Json operators = Json::array(), unsupported = Json::array(), metadata = Json::object();
  for (const onnx::OperatorUse& use : outline.operators) {
    Json row = {{"domain", use.domain},       {"name", use.name},           {"version", use.version},
                {"count", use.count},         {"in_bodies", use.in_bodies}, {"first_node", use.first_node},
                {"function", use.is_function}};
    const std::string why = WhyUnsupported(use);
    row["supported"] = why.empty();
    if (!why.empty()) {
      const onnx::OutlineNode* node = FindNode(outline, use);
      OperatorShape shape = {use.domain, use.name, static_cast<int>(use.version)};
      if (node) {
        shape.inputs = static_cast<int>(node->inputs.size());
        shape.outputs = static_cast<int>(node->outputs.size());
      }
      Json missing = row;
      missing["reason"] = why;
      runtime.StartBackends();
      missing["backends"] = BackendsWithOperator(runtime.devices().all(), shape);
      unsupported.push_back(std::move(missing));
    }
    operators.push_back(std::move(row));
  }
  for (const auto& [key, value] : info.metadata) metadata[key] = value;
  return {{"schema", "mge.model/1"},
          {"graph", outline.graph_name},
          {"ir_version", info.ir_version},
          {"producer", info.producer_name},
          {"producer_version", info.producer_version},
          {"domain", info.domain},
          {"model_version", info.model_version},
          {"doc", info.doc},
          {"opsets", OpsetsJson(info)},
          {"inputs", TypesJson(info.inputs)},
          {"outputs", TypesJson(info.outputs)},
          {"metadata", std::move(metadata)},
          {"nodes", outline.nodes.size()},
          {"body_nodes", outline.body_nodes},
          {"bodies", outline.body_count},
          {"functions", outline.function_count},
          {"weights", outline.weight_count},
          {"weight_bytes", outline.weight_bytes},
          {"operators", std::move(operators)},
          {"unsupported", std::move(unsupported)},
          {"notes", outline.notes}};
}

Json Nodes(const onnx::Outline& outline) {
  Json rows = Json::array();
  for (const onnx::OutlineNode& node : outline.nodes) {
    rows.push_back({{"name", node.name},
                    {"operator", node.op},
                    {"domain", node.domain},
                    {"inputs", node.inputs},
                    {"outputs", node.outputs}});
  }
  return {{"schema", "mge.nodes/1"}, {"nodes", std::move(rows)}};
}

}  // namespace
}  // namespace mge::api

mge_status* mge_model_report(mge_runtime* runtime, const char* path, const char* schema, mge_string** out) try {
  MGE_API_NEEDS({"runtime", runtime}, {"path", path}, {"schema", schema}, {"out", out});
  const std::string_view wanted = schema;
  if (wanted != "mge.model/1" && wanted != "mge.nodes/1") {
    return Misuse("mge_model_report", "the schema is \"mge.model/1\" or \"mge.nodes/1\"");
  }
  MGE_API_ASSIGN_OR_RETURN(mge::onnx::Outline outline, mge::onnx::ReadOutline(path));
  *out = mge::api::NewString(
      mge::api::Dump(wanted == "mge.nodes/1" ? mge::api::Nodes(outline) : mge::api::Model(*runtime->runtime, outline)));
  return nullptr;
}
MGE_API_CATCH
