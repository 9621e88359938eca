// SPDX-License-Identifier: Apache-2.0
// A session: a model on devices, ready to run.
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

// The options of a session.
struct SessionOptions {
  std::string device = {};                // "gpu0,cpu0"; empty: the device of the thread's scope, else the default device
  int threads = 0;                        // 0: the number in the settings
  std::vector<std::string> skip = {};     // passes, rewrites and claims to skip, in addition to those of the settings
  std::vector<Assignment> settings = {};  // dynamic settings for this session only
  std::vector<std::string> outputs = {};  // values of the model to compute; empty: the model's outputs
};

// A session. Any number of threads may run it at the same time.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // Releases the session's plans. The devices' pools then keep only the memory that their reserve policies retain.
  ~Session();
  // Reads a model from a file and creates a session.
  static absl::StatusOr<std::shared_ptr<Session>> Load(std::shared_ptr<Runtime> runtime, const std::string& path,
                                                       const SessionOptions& options);
  // Creates a session for a model that has been read.
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
  // Returns the index of the input or output with that name. Fails with kBadInput, which names the nearest name.
  absl::StatusOr<int> InputIndex(std::string_view name) const;
  absl::StatusOr<int> OutputIndex(std::string_view name) const;
  // Returns the outputs' types as far as they are known before a run: declared by the model, or inferred from its inputs.
  const std::vector<ValueType>& output_types() const { return output_types_; }

  // Returns the plan for inputs of these types. Creates it if there is none.
  absl::StatusOr<std::shared_ptr<const Plan>> PlanFor(std::span<const InputType> inputs) {
    return program_->PlanFor(inputs);
  }
  // Returns the plan that Run() or PlanFor() used last, or nullptr if there is none.
  std::shared_ptr<const Plan> last_plan() const { return program_->recent(); }

  // Runs the model. `inputs` are in the model's order. `outputs` has output_count() elements. A defined output tensor is
  // memory of the caller for that result. The caller sets the cancel flag, the deadline and the seed of `control`; the
  // deadline includes planning. This function sets its width and pool.
  absl::Status Run(std::span<const HostValue> inputs, std::span<HostValue> outputs, RunState& control);
  // Runs the model for some outputs only. `places` are their indices, each once. Skips nodes that these outputs do not need.
  absl::Status RunSome(std::span<const HostValue> inputs, std::span<const int> places, std::span<HostValue> outputs,
                       RunState& control);

  // Runs the model as an operation of the runtime's engine on the session's device. The naive engine uses the calling
  // thread, others a worker. Calls `done` once, in that thread. `control` must live until `done` has returned.
  void RunAsync(std::vector<HostValue> inputs, std::vector<HostValue> outputs, RunState& control,
                std::function<void(absl::Status, std::vector<HostValue>)> done);

 private:
  struct Subset {
    std::vector<int> places;
    std::shared_ptr<Program> program;
  };
  Session() = default;
  absl::Status RunProgram(Program& program, std::span<const HostValue> inputs, std::span<HostValue> outputs,
                          RunState& control);
  // Returns the program that computes these outputs only. The kMaxSubsets most recently used ones are kept.
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
