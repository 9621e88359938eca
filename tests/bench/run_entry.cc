// SPDX-License-Identifier: Apache-2.0
// Measures what a call of mge_session_run costs, with a model whose own work is small: `mge zoo one-op -o one.onnx`.
//
// The tensors lie in plain host memory, or are tensors of the device. The rows alternate in short rounds, so that other work
// on the machine affects all of them. Prints the least and the median of the rounds' means.
//
//   bench_run_entry one.onnx [ROUNDS] [DEVICE ...]     default 200, on cpu0 and virtual0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "mge/mge.h"

namespace {

void Check(mge_status* status) {
  if (!status) return;
  std::fprintf(stderr, "%s\n", mge_status_text(status));
  std::exit(1);
}

// A session on a device, with its inputs and outputs.
class Row {
 public:
  Row(mge_runtime* runtime, const char* model, const char* device, bool on_device, int calls)
      : name_(std::string(device) + (on_device ? ", tensors of the device" : ", tensors in host memory")), calls_(calls) {
    mge_session_options options = {};
    options.struct_size = sizeof(options);
    options.device = device;
    options.threads = 1;
    Check(mge_session_load(runtime, model, &options, &session_));
    in_.resize(mge_session_input_count(session_));
    out_.resize(mge_session_output_count(session_));
    mge_string* described = nullptr;
    Check(mge_session_example_inputs(session_, nullptr, in_.data(), in_.size(), &described));
    mge_string_release(described);
    Run();  // creates the outputs
    if (on_device) {
      for (std::vector<mge_tensor*>* tensors : {&in_, &out_}) {
        for (mge_tensor*& tensor : *tensors) MoveTo(runtime, device, tensor);
      }
    }
    for (int i = 0; i < 10; ++i) Run();
  }
  ~Row() {
    for (mge_tensor* tensor : in_) mge_tensor_release(tensor);
    for (mge_tensor* tensor : out_) mge_tensor_release(tensor);
    mge_session_release(session_);
  }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;

  void Round() {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls_; ++i) Run();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    ns_.push_back(time.count() / calls_);
  }
  void Print() {
    std::sort(ns_.begin(), ns_.end());
    std::printf("%-40s %10.0f %10.0f\n", name_.c_str(), ns_.front(), ns_[ns_.size() / 2]);
  }

 private:
  void Run() { Check(mge_session_run(session_, in_.data(), in_.size(), out_.data(), out_.size(), nullptr, nullptr)); }
  static void MoveTo(mge_runtime* runtime, const char* device, mge_tensor*& tensor) {
    mge_tensor* there = nullptr;
    Check(mge_tensor_create_on(runtime, device, mge_tensor_dtype(tensor), mge_tensor_dims(tensor), mge_tensor_rank(tensor),
                               &there));
    Check(mge_tensor_copy(tensor, there));
    mge_tensor_release(tensor);
    tensor = there;
  }

  const std::string name_;
  const int calls_;
  mge_session* session_ = nullptr;
  std::vector<mge_tensor*> in_, out_;
  std::vector<double> ns_;
};

void Main(const char* model, int rounds, const std::vector<std::string>& devices) {
  const char* const settings[] = {"virtual.devices=1"};
  mge_runtime_options options = {};
  options.struct_size = sizeof(options);
  options.settings = settings;
  options.setting_count = 1;
  mge_runtime* runtime = nullptr;
  Check(mge_runtime_create(&options, &runtime));
  std::vector<std::unique_ptr<Row>> rows;
  for (const std::string& device : devices) {
    const int calls = device.starts_with("virtual") ? 20 : 2000;
    for (bool on_device : {false, true}) {
      rows.push_back(std::make_unique<Row>(runtime, model, device.c_str(), on_device, calls));
    }
  }
  for (int i = 0; i < rounds; ++i) {
    for (const auto& row : rows) row->Round();
  }
  std::printf("%-40s %10s %10s   ns per run\n", "", "least", "median");
  for (const auto& row : rows) row->Print();
  rows.clear();
  mge_runtime_release(runtime);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 200;
  if (argc < 2 || rounds < 1) {
    std::fprintf(stderr,
                 "bench_run_entry MODEL [ROUNDS] [DEVICE ...]: name a model and, if you like, a number of rounds of 1 and "
                 "more, and devices\n");
    return 2;
  }
  std::vector<std::string> devices(argv + std::min(argc, 3), argv + argc);
  if (devices.empty()) devices = {"cpu0", "virtual0"};
  Main(argv[1], rounds, devices);
  return 0;
}
