// SPDX-License-Identifier: Apache-2.0
// C++17 over mge.h: header-only, standard library only, no exceptions. An object owns its handle and is movable.
//
//   auto runtime = mge::Runtime::Create();
//   if (!runtime.ok()) return Report(runtime.status());
//   auto session = mge::Session::Load(*runtime, "model.onnx");
//   if (!session.ok()) return Report(session.status());
//   auto x = mge::Tensor::Of<float>({1, 4}, {1, 2, 3, 4});
//   auto y = session->Run({&*x});
//   if (!y.ok()) return Report(y.status());
//
// Errors   A function that can fail returns a Status, or a Result if it has a value (result.hpp).
// Names    Functions are in CamelCase, accessors in lower case. Contexts (context.hpp) have the names of mxnet.context.
// Empty    Objects are created by functions such as Create(). A default-constructed or moved-from one is empty: it can be
//          assigned and tested, and not be used otherwise.
// Backends plugin.hpp has classes of the same names. In a source file that has included it before, these are mge::app::Session
//          and so on.
// C        get() is the handle for functions of mge.h.
#pragma once

#if __cplusplus < 201703L
#error "mge.hpp needs C++17: compile with -std=c++17, or use mge.h, which is plain C"
#endif

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mge/context.hpp"
#include "mge/mge.h"
#include "mge/namespace.hpp"
#include "mge/result.hpp"
#include "mge/runtime.hpp"
#include "mge/span.hpp"
#include "mge/tensor.hpp"

