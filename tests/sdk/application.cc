// SPDX-License-Identifier: Apache-2.0
// The C++ headers for applications, in C++17 and later, with and without exceptions, alone and behind plugin.hpp. The test is that
// it compiles.
#include "mge/eager.hpp"
#include "mge/generate.hpp"
#include "mge/optimizers.hpp"

#ifdef MGE_HIDDEN  // plugin.hpp has been included
namespace app = mge::app;
[[maybe_unused]] static mge::Result OfTheBackend() { return {}; }
#else
namespace app = mge;
#endif

namespace {

[[maybe_unused]] app::Status Use(const app::Runtime& runtime, const std::vector<int64_t>& dims) {
  auto session = app::Session::Load(runtime, "model.onnx");
  if (!session.ok()) return session.status();
  auto x = app::Tensor::Of<float>({1, 2}, {1, 2});
  auto y = app::Tensor::Create(MGE_DTYPE_BOOL, dims);
  app::RunOptions options;
  options.done = [](app::Result<std::vector<app::Tensor>> outputs) { (void)outputs.ok(); };
  if (auto posted = session->Run({&*x, &*y}, options); !posted.ok()) return posted.status();
  std::vector<app::Tensor> outputs;
  if (app::Status s = session->Run({&*x, &*y}, outputs); !s.ok()) return s;
  app::Tensor first;
  if (app::Status s = outputs[0].ToHost().MoveTo(first); !s.ok()) return s;
  float sum = 0;
  for (float value : first.data<float>()) sum += value;

  auto eager = app::Eager::Create(runtime);
  if (!eager.ok()) return eager.status();
  auto scope = app::ContextScope::Enter(app::gpu(1));
  auto put = eager->Put(first);
  auto relu = eager->Apply(app::EagerOp("LeakyRelu").Set("alpha", sum), {&*put});
  if (!relu.ok()) return relu.status();

  auto generator = app::Generator::Load(runtime, "folder");
  if (!generator.ok()) return generator.status();
  app::Sampling sampling;
  sampling.temperature = 0.8;
  if (app::Status s = generator->SetSampling(sampling); !s.ok()) return s;
  if (app::Status s = generator->Append({1, 15}); !s.ok()) return s;
  return generator->Next().status();
}

}  // namespace
