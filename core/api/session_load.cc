// SPDX-License-Identifier: Apache-2.0
// The creation of sessions: from a file, from memory, or through a reader of the application.
#include <filesystem>
#include <limits>
#include <vector>

#include "core/api/callback.h"
#include "core/api/inbox.h"
#include "core/api/objects.h"
#include "core/api/options.h"
#include "core/api/training_checks.h"
#include "core/base/errors.h"
#include "core/env/settings_train.h"
#include "core/kvstore/data_parallel.h"
#include "core/ops/op.h"
#include "core/train/exported.h"
#include "fmt/format.h"

namespace {

absl::StatusOr<mge_session_options> Known(const mge_session_options* given) {
  return mge::api::CopyOptions(given, mge_session_options_init, "mge_session_options");
}

// `released` calls progress_release at its end.
absl::StatusOr<mge::SessionOptions> OptionsOf(const mge_session_options& o, std::shared_ptr<const void> released) {
  if (o.progress && o.progress_inbox) {
    return mge::Fail(mge::errors::kApiMisuse, "mge_session_options: both progress and progress_inbox are set",
                     {.fix = "set one of them"});
  }
  mge::SessionOptions options;
  if (o.device) options.device = o.device;
  options.threads = o.threads;
  for (size_t i = 0; i < o.skip_count; ++i) options.skip.push_back(o.skip[i]);
  MGE_ASSIGN_OR_RETURN(options.settings, mge::api::Assignments(o.settings, o.setting_count));
  options.outputs_on_device = o.outputs_on_device != 0;
  for (size_t i = 0; i < o.output_count; ++i) options.outputs.push_back(o.outputs[i]);
  if (o.progress) {
    auto report = [tell = o.progress, state = o.progress_state, released = std::move(released)](
                      std::string_view stage, uint64_t done, uint64_t total) {
      mge::api::CallApplication([&] { tell(state, std::string(stage).c_str(), done, total); });
    };
    options.progress = std::make_shared<mge::Progress>(std::move(report));
  } else if (o.progress_inbox) {
    auto report = [inbox = o.progress_inbox->inbox](std::string_view stage, uint64_t done, uint64_t total) {
      inbox->Add(mge::api::StageProgress{std::string(stage), done, total});
    };
    options.progress = std::make_shared<mge::Progress>(std::move(report));
  }
  return options;
}

// A model of the application, before it is read.
struct Source {
  std::string path;  // "": `bytes`
  mge::Bytes bytes = {};
  std::shared_ptr<const void> owner = nullptr;  // keeps `bytes` and `files`; nullptr: they outlive the session
  std::vector<mge::onnx::MemoryFile> files = {};
};

absl::StatusOr<mge::onnx::Model> Read(const Source& source, const mge_session_options& given,
                                      mge::HostAllocator& allocator) {
  mge::onnx::ReadOptions how;
  how.files = source.files;
  if (given.data_folder) how.data_folder = given.data_folder;
  how.export_notes = given.training != nullptr;
  if (source.path.empty()) return mge::onnx::ReadModelBytes(source.bytes, source.owner, how);
  how.allocator = &allocator;
  return mge::onnx::ReadModel(source.path, how);
}

// Returns whether a graph or a body in it exchanges tensors between ranks.
bool HasCollective(const mge::Graph& graph) {
  for (mge::NodeId id = 0; id < graph.node_count(); ++id) {
    const mge::Node& node = graph.node(id);
    if (node.dead) continue;
    if (node.def && (node.def->Is(mge::kAllReduce) || node.def->Is(mge::kBroadcast) || node.def->Is(mge::kExchange)))
      return true;
    for (const auto& [name, value] : node.attrs) {
      const mge::GraphPtr* body = std::get_if<mge::GraphPtr>(&value);
      if (body && HasCollective(**body)) return true;
    }
  }
  return false;
}

// Fails if the settings make the session a rank of a group whose other ranks it would never meet.
absl::Status CheckCollective(mge::Session& session, const mge::SessionOptions& options) {
  MGE_ASSIGN_OR_RETURN(const auto settings, session.runtime().registry().SnapshotWith(options.settings));
  const int64_t ranks = settings->Get<mge::kCollectiveRanks>();
  if (ranks == 1 || HasCollective(session.graph())) return absl::OkStatus();
  return mge::Fail(
      mge::errors::kBadSetting,
      fmt::format("collective.ranks is {}, and the {} exchanges nothing with other ranks", ranks,
                  options.training ? "training" : "model"),
      {.what = options.training ? "each rank would train alone" : "the model has no operator such as mge.AllReduce",
       .where = settings->OriginOf<mge::kCollectiveRanks>().Describe(),
       .fix =
           options.training ? "leave collective.ranks unset, or train with data_parallel" : "leave collective.ranks unset"});
}

absl::StatusOr<mge_session*> NewSession(const mge_runtime& runtime, const mge_session_options& given,
                                        std::shared_ptr<const void> released, Source source) {
  MGE_ASSIGN_OR_RETURN(mge::SessionOptions options, OptionsOf(given, std::move(released)));
  const mge::RunState stop(given.control ? &given.control->run_control : nullptr);
  options.stop = &stop;
  mge::ProgressOfStage reading(options.progress.get(), "read", 1);
  MGE_ASSIGN_OR_RETURN(mge::onnx::Model model, Read(source, given, runtime.runtime->devices().host().host_allocator()));
  reading.Advance();
  MGE_RETURN_IF_ERROR(stop.CheckStop());
  MGE_RETURN_IF_ERROR(runtime.runtime->registry().FollowEnvironment());
  mge::api::TrainedModel trained = {.file = model.file, .bytes = source.bytes, .owner = std::move(source.owner)};
  trained.folder = std::filesystem::path(source.path).parent_path();
  mge::api::TrainingRequest request;
  if (given.training) {
    MGE_ASSIGN_OR_RETURN(const auto settings, runtime.runtime->registry().SnapshotWith(options.settings));
    MGE_ASSIGN_OR_RETURN(request, mge::api::TrainingRequestOf(*given.training, *settings));
    MGE_ASSIGN_OR_RETURN(trained.restored, mge::RestoreExported(model));
    trained.model = std::make_shared<mge::onnx::Model>(model);
    trained.options = request.options;
    MGE_ASSIGN_OR_RETURN(trained.parameters, mge::MakeTrainingStep(model, request.options));
  }
  options.training = given.training != nullptr;
  mge::SessionOptions alone = options;  // the ranks of a data-parallel training are those of its replicas
  if (request.data_parallel)
    alone.settings.insert(alone.settings.end(), {{"collective.ranks", "1"}, {"collective.rank", "0"}});
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<mge::Session> session,
                       mge::Session::Create(runtime.runtime, std::move(model), alone));
  if (request.data_parallel) {
    auto make = [plain = trained.model,
                 o = request.options](const mge::ReplicaExchange& exchange) -> absl::StatusOr<mge::onnx::Model> {
      mge::onnx::Model replica = *plain;
      MGE_RETURN_IF_ERROR(mge::MakeTrainingStep(replica, o, exchange).status());
      return replica;
    };
    options.stop = nullptr;
    MGE_RETURN_IF_ERROR(mge::TrainOnReplicas(*session, options, std::move(make), request.facts));
  }
  if (!request.data_parallel) MGE_RETURN_IF_ERROR(CheckCollective(*session, options));
  if (given.training) {
    for (const std::string& text : mge::ExportWarnings(*trained.model, trained.parameters, trained.restored)) {
      runtime.runtime->logger().Warning("{}", text);
    }
  }
  auto out = std::make_unique<mge_session>();
  out->states = session->StateNames();
  out->session = std::move(session);
  out->profile = runtime.profile;
  out->converts = given.training != nullptr;
  mge::api::DescribeValues(*out);
  if (given.training) {
    out->trained = std::make_shared<const mge::api::TrainedModel>(std::move(trained));
    mge::api::CheckSteps(*out->session, out->trained);
  }
  return out.release();
}