namespace mge {
MGE_APPLICATION_NAMESPACE(v0) {

// The times of the steps of runs. RunControl::SetProfile() selects the runs.
class Profile : public internal::Owner<mge_profile, mge_profile_release> {
 public:
  using Owner::Owner;
  Profile() = delete;
  static Result<Profile> Create() { return internal::Take<Profile>(mge_profile_create); }
  void Reset() { mge_profile_reset(get()); }
  // Returns "mge.profile/1", or "trace" for Chrome's and Perfetto's viewers.
  Result<std::string> Report(const std::string& format) const {
    return internal::TakeText([&](mge_string** text) { return mge_profile_report(get(), format.c_str(), text); });
  }
};

// Cancels runs and limits their time. One control may be used by several runs, also at the same time.
class RunControl : public internal::Owner<mge_run_control, mge_run_control_release> {
 public:
  using Owner::Owner;
  RunControl() = delete;
  static Result<RunControl> Create() { return internal::Take<RunControl>(mge_run_control_create); }
  void SetTimeout(double seconds) { mge_run_control_set_timeout(get(), seconds); }
  void SetSeed(uint64_t seed) { mge_run_control_set_seed(get(), seed); }
  // Gives later asynchronous runs a priority, higher first.
  void SetPriority(int32_t priority) { mge_run_control_set_priority(get(), priority); }
  void Cancel() { mge_run_control_cancel(get()); }
  void Reset() { mge_run_control_reset(get()); }
  // Makes later runs with this control add their times to `profile`; nullptr ends that.
  void SetProfile(const Profile* profile) { mge_run_control_set_profile(get(), profile ? profile->get() : nullptr); }

  struct Overrun {
    double seconds;    // by which a run exceeds its time limit; 0: none does
    std::string step;  // the current one; "" between steps
  };
  // For a watchdog, from any thread.
  Result<Overrun> Overdue() const {
    Overrun out = {};
    auto step = internal::TakeText([&](mge_string** text) { return mge_run_control_overdue(get(), &out.seconds, text); });
    if (!step.ok()) return step.status();
    out.step = *std::move(step);
    return out;
  }
};

// Parameters that a training updates otherwise than the others; see mge_parameter_group.
struct ParameterGroup {
  std::string pattern;
  double rate = 1;
  double weight_decay = -1;
};

// Options of a training; see mge_training_options.
struct TrainingOptions {
  std::string loss = "cross_entropy";
  std::string loss_output = {};
  std::string labels_name = "labels";
  std::string optimizer = "sgd";
  double momentum = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0, clip_norm = 0;
  std::vector<std::string> frozen = {};
  bool data_parallel = false;
  std::string facts = {};  // equal in all processes of a training
  std::string on_nan = "stop";
  double clip_value = 0, label_smoothing = 0;
  int64_t accumulate = 1;
  std::vector<double> class_weights = {};
  double huber_delta = 1;
  std::vector<ParameterGroup> groups = {};
  double average_decay = 0;
  bool keep_gradients = false;
};

// Options of a session; see mge_session_options.
struct SessionOptions {
  std::string device = {};
  int threads = 0;
  std::vector<std::string> skip = {};
  std::vector<std::string> settings = {};  // dynamic settings for this session only: "NAME=VALUE"
  // values to compute instead of the model's outputs, intermediate values included; empty: the model's outputs
  std::vector<std::string> outputs = {};
  std::string data_folder = {};         // of the model's external data; empty: the folder of the model's file
  bool outputs_on_device = false;       // runs create outputs in the memory of the session's first device that has its own
  const RunControl* control = nullptr;  // ends the load
  // Receives how far a stage of loading or planning is, on any thread.
  std::function<void(std::string_view stage, uint64_t done, uint64_t total)> progress = nullptr;
  const Inbox* progress_inbox = nullptr;         // keeps the progress, in place of `progress`
  std::optional<TrainingOptions> training = {};  // present: each run is a training step
};

// The end of a run that may still be in progress; see mge_session_run. The destructor does not wait.
class RunFence : public internal::Owner<mge_run_fence, mge_run_fence_release> {
 public:
  using Owner::Owner;
  // Returns a fence that is reached when the work that is now on a stream of the application has ended.
  static Result<RunFence> OfStream(const Runtime& runtime, const std::string& device, void* native_stream) {
    return internal::Take<RunFence>(
        [&](mge_run_fence** out) { return mge_run_fence_of_stream(runtime.get(), device.c_str(), native_stream, out); });
  }
  // Waits until the run has ended, and returns its error.
  Status Wait() const {
    int32_t reached = 0;
    return Status(mge_run_fence_wait(get(), -1, &reached));
  }
  // Waits at most that long. Returns whether the run has ended.
  Result<bool> WaitFor(double seconds) const {
    int32_t reached = 0;
    if (Status s(mge_run_fence_wait(get(), seconds, &reached)); !s.ok()) return s;
    return reached != 0;
  }
};

// How a run is done; see mge_run_options. Default: all inputs and outputs in the model's order, and the call waits.
struct RunOptions {
  using Done = std::function<void(Result<std::vector<Tensor>>)>;
  const RunControl* control = nullptr;
  std::vector<std::string> input_names = {};
  std::vector<std::string> output_names = {};  // the outputs to compute; nodes that these do not need are skipped
  std::vector<const RunFence*> after = {};     // runs that must have ended before this one begins
  void* native_stream = nullptr;               // a stream of the application that the run follows, and that waits for it
  RunFence* fence = nullptr;  // set: the run is enqueued, and its outputs may be read when the fence is reached
  // One of these may be set. The call then returns no outputs and does not wait, and a worker does the run.
  Done done = nullptr;           // is called once with the outputs, unless Run() itself fails
  const Inbox* inbox = nullptr;  // gets the outputs, with `tag`
  uint64_t tag = 0;
};

// A run that an inbox has received.
struct EndedRun {
  uint64_t tag;
  Result<std::vector<Tensor>> outputs;
};
// Takes the run that ended first, if there is one. `most`: the largest number of outputs of a run.
inline std::optional<EndedRun> TakeRun(Inbox& inbox, size_t most) {
  uint64_t tag = 0;
  mge_status* status = nullptr;
  std::vector<mge_tensor*> made(most, nullptr);
  size_t count = 0;
  if (!mge_inbox_take_run(inbox.get(), &tag, &status, made.data(), made.size(), &count)) return std::nullopt;
  if (Status s(status); !s.ok()) return EndedRun{tag, s};
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < count; ++i) outputs.emplace_back(made[i]);
  return EndedRun{tag, std::move(outputs)};
}

// Options for generated inputs; see mge_example_options.
struct ExampleOptions {
  uint64_t seed = 0;
  std::vector<std::string> shapes = {};  // "NAME=1x3x224x224"
  int variant = 0;
};
struct ExampleInputs {
  std::vector<Tensor> inputs;
  std::string report;  // JSON "mge.inputs/1"
};

// Where a model comes from: one of `path`, `data` and `read`; see mge_model_source.
struct ModelSource {
  struct File {
    std::string name;
    const void* data;
    uint64_t size;
  };
  std::string path = {};
  const void* data = nullptr;
  uint64_t size = 0;
  std::function<int64_t(void* buffer, uint64_t capacity)> read = nullptr;
  std::vector<File> files = {};             // of external data
  std::function<void()> release = nullptr;  // called once when nothing uses `data` and `files` any more, also on failure
};

// An input or output of a session: what the model declares, and for an output also what follows. Nothing is known of a value that
// does not exist. The views are valid as long as the session.
class ValueFacts {
 public:
  explicit ValueFacts(const mge_value_facts& raw) : raw_(raw) {}
  std::string_view name() const { return internal::TextOrEmpty(raw_.name); }
  int kind() const { return raw_.kind; }            // MGE_VALUE_...
  int part_kind() const { return raw_.part_kind; }  // of an optional or a sequence
  mge_dtype dtype() const { return raw_.dtype; }
  int rank() const { return raw_.rank; }                                                                 // -1: unknown
  Tensor::Dims dims() const { return {raw_.dims, static_cast<size_t>(raw_.rank > 0 ? raw_.rank : 0)}; }  // -1: unknown
  std::string_view dim_name(size_t axis) const { return axis < dims().size() ? raw_.dim_names[axis] : std::string_view(); }

