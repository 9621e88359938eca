// SPDX-License-Identifier: Apache-2.0
// C++20 over mge.h: header-only, standard library only, no exceptions. Objects own their handles and are movable.
//
//   mge::Runtime runtime;  mge::Session session;  mge::Tensor x;
//   if (auto s = mge::Runtime::Create({}, &runtime); !s.ok()) return Report(s);
//   if (auto s = mge::Session::Load(runtime, "model.onnx", {}, &session); !s.ok()) return Report(s);
//   if (auto s = mge::Tensor::Of<float>({1, 4}, {1, 2, 3, 4}, &x); !s.ok()) return Report(s);
//   std::vector<mge::Tensor> y;
//   if (auto s = session.Run({&x}, &y); !s.ok()) return Report(s);
#pragma once

#if __cplusplus < 202002L
#error "mge.hpp needs C++20: compile with -std=c++20, or use mge.h, which is plain C"
#endif

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mge/mge.h"
#include "mge/tensor.hpp"

namespace mge {
// An inline namespace: invisible in source code, but part of every symbol. So another library with classes of these names
// (another version of this header, or the core itself) can be linked into the same program.
inline namespace v0 {

// Options of a runtime; see mge_runtime_options.
struct RuntimeOptions {
  std::vector<std::string> settings = {};  // "NAME=VALUE"
  std::vector<std::string> command_line = {};
  std::vector<std::string> config_files = {};
  std::vector<std::string> plugin_directories = {};
  bool built_in_plugins = true;
  bool environment = true;
};

namespace internal {
// The options as a C struct. It points into `options`.
class RawOptions {
 public:
  explicit RawOptions(const RuntimeOptions& options) {
    raw_.struct_size = sizeof(raw_);
    Point(options.settings, 0, &raw_.settings, &raw_.setting_count);
    Point(options.command_line, 1, &raw_.command_line, &raw_.command_line_count);
    Point(options.config_files, 2, &raw_.config_files, &raw_.config_file_count);
    Point(options.plugin_directories, 3, &raw_.plugin_directories, &raw_.plugin_directory_count);
    raw_.no_built_in_plugins = !options.built_in_plugins;
    raw_.no_environment = !options.environment;
  }
  const mge_runtime_options* get() const { return &raw_; }

 private:
  void Point(const std::vector<std::string>& from, int list, const char* const** data, size_t* count) {
    for (const std::string& s : from) lists_[list].push_back(s.c_str());
    *data = lists_[list].data();
    *count = lists_[list].size();
  }
  std::vector<const char*> lists_[4];
  mge_runtime_options raw_ = {};
};

// Copies the text that a call returns.
template <typename F>
Status TakeText(std::string* out, F call) {
  mge_string* text = nullptr;
  Status s(call(&text));
  if (text) out->assign(mge_string_data(text), mge_string_size(text));
  mge_string_release(text);
  return s;
}
}  // namespace internal

// Manages backend files without opening them. `options` name the directories to search.
struct Plugins {
  static Status Verify(const RuntimeOptions& options, const std::string& file, std::string* json) {
    return internal::TakeText(json, [&](mge_string** text) {
      return mge_plugins_verify(internal::RawOptions(options).get(), file.empty() ? nullptr : file.c_str(), text);
    });
  }
  static Status Install(const RuntimeOptions& options, const std::string& file, std::string* path) {
    return internal::TakeText(path, [&](mge_string** text) {
      return mge_plugins_install(internal::RawOptions(options).get(), file.c_str(), text);
    });
  }
  static Status Remove(const RuntimeOptions& options, const std::string& name, std::string* path) {
    return internal::TakeText(path, [&](mge_string** text) {
      return mge_plugins_remove(internal::RawOptions(options).get(), name.c_str(), text);
    });
  }
  static Status Quarantine(const RuntimeOptions& options, const std::string& file, const std::string& reason) {
    return Status(mge_plugins_quarantine(internal::RawOptions(options).get(), file.c_str(), reason.c_str()));
  }
  static Status EndQuarantine(const RuntimeOptions& options, const std::string& name) {
    return Status(mge_plugins_end_quarantine(internal::RawOptions(options).get(), name.c_str()));
  }
};

// A runtime: its settings, backends and devices.
class Runtime {
 public:
  Runtime() = default;
  static Status Create(const RuntimeOptions& options, Runtime* out) {
    mge_runtime* r = nullptr;
    Status s(mge_runtime_create(internal::RawOptions(options).get(), &r));
    out->runtime_.reset(r);
    return s;
  }
  Status Set(const std::string& name, const std::string& value) {
    return Status(mge_runtime_set(get(), name.c_str(), value.c_str()));
  }
  Status Get(const std::string& name, std::string* out) const {
    return internal::TakeText(out, [&](mge_string** text) { return mge_runtime_get(get(), name.c_str(), text); });
  }
  Status SetDefaultDevice(const std::string& device) {
    return Status(mge_runtime_set_default_device(get(), device.c_str()));
  }
  Status SetExecutionStrategy(const std::string& strategy) {
    return Status(mge_runtime_set_execution_strategy(get(), strategy.c_str()));
  }
  Status Report(const std::string& schema, std::string* out) const {
    return internal::TakeText(out, [&](mge_string** text) { return mge_runtime_report(get(), schema.c_str(), text); });
  }
  // Creates the id of a group of ranks (mge_collective_id).
  Status CollectiveId(const std::string& device, std::string* out) {
    return internal::TakeText(out, [&](mge_string** text) { return mge_collective_id(get(), device.c_str(), text); });
  }
  // Returns facts about a model file, also for a model that cannot be loaded: "mge.model/1", "mge.nodes/1".
  Status ModelReport(const std::string& path, const std::string& schema, std::string* out) const {
    return internal::TakeText(
        out, [&](mge_string** text) { return mge_model_report(get(), path.c_str(), schema.c_str(), text); });
  }
  int NumGpus() const { return mge_num_gpus(get()); }
  // Returns facts about all devices. Starts all backends.
  Status Devices(std::vector<mge_device_facts>* out) const {
    out->resize(mge_runtime_device_count(get()));
    for (size_t i = 0; i < out->size(); ++i) {
      mge_device_facts_init(&(*out)[i]);
      if (Status s(mge_runtime_device(get(), i, &(*out)[i])); !s.ok()) return s;
    }
    return Status();
  }
  mge_runtime* get() const { return runtime_.get(); }

 private:
  internal::Handle<mge_runtime, mge_runtime_release> runtime_;
};

Status Context::empty_cache(Runtime& runtime) const { return Status(mge_empty_cache(runtime.get(), get())); }

// Returns the thread's context: of the innermost scope, else the default device if it is set, else cpu(0). Fails if the default
// device cannot be used.
inline Status current_context(Runtime& runtime, Context* out) {
  mge_context raw = {};
  Status s(mge_context_current(runtime.get(), &raw));
  if (s.ok()) *out = Context(raw);
  return s;
}
inline int num_gpus(Runtime& runtime) { return mge_num_gpus(runtime.get()); }
// Returns the free and total bytes of a GPU. Fails if it does not exist, or with the error of its driver.
inline Status gpu_memory_info(Runtime& runtime, int device_id, uint64_t* free_bytes, uint64_t* total_bytes) {
  return Status(mge_gpu_memory_info(runtime.get(), device_id, free_bytes, total_bytes));
}

// A scope: makes a context the thread's current one while the object exists. Sessions and tensors that name no device use it.
//
//   mge::ContextScope scope(runtime, mge::gpu(1));
//   if (!scope.status().ok()) return Report(scope.status());
class ContextScope {
 public:
  ContextScope(Runtime& runtime, const Context& context)
      : runtime_(runtime.get()), status_(mge_context_push(runtime_, context.get())), open_(status_.ok()) {}
  ContextScope(Runtime& runtime, const std::string& context) : runtime_(runtime.get()) {
    Context parsed;
    status_ = Context::Parse(context, &parsed);
    if (status_.ok()) status_ = Status(mge_context_push(runtime_, parsed.get()));
    open_ = status_.ok();
  }
  ~ContextScope() {
    if (open_) mge_status_release(mge_context_pop(runtime_));
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  const Status& status() const { return status_; }

 private:
  mge_runtime* runtime_;
  Status status_;
  bool open_ = false;
};

// The times of the steps of runs. RunControl::SetProfile() selects the runs.
class Profile {
 public:
  Profile() {
    mge_profile* p = nullptr;
    mge_status_release(mge_profile_create(&p));
    profile_.reset(p);
  }
  void Reset() { mge_profile_reset(get()); }
  // Returns "mge.profile/1", or "trace" for Chrome's and Perfetto's viewers.
  Status Report(const std::string& format, std::string* out) const {
    return internal::TakeText(out, [&](mge_string** text) { return mge_profile_report(get(), format.c_str(), text); });
  }
  mge_profile* get() const { return profile_.get(); }

 private:
  internal::Handle<mge_profile, mge_profile_release> profile_;
};

// Cancels runs and limits their time. One control may be used by several runs, also at the same time.
class RunControl {
 public:
  RunControl() {
    mge_run_control* c = nullptr;
    mge_status_release(mge_run_control_create(&c));
    control_.reset(c);
  }
  void SetTimeout(double seconds) { mge_run_control_set_timeout(get(), seconds); }
  void SetSeed(uint64_t seed) { mge_run_control_set_seed(get(), seed); }
  // Gives later asynchronous runs a priority, higher first.
  void SetPriority(int32_t priority) { mge_run_control_set_priority(get(), priority); }
  void Cancel() { mge_run_control_cancel(get()); }
  void Reset() { mge_run_control_reset(get()); }
  // Returns by how many seconds a run exceeds its time limit, and the current step, "" between steps. From any thread.
  Status Overdue(double* seconds, std::string* place) const {
    return internal::TakeText(place, [&](mge_string** text) { return mge_run_control_overdue(get(), seconds, text); });
  }
  // Makes later runs with this control add their times to `profile`; null ends that.
  void SetProfile(const Profile* profile) { mge_run_control_set_profile(get(), profile ? profile->get() : nullptr); }
  mge_run_control* get() const { return control_.get(); }

 private:
  internal::Handle<mge_run_control, mge_run_control_release> control_;
};

// Options of a training; see mge_training_options.
struct TrainingOptions {
  std::string loss = "cross_entropy";
  std::string loss_output = {};
  std::string optimizer = "sgd";
  double momentum = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0, clip_norm = 0;
  std::vector<std::string> frozen = {};
  bool data_parallel = false;
};

// Options of a session; see mge_session_options.
struct SessionOptions {
  std::string device = {};
  int threads = 0;
  std::vector<std::string> skip = {};
  std::vector<std::string> settings = {};  // dynamic settings for this session only: "NAME=VALUE"
  // values to compute instead of the model's outputs, intermediate values included; empty: the model's outputs
  std::vector<std::string> outputs = {};
  std::string data_folder = {};    // of the model's external data; empty: the folder of the model's file
  bool outputs_on_device = false;  // runs create outputs in the memory of the session's first device that has its own
  std::optional<TrainingOptions> training = {};  // present: each run is a training step
};

// The end of a run that may still be in progress; see mge_session_run. The destructor does not wait.
class RunFence {
 public:
  RunFence() = default;
  explicit RunFence(mge_run_fence* fence) : fence_(fence) {}
  explicit operator bool() const { return fence_ != nullptr; }
  // Waits until the run has ended, and returns its error.
  Status Wait() const {
    int32_t reached = 0;
    return Status(mge_run_fence_wait(get(), -1, &reached));
  }
  // Waits at most that long. *reached is false if the time came first.
  Status WaitFor(double seconds, bool* reached) const {
    int32_t done = 0;
    Status s(mge_run_fence_wait(get(), seconds, &done));
    *reached = done != 0;
    return s;
  }
  mge_run_fence* get() const { return fence_.get(); }

 private:
  internal::Handle<mge_run_fence, mge_run_fence_release> fence_;
};

// How a run is done; see mge_run_options. Default: all inputs and outputs in the model's order, and the call waits.
struct RunOptions {
  using Done = std::function<void(Status, std::vector<Tensor>)>;
  const RunControl* control = nullptr;
  std::vector<std::string> input_names = {};
  std::vector<std::string> output_names = {};  // the outputs to compute; nodes that these do not need are skipped
  std::vector<const RunFence*> after = {};     // runs that must have ended before this one begins
  RunFence* fence = nullptr;  // set: the run is enqueued, and its outputs may be read when the fence is reached
  Done done = nullptr;        // set: a worker does the run and calls it once, unless Run() itself fails
};

// Options for generated inputs; see mge_example_options.
struct ExampleOptions {
  uint64_t seed = 0;
  std::vector<std::string> shapes = {};  // "NAME=1x3x224x224"
  int variant = 0;
};

// A loaded model. Run() may be called from several threads at once.
class Session {
 public:
  Session() = default;
  static Status Load(const Runtime& runtime, const std::string& path, const SessionOptions& options, Session* out) {
    return Make(options, out, [&](const mge_session_options* o, mge_session** s) {
      return mge_session_load(runtime.get(), path.c_str(), o, s);
    });
  }
  // The bytes must outlive the session.
  static Status LoadBytes(const Runtime& runtime, const void* data, uint64_t size, const SessionOptions& options,
                          Session* out) {
    return Make(options, out, [&](const mge_session_options* o, mge_session** s) {
      return mge_session_load_bytes(runtime.get(), data, size, o, s);
    });
  }

  size_t input_count() const { return mge_session_input_count(get()); }
  size_t output_count() const { return mge_session_output_count(get()); }
  std::string_view input_name(size_t i) const { return mge_session_input_name(get(), i); }
  std::string_view output_name(size_t i) const { return mge_session_output_name(get(), i); }
  // Kind (MGE_VALUE_...), element type, rank (-1: unknown), dimensions (-1: unknown) and their names ("": none).
  int input_kind(size_t i) const { return mge_session_input_kind(get(), i); }
  mge_dtype input_dtype(size_t i) const { return mge_session_input_dtype(get(), i); }
  int input_rank(size_t i) const { return mge_session_input_rank(get(), i); }
  std::span<const int64_t> input_dims(size_t i) const { return Dims(mge_session_input_dims(get(), i), input_rank(i)); }
  std::string_view input_dim_name(size_t i, size_t axis) const { return Text(mge_session_input_dim_name(get(), i, axis)); }
  int output_kind(size_t i) const { return mge_session_output_kind(get(), i); }
  mge_dtype output_dtype(size_t i) const { return mge_session_output_dtype(get(), i); }
  int output_rank(size_t i) const { return mge_session_output_rank(get(), i); }
  std::span<const int64_t> output_dims(size_t i) const { return Dims(mge_session_output_dims(get(), i), output_rank(i)); }
  std::string_view output_dim_name(size_t i, size_t axis) const { return Text(mge_session_output_dim_name(get(), i, axis)); }

  // Key and value pairs that the model's author added.
  size_t metadata_count() const { return mge_session_metadata_count(get()); }
  std::string_view metadata_key(size_t i) const { return Text(mge_session_metadata_key(get(), i)); }
  std::string_view metadata_value(size_t i) const { return Text(mge_session_metadata_value(get(), i)); }

  int threads() const { return mge_session_threads(get()); }
  // Names of the session's devices, in order of preference.
  size_t device_count() const { return mge_session_device_count(get()); }
  std::string_view device(size_t i) const { return Text(mge_session_device(get(), i)); }

  Status ReadInput(size_t i, const std::string& path, Tensor* out) const {
    mge_tensor* t = nullptr;
    Status s(mge_session_read_input(get(), i, path.c_str(), &t));
    *out = Tensor(t);
    return s;
  }
  Status ReadOutput(size_t i, const std::string& path, Tensor* out) const {
    mge_tensor* t = nullptr;
    Status s(mge_session_read_output(get(), i, path.c_str(), &t));
    *out = Tensor(t);
    return s;
  }

  // Runs the model; see mge_session_run and RunOptions. `outputs` is empty (all are created), or has one entry per output;
  // results go to the memory of those that are not empty. It may be nullptr if options.done is set.
  Status Run(std::span<const Tensor* const> inputs, std::vector<Tensor>* outputs, const RunOptions& options = {}) {
    std::vector<mge_tensor*> in, out;
    std::vector<const char*> in_names, out_names;
    std::vector<mge_run_fence*> after;
    for (const Tensor* t : inputs) in.push_back(t->get());
    for (const std::string& name : options.input_names) in_names.push_back(name.c_str());
    for (const std::string& name : options.output_names) out_names.push_back(name.c_str());
    for (const RunFence* fence : options.after) after.push_back(fence->get());
    if (outputs) {
      outputs->resize(out_names.empty() ? output_count() : out_names.size());
      for (const Tensor& t : *outputs) out.push_back(t.get());
    }
    mge_run_options o;
    mge_run_options_init(&o);
    o.input_names = in_names.empty() ? nullptr : in_names.data();
    o.output_names = out_names.empty() ? nullptr : out_names.data();
    o.control = options.control ? options.control->get() : nullptr;
    o.after = after.data();
    o.after_count = after.size();
    std::unique_ptr<RunOptions::Done> done;
    if (options.done) {
      done = std::make_unique<RunOptions::Done>(options.done);
      o.done = CallDone;
      o.state = done.get();
    }
    mge_run_fence* fence = nullptr;
    Status s(mge_session_run(get(), in.data(), in.size(), outputs ? out.data() : nullptr,
                             outputs ? out.size() : out_names.size(), &o, options.fence ? &fence : nullptr));
    if (s.ok()) (void)done.release();  // the callback owns it
    if (options.fence) *options.fence = RunFence(fence);
    for (size_t i = 0; outputs && !options.done && i < out.size(); ++i) {
      if (!(*outputs)[i]) (*outputs)[i] = Tensor(out[i]);
    }
    return s;
  }
  Status Run(std::initializer_list<const Tensor*> inputs, std::vector<Tensor>* outputs, const RunOptions& options = {}) {
    return Run(std::span<const Tensor* const>(inputs.begin(), inputs.size()), outputs, options);
  }

  // Generates the inputs that are empty in `inputs` (one per input of the model, or none). `json` receives "mge.inputs/1".
  Status ExampleInputs(const ExampleOptions& options, std::vector<Tensor>* inputs, std::string* json) const {
    std::vector<const char*> shapes;
    for (const std::string& shape : options.shapes) shapes.push_back(shape.c_str());
    mge_example_options o;
    mge_example_options_init(&o);
    o.seed = options.seed;
    o.shapes = shapes.data();
    o.shape_count = shapes.size();
    o.variant = options.variant;
    inputs->resize(input_count());
    std::vector<mge_tensor*> in;
    for (const Tensor& t : *inputs) in.push_back(t.get());
    Status s = internal::TakeText(
        json, [&](mge_string** text) { return mge_session_example_inputs(get(), &o, in.data(), in.size(), text); });
    for (size_t i = 0; i < in.size(); ++i) {
      if (!(*inputs)[i]) (*inputs)[i] = Tensor(in[i]);
    }
    return s;
  }

  // Returns the plan for such inputs as "text" or "mge.plan/1". With a profile, includes measured times of the steps.
  Status Plan(std::span<const Tensor* const> inputs, const std::string& format, bool why, std::string* out,
              const Profile* profile = nullptr) const {
    std::vector<mge_tensor*> in;
    for (const Tensor* t : inputs) in.push_back(t->get());
    return internal::TakeText(out, [&](mge_string** text) {
      return profile ? mge_session_plan_measured(get(), in.data(), in.size(), profile->get(), format.c_str(), why, text)
                     : mge_session_plan(get(), in.data(), in.size(), format.c_str(), why, text);
    });
  }
  Status Report(const std::string& schema, std::string* out) const {
    return internal::TakeText(out, [&](mge_string** text) { return mge_session_report(get(), schema.c_str(), text); });
  }
  Status Memory(mge_memory_facts* out) const {
    mge_memory_facts_init(out);
    return Status(mge_session_memory(get(), out));
  }

  // Only in a session that trains: its parameters, copies of their elements, and the model with them as a file.
  size_t parameter_count() const { return mge_session_parameter_count(get()); }
  std::string_view parameter_name(size_t i) const { return Text(mge_session_parameter_name(get(), i)); }
  Status ReadState(const std::string& name, Tensor* out) const {
    mge_tensor* t = nullptr;
    Status s(mge_session_read_state(get(), name.c_str(), &t));
    *out = Tensor(t);
    return s;
  }
  Status Save(const std::string& path) const { return Status(mge_session_save(get(), path.c_str())); }
  mge_session* get() const { return session_.get(); }

 private:
  static std::span<const int64_t> Dims(const int64_t* dims, int rank) {
    return {dims, static_cast<size_t>(rank > 0 ? rank : 0)};
  }
  static std::string_view Text(const char* text) { return text ? text : ""; }
  static void CallDone(void* state, mge_status* status, mge_tensor** outputs, size_t count) {
    const std::unique_ptr<RunOptions::Done> done(static_cast<RunOptions::Done*>(state));
    std::vector<Tensor> out;
    for (size_t i = 0; i < count; ++i) out.emplace_back(outputs[i]);
    (*done)(Status(status), std::move(out));
  }
  template <typename F>
  static Status Make(const SessionOptions& options, Session* out, F make) {
    std::vector<const char*> skip, settings, outputs;
    for (const std::string& s : options.skip) skip.push_back(s.c_str());
    for (const std::string& s : options.settings) settings.push_back(s.c_str());
    for (const std::string& s : options.outputs) outputs.push_back(s.c_str());
    mge_session_options o;
    mge_session_options_init(&o);
    o.device = options.device.empty() ? nullptr : options.device.c_str();
    o.threads = options.threads;
    o.skip = skip.data();
    o.skip_count = skip.size();
    o.settings = settings.data();
    o.setting_count = settings.size();
    o.outputs = outputs.data();
    o.output_count = outputs.size();
    o.outputs_on_device = options.outputs_on_device;
    o.data_folder = options.data_folder.empty() ? nullptr : options.data_folder.c_str();
    mge_training_options training;
    mge_training_options_init(&training);
    std::vector<const char*> frozen;
    if (options.training) {
      const TrainingOptions& t = *options.training;
      for (const std::string& name : t.frozen) frozen.push_back(name.c_str());
      training.loss = t.loss.c_str();
      training.loss_output = t.loss_output.c_str();
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
      o.training = &training;
    }
    mge_session* session = nullptr;
    Status s(make(&o, &session));
    out->session_.reset(session);
    return s;
  }
  internal::Handle<mge_session, mge_session_release> session_;
};

}  // namespace v0
}  // namespace mge
