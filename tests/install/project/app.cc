// SPDX-License-Identifier: Apache-2.0
// The same application as app.c, in C++17: app DIGITS RELU DEVICE
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "mge/mge.hpp"

namespace {

// Returns how many digits are right.
mge::Result<int> ReadDigits(const mge::Runtime& runtime, const std::string& folder) {
  mge::SessionOptions options;
  options.device = "cpu0";
  const auto session = mge::Session::Load(runtime, folder + "/digits.onnx", options);
  if (!session.ok()) return session.status();
  const auto images = mge::Tensor::Read(folder + "/digits_images.npy");
  if (!images.ok()) return images.status();
  const auto labels = mge::Tensor::Read(folder + "/digits_labels.npy");
  if (!labels.ok()) return labels.status();
  const auto outputs = session->Run({&*images});
  if (!outputs.ok()) return outputs.status();

  const mge::Span<float> probabilities = outputs->front().data<float>();
  const mge::Span<int64_t> truth = labels->data<int64_t>();
  int right = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    const auto row = probabilities.subspan(10 * i, 10);
    right += std::max_element(row.begin(), row.end()) - row.begin() == truth[i];
  }
  return right;
}

mge::Result<bool> Relu(const mge::Runtime& runtime, const std::string& model, const std::string& device) {
  mge::SessionOptions options;
  options.device = device;
  const auto session = mge::Session::Load(runtime, model, options);
  if (!session.ok()) return session.status();
  const auto x = mge::Tensor::Of<float>({2, 3}, {-2, -1, 0, 1, 2, 3});
  if (!x.ok()) return x.status();
  const auto y = session->Run({&*x});
  if (!y.ok()) return y.status();
  const float wanted[] = {0, 0, 0, 1, 2, 3};
  const auto got = y->front().data<float>();
  return std::equal(got.begin(), got.end(), std::begin(wanted), std::end(wanted));
}

int Report(const mge::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(status.text()).c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto runtime = mge::Runtime::Create();
  if (!runtime.ok()) return Report(runtime.status());
  const auto right = ReadDigits(*runtime, argv[1]);
  if (!right.ok()) return Report(right.status());
  const auto good = Relu(*runtime, argv[2], argv[3]);
  if (!good.ok()) return Report(good.status());
  std::printf("MGE %s: %d of 48 digits are right; Relu on %s is %s\n", mge_version(), *right, argv[3],
              *good ? "right" : "wrong");
  return *right >= 46 && *good ? 0 : 1;
}
