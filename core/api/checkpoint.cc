// SPDX-License-Identifier: Apache-2.0
// The API functions of checkpoints and evaluation.
#include "core/train/checkpoint.h"

#include <algorithm>
#include <tuple>

#include "core/api/objects.h"
#include "core/base/errors.h"
#include "fmt/format.h"

using mge::api::Misuse;
using mge::api::Wrap;

namespace {

absl::StatusOr<mge::Checkpoint> StatesOf(mge_session& s) {
  mge::Checkpoint out = {.optimizer = s.trained->options.optimizer};
  for (const std::string& name : s.states) {
    MGE_ASSIGN_OR_RETURN(mge::Tensor state, s.session->ReadState(name));
    MGE_RETURN_IF_ERROR(mge::api::CheckNoNan(name, state));
    out.states[name] = std::move(state);
  }
  return out;
}

// Checks that a checkpoint has all states of the session with their types, and no others.
absl::Status CheckFits(mge_session& s, const mge::Checkpoint& checkpoint, const char* path) {
  auto differs = [&](std::string what) {
    return mge::Fail(mge::errors::kBadInput, fmt::format("checkpoint '{}' is of another training", path),
                     {.what = std::move(what), .fix = "train the same model with the options of the checkpoint"});
  };
  if (checkpoint.optimizer != s.trained->options.optimizer) {
    return differs(
        fmt::format("its optimizer is {}, the session has {}", checkpoint.optimizer, s.trained->options.optimizer));
  }
  for (const std::string& name : s.states) {
    const auto state = checkpoint.states.find(name);
    if (state == checkpoint.states.end()) return differs(fmt::format("it has no state '{}'", name));
    MGE_ASSIGN_OR_RETURN(const mge::Tensor own, s.session->ReadState(name));
    if (own.dtype() != state->second.dtype() || own.shape() != state->second.shape()) {
      return differs(fmt::format("its state '{}' has another type or shape", name));
    }
  }
  for (const auto& [name, state] : checkpoint.states) {
    if (std::find(s.states.begin(), s.states.end(), name) == s.states.end()) {
      return differs(fmt::format("the session has no state '{}'", name));
    }
  }
  return absl::OkStatus();
}

constexpr char kDoesNotTrain[] = "the session does not train";

}  // namespace

mge_status* mge_session_save_checkpoint(mge_session* s, const char* path, const char* notes) try {
  MGE_API_NEEDS({"session", s});
  if (!s->trained) return Misuse("mge_session_save_checkpoint", kDoesNotTrain);
  MGE_API_ASSIGN_OR_RETURN(mge::Checkpoint checkpoint, StatesOf(*s));
  if (!path) return nullptr;
  if (notes) checkpoint.notes = notes;
  return Wrap(mge::WriteCheckpoint(checkpoint, path));
}
MGE_API_CATCH

mge_status* mge_session_load_checkpoint(mge_session* s, const char* path, mge_string** notes) try {
  MGE_API_NEEDS({"session", s}, {"path", path});
  if (!s->trained) return Misuse("mge_session_load_checkpoint", kDoesNotTrain);
  MGE_API_ASSIGN_OR_RETURN(mge::Checkpoint checkpoint, mge::ReadCheckpoint(path));
  MGE_API_RETURN_IF_ERROR(CheckFits(*s, checkpoint, path));
  for (const auto& [name, state] : checkpoint.states) MGE_API_RETURN_IF_ERROR(s->session->WriteState(name, state));
  if (notes) *notes = mge::api::NewString(std::move(checkpoint.notes));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_session_part(mge_session* s, int64_t examples, int64_t* first, int64_t* count) try {
  MGE_API_NEEDS({"session", s}, {"first", first}, {"count", count});
  if (examples < 1) return Misuse("mge_session_part", fmt::format("a batch of {} examples", examples));
  std::tie(*first, *count) = s->session->PartOf(examples);
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_session_evaluation(mge_session* s, mge_session** out) try {
  MGE_API_NEEDS({"session", s}, {"out", out});
  if (!s->trained) return Misuse("mge_session_evaluation", kDoesNotTrain);
  mge::onnx::Model model = *s->trained->model;
  MGE_API_RETURN_IF_ERROR(mge::MakeEvaluation(model, s->trained->options));
  auto evaluation = std::make_unique<mge_session>();
  MGE_API_ASSIGN_OR_RETURN(evaluation->session, mge::Session::Evaluating(*s->session, std::move(model)));
  evaluation->profile = s->profile;
  evaluation->converts = true;
  evaluation->states = evaluation->session->StateNames();
  mge::api::DescribeValues(*evaluation);
  *out = evaluation.release();
  return nullptr;
}
MGE_API_CATCH
