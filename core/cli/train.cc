// SPDX-License-Identifier: Apache-2.0
// mge train: trains a model on examples from files, and writes it with its new weights.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>
#include <random>

#include "core/cli/inputs.h"
#include "core/cli/page_file.h"
#include "core/cli/train_checkpoints.h"
#include "core/cli/train_lists.h"
#include "core/cli/train_page.h"
#include "core/cli/training_data.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "mge/losses.hpp"
#include "mge/optimizers.hpp"
#include "mge/schedules.hpp"

namespace mge::cli {
namespace {

struct TrainOptions {
  std::string model, output, data, validation;
  std::vector<std::string> inputs, validation_inputs;
  TrainingOptions training;
  double learning_rate = 0;  // 0: the optimizer's usual one
  std::string schedule = "constant";
  double warmup = 0;  // the part of the training in which the rate rises to its value
  double step_factor = 0.1;
  int64_t step_count = 2;
  int64_t epochs = 1, batch = 32;
  uint64_t seed = 0;
  std::string checkpoints;  // a folder; empty: none
  int64_t every = 0;        // steps between checkpoints; 0: an epoch
  int64_t keep = 3;
  bool resume = false;
  bool training_form = false;
  bool strict_labels = false;
  TrainLists lists;
  std::string page;  // --html