 private:
  mge_value_facts raw_;
};

// A loaded model. Run() may be called from several threads at once.
class Session : public internal::Owner<mge_session, mge_session_release> {
 public:
  using Owner::Owner;
  static Result<Session> Load(const Runtime& runtime, const std::string& path, const SessionOptions& options = {}) {
    return Make(options, [&](const mge_session_options* o, mge_session** s) {
      return mge_session_load(runtime.get(), path.c_str(), o, s);
    });
  }
  static Result<Session> Load(const Runtime& runtime, const ModelSource& source, const SessionOptions& options = {}) {
    std::vector<mge_model_file> files;
    for (const ModelSource::File& file : source.files) files.push_back({file.name.c_str(), file.data, file.size});
    mge_model_source from;
    mge_model_source_init(&from);
    from.path = internal::TextOrNull(source.path);
    from.data = source.data;
    from.size = source.size;
    if (source.read) from.read = CallRead;
    from.files = files.data();
    from.file_count = files.size();
    from.state = new ModelSource(source);
    from.release = ReleaseSource;
    return Make(options, [&](const mge_session_options* o, mge_session** s) {
      return mge_session_load_from(runtime.get(), &from, o, s);
    });
  }
  // The bytes must outlive the session.
  static Result<Session> LoadBytes(const Runtime& runtime, const void* data, uint64_t size,
                                   const SessionOptions& options = {}) {
    ModelSource source;
    source.data = data;
    source.size = size;
    return Load(runtime, source, options);
  }

  size_t input_count() const { return mge_session_input_count(get()); }
  size_t output_count() const { return mge_session_output_count(get()); }
  ValueFacts input(size_t i) const { return Facts(mge_session_input, i); }
  ValueFacts output(size_t i) const { return Facts(mge_session_output, i); }