absl::Status ReaderFailed(std::string what) {
  return mge::Fail(mge::errors::kFileAccess, "the application's reader of the model failed", {.what = std::move(what)});
}

// Returns all bytes that the application's reader has.
absl::StatusOr<std::shared_ptr<std::vector<std::byte>>> ReadAll(const mge_model_source& source) {
  constexpr size_t kChunk = size_t{1} << 20;
  const auto limit = static_cast<size_t>(mge::onnx::ReadOptions().max_file_bytes);
  auto out = std::make_shared<std::vector<std::byte>>();
  for (size_t size = 0;;) {
    out->resize(size + std::max(kChunk, size / 2));
    const size_t room = out->size() - size;
    int64_t got = 0;
    mge::api::CallApplication([&] { got = source.read(source.state, out->data() + size, room); });
    if (got < 0) return ReaderFailed(fmt::format("it returned {} after {} bytes", got, size));
    if (static_cast<uint64_t>(got) > room) return ReaderFailed(fmt::format("it returned {} for {} bytes", got, room));
    size += static_cast<size_t>(got);
    if (size > limit) return mge::Fail(mge::errors::kLimit, fmt::format("the model has more than {} bytes", limit));
    if (got > 0) continue;
    out->resize(size);
    return out;
  }
}

absl::StatusOr<Source> SourceOf(const mge_model_source& given, std::shared_ptr<const void> released) {
  if ((given.path != nullptr) + (given.data != nullptr) + (given.read != nullptr) != 1) {
    return mge::Fail(mge::errors::kApiMisuse, "mge_model_source needs exactly one of path, data and read");
  }
  Source out;
  out.owner = released;
  if (given.path && !*given.path) return mge::Fail(mge::errors::kApiMisuse, "the path of the model is empty or NULL");
  if (given.path) out.path = given.path;
  if (given.data) out.bytes = {static_cast<const std::byte*>(given.data), static_cast<size_t>(given.size)};
  if (given.read) {
    MGE_ASSIGN_OR_RETURN(std::shared_ptr<std::vector<std::byte>> bytes, ReadAll(given));
    out.bytes = *bytes;
    using Both = std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>;
    out.owner = std::make_shared<Both>(std::move(bytes), released);
  }
  if (given.file_count) {
    MGE_RETURN_IF_ERROR(mge::api::CheckStructSize<mge_model_file>(given.file_size, "mge_model_source", "file_size"));
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(given.files);
  for (size_t i = 0; i < given.file_count; ++i) {
    const auto* at = reinterpret_cast<const mge_model_file*>(bytes + i * given.file_size);
    MGE_ASSIGN_OR_RETURN(const mge_model_file file, mge::api::CopyStruct(at, given.file_size, "mge_model_file"));
    if (!file.name || (!file.data && file.size)) {
      return mge::Fail(mge::errors::kApiMisuse, fmt::format("file {} of mge_model_source has no name or no data", i));
    }
    out.files.push_back({file.name, {static_cast<const std::byte*>(file.data), static_cast<size_t>(file.size)}, released});
  }
  return out;
}

}  // namespace

mge_status* mge_session_load(mge_runtime* runtime, const char* path, const mge_session_options* options, mge_session** out) {
  mge_model_source source;
  mge_model_source_init(&source);
  source.path = path ? path : "";
  return mge_session_load_from(runtime, &source, options, out);
}

mge_status* mge_session_load_from(mge_runtime* runtime, const mge_model_source* source, const mge_session_options* options,
                                  mge_session** out) try {
  MGE_API_NEEDS({"source", source});
  MGE_API_ASSIGN_OR_RETURN(const mge_model_source from, mge::api::CopyOptions(source, "mge_model_source"));
  const std::shared_ptr<const void> released = mge::api::CallAtEnd(from.release, from.state);
  MGE_API_ASSIGN_OR_RETURN(const mge_session_options given, Known(options));
  auto progress = mge::api::CallAtEnd(given.progress_release, given.progress_state);
  MGE_API_NEEDS({"runtime", runtime}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(Source read, SourceOf(from, released));
  MGE_API_ASSIGN_OR_RETURN(*out, NewSession(*runtime, given, std::move(progress), std::move(read)));
  return nullptr;
}
MGE_API_CATCH
