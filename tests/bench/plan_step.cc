// SPDX-License-Identifier: Apache-2.0
// Measures the cost of a step beyond the call of its kernel.
//
// The engine runs a chain of kernels that do almost nothing. A bare loop calls the same functions with the same
// arguments. The two alternate, so that other work on the machine affects both. A long and a short chain separate the
// cost per step from the cost per run.
//
//   bench_plan_step [ROUNDS]     default 200
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/engine/session.h"
#include "core/ops/op.h"

namespace mge {
namespace {

constexpr int kShort = 16, kLong = 2048;

[[noreturn]] void Stop(const absl::Status& status) {
  std::fputs(FormatError(status).c_str(), stderr);
  std::exit(1);
}
template <typename T>
T Value(absl::StatusOr<T> made) {
  if (!made.ok()) Stop(made.status());
  return *std::move(made);
}
void Check(const absl::Status& status) {
  if (!status.ok()) Stop(status);
}

// A chain of `steps` kernels that the engine and the bare loop can run.
class Chain {
 public:
  Chain(std::shared_ptr<Runtime> runtime, int steps) : in_(1), out_(1) {
    std::string text = "input v0 : float32[1]\n";
    for (int i = 0; i < steps; ++i) text += "v" + std::to_string(i + 1) + " = Sin(v" + std::to_string(i) + ")\n";
    text += "output v" + std::to_string(steps) + "\n";
    onnx::Model model;
    model.graph = Value(ParseGraphText(text));
    for (NodeId id = 0; id < model.graph.node_count(); ++id) Check(BindNode(model.graph, id));
    session_ = Value(Session::Create(std::move(runtime), std::move(model), {.device = "trivial0", .threads = 1}));
    for (HostValue* v : {&in_[0], &out_[0]}) v->tensor = Value(Tensor::Create(DType::kF32, {1}));
    in_[0].tensor.MutableData<float>()[0] = 0;
    const InputType type = TypeOfValue(in_[0]);
    plan_ = Value(session_->PlanFor({&type, 1}));
    if (static_cast<int>(plan_->steps.size()) != steps || plan_->segments.size() != 1) {
      std::fprintf(stderr, "%d kernels became %zu steps in %zu segments\n", steps, plan_->steps.size(),
                   plan_->segments.size());
      std::exit(1);
    }
    bases_.resize(plan_->base_count);
    for (const Arena& arena : plan_->arenas) {
      memory_.emplace_back(static_cast<size_t>(arena.bytes));
      bases_[arena.base] = memory_.back().data();
    }
    bases_[plan_->inputs[0].location.slot.base] = in_[0].tensor.mutable_data();
    bases_[plan_->outputs[0].location.slot.base] = out_[0].tensor.mutable_data();
    run_.struct_size = sizeof(run_);
    run_.width = 1;
    run_.bases = bases_.data();
  }

  void ByEngine() {
    RunState control;
    Check(session_->Run(in_, out_, control));
  }
  void Directly() {
    for (const Step& step : plan_->steps) step.fn(step.args, &run_);
  }
  float result() const { return out_[0].tensor.Data<float>()[0]; }
  void Clear() { out_[0].tensor.MutableData<float>()[0] = 0; }

 private:
  std::vector<HostValue> in_, out_;
  std::shared_ptr<Session> session_;
  std::shared_ptr<const Plan> plan_;
  std::vector<std::vector<char>> memory_;
  std::vector<void*> bases_;
  mge_run run_ = {};
};

template <typename F>
double NsOf(F&& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

double Median(std::vector<double> of) {
  std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
  return of[of.size() / 2];
}

// Median times of a run in nanoseconds, by the engine and by the bare loop.
struct Times {
  double engine, direct;
};
Times Measure(Chain& chain, int steps, int rounds) {
  std::vector<double> engine, direct;
  for (int i = -10; i < rounds; ++i) {  // the first ten warm up
    for (bool by_engine : {true, false}) {
      chain.Clear();
      double ns = by_engine ? NsOf([&] { chain.ByEngine(); }) : NsOf([&] { chain.Directly(); });
      if (chain.result() != static_cast<float>(steps)) {
        std::fprintf(stderr, "%d steps computed %g\n", steps, static_cast<double>(chain.result()));
        std::exit(1);
      }
      if (i >= 0) (by_engine ? engine : direct).push_back(ns);
    }
  }
  return {Median(std::move(engine)), Median(std::move(direct))};
}

void Main(int rounds) {
  RuntimeOptions options;
  options.built_in_plugins = false;
  options.plugin_directories = {MGE_BINARY_DIR "/tests/bench"};
  std::shared_ptr<Runtime> runtime = Value(Runtime::Create(std::move(options)));
  Chain small(runtime, kShort), large(runtime, kLong);
  const Times few = Measure(small, kShort, rounds), many = Measure(large, kLong, rounds);
  auto step = [](double longer, double shorter) { return (longer - shorter) / (kLong - kShort); };
  const double engine = step(many.engine, few.engine), direct = step(many.direct, few.direct);
  std::printf("a step by the engine     %8.2f ns\n", engine);
  std::printf("the same called directly %8.2f ns\n", direct);
  std::printf("difference               %8.2f ns\n", engine - direct);
  std::printf("a run besides its steps  %8.0f ns\n", few.engine - kShort * engine);
}

}  // namespace
}  // namespace mge

int main(int argc, char** argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 200;
  if (rounds < 1) {
    std::fprintf(stderr, "bench_plan_step [ROUNDS]: '%s' is no number of rounds of 1 and more\n", argv[1]);
    return 2;
  }
  mge::Main(rounds);
  return 0;
}
