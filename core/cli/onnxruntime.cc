// SPDX-License-Identifier: Apache-2.0
#include "core/cli/onnxruntime.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "core/base/errno_text.h"
#include "core/process/child.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

namespace fs = std::filesystem;

// A temporary folder that only this user can access. The destructor removes it with its contents.
class PrivateFolder {
 public:
  PrivateFolder() {
    std::error_code ec;
    fs::path parent = fs::temp_directory_path(ec);
    std::string name = ((ec ? fs::path("/tmp") : parent) / "mge-compare-XXXXXX").string();
    if (mkdtemp(name.data())) path_ = name;
  }
  ~PrivateFolder() {
    std::error_code ec;
    if (!path_.empty()) fs::remove_all(path_, ec);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  bool ok() const { return !path_.empty(); }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void AppendField(uint32_t field, std::string_view bytes, std::string* out) {
  constexpr uint32_t kDelimited = 2;
  AppendVarint(field << 3 | kDelimited, out);
  AppendVarint(bytes.size(), out);
  *out += bytes;
}

// Returns a ModelProto that adds outputs to the graph of another model when its bytes are appended to that model.
std::string ExtraOutputs(const std::vector<std::string>& names) {
  constexpr uint32_t kModelGraph = 7, kGraphOutput = 12, kValueInfoName = 1;
  std::string graph, model;
  for (const std::string& name : names) {
    std::string info;
    AppendField(kValueInfoName, name, &info);
    AppendField(kGraphOutput, info, &graph);
  }
  AppendField(kModelGraph, graph, &model);
  return model;
}

bool WriteFile(const std::string& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  out.close();
  return !out.fail();
}

int CannotWrite(const Globals& globals, const std::string& path) {
  return Report(globals, Fail(errors::kFileWrite, fmt::format("'{}' cannot be written", path),
                              {.what = ErrnoText(errno), .fix = "free space there, or set TMPDIR to another folder"}));
}

// Reports an error of the process or of the script. Returns its exit code, or 0 if there was none.
int CheckReply(const Globals& globals, const OnnxRuntimeRun& run, const ChildEnd& end, const Json& reply) {
  const std::string other = "name a Python interpreter that has onnxruntime: --python FOLDER/bin/python";
  if (end.not_started != 0 || end.exit_code == kNotExecuted) {
    return Report(
        globals,
        Fail(errors::kUsage, fmt::format("'{}' cannot be started", run.python),
             {.what = end.not_started ? ErrnoText(end.not_started) : end.last_line, .where = "--python", .fix = other}));
  }
  if (reply.contains("missing")) {
    return Report(
        globals, Fail(errors::kUsage, fmt::format("'{}' has no package {}", run.python, reply["missing"].get<std::string>()),
                      {.where = "--python",
                       .fix = fmt::format("install it there: {} -m pip install onnxruntime; or {}", run.python, other)}));
  }
  if (reply.contains("error")) {
    return Report(globals, Fail(errors::kUnsupportedFeature, "onnxruntime cannot run the model",
                                {.what = reply["error"].get<std::string>(),
                                 .where = fmt::format("onnxruntime {}, {}", reply["version"].get<std::string>(), run.model),
                                 .fix = "compare with another device instead: --against host"}));
  }
  if (end.fine() && reply.contains("outputs")) return 0;
  return Report(globals, Fail(errors::kKernelFailed, fmt::format("'{}' returned no results", run.python),
                              {.what = end.Describe(0), .where = "--python", .fix = other}));
}

}  // namespace

int RunInOnnxRuntime(const Globals& globals, const OnnxRuntimeRun& run, std::vector<NamedTensor>* results,
                     std::string* version) {
  PrivateFolder folder;
  if (!folder.ok()) return CannotWrite(globals, "a private folder for temporary files");
  Json inputs = Json::array();
  for (size_t i = 0; i < run.inputs.size(); ++i) {
    const std::string file = folder.File(fmt::format("input_{}.npy", i));
    if (Status s = run.inputs[i]->WriteNpy(file); !s.ok()) return Report(globals, s);
    inputs.push_back({{"name", run.input_names[i]}, {"file", file}});
  }
  std::string extra;
  if (!run.outputs.empty()) {
    extra = folder.File("extra_outputs.pb");
    if (!WriteFile(extra, ExtraOutputs(run.outputs))) return CannotWrite(globals, extra);
  }
  const Json request = {{"model", run.model},
                        {"extra", extra},
                        {"inputs", std::move(inputs)},
                        {"outputs", run.outputs},
                        {"threads", run.threads}};
  const std::string request_file = folder.File("request.json");
  if (!WriteFile(request_file, request.dump(2, ' ', false, Json::error_handler_t::replace))) {
    return CannotWrite(globals, request_file);
  }
  const auto child = Child::Execute({run.python, "-c", std::string(OnnxRuntimeScript()), folder.path()}, "", kNoTimeLimit);
  child->ReadToEnd([] { return true; });
  std::ifstream in(folder.File("reply.json"), std::ios::binary);
  Json reply = Json::parse(std::string(std::istreambuf_iterator<char>(in), {}), nullptr, false);
  if (!reply.is_object()) reply = Json::object();
  if (int code = CheckReply(globals, run, child->end(), reply)) return code;
  *version = reply["version"];
  for (const Json& row : reply["outputs"]) {
    NamedTensor& result = results->emplace_back();
    result.name = row["name"];
    const std::string file = row["file"];
    if (file.empty()) continue;
    if (Status s = Tensor::Read(file).MoveTo(result.tensor); !s.ok()) return Report(globals, s);
  }
  return 0;
}

}  // namespace mge::cli