  // Key and value pairs that the model's author added.
  size_t metadata_count() const { return mge_session_metadata_count(get()); }
  std::string_view metadata_key(size_t i) const { return internal::TextOrEmpty(mge_session_metadata_key(get(), i)); }
  std::string_view metadata_value(size_t i) const { return internal::TextOrEmpty(mge_session_metadata_value(get(), i)); }

  int threads() const { return mge_session_threads(get()); }
  // Names of the session's devices, in order of preference.
  size_t device_count() const { return mge_session_device_count(get()); }
  std::string_view device(size_t i) const { return internal::TextOrEmpty(mge_session_device(get(), i)); }

  // Reads a file (.npy, .npz, .pb) as the kind of value that this input or output declares.
  Result<Tensor> ReadInput(size_t i, const std::string& path) const {
    return internal::Take<Tensor>([&](mge_tensor** t) { return mge_session_read_input(get(), i, path.c_str(), t); });
  }
  Result<Tensor> ReadOutput(size_t i, const std::string& path) const {
    return internal::Take<Tensor>([&](mge_tensor** t) { return mge_session_read_output(get(), i, path.c_str(), t); });
  }

  // Runs the model; see mge_session_run and RunOptions. Returns the outputs.
  Result<std::vector<Tensor>> Run(Span<const Tensor* const> inputs, const RunOptions& options = {}) const {
    std::vector<Tensor> outputs;
    if (Status s = Run(inputs, outputs, options); !s.ok()) return s;
    return outputs;
  }
  // The same with memory for the outputs. `outputs` is empty, or has one entry per output; results go to the memory of those that
  // are not empty, and the others are created.
  Status Run(Span<const Tensor* const> inputs, std::vector<Tensor>& outputs, const RunOptions& options = {}) const {
    const internal::Texts input_names(options.input_names), output_names(options.output_names);
    std::vector<mge_tensor*> in, out;
    std::vector<mge_run_fence*> after;
    for (const Tensor* t : inputs) in.push_back(t->get());
    for (const RunFence* fence : options.after) after.push_back(fence->get());
    for (const Tensor& t : outputs) out.push_back(t.get());
    const bool posted = options.done || options.inbox;
    if (out.empty()) out.resize(output_names.size() ? output_names.size() : output_count(), nullptr);
    mge_run_options o;
    mge_run_options_init(&o);
    o.input_names = input_names.data();
    o.output_names = output_names.data();
    o.control = options.control ? options.control->get() : nullptr;
    o.after = after.data();
    o.after_count = after.size();
    o.inbox = options.inbox ? options.inbox->get() : nullptr;
    o.tag = options.tag;
    o.native_stream = options.native_stream;
    std::unique_ptr<RunOptions::Done> done;
    if (options.done) {
      done = std::make_unique<RunOptions::Done>(options.done);
      o.done = CallDone;
      o.state = done.get();
    }
    mge_run_fence* fence = nullptr;
    Status s(mge_session_run(get(), in.data(), in.size(), out.data(), out.size(), &o, options.fence ? &fence : nullptr));
    if (options.fence) *options.fence = RunFence(fence);
    if (!s.ok()) return s;
    (void)done.release();  // the callback owns it
    if (posted) return s;
    outputs.resize(out.size());
    for (size_t i = 0; i < out.size(); ++i) {
      if (outputs[i].get() != out[i]) outputs[i] = Tensor(out[i]);
    }
    return s;
  }

  // Generates the inputs that are empty in `given` (one per input of the model, or none).
  Result<v0::ExampleInputs> ExampleInputs(const ExampleOptions& options = {}, std::vector<Tensor> given = {}) const {
    const internal::Texts shapes(options.shapes);
    mge_example_options o;
    mge_example_options_init(&o);
    o.seed = options.seed;
    o.shapes = shapes.data();
    o.shape_count = shapes.size();
    o.variant = options.variant;
    given.resize(input_count());
    std::vector<mge_tensor*> in;
    for (const Tensor& t : given) in.push_back(t.get());
    auto report = internal::TakeText(
        [&](mge_string** text) { return mge_session_example_inputs(get(), &o, in.data(), in.size(), text); });
    if (!report.ok()) return report.status();
    for (size_t i = 0; i < in.size(); ++i) {
      if (!given[i]) given[i] = Tensor(in[i]);
    }
    return v0::ExampleInputs{std::move(given), *std::move(report)};
  }

