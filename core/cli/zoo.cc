// SPDX-License-Identifier: Apache-2.0
// mge zoo: writes standard architectures with seeded random weights.
#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/file.h"
#include "core/base/nearest.h"
#include "core/cli/common.h"
#include "core/cli/zoo/architectures.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

struct ZooOptions {
  std::string name;
  std::string output;
  ModelRequest request;
  std::string type = "float32";
};

constexpr std::pair<std::string_view, ElementType> kTypes[] = {
    {"float32", kFloat32}, {"float16", kFloat16}, {"bfloat16", kBFloat16}};

int RunZoo(const Globals& globals, const ZooOptions& o) {
  std::vector<std::string> names;
  for (const Architecture& a : Architectures()) {
    names.push_back(a.name);
    if (o.name != a.name) continue;
    if (o.request.batch > 1 && !a.batched) {
      return ReportUsage(globals,
                         fmt::format("'{}' has no batch dimension: --batch {} cannot apply", o.name, o.request.batch),
                         "omit --batch, or use an architecture that `mge zoo` lists with a batch dimension");
    }
    ModelRequest request = o.request;
    request.type = std::ranges::find(kTypes, o.type, &std::pair<std::string_view, ElementType>::first)->second;
    std::string bytes = a.write(request);
    std::string path = o.output.empty() ? o.name + ".onnx" : o.output;
    if (absl::Status s = WriteFileAtomically(path, AsBytes(bytes)); !s.ok()) return Report(globals, s);
    if (globals.json) {
      Json row = {{"schema", "mge.zoo/1"}, {"name", o.name},         {"file", path},
                  {"bytes", bytes.size()}, {"seed", o.request.seed}, {"type", o.type}};
      if (a.batched) row["batch"] = o.request.batch;
      PrintJson(row);
    } else {
      PrintMessage(globals,
                   fmt::format("wrote {} ({}, {}{}, {})", path, a.doc, o.type,
                               a.batched ? fmt::format(", batch {}", o.request.batch) : "", HumanBytes(bytes.size())));
    }
    return kExitOk;
  }
  if (o.name.empty()) {
    std::vector<std::vector<std::string>> rows = {{"NAME", "BATCH", "DESCRIPTION"}};
    Json list = Json::array();
    for (const Architecture& a : Architectures()) {
      rows.push_back({a.name, a.batched ? "any" : "-", a.doc});
      list.push_back({{"name", a.name}, {"batched", a.batched}, {"doc", a.doc}});
    }
    if (globals.json) {
      PrintJson({{"schema", "mge.zoo/1"}, {"architectures", std::move(list)}});
    } else {
      Print(Table(rows));
    }
    return kExitOk;
  }
  return ReportUsage(globals, fmt::format("there is no architecture '{}'", o.name),
                     DidYouMeanOr(Nearest(o.name, names), fmt::format("use one of: {}", fmt::join(names, ", "))));
}

}  // namespace

Action DeclareZoo(Arguments app, const Globals& globals) {
  auto o = std::make_shared<ZooOptions>();
  std::vector<std::string> names;
  for (const Architecture& a : Architectures()) names.push_back(a.name);
  app.Add("NAME", o->name, "The architecture; if omitted, lists all architectures")
      .ValueName(fmt::format("{{{}}}", fmt::join(names, ",")));
  app.Add("-o,--output", o->output, "The file to write; default NAME.onnx").ValueName("FILE");
  app.Add("--seed", o->request.seed, "Seed of the random weights");
  app.Add("--batch", o->request.batch, "Size of the batch dimension, if the architecture has one").Between(1, 4096);
  app.Add("--type", o->type, "Element type of the weights, of floating inputs and of outputs")
      .OneOf({"float32", "float16", "bfloat16"});
  return [&globals, o] { return RunZoo(globals, *o); };
}

}  // namespace mge::cli