  double FirstRate() const {
    const Optimizer* optimizer = FindOptimizer(training.optimizer);  // a wrong name is an error of the session
    return learning_rate > 0 || !optimizer ? learning_rate : optimizer->learning_rate;
  }
};

// Returns "0.01 for sgd, 0.001 for adam, ...".
std::string UsualRates() {
  std::vector<std::string> out;
  for (const Optimizer& row : kOptimizers) out.push_back(fmt::format("{} for {}", row.learning_rate, row.name));
  return fmt::format("{}", fmt::join(out, ", "));
}

// Returns "added to the gradient by sgd, ...".
std::string EffectsOfDecay() {
  std::vector<std::string> out;
  for (const Optimizer& row : kOptimizers) {
    if (ReadsOption(row, "weight_decay")) out.push_back(fmt::format("{} by {}", row.decay, row.name));
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

// Returns "constant: always the learning rate; ...".
std::string SchedulesText() {
  std::vector<std::string> out;
  for (const ScheduleRow& row : kSchedules) out.push_back(fmt::format("{}: {}", row.name, row.doc));
  return fmt::format("{}", fmt::join(out, "; "));
}

// Returns "cross_entropy: of scores ...; ...".
std::string LossesText() {
  std::vector<std::string> out;
  for (const LossRow& row : kLosses) out.push_back(fmt::format("{}: {}", row.name, row.doc));
  return fmt::format("{}", fmt::join(out, "; "));
}

double LossOf(const Tensor& t) { return t.dtype() == MGE_DTYPE_F64 ? t.data<double>()[0] : t.data<float>()[0]; }

// A training in progress.
struct Training {
  const Globals& globals;
  const TrainOptions& o;
  const TrainingData& data;
  Session& session;
  const Schedule schedule;
  const int64_t ranks;  // processes of the training
  const bool writes;    // this process writes the files: it is the only one, or rank 0
  TrainPage& page;
  std::optional<TrainCheckpoints> checkpoints = {};
  TrainingProgress progress = {};

  Status SaveCheckpoint() const { return checkpoints ? checkpoints->Save(session, progress) : Status(); }
};

// Trains on the rest of an epoch, in the given order of its examples.
Status TrainEpoch(Training& t, std::span<const int64_t> order) {
  TrainingProgress& p = t.progress;
  const auto total = static_cast<double>(t.o.epochs * t.data.examples());
  while (p.examples_done < t.data.examples()) {
    const int64_t size = std::min(t.o.batch, t.data.examples() - p.examples_done);
    const double part = static_cast<double>(p.epoch * t.data.examples() + p.examples_done) / total;
    const auto rate = static_cast<float>(t.schedule.At(part));
    std::vector<Tensor> batch, outputs;
    const auto numbers = order.subspan(static_cast<size_t>(p.examples_done), static_cast<size_t>(size));
    Session::Part own;
    if (Status s = t.session.PartOf(size).MoveTo(own); !s.ok()) return s;
    if (Status s = t.data.Batch(numbers, own, &batch); !s.ok()) return s;
    if (Status s = Tensor::Of<float>({}, {rate}).MoveTo(batch.emplace_back()); !s.ok()) return s;
    if (Status s = t.session.Run(Pointers(batch), outputs); !s.ok()) return s;
    const double loss = LossOf(outputs[0]);
    const bool counts = std::isfinite(loss) || t.o.training.on_nan == "continue";
    if (counts) p.loss_sum += loss * static_cast<double>(size);
    p.examples_done += size;
    ++p.steps;
    t.page.AddStep(p.steps, loss, rate, size);
    if (t.o.every == 0 || p.steps % t.o.every != 0 || p.examples_done == t.data.examples()) continue;
    if (Status s = t.SaveCheckpoint(); !s.ok()) return s;
  }
  return {};
}

// Counts the epoch as done. `measure`: its loss, by which the best checkpoint is chosen.
Status EndEpoch(Training& t, double measure) {
  TrainingProgress& p = t.progress;
  const bool is_best = measure < p.best;
  if (is_best) p.best = measure;
  ++p.epoch;
  p.examples_done = 0;
  p.loss_sum = 0;
  const bool due = t.o.every == 0 || p.steps % t.o.every == 0 || p.epoch == t.o.epochs;
  if (due) {
    if (Status s = t.SaveCheckpoint(); !s.ok()) return s;
  }
  if (!t.checkpoints) return {};
  if (is_best) return t.checkpoints->SaveBest(t.session, p);
  // Hosts may round losses of the validation differently: this process could be the only one that has no best one.
  return t.ranks > 1 ? t.session.HelpToSaveCheckpoint() : Status();
}

// Returns the dimension of the classes: the one that the labels lack, or 0 if several or none can be that. Unknown sizes of the
// scores are negative.
size_t ClassAxis(const TrainOptions& o, std::span<const int64_t> scores, std::span<const int64_t> labels) {
  if (o.training.loss == "token_cross_entropy") return scores.size() - 1;
  if (scores.size() == 2) return 1;
  size_t found = 0;
  for (size_t axis = 1; axis < scores.size() && labels.size() + 1 == scores.size(); ++axis) {
    bool fits = true;
    for (size_t i = 1; i < labels.size(); ++i) {
      const int64_t size = scores[i < axis ? i : i + 1];
      fits = fits && (size < 0 || size == labels[i]);
    }
    if (fits && found > 0) return 0;
    if (fits) found = axis;
  }
  return found;
}

// Returns how many labels have the largest score of their place. `axis`: the dimension of the classes.
int64_t CountRight(size_t axis, const Tensor& scores, const Tensor& labels) {
  int64_t right = 0;
  const auto classes = static_cast<size_t>(scores.dims()[axis]);
  size_t inner = 1;
  for (size_t d = axis + 1; d < scores.dims().size(); ++d) inner *= static_cast<size_t>(scores.dims()[d]);
  auto count = [&](auto all) {
    const auto numbers = labels.data<int64_t>();
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto* place = all.data() + i / inner * classes * inner + i % inner;
      size_t best = 0;
      for (size_t c = 1; c < classes; ++c) {
        if (place[c * inner] > place[best * inner]) best = c;
      }
      right += static_cast<int64_t>(best) == numbers[i];
    }
  };
  if (scores.dtype() == MGE_DTYPE_F32) count(scores.data<float>());
  if (scores.dtype() == MGE_DTYPE_F64) count(scores.data<double>());
  if (scores.dtype() == MGE_DTYPE_F16) count(scores.data<F16>());
  if (scores.dtype() == MGE_DTYPE_BF16) count(scores.data<BF16>());
  return right;
}

// The results of a model on the examples of the validation.
struct Validation {
  double loss = NAN, accuracy = NAN;  // NaN: not measured
};

// Runs the model with its present parameters, in evaluation form. `axis`: the dimension of the classes; 0: no accuracy.
Status Validate(const Training& t, const Session& evaluation, const TrainingData& data, size_t output, size_t axis,
                Validation* out) {
  int64_t right = 0, all = 0;
  double sum = 0;
  for (int64_t begin = 0; begin < data.examples(); begin += t.o.batch) {
    std::vector<int64_t> numbers(static_cast<size_t>(std::min(t.o.batch, data.examples() - begin)));
    std::iota(numbers.begin(), numbers.end(), begin);
    std::vector<Tensor> batch, outputs;
    if (Status s = data.Batch(numbers, &batch); !s.ok()) return s;
    if (Status s = evaluation.Run(Pointers(batch), outputs); !s.ok()) return s;
    sum += LossOf(outputs[0]) * static_cast<double>(numbers.size());
    if (axis == 0) continue;
    right += CountRight(axis, outputs[output + 1], batch.back());
    all += static_cast<int64_t>(batch.back().data<int64_t>().size());
  }
  out->loss = sum / static_cast<double>(data.examples());
  if (axis > 0) out->accuracy = static_cast<double>(right) / static_cast<double>(all);
  return {};
}

// Returns the index of the model's output that is compared with the labels. Output 0 of a training session is the loss.
size_t ComparedOutput(const Session& session, const std::string& name) {
  for (size_t i = 1; i < session.output_count(); ++i) {
    if (session.output(i).name() == name) return i - 1;
  }
  return 0;
}

// Returns the devices that take part.
std::vector<std::string> DevicesOf(const Session& session, const TrainOptions& o) {
  std::vector<std::string> names;
  const size_t count = o.training.data_parallel ? session.device_count() : 1;
  for (size_t i = 0; i < count; ++i) names.emplace_back(session.device(i));
  return names;
}

// Says how many labels are no numbers of classes, because the loss leaves them out. With `strict`, one that is not negative is a
// usage error. Returns 0 or its exit code.
int TellIgnoredLabels(const Globals& globals, int64_t classes, const TrainingData& data, bool strict) {
  if (classes < 0) return kExitOk;
  int64_t all = 0, ignored = 0;
  std::optional<std::pair<int64_t, int64_t>> wrong;  // the number of a label and its value
  const Status read = data.ForEachLabels([&](const Tensor& labels) {
    if (labels.dtype() != MGE_DTYPE_I64) return false;
    for (const int64_t label : labels.data<int64_t>()) {
      if (label >= classes && !wrong) wrong = {all, label};
      ignored += label < 0 || label >= classes;
      ++all;
    }
    return true;
  });
  if (!read.ok()) return Report(globals, read);
  if (strict && wrong) {
    return ReportUsage(globals,
                       fmt::format("--strict-labels: label {} is {}, and the classes are 0 to {}", wrong->first,
                                   wrong->second, classes - 1),
                       "correct the labels; a negative one, such as -100, does not count");
  }
  if (ignored > 0) {
    PrintMessage(globals,
                 fmt::format("{} of {} labels are no numbers of the {} classes; they do not count", ignored, all, classes));
  }
  return kExitOk;
}

// Checks the folders before the model is loaded. `writes`: this process writes to them. Returns the exit code of a usage
// error, or 0.
int CheckFolders(const Globals& globals, const TrainOptions& o, bool writes) {
  const std::filesystem::path folder = std::filesystem::path(o.output).parent_path();
  if (writes && !o.output.empty() && access(folder.empty() ? "." : folder.c_str(), W_OK) != 0) {
    return ReportUsage(globals, fmt::format("--output {}: no file can be written there", o.output),
                       "create the folder, or name a file in another one");
  }
  if (const int code = CheckPagePath(globals, writes ? o.page : "")) return code;
  if (o.checkpoints.empty()) return kExitOk;
  std::error_code error;
  if (writes) std::filesystem::create_directory(o.checkpoints, error);
  if (error || (writes && access(o.checkpoints.c_str(), W_OK) != 0)) {
    return ReportUsage(globals, fmt::format("--checkpoint {}: no file can be written there", o.checkpoints),
                       "name a folder that exists, or a new one in a folder that exists");
  }
  if (!o.resume && !TrainCheckpoints(o.checkpoints, o.keep).IsEmpty()) {
    return ReportUsage(globals, fmt::format("--checkpoint {}: the folder has checkpoints already", o.checkpoints),
                       "continue from them with --resume, or name another folder");
  }
  return kExitOk;
}

// Loads the newest checkpoint if there is one. Returns 0 or an exit code.
int Resume(Training& t) {
  if (t.checkpoints->IsEmpty()) {
    PrintMessage(t.globals, fmt::format("{} has no checkpoint; the training begins", t.o.checkpoints));
    return kExitOk;
  }
  TrainingProgress loaded;
  if (const int code = t.checkpoints->Load(t.globals, t.session, &loaded)) return code;
  const TrainingProgress& now = t.progress;
  if (loaded.seed == now.seed && loaded.batch == now.batch && loaded.examples == now.examples) {
    t.progress = loaded;
    return kExitOk;
  }
  return ReportUsage(
      t.globals,
      fmt::format("--resume: the checkpoint is of a training with --seed {} --batch {} and {} examples, not with "
                  "--seed {} --batch {} and {} examples",
                  loaded.seed, loaded.batch, loaded.examples, now.seed, now.batch, now.examples),
      "give the same options and data");
}

// Says how long the processes have exchanged gradients. `facts` is "mge.communication/1".
void ShowCommunication(const Globals& globals, const Json& facts) {
  if (!facts.is_object() || facts["steps"] == 0) return;  // the devices exchange them, and measure nothing
  PrintMessage(globals,
               fmt::format("each step sums {:.1f} MB of gradients over the processes in {} buckets: {:.2f} ms, {:.0f} % "
                           "of them while the backward pass goes on",
                           facts["bytes"].get<double>() / 1e6, facts["buckets"].get<int64_t>(),
                           facts["sum_us"].get<double>() / 1e3, 100 * facts["hidden"].get<double>()));
}

// This process among those of the training.
struct ProcessPlace {
  int64_t rank = 0, ranks = 1;
};

// Returns the options as lines that all processes of a training must share.
std::string FactsOf(const TrainOptions& o) {
  return fmt::format(
      "--epochs: {}\n--batch: {}\n--seed: {}\n--learning-rate: {}\n--schedule: {}\n--warmup: {}\n--step-factor: {}\n"
      "--step-count: {}\n--schedule-points: {}\n--resume: {}\n",
      o.epochs, o.batch, o.seed, o.learning_rate, o.schedule, o.warmup, o.step_factor, o.step_count, o.lists.points,
      o.resume);
}

int TrainAs(const ProcessPlace& place, const Globals& globals, const TrainOptions& o, Runtime& runtime) {
  const bool validates = !o.validation.empty() || !o.validation_inputs.empty();
  const bool classifies = o.training.loss == "cross_entropy" || o.training.loss == "token_cross_entropy";
  const bool writes = place.rank == 0;
  if (const int usage = CheckFolders(globals, o, writes)) return usage;
  const TrainOptions defaults;
  if (o.schedule != "step" && (o.step_factor != defaults.step_factor || o.step_count != defaults.step_count)) {
    return ReportUsage(globals, "--step-factor and --step-count need --schedule step");
  }
  SessionOptions options = SessionOptionsOf(globals);
  options.training = o.training;
  options.training->facts = FactsOf(o);
  Schedule schedule = {o.schedule, o.FirstRate(), o.warmup, o.step_factor, o.step_count, {}};
  if (const int code = ReadTrainLists(globals, o.lists, &*options.training, &schedule.points)) return code;
  if ((o.schedule == "table") != !schedule.points.empty()) {
    return ReportUsage(globals, "--schedule table and --schedule-points need each other");
  }
  if (o.output.empty()) PrintMessage(globals, "without --output, the trained model is not written");
  Session session, evaluation;
  if (Status s = Session::Load(runtime, o.model, options).MoveTo(session); !s.ok()) return Report(globals, s);
  if (Status s = session.Evaluation().MoveTo(evaluation); validates && !s.ok()) return Report(globals, s);
  const size_t arrays = session.input_count() - 1;  // all but the learning rate
  TrainingData data, held_out;
  int usage = 0;
  Status read = TrainingData::Read(globals, session, arrays, o.data, o.inputs, &data, &usage);
  if (read.ok() && !usage && validates) {
    read = TrainingData::Read(globals, session, arrays, o.validation, o.validation_inputs, &held_out, &usage);
  }
  if (!read.ok()) return Report(globals, read);
  if (usage) return usage;
  const size_t output = ComparedOutput(session, o.training.loss_output);
  const auto scores = session.output(output + 1).dims();
  const size_t axis = classifies && scores.size() >= 2 ? ClassAxis(o, scores, data.label_dims()) : 0;
  if (axis > 0 && (writes || o.strict_labels)) {  // the other processes say nothing
    if (const int code = TellIgnoredLabels(globals, scores[axis], data, o.strict_labels)) return code;
  }
  const std::string processes = place.ranks > 1 ? fmt::format(" of each of {} processes", place.ranks) : std::string();
  PrintMessage(globals, fmt::format("{} parameters, {} examples, {} on {}{}", session.parameter_count(), data.examples(),
                                    o.training.optimizer, fmt::join(DevicesOf(session, o), ", "), processes));
  if (o.training.data_parallel && place.ranks == 1 && session.device_count() == 1 &&
      globals.device.find(',') == std::string::npos) {
    PrintMessage(globals,
                 "--data-parallel has no effect with one device; list several, such as --device gpu0,gpu1, or start several "
                 "processes with mpirun");
  }
  if (validates && classifies && axis == 0) {
    PrintMessage(
        globals,
        "no accuracy: the shape of the labels does not tell which dimension of the scores has the classes; use --loss "
        "token_cross_entropy if it is the last one");
  }

  TrainPage page(globals, writes ? o.page : "",
                 {.model = o.model,
                  .devices = fmt::format("{}", fmt::join(DevicesOf(session, o), ", ")),
                  .optimizer = o.training.optimizer,
                  .loss = o.training.loss,
                  .parameters = static_cast<int64_t>(session.parameter_count()),
                  .examples = data.examples(),
                  .batch = o.batch,
                  .epochs = o.epochs});
  Training training = {globals, o, data, session, schedule, place.ranks, writes, page};
  training.progress.seed = o.seed;
  training.progress.batch = o.batch;
  training.progress.examples = data.examples();
  if (!o.checkpoints.empty()) training.checkpoints.emplace(o.checkpoints, o.keep, writes);
  if (o.resume) {
    if (const int code = Resume(training)) return code;
  }
  Json rows = Json::array();
  std::vector<std::vector<std::string>> table = {{"EPOCH", "LOSS", "EXAMPLES/S"}};
  if (validates) table[0].push_back("VALIDATION");
  if (validates && axis > 0) table[0].push_back("ACCURACY");
  std::vector<int64_t> order(static_cast<size_t>(data.examples()));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(o.seed);
  for (int64_t epoch = 0; epoch < training.progress.epoch; ++epoch) std::ranges::shuffle(order, random);
  Progress progress(globals, "training", static_cast<size_t>(o.epochs));
  while (training.progress.epoch < o.epochs) {
    const int64_t number = training.progress.epoch + 1, before = training.progress.examples_done;
    std::ranges::shuffle(order, random);
    const auto begin = std::chrono::steady_clock::now();
    if (Status s = TrainEpoch(training, order); !s.ok()) return Report(globals, s);
    const double loss = training.progress.loss_sum / static_cast<double>(data.examples());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const double speed = static_cast<double>(data.examples() - before) / took.count();
    if (writes && !o.output.empty()) {  // after each epoch, so that an end of the process loses one epoch at most
      const Status saved = o.training_form ? session.Save(o.output) : session.SaveForInference(o.output);
      if (!saved.ok()) return Report(globals, saved);
    }
    rows.push_back({{"epoch", number}, {"loss", loss}, {"examples_per_second", speed}});
    table.push_back({std::to_string(number), fmt::format("{:.6g}", loss), fmt::format("{:.0f}", speed)});
    Validation validation;
    if (validates) {
      if (Status s = Validate(training, evaluation, held_out, output, axis, &validation); !s.ok()) return Report(globals, s);
      rows.back()["validation_loss"] = validation.loss;
      table.back().push_back(fmt::format("{:.6g}", validation.loss));
    }
    if (validates && axis > 0) {
      rows.back()["accuracy"] = validation.accuracy;
      table.back().push_back(fmt::format("{:.4f}", validation.accuracy));
    }
    if (mge_memory_facts memory = {}; session.Memory().MoveTo(memory).ok()) page.SetPlannedPeak(memory.planned_peak_bytes);
    page.AddEpoch(number, training.progress.steps, loss, validation.loss, validation.accuracy);
    if (Status s = EndEpoch(training, validates ? validation.loss : loss); !s.ok()) return Report(globals, s);
    progress.Step(static_cast<size_t>(number));
  }
  page.End();
  if (!writes) return kExitOk;
  Json communication;
  if (place.ranks > 1) {
    std::string text;
    if (Status s = session.Report("mge.communication/1").MoveTo(text); !s.ok()) return Report(globals, s);
    communication = Json::parse(text);
  }
  if (globals.json) {
    Json report = {{"schema", "mge.train/1"},
                   {"device", session.device(0)},
                   {"devices", DevicesOf(session, o)},
                   {"processes", place.ranks},
                   {"parameters", session.parameter_count()},
                   {"examples", data.examples()},
                   {"epochs", std::move(rows)},
                   {"file", o.output}};
    if (communication.is_object()) report["communication"] = std::move(communication);
    PrintJson(report);
  } else {
    Print(Table(table));
    ShowCommunication(globals, communication);
  }
  if (!o.output.empty() && table.size() > 1) PrintMessage(globals, "wrote " + o.output);
  return kExitOk;
}

int RunTrain(const Globals& globals, const TrainOptions& o) {
  Runtime runtime;
  if (Status s = MakeRuntime(globals, &runtime); !s.ok()) return Report(globals, s);
  ProcessPlace place;
  if (!o.training.data_parallel) return TrainAs(place, globals, o, runtime);
  Json launch;
  if (Status s = ReadReport(runtime, "mge.launch/1", &launch); !s.ok()) return Report(globals, s);
  place = {launch["rank"], launch["ranks"]};
  if (place.ranks == 1) return TrainAs(place, globals, o, runtime);
  Globals own = globals;
  own.speaker = fmt::format("[rank {}/{}, {}] ", place.rank, place.ranks, Text(launch["host"]));
  if (place.rank > 0) {  // speaks only on errors
    own.quiet = true;
    own.json = false;
  }
  return TrainAs(place, own, o, runtime);
}

std::vector<std::string> AllOptimizers() {
  std::vector<std::string> names;
  for (const Optimizer& optimizer : kOptimizers) names.emplace_back(optimizer.name);
  return names;
}

}  // namespace

Action DeclareTrain(Arguments app, const Globals& globals) {
  auto o = std::make_shared<TrainOptions>();
  TrainingOptions& t = o->training;
  app.Add("MODEL", o->model, "An ONNX file; - is standard input").Required().ValueName("FILE").IsInput();
  app.Add("-o,--output", o->output, "Writes the trained model there after each epoch").ValueName("FILE");
  app.AddFlag("--training-form", o->training_form,
              "Leaves BatchNormalization and Dropout in --output as they are in MODEL; otherwise they are in their form for "
              "inference");
  app.Add(
         "--data", o->data,
         "A .npz file with an array for each input of the model, and one for the labels; or a folder with files NAME.npy or "
         "NAME-*.npy for each of them, whose examples are read when they are needed")
      .ValueName("FILE");
  app.Add("--input", o->inputs, "NAME=FILE: the array of one input, or of labels (.npy)").IsInput().Repeats();
  app.Add("--validate", o->validation,
          "Examples like --data; shows the loss of the model on them after each epoch, and its accuracy, without training "
          "on them")
      .ValueName("FILE");
  app.Add("--validate-input", o->validation_inputs, "Examples like --input, for the same").IsInput().Repeats();
  app.AddFlag("--strict-labels", o->strict_labels,
              "A label that is not below the number of classes is an error; otherwise it does not count, as negative ones");
  std::vector<std::string> losses;
  for (const LossRow& row : kLosses) losses.emplace_back(row.name);
  app.Add("--loss", t.loss, LossesText()).OneOf(losses);
  app.Add("--class-weights", o->lists.class_weights,
          "Numbers with commas: the weight of each class of a cross-entropy; of binary_cross_entropy, that of the label 1, "
          "for all or for each element of the last dimension")
      .ValueName("LIST");
  app.Add("--huber-delta", t.huber_delta, fmt::format("The error at which {} becomes linear", LossNames("huber_delta")))
      .Between(1e-30, 1e30);
  app.Add("--loss-output", t.loss_output,
          "The output that is compared with the labels, or is the loss; default: the first one")
      .ValueName("NAME");
  app.Add("--labels-name", t.labels_name,
          "The name of the labels among the inputs; another one if the model has such an input")
      .ValueName("NAME");
  app.Add("--optimizer", t.optimizer, fmt::format("One of {}", OptimizerNames())).OneOf(AllOptimizers());
  app.Add("--learning-rate", o->learning_rate, fmt::format("The learning rate; 0: {}", UsualRates())).Between(0, 1e6);
  std::vector<std::string> schedules;
  for (const ScheduleRow& row : kSchedules) schedules.emplace_back(row.name);
  app.Add("--schedule", o->schedule, "The learning rate over time. " + SchedulesText()).OneOf(schedules);
  app.Add("--warmup", o->warmup, "The part of the training, from 0 to 0.9, in which the learning rate rises from 0")
      .Between(0, 0.9);
  app.Add("--step-factor", o->step_factor, "For --schedule step").Between(0, 1);
  app.Add("--step-count", o->step_count, "For --schedule step").Between(1, 1e6);
  app.Add("--schedule-points", o->lists.points,
          "For --schedule table: PART:FACTOR with commas, such as 0:1,0.5:1,1:0.1; between two points, the factor changes "
          "along a "
          "line")
      .ValueName("LIST");
  app.Add("--group", o->lists.groups,
          "PATTERN:rate=FACTOR,decay=NUMBER: parameters with another learning rate or weight decay, such as "
          "'head.*:rate=10' or "
          "'*.bias:decay=0'; the first group that fits counts")
      .Repeats()
      .ValueName("GROUP");
  app.Add("--average-decay", t.average_decay,
          "Above 0: averages of the parameters, which keep this part of their value at each update, are validated and "
          "written in "
          "place of the parameters")
      .Between(0, 0.9999999);
  app.Add("--momentum", t.momentum, fmt::format("Momentum of {}", OptimizerNames("momentum"))).Between(0, 0.9999999);
  app.Add("--beta1", t.beta1, fmt::format("Decay of the mean gradient of {}", OptimizerNames("beta1")))
      .Between(0, 0.9999999);
  app.Add("--beta2", t.beta2, fmt::format("Decay of the mean squared gradient of {}", OptimizerNames("beta2")))
      .Between(0, 0.9999999);
  app.Add("--epsilon", t.epsilon, fmt::format("Added to the divisor of {}", OptimizerNames("epsilon"))).Between(0, 1);
  app.Add("--weight-decay", t.weight_decay, fmt::format("Factor of the parameters: {}", EffectsOfDecay())).Between(0, 1e6);
  app.Add("--clip-norm", t.clip_norm, "Limit of the norm of all gradients together; 0: none").Between(0, 1e30);
  app.Add("--clip-value", t.clip_value, "Limit of each element of the gradients; 0: none").Between(0, 1e30);
  app.Add("--label-smoothing", t.label_smoothing, "The part of each label that is spread over all classes")
      .Between(0, 0.9999999);
  app.Add("--accumulate", t.accumulate,
          "Steps whose gradients are summed before the last of them updates the parameters by their mean")
      .Between(1, 1e6);
  app.Add("--frozen,--freeze", t.frozen, "An initializer that keeps its value; * stands for any text, ? for any letter")
      .Repeats()
      .ValueName("NAME");
  app.Add("--on-nan", t.on_nan,
          "What a step does whose loss is NaN or infinite: stop with an error, skip the step (also for such gradients), "
          "continue")
      .OneOf({"stop", "skip", "continue"});
  const Argument checkpoint = app.Add("--checkpoint", o->checkpoints,
                                      "A folder for checkpoints, from which a training continues after the end of its "
                                      "process; also has the best one, by "
                                      "the loss on --validate, else by that of the epoch")
                                  .ValueName("FOLDER");
  app.Add("--every", o->every, "Steps between checkpoints; 0: one after each epoch").Between(0, 1e15).Needs(checkpoint);
  app.Add("--keep", o->keep, "Number of checkpoints to keep, besides the best one").Between(1, 1e6).Needs(checkpoint);
  app.AddFlag("--resume", o->resume, "Continues from the newest checkpoint, or begins if there is none").Needs(checkpoint);
  app.AddFlag(
      "--data-parallel", t.data_parallel,
      "Trains on all devices that --device lists with commas, in all processes that a launcher such as mpirun started: each "
      "one on a part of every batch. --batch is the whole batch; rank 0 writes the files");
  app.Add("--epochs", o->epochs, "Number of passes over all examples").Between(1, 1e9);
  app.Add("--batch", o->batch, "Examples per step; the last step of an epoch may have fewer").Between(1, 1e9);
  app.Add("--seed", o->seed, "Seed of the order of the examples");
  AddPageOption(
      app, o->page,
      "Writes a page for a browser there, which needs no network: loss, learning rate, throughput and memory; it is "
      "written again and loads itself again while the training goes on");
  return [&globals, o] { return RunTrain(globals, *o); };
}

}  // namespace mge::cli
