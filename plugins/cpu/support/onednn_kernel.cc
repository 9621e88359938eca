// SPDX-License-Identifier: Apache-2.0
#include "support/onednn_kernel.h"

#include <cstring>
#include <string>

#include "settings.h"
#include "support/kernel.h"

namespace mge::cpu {
namespace {

constexpr double kCallUs = 0.4;        // of one primitive
constexpr double kLeastSerialUs = 20;  // below that a call is not worth it

// Of one plan instance.
struct State {
  std::vector<void*> instances;
  std::vector<mge_code> codes;
};

struct Args {
  const std::vector<OnednnSlice>* slices;
  Slot x, weights, bias, add, y, workspace;
  bool has_weights, has_bias, has_add;
  uint64_t y_bytes;
  uint32_t state;
};

mge_code Launch(const Args& a, const mge_run* run) {
  auto& state = *static_cast<State*>(run->states[a.state]);
  const auto& slices = *a.slices;
  const char* x = At<char>(run, a.x);
  char* y = At<char>(run, a.y);
  const char* add = a.has_add ? At<char>(run, a.add) : y;
  if (add != y) {  // the primitives add to what is in y
    uint64_t part = (a.y_bytes / slices.size() + 63) / 64 * 64;
    ParallelFor(run, slices.size(), [&](uint64_t i) {
      uint64_t begin = std::min(a.y_bytes, i * part), end = std::min(a.y_bytes, begin + part);
      if (i + 1 == slices.size()) end = a.y_bytes;
      std::memcpy(y + begin, add + begin, end - begin);
    });
  }
  onednn::Operands shared = {x, a.has_weights ? At<char>(run, a.weights) : nullptr, a.has_bias ? At<char>(run, a.bias) : nullptr, y, nullptr};
  char* workspace = At<char>(run, a.workspace);
  ParallelFor(run, slices.size(), [&](uint64_t i) {
    const OnednnSlice& s = slices[i];
    onednn::Operands o = shared;
    o.x = x + s.x;
    o.y = y + s.y;
    o.scratch = workspace + s.scratch;
    state.codes[i] = s.primitive->Run(state.instances[i], o);
  });
  for (mge_code code : state.codes) {
    if (code != MGE_OK) return Report(run->error, code, "oneDNN failed to run a primitive");
  }
  return MGE_OK;
}

class OnednnKernel : public Kernel {
 public:
  OnednnKernel(const OnednnPlaces& places, std::vector<OnednnSlice> slices) : places_(places), slices_(std::move(slices)) {
    for (OnednnSlice& s : slices_) {
      s.scratch = workspace_;
      workspace_ += (s.primitive->scratch_bytes() + 63) / 64 * 64;
    }
  }
  uint32_t args_bytes() const override { return sizeof(Args); }
  uint64_t workspace_bytes() const override { return workspace_; }
  uint64_t prepack_bytes(int input) const override { return input == places_.weights ? slices_[0].primitive->packed_bytes() : 0; }
  Result Prepack(int, const void* source, void* out) override { return slices_[0].primitive->Pack(source, out); }
  bool has_state() const override { return true; }
  Result CreateState(void** out) override {
    auto state = std::make_unique<State>();
    state->codes.assign(slices_.size(), MGE_OK);
    for (const OnednnSlice& s : slices_) {
      void* instance = nullptr;
      if (Result r = s.primitive->MakeInstance(&instance); !r.ok()) {
        DestroyState(state.release());
        return r;
      }
      state->instances.push_back(instance);
    }
    *out = state.release();
    return {};
  }
  void DestroyState(void* p) override {
    std::unique_ptr<State> state(static_cast<State*>(p));
    for (size_t i = 0; i < state->instances.size(); ++i) slices_[i].primitive->DestroyInstance(state->instances[i]);
  }
  Result Bind(const Binding& b, void* args, StepFn* step) override {
    auto* a = new (args) Args();
    a->slices = &slices_;
    a->x = b.input(places_.x);
    a->has_weights = places_.weights >= 0;
    a->has_bias = places_.bias >= 0;
    a->has_add = places_.add >= 0;
    if (a->has_weights) a->weights = b.input(places_.weights);
    if (a->has_bias) a->bias = b.input(places_.bias);
    if (a->has_add) a->add = b.input(places_.add);
    a->y = b.output(0);
    a->workspace = b.workspace();
    a->y_bytes = places_.y_bytes;
    a->state = b.state_index();
    *step = StepFn::Of<Launch>();
    return {};
  }

 private:
  OnednnPlaces places_;
  std::vector<OnednnSlice> slices_;
  uint64_t workspace_ = 0;
};

}  // namespace

KernelPtr MakeOnednnKernel(const OnednnPlaces& places, std::vector<OnednnSlice> slices, const Candidate& candidate) {
  auto kernel = std::make_unique<OnednnKernel>(places, std::move(slices));
  if (kernel->workspace_bytes() > candidate.workspace) return nullptr;
  return kernel;
}

bool OnednnUsable(Offers& offers, double serial_us) {
  if (!SettingIsOn(kSettingOnednn)) {
    offers.Refuse("oneDNN: switched off by cpu.onednn");
    return false;
  }
  if (AllowedIsa() != ThisProcessor().isa) {
    offers.Refuse("oneDNN: chooses its instruction set itself, which cpu.isa forbids");
    return false;
  }
  if (serial_us < kLeastSerialUs) {
    offers.Refuse("oneDNN: too little work for its calls");
    return false;
  }
  if (!onednn::IsInstalled()) {
    offers.Refuse("oneDNN: the library is not installed");
    return false;
  }
  return true;
}

int64_t OnednnWays(const Problem& p, double serial_us) { return serial_us < 2 * kLeastSerialUs ? 1 : p.threads(); }

double OnednnCostUs(double serial_us, int64_t ways) {
  return kCallUs + (ways > 1 ? 1.0 : 0.0) + serial_us / static_cast<double>(ways);
}

uint64_t OnednnWorkspaceBound(const Problem& p, int64_t ways) {
  uint64_t bytes = p.output(0).bytes();
  for (int i = 0; i < p.input_count(); ++i) bytes += p.input(i).bytes();
  return 2 * bytes + static_cast<uint64_t>(ways) * (4 << 20);
}

}  // namespace mge::cpu
