// SPDX-License-Identifier: Apache-2.0
// The same application as app.c, in C++: app DIGITS RELU DEVICE
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "mge/mge.hpp"

namespace {

mge::Status ReadDigits(const mge::Runtime& runtime, const std::string& folder, int* right) {
  mge::Session session;
  mge::Tensor images, labels;
  if (auto s = mge::Session::Load(runtime, folder + "/digits.onnx", {.device = "cpu0"}, &session); !s.ok()) return s;
  if (auto s = mge::Tensor::Read(folder + "/digits_images.npy", &images); !s.ok()) return s;
  if (auto s = mge::Tensor::Read(folder + "/digits_labels.npy", &labels); !s.ok()) return s;
  std::vector<mge::Tensor> outputs;
  if (auto s = session.Run({&images}, &outputs); !s.ok()) return s;

  std::span<const float> probabilities = outputs[0].data<float>();
  std::span<const int64_t> truth = labels.data<int64_t>();
  for (size_t i = 0; i < truth.size(); ++i) {
    auto row = probabilities.subspan(10 * i, 10);
    *right += std::max_element(row.begin(), row.end()) - row.begin() == truth[i];
  }
  return {};
}

mge::Status Relu(const mge::Runtime& runtime, const std::string& model, const std::string& device, bool* good) {
  mge::Session session;
  if (auto s = mge::Session::Load(runtime, model, {.device = device}, &session); !s.ok()) return s;
  mge::Tensor x;
  if (auto s = mge::Tensor::Of<float>({2, 3}, {-2, -1, 0, 1, 2, 3}, &x); !s.ok()) return s;
  std::vector<mge::Tensor> y;
  if (auto s = session.Run({&x}, &y); !s.ok()) return s;
  std::vector<float> wanted = {0, 0, 0, 1, 2, 3};
  *good = std::ranges::equal(y[0].data<float>(), wanted);
  return {};
}

int Report(const mge::Status& status) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(status.text().size()), status.text().data());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  mge::Runtime runtime;
  int right = 0;
  bool good = false;
  if (auto s = mge::Runtime::Create({}, &runtime); !s.ok()) return Report(s);
  if (auto s = ReadDigits(runtime, argv[1], &right); !s.ok()) return Report(s);
  if (auto s = Relu(runtime, argv[2], argv[3], &good); !s.ok()) return Report(s);
  std::printf("MGE %s: %d of 48 digits are right; Relu on %s is %s\n", mge_version(), right, argv[3],
              good ? "right" : "wrong");
  return right >= 46 && good ? 0 : 1;
}