  // Returns the plan for such inputs as "text" or "mge.plan/1". With a profile, includes measured times of the steps.
  Result<std::string> Plan(Span<const Tensor* const> inputs, const std::string& format, bool why = false,
                           const Profile* profile = nullptr) const {
    std::vector<mge_tensor*> in;
    for (const Tensor* t : inputs) in.push_back(t->get());
    return internal::TakeText([&](mge_string** text) {
      return profile ? mge_session_plan_measured(get(), in.data(), in.size(), profile->get(), format.c_str(), why, text)
                     : mge_session_plan(get(), in.data(), in.size(), format.c_str(), why, text);
    });
  }
  // Returns facts as JSON: "mge.inspect/1", "mge.memory/1".
  Result<std::string> Report(const std::string& schema) const {
    return internal::TakeText([&](mge_string** text) { return mge_session_report(get(), schema.c_str(), text); });
  }
  Result<mge_memory_facts> Memory() const {
    mge_memory_facts out;
    mge_memory_facts_init(&out);
    if (Status s(mge_session_memory(get(), &out)); !s.ok()) return s;
    return out;
  }

  // States stay from run to run: the parameters of a session that trains, and values of its optimizer, such as "NAME.mean" of
  // adam.
  size_t state_count() const { return mge_session_state_count(get()); }
  std::string_view state_name(size_t i) const { return internal::TextOrEmpty(mge_session_state_name(get(), i)); }
  Result<Tensor> ReadState(const std::string& name) const {
    return internal::Take<Tensor>([&](mge_tensor** t) { return mge_session_read_state(get(), name.c_str(), t); });
  }
  Status WriteState(const std::string& name, const Tensor& tensor) const {
    return Status(mge_session_write_state(get(), name.c_str(), tensor.get()));
  }
  // Only in a session that trains: its parameters, and the model with them as a file.
  size_t parameter_count() const { return mge_session_parameter_count(get()); }
  std::string_view parameter_name(size_t i) const { return internal::TextOrEmpty(mge_session_parameter_name(get(), i)); }
  Status Save(const std::string& path) const { return Status(mge_session_save(get(), path.c_str())); }
  Status SaveForInference(const std::string& path) const {
    return Status(mge_session_save_for_inference(get(), path.c_str()));
  }
  Status SaveCheckpoint(const std::string& path, const std::string& notes = {}) const {
    return Status(mge_session_save_checkpoint(get(), path.c_str(), notes.c_str()));
  }
  // Gives this process's part of the states to the one that saves them at the same time (train.shard_optimizer).
  Status HelpToSaveCheckpoint() const { return Status(mge_session_save_checkpoint(get(), nullptr, nullptr)); }
  // Returns the notes that were saved.
  Result<std::string> LoadCheckpoint(const std::string& path) const {
    return internal::TakeText([&](mge_string** text) { return mge_session_load_checkpoint(get(), path.c_str(), text); });
  }
  // The examples of a batch that this process computes.
  struct Part {
    int64_t first = 0, count = 0;
  };
  Result<Part> PartOf(int64_t examples) const {
    Part out;
    Status status(mge_session_part(get(), examples, &out.first, &out.count));
    if (!status.ok()) return status;
    return out;
  }
  // Returns a session that computes the loss and the outputs with the present states, and changes none.
  Result<Session> Evaluation() const {
    return internal::Take<Session>([&](mge_session** session) { return mge_session_evaluation(get(), session); });
  }

