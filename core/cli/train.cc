// SPDX-License-Identifier: Apache-2.0
// mge train: trains a model on examples from files, and writes it with its new weights.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <numeric>
#include <random>

#include "core/cli/inputs.h"
#include "core/cli/training_data.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "mge/optimizers.hpp"

namespace mge::cli {
namespace {

struct TrainOptions {
  std::string model, output, data, validation;
  std::vector<std::string> inputs, validation_inputs;
  TrainingOptions training;
  double learning_rate = 0;  // 0: the optimizer's usual one
  std::string schedule = "constant";
  int64_t epochs = 1, batch = 32;
  uint64_t seed = 0;

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

// Returns the learning rate at a part of the training from 0 to 1.
double RateAt(const TrainOptions& o, double part) {
  return o.schedule == "cosine" ? o.FirstRate() * 0.5 * (1 + std::cos(std::numbers::pi * part)) : o.FirstRate();
}

double LossOf(const Tensor& t) { return t.dtype() == MGE_DTYPE_F64 ? t.data<double>()[0] : t.data<float>()[0]; }

// Trains one epoch in the given order of the examples. Sets the mean loss over the examples.
Status TrainEpoch(const TrainOptions& o, const TrainingData& data, std::span<const int64_t> order, int64_t epoch,
                  Session& session, double* loss) {
  double sum = 0;
  const auto total = static_cast<double>(o.epochs * data.examples());
  for (int64_t begin = 0; begin < data.examples(); begin += o.batch) {
    const int64_t size = std::min(o.batch, data.examples() - begin);
    const double part = static_cast<double>(epoch * data.examples() + begin) / total;
    const float rate = static_cast<float>(RateAt(o, part));
    std::vector<Tensor> batch, outputs;
    if (Status s = data.Batch(order.subspan(static_cast<size_t>(begin), static_cast<size_t>(size)), &batch); !s.ok())
      return s;
    if (Status s = Tensor::Of<float>({}, {rate}).MoveTo(batch.emplace_back()); !s.ok()) return s;
    if (Status s = session.Run(Pointers(batch), outputs); !s.ok()) return s;
    sum += LossOf(outputs[0]) * static_cast<double>(size);
  }
  *loss = sum / static_cast<double>(data.examples());
  return {};
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

// Runs the written model on the examples of the validation. Sets the part of them that it classifies right.
Status Validate(const Globals& globals, const TrainOptions& o, const TrainingData& data, size_t output, size_t axis,
                double* accuracy) {
  Runtime runtime;
  Session session;
  if (Status s = OpenModel(globals, o.output, &runtime, &session); !s.ok()) return s;
  int64_t right = 0, all = 0;
  for (int64_t begin = 0; begin < data.examples(); begin += o.batch) {
    std::vector<int64_t> numbers(static_cast<size_t>(std::min(o.batch, data.examples() - begin)));
    std::iota(numbers.begin(), numbers.end(), begin);
    std::vector<Tensor> batch, outputs;
    if (Status s = data.Batch(numbers, &batch); !s.ok()) return s;
    const Tensor labels = std::move(batch.back());
    batch.pop_back();
    if (Status s = session.Run(Pointers(batch), outputs); !s.ok()) return s;
    right += CountRight(axis, outputs[output], labels);
    all += static_cast<int64_t>(labels.data<int64_t>().size());
  }
  *accuracy = static_cast<double>(right) / static_cast<double>(all);
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

// Says how many labels are no numbers of classes, because the loss leaves them out.
void TellIgnoredLabels(const Globals& globals, int64_t classes, const Tensor& labels) {
  if (classes < 0 || labels.dtype() != MGE_DTYPE_I64) return;
  const auto all = labels.data<int64_t>();
  const auto ignored = std::ranges::count_if(all, [&](int64_t label) { return label < 0 || label >= classes; });
  if (ignored > 0) {
    PrintMessage(globals, fmt::format("{} of {} labels are no numbers of the {} classes; they do not count", ignored,
                                      all.size(), classes));
  }
}

int RunTrain(const Globals& globals, const TrainOptions& o) {
  const bool validates = !o.validation.empty() || !o.validation_inputs.empty();
  const bool classifies = o.training.loss == "cross_entropy" || o.training.loss == "token_cross_entropy";
  if (validates && (o.output.empty() || !classifies)) {
    return ReportUsage(globals,
                       "--validate needs a loss of classes, such as cross_entropy, and --output for the model that it runs");
  }
  const std::filesystem::path folder = std::filesystem::path(o.output).parent_path();
  if (!o.output.empty() && access(folder.empty() ? "." : folder.c_str(), W_OK) != 0) {
    return ReportUsage(globals, fmt::format("--output {}: no file can be written there", o.output),
                       "create the folder, or name a file in another one");
  }
  Runtime runtime;
  Session session;
  if (Status s = MakeRuntime(globals, &runtime); !s.ok()) return Report(globals, s);
  SessionOptions options = SessionOptionsOf(globals);
  options.training = o.training;
  if (Status s = Session::Load(runtime, o.model, options).MoveTo(session); !s.ok()) return Report(globals, s);
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
  const Tensor& labels = data.arrays().back();
  const size_t axis = classifies && scores.size() >= 2 ? ClassAxis(o, scores, labels.dims()) : 0;
  if (axis > 0) TellIgnoredLabels(globals, scores[axis], labels);
  if (validates && axis == 0) {
    return ReportUsage(globals,
                       "--validate: the shape of the labels does not tell which dimension of the scores has the classes",
                       "use --loss token_cross_entropy if it is the last one");
  }
  PrintMessage(globals, fmt::format("{} parameters, {} examples, {} on {}", session.parameter_count(), data.examples(),
                                    o.training.optimizer, fmt::join(DevicesOf(session, o), ", ")));
  if (o.training.data_parallel && session.device_count() == 1 && globals.device.find(',') == std::string::npos) {
    PrintMessage(globals, "--data-parallel has no effect with one device; list several, such as --device gpu0,gpu1");
  }

  Json rows = Json::array();
  std::vector<std::vector<std::string>> table = {{"EPOCH", "LOSS", "EXAMPLES/S"}};
  if (validates) table[0].push_back("ACCURACY");
  std::vector<int64_t> order(static_cast<size_t>(data.examples()));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(o.seed);
  Progress progress(globals, "training", static_cast<size_t>(o.epochs));
  for (int64_t epoch = 0; epoch < o.epochs; ++epoch) {
    std::ranges::shuffle(order, random);
    const auto begin = std::chrono::steady_clock::now();
    double loss = 0, accuracy = 0;
    if (Status s = TrainEpoch(o, data, order, epoch, session, &loss); !s.ok()) return Report(globals, s);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const double speed = static_cast<double>(data.examples()) / took.count();
    if (!o.output.empty()) {  // after each epoch, so that an end of the process loses one epoch at most
      if (Status s = session.Save(o.output); !s.ok()) return Report(globals, s);
    }
    rows.push_back({{"epoch", epoch + 1}, {"loss", loss}, {"examples_per_second", speed}});
    table.push_back({std::to_string(epoch + 1), fmt::format("{:.6g}", loss), fmt::format("{:.0f}", speed)});
    if (validates) {
      if (Status s = Validate(globals, o, held_out, output, axis, &accuracy); !s.ok()) return Report(globals, s);
      rows.back()["accuracy"] = accuracy;
      table.back().push_back(fmt::format("{:.4f}", accuracy));
    }
    progress.Step(static_cast<size_t>(epoch + 1));
  }
  if (globals.json) {
    PrintJson({{"schema", "mge.train/1"},
               {"device", session.device(0)},
               {"devices", DevicesOf(session, o)},
               {"parameters", session.parameter_count()},
               {"examples", data.examples()},
               {"epochs", std::move(rows)},
               {"file", o.output}});
  } else {
    Print(Table(table));
  }
  if (!o.output.empty()) PrintMessage(globals, "wrote " + o.output);
  return kExitOk;
}

}  // namespace

Action DeclareTrain(Arguments app, const Globals& globals) {
  auto o = std::make_shared<TrainOptions>();
  TrainingOptions& t = o->training;
  app.Add("MODEL", o->model, "An ONNX file; - is standard input").Required().ValueName("FILE").IsInput();
  app.Add("-o,--output", o->output, "Writes the trained model there after each epoch").ValueName("FILE");
  app.Add("--data", o->data, "A .npz file with an array for each input of the model, and one for the labels")
      .ValueName("FILE");
  app.Add("--input", o->inputs, "NAME=FILE: the array of one input, or of labels (.npy)").IsInput().Repeats();
  app.Add("--validate", o->validation, "Examples like --data; shows the accuracy of the written model after each epoch")
      .ValueName("FILE");
  app.Add("--validate-input", o->validation_inputs, "Examples like --input, for the same").IsInput().Repeats();
  app.Add("--loss", t.loss,
          "cross_entropy, token_cross_entropy (the classes are the last dimension), binary_cross_entropy, mse, mae, or "
          "output: the model computes the loss, without labels");
  app.Add("--loss-output", t.loss_output,
          "The output that is compared with the labels, or is the loss; default: the first one")
      .ValueName("NAME");
  app.Add("--labels-name", t.labels_name,
          "The name of the labels among the inputs; another one if the model has such an input")
      .ValueName("NAME");
  app.Add("--optimizer", t.optimizer, fmt::format("One of {}", OptimizerNames()));
  app.Add("--learning-rate", o->learning_rate, fmt::format("The learning rate; 0: {}", UsualRates())).Between(0, 1e6);
  app.Add("--schedule", o->schedule, "The learning rate over time: constant, or cosine, which falls to 0 along half a wave")
      .OneOf({"constant", "cosine"});
  app.Add("--momentum", t.momentum, fmt::format("Momentum of {}", OptimizerNames("momentum"))).Between(0, 0.9999999);
  app.Add("--beta1", t.beta1, fmt::format("Decay of the mean gradient of {}", OptimizerNames("beta1")))
      .Between(0, 0.9999999);
  app.Add("--beta2", t.beta2, fmt::format("Decay of the mean squared gradient of {}", OptimizerNames("beta2")))
      .Between(0, 0.9999999);
  app.Add("--epsilon", t.epsilon, fmt::format("Added to the divisor of {}", OptimizerNames("epsilon"))).Between(0, 1);
  app.Add("--weight-decay", t.weight_decay, fmt::format("Factor of the parameters: {}", EffectsOfDecay())).Between(0, 1e6);
  app.Add("--clip-norm", t.clip_norm, "Limit of the norm of all gradients together; 0: none").Between(0, 1e30);
  app.Add("--frozen", t.frozen, "An initializer that keeps its value").Repeats().ValueName("NAME");
  app.AddFlag("--data-parallel", t.data_parallel,
              "Trains on all devices that --device lists with commas: each one on a part of every batch");
  app.Add("--epochs", o->epochs, "Number of passes over all examples").Between(1, 1e9);
  app.Add("--batch", o->batch, "Examples per step; the last step of an epoch may have fewer").Between(1, 1e9);
  app.Add("--seed", o->seed, "Seed of the order of the examples");
  return [&globals, o] { return RunTrain(globals, *o); };
}

}  // namespace mge::cli
