// SPDX-License-Identifier: Apache-2.0
#include "core/cli/train_checkpoints.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "fmt/format.h"

namespace mge::cli {
namespace {

constexpr std::string_view kPrefix = "step-", kSuffix = ".ckpt";

// Returns the names of the files of steps, the newest first.
std::vector<std::string> StepFiles(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    std::string name = entry.path().filename();
    if (name.starts_with(kPrefix) && name.ends_with(kSuffix)) out.push_back(std::move(name));
  }
  std::ranges::sort(out, std::greater<>());
  return out;
}

std::string NotesOf(const TrainingProgress& p) {
  return Json({{"schema", "mge.training/1"},
               {"steps", p.steps},
               {"epoch", p.epoch},
               {"examples_done", p.examples_done},
               {"loss_sum", p.loss_sum},
               {"best", p.best},
               {"seed", p.seed},
               {"batch", p.batch},
               {"examples", p.examples}})
      .dump();
}

// Returns false if the notes are of another program.
bool ReadNotes(const std::string& notes, TrainingProgress* p) {
  const Json json = Json::parse(notes, nullptr, false);
  if (!json.is_object() || json.value("schema", "") != "mge.training/1") return false;
  p->steps = json.value("steps", int64_t{0});
  p->epoch = json.value("epoch", int64_t{0});
  p->examples_done = json.value("examples_done", int64_t{0});
  p->seed = json.value("seed", uint64_t{0});
  p->batch = json.value("batch", int64_t{0});
  p->examples = json.value("examples", int64_t{0});
  // JSON has no NaN or infinity: they are null.
  if (json["loss_sum"].is_number()) p->loss_sum = json["loss_sum"];
  if (json["best"].is_number()) p->best = json["best"];
  return p->epoch >= 0 && p->examples_done >= 0 && p->steps >= 0;
}

}  // namespace

bool TrainCheckpoints::IsEmpty() const { return StepFiles(folder_).empty(); }

Status TrainCheckpoints::Save(const Session& session, const TrainingProgress& progress) const {
  if (!writes_) return session.HelpToSaveCheckpoint();
  const std::string path = fmt::format("{}/{}{:012}{}", folder_, kPrefix, progress.steps, kSuffix);
  if (Status s = session.SaveCheckpoint(path, NotesOf(progress)); !s.ok()) return s;
  const std::vector<std::string> files = StepFiles(folder_);
  std::error_code ignored;
  for (size_t i = static_cast<size_t>(keep_); i < files.size(); ++i)
    std::filesystem::remove(folder_ + "/" + files[i], ignored);
  return {};
}

Status TrainCheckpoints::SaveBest(const Session& session, const TrainingProgress& progress) const {
  if (!writes_) return session.HelpToSaveCheckpoint();
  return session.SaveCheckpoint(folder_ + "/best.ckpt", NotesOf(progress));
}

int TrainCheckpoints::Load(const Globals& globals, const Session& session, TrainingProgress* progress) const {
  Status latest;
  for (const std::string& name : StepFiles(folder_)) {
    const std::string path = folder_ + "/" + name;
    std::string notes;
    latest = session.LoadCheckpoint(path).MoveTo(notes);
    if (latest.ok() && ReadNotes(notes, progress)) {
      PrintMessage(globals, fmt::format("continues after step {} ({})", progress->steps, path));
      return kExitOk;
    }
    if (!latest.ok() && latest.id() != errors::kBadInputFile.id) return Report(globals, latest);
    PrintMessage(globals, latest.ok() ? fmt::format("{} is not of mge train", path)
                                      : fmt::format("{}: {}; the checkpoint before it is used", path, latest.title()));
  }
  if (!latest.ok()) return Report(globals, latest);
  return ReportUsage(globals, fmt::format("--resume: {} has no checkpoint of mge train", folder_));
}

}  // namespace mge::cli
