// SPDX-License-Identifier: Apache-2.0
// A session: a model on devices, ready to run. Any number of threads may run it at once.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/engine/instance.h"
#include "core/engine/runtime.h"
#include "core/onnx/reader.h"
#include "core/plan/program.h"

namespace mge {

struct SessionOptions {
  std::string device = {};  // "gpu0,cpu0"; empty: scope of the thread, else the default device
  int threads = 0;          // 0: as the settings say
  std::vector<std::string> skip = {};  // passes, rewrites, claims, beside those of the settings
  std::vector<Assignment> settings = {};  // dynamic ones, for this session alone
  std::vector<std::string> outputs = {};  // values of the model to compute; empty: the model's outputs
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  ~Session();  // what its devices' pools keep then is what their reserve policies retain
  static absl::StatusOr<std::shared_ptr<Session>> Load(std::shared_ptr<Runtime> runtime, const std::string& path,
                                                       const SessionOptions& options);
  static absl::StatusOr<std::shared_ptr<Session>> Create(std::shared_ptr<Runtime> runtime, onnx::Model model,
                                                         const SessionOptions& options);

  const onnx::ModelInfo& info() const { return info_; }
  const Graph& graph() const { return program_->graph(); }
  Device& device() const { return *program_->context().devices.front(); }
  const std::vector<Device*>& devices() const { return program_->context().devices; }  // in order of preference
  uint32_t threads() const { return program_->context().threads; }
  Runtime& runtime() { return *runtime_; }
  int input_count() const { return static_cast<int>(graph().inputs().size()); }
  int output_count() const { return static_cast<int>(graph().outputs().size()); }
  // Place of an input or output by name; kBadInput with the nearest name.
  absl::StatusOr<int> InputIndex(std::string_view name) const;
  absl::StatusOr<int> OutputIndex(std::string_view name) const;
  // The outputs' types as known before a run: declared by the model, and inferred from its inputs.
  const std::vector<ValueType>& output_types() const { return output_types_; }

  // The plan for inputs of these types, made now if it is not yet.
  absl::StatusOr<std::shared_ptr<const Plan>> PlanFor(std::span<const InputType> inputs) { return program_->PlanFor(inputs); }
  // Of the last run, or what PlanFor() answered since; nullptr before.
  std::shared_ptr<const Plan> last_plan() const { return program_->recent(); }

  // Inputs in order; outputs.size() == output_count(). A defined output tensor is the caller's memory for that result.
  // `control`: cancel, deadline (of the planning, too, if there is no plan yet) and seed; width and pool are filled in here.
  absl::Status Run(std::span<const HostValue> inputs, std::span<HostValue> outputs, RunControl& control);
  // The same for some outputs, by their places, each once. Skips the nodes that they do not need.
  absl::Status RunSome(std::span<const HostValue> inputs, std::span<const int> places, std::span<HostValue> outputs,
                       RunControl& control);

  // The same as an operation of the runtime's engine on the session's device: in the caller's thread with the naive engine,
  // else on a worker. `done` is called once, there. Inputs and outputs are shared; `control` outlives the call of `done`.
  void RunAsync(std::vector<HostValue> inputs, std::vector<HostValue> outputs, RunControl& control,
                std::function<void(absl::Status, std::vector<HostValue>)> done);

 private:
  struct Subset {
    std::vector<int> places;
    std::shared_ptr<Program> program;
  };
  Session() = default;
  absl::Status RunProgram(Program& program, std::span<const HostValue> inputs, std::span<HostValue> outputs,
                          RunControl& control);
  // The program that computes these outputs only. The last kMaxSubsets of them are kept.
  absl::StatusOr<std::shared_ptr<Program>> ProgramFor(std::span<const int> places);

  std::shared_ptr<Runtime> runtime_;
  onnx::ModelInfo info_;
  std::shared_ptr<Program> program_;
  std::vector<ValueType> output_types_;
  std::mutex subsets_mutex_;
  std::list<Subset> subsets_;  // most recent first; guarded by subsets_mutex_
  double default_timeout_s_ = 0;
  uint64_t seed_ = 0;
};

}  // namespace mge
