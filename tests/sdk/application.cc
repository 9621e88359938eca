// SPDX-License-Identifier: Apache-2.0
// The C++ headers for applications, in C++17 and later, with and without exceptions. The test is that it compiles.
#include "mge/eager.hpp"
#include "mge/optimizers.hpp"

namespace {

[[maybe_unused]] mge::Status Use(const mge::Runtime& runtime, const std::vector<int64_t>& dims) {
  auto session = mge::Session::Load(runtime, "model.onnx");
  if (!session.ok()) return session.status();
  auto x = mge::Tensor::Of<float>({1, 2}, {1, 2});
  auto y = mge::Tensor::Create(MGE_DTYPE_BOOL, dims);
  mge::RunOptions options;
  options.done = [](mge::Result<std::vector<mge::Tensor>> outputs) { (void)outputs.ok(); };
  if (auto posted = session->Run({&*x, &*y}, options); !posted.ok()) return posted.status();
  std::vector<mge::Tensor> outputs;
  if (mge::Status s = session->Run({&*x, &*y}, outputs); !s.ok()) return s;
  mge::Tensor first;
  if (mge::Status s = outputs[0].ToHost().MoveTo(first); !s.ok()) return s;
  float sum = 0;
  for (float value : first.data<float>()) sum += value;

  auto eager = mge::Eager::Create(runtime);
  if (!eager.ok()) return eager.status();
  auto scope = mge::ContextScope::Enter(mge::gpu(1));
  auto put = eager->Put(first);
  auto relu = eager->Apply(mge::EagerOp("LeakyRelu").Set("alpha", sum), {&*put});
  return relu.status();
}

}  // namespace
