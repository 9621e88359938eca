// SPDX-License-Identifier: Apache-2.0
// mge zoo: writes standard architectures with seeded random weights.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/nearest.h"
#include "core/cli/common.h"
#include "core/cli/zoo/architectures.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

struct Options {
  std::string name;
  std::string output;
  uint64_t seed = 1;
  int64_t batch = 1;
};

// Writes a temporary file beside the target and renames it, so that an existing file is unchanged on error.
int WriteFile(const Globals& globals, const std::string& path, const std::string& bytes) {
  std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  auto fail = [&](const char* what) {
    int error = errno;
    unlink(temporary.c_str());
    std::string text = fmt::format("mge: error[E0702] '{}' cannot be written\n  what:  {}: {}; {} bytes are needed\n",
                                   Escape(path), what, std::strerror(error), bytes.size());
    std::fputs(text.c_str(), stderr);
    if (globals.json)
      PrintJson({{"schema", "mge.error/1"}, {"id", 702}, {"exit_code", 7}, {"title", "cannot be written"}, {"where", path}});
    return 7;
  };
  int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return fail("open");
  for (size_t done = 0; done < bytes.size();) {
    ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      int code = fail("write");
      close(fd);
      return code;
    }
    done += static_cast<size_t>(n);
  }
  if (close(fd) != 0) return fail("close");
  if (rename(temporary.c_str(), path.c_str()) != 0) return fail("rename");
  return kExitOk;
}

int Run(const Globals& globals, const Options& o) {
  std::vector<std::string> names;
  for (const Architecture& a : Architectures()) {
    names.push_back(a.name);
    if (o.name != a.name) continue;
    if (o.batch > 1 && !a.batched) {
      return ReportUsage(globals, fmt::format("'{}' has no batch dimension: --batch {} cannot apply", o.name, o.batch),
                         "omit --batch, or use an architecture that `mge zoo` lists with a batch dimension");
    }
    std::string bytes = a.write(o.seed, o.batch);
    std::string path = o.output.empty() ? o.name + ".onnx" : o.output;
    if (int code = WriteFile(globals, path, bytes)) return code;
    if (globals.json) {
      Json row = {{"schema", "mge.zoo/1"}, {"name", o.name}, {"file", path}, {"bytes", bytes.size()}, {"seed", o.seed}};
      if (a.batched) row["batch"] = o.batch;
      PrintJson(row);
    } else {
      Talk(globals, fmt::format("wrote {} ({}{}, {})", path, a.doc, a.batched ? fmt::format(", batch {}", o.batch) : "",
                                HumanBytes(bytes.size())));
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
  std::string_view near = Nearest(o.name, names);
  return ReportUsage(
      globals, fmt::format("there is no architecture '{}'", o.name),
      near.empty() ? fmt::format("use one of: {}", fmt::join(names, ", ")) : fmt::format("did you mean '{}'?", near));
}

}  // namespace

Action DeclareZoo(CLI::App& app, const Globals& globals) {
  auto o = std::make_shared<Options>();
  std::vector<std::string> names;
  for (const Architecture& a : Architectures()) names.push_back(a.name);
  app.add_option("NAME", o->name, "The architecture; if omitted, lists all architectures")
      ->type_name(fmt::format("{{{}}}", fmt::join(names, ",")));
  app.add_option("-o,--output", o->output, "The file to write; default NAME.onnx")->type_name("FILE");
  app.add_option("--seed", o->seed, "Seed of the random weights");
  app.add_option("--batch", o->batch, "Size of the batch dimension, if the architecture has one")->check(Between(1, 4096));
  return [&globals, o] { return Run(globals, *o); };
}

}  // namespace mge::cli