 private:
  using Progress = std::function<void(std::string_view, uint64_t, uint64_t)>;
  static int64_t CallRead(void* source, void* buffer, uint64_t capacity) {
    return static_cast<ModelSource*>(source)->read(buffer, capacity);
  }
  static void ReleaseSource(void* source) {
    const std::unique_ptr<ModelSource> owner(static_cast<ModelSource*>(source));
    if (owner->release) owner->release();
  }
  static void CallProgress(void* progress, const char* stage, uint64_t done, uint64_t total) {
    (*static_cast<Progress*>(progress))(stage, done, total);
  }
  template <typename F>
  ValueFacts Facts(F describe, size_t i) const {
    mge_value_facts facts;
    mge_value_facts_init(&facts);
    if (!Status(describe(get(), i, &facts)).ok()) facts.rank = -1;
    return ValueFacts(facts);
  }
  static void CallDone(void* state, mge_status* status, mge_tensor** outputs, size_t count) {
    const std::unique_ptr<RunOptions::Done> done(static_cast<RunOptions::Done*>(state));
    if (Status s(status); !s.ok()) return (*done)(s);
    std::vector<Tensor> out;
    for (size_t i = 0; i < count; ++i) out.emplace_back(outputs[i]);
    (*done)(std::move(out));
  }
  template <typename F>
  static Result<Session> Make(const SessionOptions& options, F make) {
    const internal::Texts skip(options.skip), settings(options.settings), outputs(options.outputs);
    mge_session_options o;
    mge_session_options_init(&o);
    o.device = internal::TextOrNull(options.device);
    o.threads = options.threads;
    o.skip = skip.data();
    o.skip_count = skip.size();
    o.settings = settings.data();
    o.setting_count = settings.size();
    o.outputs = outputs.data();
    o.output_count = outputs.size();
    o.outputs_on_device = options.outputs_on_device;
    o.data_folder = internal::TextOrNull(options.data_folder);
    o.control = options.control ? options.control->get() : nullptr;
    if (options.progress) {
      o.progress = CallProgress;
      o.progress_state = new Progress(options.progress);
      o.progress_release = [](void* progress) { delete static_cast<Progress*>(progress); };
    }
    if (options.progress_inbox) o.progress_inbox = options.progress_inbox->get();
    const TrainingOptions t = options.training.value_or(TrainingOptions());
    const internal::Texts frozen(t.frozen);
    mge_training_options training;
    mge_training_options_init(&training);
    training.loss = t.loss.c_str();
    training.loss_output = t.loss_output.c_str();
    training.labels_name = t.labels_name.c_str();
    training.optimizer = t.optimizer.c_str();
    training.momentum = t.momentum;
    training.beta1 = t.beta1;
    training.beta2 = t.beta2;
    training.epsilon = t.epsilon;
    training.weight_decay = t.weight_decay;
    training.clip_norm = t.clip_norm;
    training.frozen = frozen.data();
    training.frozen_count = frozen.size();
    training.data_parallel = t.data_parallel;
    if (!t.facts.empty()) training.facts = t.facts.c_str();
    training.on_nan = t.on_nan.c_str();
    training.clip_value = t.clip_value;
    training.label_smoothing = t.label_smoothing;
    training.accumulate = t.accumulate;
    training.class_weights = t.class_weights.data();
    training.class_weight_count = t.class_weights.size();
    training.huber_delta = t.huber_delta;
    std::vector<mge_parameter_group> groups;
    for (const ParameterGroup& group : t.groups) groups.push_back({group.pattern.c_str(), group.rate, group.weight_decay});
    training.groups = groups.data();
    training.group_count = groups.size();
    training.average_decay = t.average_decay;
    training.keep_gradients = t.keep_gradients;
    if (options.training) o.training = &training;
    return internal::Take<Session>([&](mge_session** session) { return make(&o, session); });
  }
};

}  // MGE_APPLICATION_NAMESPACE(v0)
}  // namespace mge
