// SPDX-License-Identifier: Apache-2.0
// mge inspect: shows the contents of a model's file, and whether MGE can run it. Also works for models that MGE cannot run.
#include <algorithm>

#include "core/cli/common.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

std::string DomainText(const Json& domain) { return domain == "" ? "ai.onnx" : Escape(Text(domain)); }

// Loads the model. Returns the error as JSON, or null and the session's report in `loaded`.
Json ProblemOf(const Globals& globals, const std::string& model, Runtime* runtime, Json* loaded) {
  Session session;
  std::string text;
  Status s = OpenModel(globals, model, runtime, &session);
  if (s.ok()) s = session.Report("mge.inspect/1").MoveTo(text);
  if (!s.ok()) {
    return {{"id", s.id()},     {"exit_code", s.exit_code()}, {"title", s.title()},
            {"what", s.what()}, {"where", s.where()},         {"fix", s.fix()}};
  }
  *loaded = Json::parse(text);
  return {};
}

std::string Head(const Json& file) {
  std::string out = fmt::format("graph '{}', IR {}", Escape(Text(file["graph"])), Text(file["ir_version"]));
  if (file["producer"] != "") {
    out += fmt::format(", by {}{}{}", Escape(Text(file["producer"])), file["producer_version"] == "" ? "" : " ",
                       Escape(Text(file["producer_version"])));
  }
  out += "\n";
  for (const Json& o : file["opsets"])
    out += fmt::format("operator set {} {}\n", DomainText(o["domain"]), Text(o["version"]));
  for (const auto& [key, value] : file["metadata"].items()) {
    std::string shown = Escape(Text(value));
    constexpr size_t kMaxShown = 80;
    if (shown.size() > kMaxShown) shown = shown.substr(0, kMaxShown) + "...";
    out += fmt::format("metadata {} = {}\n", Escape(key), shown);
  }
  return out;
}

std::string Values(const Json& file) {
  std::vector<std::vector<std::string>> rows = {{"", "NAME", "KIND", "TYPE", "SHAPE"}};
  for (const char* key : {"inputs", "outputs"}) {
    for (const Json& v : file[key]) {
      rows.push_back({std::string(key).substr(0, std::string(key).size() - 1), Text(v["name"]), Text(v["kind"]),
                      Text(v["dtype"]), v["shape"].is_null() ? "?" : v["shape"].dump()});
    }
  }
  return Table(rows);
}

std::string Operators(const Json& file) {
  std::vector<const Json*> sorted;
  for (const Json& o : file["operators"]) sorted.push_back(&o);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Json* a, const Json* b) { return (*a)["count"].get<int64_t>() > (*b)["count"].get<int64_t>(); });
  std::string out;
  for (const Json* o : sorted) {
    const int64_t inner = (*o)["in_bodies"];
    const std::string name = (*o)["domain"] == "" ? Text((*o)["name"]) : Text((*o)["domain"]) + "." + Text((*o)["name"]);
    out += fmt::format("  {:>6} {}{}{}{}\n", (*o)["count"].get<int64_t>(), Escape(name),
                       inner ? fmt::format(" ({} in bodies)", inner) : "",
                       (*o)["function"].get<bool>() ? ", a function of the model" : "",
                       (*o)["supported"].get<bool>() ? "" : "  NOT SUPPORTED");
  }
  return out;
}

std::string Unsupported(const Json& file) {
  if (file["unsupported"].empty()) return "";
  std::vector<std::vector<std::string>> rows = {{"OPERATOR", "DOMAIN", "SET", "NODES", "FIRST NODE", "BACKENDS", "WHY"}};
  for (const Json& u : file["unsupported"]) {
    std::string backends;
    for (const Json& b : u["backends"]) backends += (backends.empty() ? "" : ", ") + Text(b);
    rows.push_back({Text(u["name"]), u["domain"] == "" ? "ai.onnx" : Text(u["domain"]),
                    u["version"] == 0 ? "-" : Text(u["version"]), Text(u["count"]), Text(u["first_node"]),
                    backends.empty() ? "none" : backends, Text(u["reason"])});
  }
  const size_t count = file["unsupported"].size();
  return fmt::format("\n{} not supported:\n{}", count == 1 ? "1 operator is" : fmt::format("{} operators are", count),
                     Table(rows));
}

std::string RenderModel(const Json& file, const Json& loaded, const Json& problem) {
  std::string out = Head(file) + Values(file);
  const int64_t bodies = file["bodies"], functions = file["functions"];
  out += fmt::format("{} nodes{}{}, {} weights of {}\n", Text(file["nodes"]),
                     bodies ? fmt::format(" and {} in {} bodies", file["body_nodes"].get<int64_t>(), bodies) : "",
                     functions ? fmt::format(", {} functions", functions) : "", Text(file["weights"]),
                     HumanBytes(file["weight_bytes"].get<uint64_t>()));
  out += Operators(file);
  if (!loaded.is_null()) {
    out += fmt::format("after simplification {} nodes, {} constants of {}\n", Text(loaded["nodes"]),
                       Text(loaded["constants"]), HumanBytes(loaded["constant_bytes"].get<uint64_t>()));
  }
  for (const Json& note : file["notes"]) out += fmt::format("note: {}\n", Escape(Text(note)));
  out += Unsupported(file);
  if (!problem.is_null()) {
    out += fmt::format("\nMGE cannot load this model: error[E{:04}] {}\n", problem["id"].get<int>(),
                       Escape(Text(problem["title"])));
    for (const char* part : {"what", "where", "fix"}) {
      if (problem[part] != "") out += fmt::format("  {:<7}{}\n", fmt::format("{}:", part), Escape(Text(problem[part])));
    }
  }
  return out;
}

int RunInspect(const Globals& globals, const std::string& model) {
  Runtime runtime;
  if (Status s = MakeRuntime(globals, &runtime); !s.ok()) return Report(globals, s);
  std::string text;
  if (Status s = runtime.ModelReport(model, "mge.model/1").MoveTo(text); !s.ok()) return Report(globals, s);
  Json file = Json::parse(text), loaded;
  const Json problem = ProblemOf(globals, model, &runtime, &loaded);
  if (!globals.json) {
    Print(RenderModel(file, loaded, problem));
    return kExitOk;
  }
  // The report on the loaded model, if it could be loaded, replaces that on the file.
  Json out = {{"schema", "mge.inspect/1"}};
  for (const char* key : {"graph", "ir_version", "producer", "producer_version", "opsets", "inputs", "outputs"})
    out[key] = file[key];
  if (!loaded.is_null()) out.update(loaded);
  out["loads"] = problem.is_null();
  out["problem"] = problem;
  out["unsupported"] = file["unsupported"];
  file.erase("unsupported");
  out["file"] = std::move(file);
  PrintJson(out);
  return kExitOk;
}

}  // namespace

Action DeclareInspect(Arguments app, const Globals& globals) {
  auto model = std::make_shared<std::string>();
  app.Add("MODEL", *model, "An ONNX file; - is standard input").Required().ValueName("FILE").IsInput();
  return [&globals, model] { return RunInspect(globals, *model); };
}

}  // namespace mge::cli
