// SPDX-License-Identifier: Apache-2.0
#include "support/onednn_kernel.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "settings.h"
#include "support/gemm.h"
#include "support/kernel.h"
#include "support/work.h"

namespace mge::cpu {
namespace {

constexpr double kCallUs = 0.4;      // overhead per primitive call
constexpr double kMinSerialUs = 20;  // shorter work is not worth a call

uint64_t Aligned(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

struct Args {
  const std::vector<OnednnSlice>* slices;
  Slot x, weights, bias, add, y, workspace;
  bool has_weights, has_bias, has_add;
  uint64_t y_bytes;
  uint32_t state;
};

mge_code Launch(const Args& a, const mge_run* run) {
  auto& state = *static_cast<OnednnState*>(run->states[a.state]);
  const auto& slices = *a.slices;
  const char* x = At<char>(run, a.x);
  char* y = At<char>(run, a.y);
  const char* add = a.has_add ? At<char>(run, a.add) : y;
  if (add != y) {  // the primitives add to the content of y
    uint64_t part = (a.y_bytes / slices.size() + 63) / 64 * 64;
    ParallelFor(run, slices.size(), [&](uint64_t i) {
      uint64_t begin = std::min(a.y_bytes, i * part), end = std::min(a.y_bytes, begin + part);
      if (i + 1 == slices.size()) end = a.y_bytes;
      std::memcpy(y + begin, add + begin, end - begin);
    });
  }
  onednn::Operands shared = {x, a.has_weights ? At<char>(run, a.weights) : nullptr,
                             a.has_bias ? At<char>(run, a.bias) : nullptr, y, nullptr};
  char* workspace = At<char>(run, a.workspace);
  return state.Run(run, [&](const OnednnSlice& slice, uint64_t) {
    onednn::Operands o = shared;
    o.x = x + slice.x;
    o.y = y + slice.y;
    if (o.weights) o.weights = static_cast<const char*>(o.weights) + slice.weights;
    o.scratch = workspace + slice.scratch;
    return o;
  });
}

class OnednnKernel : public Kernel {
 public:
  OnednnKernel(const OnednnPlaces& places, std::vector<OnednnSlice> slices) : places_(places), slices_(std::move(slices)) {
    for (size_t i = 0; i < slices_.size(); ++i) {
      OnednnSlice& s = slices_[i];
      s.scratch = workspace_;
      workspace_ += Aligned(s.primitive->scratch_bytes());
      if (places.weights < 0) continue;
      // Slices of different heights may read the filter in different forms. Each form is packed once.
      auto same = std::find_if(slices_.begin(), slices_.begin() + static_cast<std::ptrdiff_t>(i),
                               [&](const OnednnSlice& other) { return other.primitive->PacksAs(*s.primitive); });
      if (same != slices_.begin() + static_cast<std::ptrdiff_t>(i)) {
        s.weights = same->weights;
      } else {
        s.weights = packed_;
        packed_ += Aligned(s.primitive->packed_bytes());
        forms_.push_back(i);
      }
    }
  }
  uint32_t args_bytes() const override { return sizeof(Args); }
  uint64_t workspace_bytes() const override { return workspace_; }
  uint64_t prepack_bytes(int input) const override { return input == places_.weights ? packed_ : 0; }
  Result Prepack(int, const void* source, void* out) override {
    for (size_t i : forms_) {
      const OnednnSlice& s = slices_[i];
      if (Result r = s.primitive->Pack(source, static_cast<char*>(out) + s.weights); !r.ok()) return r;
    }
    return {};
  }
  // Concatenates the forms of all slices.
  std::string prepack_form(int) const override {
    std::string all;
    for (size_t i : forms_) {
      const std::string form = slices_[i].primitive->packed_form();
      if (form.empty()) return {};
      all += (all.empty() ? "" : "; ") + form;
    }
    return all;
  }
  bool has_state() const override { return true; }
  Result CreateState(void** out) override {
    auto state = std::make_unique<OnednnState>(slices_);
    if (Result r = state->Init(); !r.ok()) return r;
    *out = state.release();
    return {};
  }
  void DestroyState(void* p) override { delete static_cast<OnednnState*>(p); }
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
  std::vector<size_t> forms_;  // index of the first slice of each form of the filter
  uint64_t workspace_ = 0, packed_ = 0;
};

// Returns a short name: "brgconv:avx512_core" is brgconv, "x64:gemm:jit" is gemm, "ip:x64:gemm:jit" is ip.gemm.
std::string ShortName(std::string_view implementation) {
  std::string name;
  for (size_t begin = 0; begin < implementation.size();) {
    size_t end = std::min(implementation.find(':', begin), implementation.size());
    std::string_view part = implementation.substr(begin, end - begin);
    begin = end + 1;
    if (part == "x64") continue;
    name += name.empty() ? "" : ".";
    name += part;
    if (part != "ip") break;
  }
  return name;
}

OnednnChoice Choose(const OnednnWays& allowed, const OnednnCut& cut) {
  OnednnChoice choice;
  std::vector<OnednnSlice> slices;
  for (int64_t ways = allowed.most; ways >= 1 && choice.ways == 0; ways /= 2) {
    slices.clear();
    Result r = cut(ways, &slices);
    if (r.ok())
      choice.ways = ways;
    else
      choice.reason = r.text();
  }
  if (choice.ways == 0) return choice;
  int64_t all = 0, largest = 0;
  std::vector<std::string> names;
  for (const OnednnSlice& s : slices) {
    all += s.work;
    largest = std::max(largest, s.work);
    choice.workspace += Aligned(s.primitive->scratch_bytes());
    std::string name = ShortName(s.primitive->implementation());
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  for (const std::string& name : names) choice.code += (choice.code.empty() ? "" : "+") + name;
  const int64_t threads = std::min(choice.ways, allowed.threads);
  int64_t rounds = (static_cast<int64_t>(slices.size()) + threads - 1) / threads;
  choice.share = static_cast<double>(rounds * largest) / static_cast<double>(all);
  return choice;
}

}  // namespace

Result OnednnState::Init() {
  for (const OnednnSlice& s : slices_) {
    void* instance = nullptr;
    if (Result r = s.primitive->MakeInstance(&instance); !r.ok()) return r;
    instances_.push_back(instance);
  }
  return {};
}
OnednnState::~OnednnState() {
  for (size_t i = 0; i < instances_.size(); ++i) slices_[i].primitive->DestroyInstance(instances_[i]);
}

OnednnChoice ChooseOnednn(std::vector<int64_t> problem, const OnednnWays& ways, const OnednnCut& cut) {
  constexpr size_t kMaxKept = 4096;
  static std::mutex mutex;
  static std::map<std::vector<int64_t>, OnednnChoice> kept;
  problem.insert(problem.end(), {ways.most, ways.threads});
  {
    std::lock_guard lock(mutex);
    if (auto it = kept.find(problem); it != kept.end()) return it->second;
  }
  OnednnChoice choice = Choose(ways, cut);
  std::lock_guard lock(mutex);
  if (kept.size() >= kMaxKept) kept.clear();
  return kept.emplace(std::move(problem), std::move(choice)).first->second;
}

KernelPtr MakeOnednnKernel(const OnednnPlaces& places, const OnednnChoice& choice, const OnednnCut& cut,
                           const Candidate& candidate) {
  std::vector<OnednnSlice> slices;
  if (choice.ways == 0 || !cut(choice.ways, &slices).ok()) return nullptr;
  for (const OnednnSlice& s : slices) {
    if (!s.primitive->Compile().ok()) return nullptr;
  }
  auto kernel = std::make_unique<OnednnKernel>(places, std::move(slices));
  if (kernel->workspace_bytes() > candidate.workspace) return nullptr;
  return kernel;
}

bool OnednnUsable(Offers& offers, double serial_us) {
  if (!ToBool(SettingOf(kOnednnSetting))) {
    offers.Refuse("oneDNN: switched off by cpu.onednn");
    return false;
  }
  if (AllowedIsa() != ThisProcessor().isa) {
    offers.Refuse("oneDNN: chooses its instruction set itself, which cpu.isa forbids");
    return false;
  }
  if (!offers.Allows(kOnednnAttributes)) {
    offers.Refuse("oneDNN: compiles code, which the host does not allow here");
    return false;
  }
  if (serial_us < kMinSerialUs) {
    offers.Refuse("oneDNN: too little work for its calls");
    return false;
  }
  if (!onednn::IsInstalled()) {
    offers.Refuse("oneDNN: the library is not installed");
    return false;
  }
  return true;
}

OnednnWays WaysOf(const Problem& p, double serial_us) {
  constexpr double kMaxTimes = 256;  // each slice has memory of its own
  if (serial_us < 2 * kMinSerialUs) return {1, 1};
  const int64_t threads = p.threads();
  const auto times = static_cast<int64_t>(std::min(serial_us / kLongUs / static_cast<double>(threads), kMaxTimes));
  return {threads * std::max<int64_t>(times, 1), threads};
}

double OnednnCostUs(double serial_us, const OnednnChoice& choice) {
  return kCallUs + (choice.ways > 1 ? 1.0 : 0.0) + serial_us * choice.share;
}

double OnednnConvUs(const Convolution& c) {
  Isa isa = AllowedIsa();
  const double activation = ActivationUs(c.epilogue.activation, static_cast<double>(c.rows() * c.outputs), isa);
  if (c.depthwise() && !c.volume()) {
    double flops = 2.0 * static_cast<double>(c.rows() * c.outputs * c.windows.kh * c.windows.kw);
    return flops / 75e3 +
           0.5 * StreamUs(4.0 *
                          static_cast<double>(c.images * c.channels * c.windows.h * c.windows.w + c.rows() * c.outputs)) +
           activation;
  }
  return GemmSerialUs({c.rows(), c.outputs / c.groups, c.k(), c.groups}, isa, c.pointwise() ? 0.03 : 0) + activation;
}

double OnednnPackUs(const Value& weights) {
  constexpr double kBytesPerUs = 12e3;
  return static_cast<double>(weights.bytes()) / kBytesPerUs;
}

Result OnednnImages::Cut(int64_t ways, const Describe& describe, std::vector<OnednnSlice>* slices) const {
  const ConvWindows& w = windows;
  const bool columns = w.h == 1 && w.oh == 1;
  const int64_t lines = columns ? w.ow : w.oh;
  // Returns the share of idle thread time if `parts` equal parts are distributed.
  auto lost = [&](int64_t parts) {
    return 1 - static_cast<double>(parts) / static_cast<double>((parts + ways - 1) / ways * ways);
  };
  constexpr double kMaxLost = 0.13;
  constexpr int64_t kGroups = 4;  // for a thread, at most
  const bool grouped = images >= ways && lost(images) <= kMaxLost;
  int64_t bands = 1;
  if (!grouped) {
    for (int64_t b = 2; b <= std::min(ways, lines) && lost(images * bands) > kMaxLost; ++b) {
      if (lost(images * b) < lost(images * bands)) bands = b;
    }
  }
  // Several groups for each thread, where they are equal: one that is held up leaves its share to the others.
  int64_t groups = ways;
  for (int64_t each = kGroups; each > 1 && groups == ways && ways > 1; --each) {
    if (images % (ways * each) == 0) groups = ways * each;
  }
  const int64_t parts = grouped ? groups : images;
  const auto in_image = w.h * w.w, out_image = w.oh * w.ow;
  std::vector<std::pair<onednn::Band, std::shared_ptr<onednn::Primitive>>> made;
  for (int64_t i = 0; i < parts * bands; ++i) {
    int64_t part = i / bands, at = i % bands, n0 = images * part / parts;
    onednn::Band band = {images * (part + 1) / parts - n0, lines * at / bands, lines * (at + 1) / bands, columns};
    auto equal = std::find_if(made.begin(), made.end(), [&](const auto& m) { return m.first == band; });
    if (equal == made.end()) {
      onednn::PrimitivePtr primitive;
      if (Result r = describe(band, &primitive); !r.ok()) return r;
      equal = made.emplace(made.end(), band, std::move(primitive));
    }
    onednn::Start start = onednn::StartOf(w, band);
    auto bytes = [](int64_t pixels, int64_t each) { return static_cast<uint64_t>(pixels * each) * sizeof(float); };
    slices->push_back({.primitive = equal->second,
                       .x = bytes(n0 * in_image + start.x, channels),
                       .y = bytes(n0 * out_image + start.y, outputs),
                       .work = band.images * (band.end - band.begin)});
  }
  return {};
}

void AppendEpilogue(const Epilogue& e, bool bias, bool add, std::vector<int64_t>& problem) {
  problem.insert(problem.end(), {static_cast<int64_t>(e.activation), std::bit_cast<int32_t>(e.lo),
                                 std::bit_cast<int32_t>(e.hi), bias, add});
}

}  // namespace mge::cpu
