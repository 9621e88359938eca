// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/plan/program.h"
#include "core/plugin/devices.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/growth/count_blocks.h"
#include "tests/support/plan_context.h"

namespace mge {
namespace {

// A graph under construction, in text form.
class Text {
 public:
  std::string graph = "input x : float32[2,4]\nconst w = float32[4,4]<1>\n", setup;

  std::string Add(const std::string& op, const std::string& inputs, const std::string& attrs = "") {
    std::string name = fmt::format("v{}", values_++);
    graph += fmt::format("{} = {}({}){}\n", name, op, inputs, attrs);
    return name;
  }
  std::string Constant(const std::string& type, const std::string& elements) {
    std::string name = fmt::format("c{}", values_++);
    graph += fmt::format("const {} = {}<{}>\n", name, type, elements);
    return name;
  }
  void Claim(const std::string& device, const std::string& first, const std::string& last) {
    setup += fmt::format("claim {} pair = {}, {} benefit=5\n", device, first, last);
  }
  void Finish(const std::string& outputs) { graph += fmt::format("output {}\n", outputs); }

 private:
  int values_ = 0;
};

std::string Join(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

// ---- the forms of graphs, each with about n nodes

template <auto next>
void Chain(Text& t, int n) {
  std::string v = "x";
  for (int i = 0; i < n; ++i) v = next(t, v, i);
  t.Finish(v);
}

void Products(Text& t, int n) {
  Chain<[](Text& g, const std::string& v, int) { return g.Add("MatMul", v + ", w"); }>(t, n);
}
void ProductsOfOwnWeights(Text& t, int n) {
  Chain<[](Text& g, const std::string& v, int i) {
    return g.Add("MatMul", v + ", " + g.Constant("float32[4,4]", std::to_string(i)));
  }>(t, n);
}
void Relus(Text& t, int n) {
  Chain<[](Text& g, const std::string& v, int) { return g.Add("Relu", v); }>(t, n);
}
void ClaimedPairs(Text& t, int n) {
  Chain<[](Text& g, const std::string& v, int) {
    const std::string product = g.Add("MatMul", v + ", w"), sum = g.Add("Add", product + ", x");
    g.Claim("cpu", product, sum);
    g.Claim("acc", product, sum);
    return sum;
  }>(t, n / 2);
}
void Views(Text& t, int n) {
  t.graph += "const flat = int64[1]<8>\nconst wide = int64[2]<4, 2>\nconst deep = int64[3]<2, 2, 2>\n";
  Chain<[](Text& g, const std::string& v, int i) {
    return g.Add("Reshape", v + (i % 3 == 0 ? ", flat" : i % 3 == 1 ? ", wide" : ", deep"));
  }>(t, n);
}
void ViewsOfDifferentShapes(Text& t, int n) {
  Chain<[](Text& g, const std::string& v, int i) {
    std::string dims = "8";
    for (int bit = 0; bit < 10; ++bit) dims += (i >> bit) % 2 ? ", 1, 1" : ", 1";
    const int rank = 1 + 10 + __builtin_popcount(static_cast<unsigned>(i) % 1024);
    return g.Add("Reshape", v + ", " + g.Constant(fmt::format("int64[{}]", rank), dims));
  }>(t, n);
}
void ReadViews(Text& t, int n) {
  t.graph += "const flat = int64[1]<8>\nconst wide = int64[2]<4, 2>\n";
  std::vector<std::string> read;
  std::string v = "x";
  for (int i = 0; i < n / 2; ++i) {
    v = t.Add("Reshape", v + (i % 2 ? ", wide" : ", flat"));
    if (i % 2 == 0) read.push_back(t.Add("Relu", v));
  }
  t.Finish(Join(read));
}
void Transposes(Text& t, int n) {
  Chain<[](Text& g, const std::string& v, int) { return g.Add("Abs", g.Add("Transpose", v, " {perm=[1,0]}")); }>(t, n / 2);
}
void Identities(Text& t, int n) {
  Chain<[](Text& g, const std::string& v, int i) { return g.Add(i % 2 ? "Identity" : "Abs", v); }>(t, n);
}
void Dropouts(Text& t, int n) {
  std::string v = "x";
  for (int i = 0; i < n / 2; ++i) {
    t.graph += fmt::format("d{}, m{} = Dropout({})\n", i, i, v);
    v = t.Add("Abs", fmt::format("d{}", i));
  }
  t.Finish(v);
}
void Users(Text& t, int n) {
  std::vector<std::string> all;
  for (int i = 0; i < n; ++i) all.push_back(t.Add("MatMul", "x, " + t.Constant("float32[4,4]", std::to_string(i))));
  t.Finish(t.Add("Concat", Join(all), " {axis=0}"));
}
void BreadthFirst(Text& t, int n) {
  std::vector<std::string> products, sums;
  for (int i = 0; i < n / 2; ++i) products.push_back(t.Add("MatMul", "x, " + t.Constant("float32[4,4]", std::to_string(i))));
  for (const std::string& v : products) {
    sums.push_back(t.Add("Add", v + ", x"));
    t.Claim("cpu", v, sums.back());
    t.Claim("acc", v, sums.back());
  }
  t.Finish(t.Add("Concat", Join(sums), " {axis=0}"));
}
void Ladder(Text& t, int n) {
  std::string a = "x", b = "x";
  for (int i = 0; i < n / 4; ++i) {
    const std::string p = t.Add("Abs", a), q = t.Add("Relu", b);
    a = t.Add("Add", p + ", " + q);
    b = t.Add("Mul", p + ", " + q);
  }
  t.Finish(Join({a, b}));
}
void LongSkips(Text& t, int n) {
  std::vector<std::string> down;
  std::string v = "x";
  for (int i = 0; i < n / 4; ++i) {
    down.push_back(t.Add("MatMul", v + ", w"));
    v = t.Add("Abs", down.back());
  }
  for (size_t i = down.size(); i-- > 0;) {
    const std::string sum = t.Add("Add", down[i] + ", " + v);
    t.Claim("cpu", down[i], sum);
    v = t.Add("Relu", sum);
  }
  t.Finish(v);
}
void Outputs(Text& t, int n) {
  std::vector<std::string> all = {t.Add("MatMul", "x, w")};
  for (int i = 1; i < n; ++i) all.push_back(t.Add("MatMul", all.back() + ", w"));
  t.Finish(Join(all));
}
void Sums(Text& t, int n) {
  std::vector<std::string> all;
  for (int i = 0; i < n; ++i) all.push_back(t.Add("MatMul", "x, " + t.Constant("float32[4,4]", std::to_string(i))));
  t.Finish(t.Add("Sum", Join(all)));
}
void Inputs(Text& t, int n) {
  std::vector<std::string> all;
  for (int i = 0; i < n; ++i) {
    t.graph += fmt::format("input i{} : float32[N{},4]\n", i, i);
    all.push_back(t.Add("Abs", fmt::format("i{}", i)));
  }
  t.Finish(Join(all));
}

// A form, and the allowed number of blocks for each pair of nodes. It is larger where many buffers are alive together: the
// search for their offsets compares all pairs, up to a limit of its own (PlaceWork).
struct Form {
  const char* name;
  void (*make)(Text&, int n);
  double most = 0.2;
};
constexpr Form kForms[] = {
    {"products", Products},
    {"products of own weights", ProductsOfOwnWeights},
    {"relus", Relus},
    {"claimed pairs", ClaimedPairs},
    {"views", Views},
    {"views of different shapes", ViewsOfDifferentShapes},
    {"views that are read", ReadViews, 6},
    {"transposes", Transposes},
    {"identities", Identities},
    {"dropouts", Dropouts},
    {"users of one value", Users, 130},
    {"breadth first", BreadthFirst, 30},
    {"ladder", Ladder},
    {"long skips", LongSkips, 13},
    {"outputs", Outputs, 130},
    {"sums", Sums, 130},
    {"inputs", Inputs, 190},
};

// The devices and kernels of a plan.
struct Machine {
  const char* name;
  const char* setup;
};
constexpr char kHost[] = R"(device cpu0
kernel cpu unary = Relu cost=1 in_place
kernel cpu abs = Abs cost=1 in_place
kernel cpu mm = MatMul cost=2 pack=1:64:form
kernel cpu add = Add cost=1 in_place=0:0/0:1
kernel cpu mul = Mul cost=1
kernel cpu transpose = Transpose cost=1
kernel cpu pair = MatMul+Add cost=2
)";
constexpr char kQueues[] = R"(device acc0 compute_queues=3
device cpu0
kernel acc unary = Relu cost=1
kernel acc abs = Abs cost=1
kernel acc mm = MatMul cost=40
kernel acc add = Add cost=20
kernel acc mul = Mul cost=20
kernel acc pair = MatMul+Add cost=40
kernel cpu transpose = Transpose cost=1
)";
constexpr Machine kMachines[] = {{"in host memory", kHost}, {"on queues", kQueues}};

struct Planned {
  absl::Status status;
  uint64_t blocks = 0;  // executed
};

// Plans the graph. If `stop_at` is not 0, cancels planning after so many blocks.
Planned PlanForm(const Machine& machine, const Form& form, int n, uint64_t stop_at = 0) {
  Text text;
  form.make(text, n);
  const std::string setup = machine.setup + text.setup;
  DevicesOptions options;
  options.directories = {{MGE_BINARY_DIR "/tests/plan_fakes", "test"}};
  options.settings = [&](std::string_view, std::span<const mge_setting* const> settings) {
    return std::vector<std::string>(settings.size(), setup);
  };
  auto devices = Devices::Create(std::move(options));
  EXPECT_TRUE(devices.ok()) << devices.status();
  if (!devices.ok()) return {};
  (*devices)->StartAll();
  auto found = (*devices)->Resolve(setup.starts_with("device acc") ? "acc0,cpu0" : "cpu0", "test");
  EXPECT_TRUE(found.ok()) << found.status();
  auto graph = ParseGraphText(text.graph);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!found.ok() || !graph.ok()) return {};
  PlanServices services;
  services.host = &(*devices)->host();
  services.shared_constants = std::make_shared<SharedConstants>();
  auto context = std::make_shared<PlanContext>(ContextWith({}, std::move(services)));
  for (const auto* list : {&found->devices, &found->fallbacks}) {
    for (const DeviceUse& use : *list) context->devices.push_back(use.device);
  }
  context->split = found->devices.size();
  StopControl stop;
  const uint64_t before = BlocksExecuted();
  if (stop_at > 0) SetFlagAt(before + stop_at, &stop.cancel, kStopAsked);
  auto done = [&](absl::Status status) {
    SetFlagAt(UINT64_MAX, nullptr, 0);
    return Planned{std::move(status), BlocksExecuted() - before};
  };
  auto program = Program::Create(*std::move(graph), context, "", &stop);
  if (!program.ok()) return done(program.status());
  std::vector<InputType> inputs;
  for (ValueId v : (*program)->graph().inputs()) {
    Shape shape = (*program)->graph().value(v).type.dims;
    for (int64_t& d : shape) d = d < 0 ? 2 : d;
    inputs.push_back({ValueKind::kTensor, DType::kF32, std::move(shape)});
  }
  return done((*program)->PlanFor(inputs, &stop).status());
}

double Work(const Machine& machine, const Form& form, int n) {
  const Planned planned = PlanForm(machine, form, n);
  EXPECT_TRUE(planned.status.ok()) << form.name << " " << machine.name << ": " << planned.status;
  return static_cast<double>(planned.blocks);
}

TEST(Growth, OfPlanningIsLinearInTheNodes) {
  constexpr int kNodes = 250;
  for (const Machine& machine : kMachines) {
    for (const Form& form : kForms) {
      const double one = Work(machine, form, kNodes), two = Work(machine, form, 2 * kNodes),
                   four = Work(machine, form, 4 * kNodes);
      const double quadratic = (four - 3 * two + 2 * one) / (6.0 * kNodes * kNodes);
      EXPECT_LT(quadratic, form.most) << form.name << " " << machine.name << ": " << one << ", " << two << " and " << four
                                      << " blocks";
    }
  }
}

TEST(Growth, PlanningStopsSoonWhereverItIsCancelled) {
  constexpr int kNodes = 500, kPoints = 60;
  constexpr double kMaxShare = 0.15;  // of the whole work: what may follow the request to stop
  for (const Machine& machine : kMachines) {
    for (const Form& form : {Form{"claimed pairs", ClaimedPairs}, Form{"breadth first", BreadthFirst}}) {
      const double whole = Work(machine, form, kNodes);
      for (int point = 1; point < kPoints; ++point) {
        const auto at = static_cast<uint64_t>(whole * point / kPoints);
        const Planned stopped = PlanForm(machine, form, kNodes, at);
        if (stopped.status.ok()) continue;  // it was about to end
        EXPECT_EQ(ErrorId(stopped.status), errors::kCancelled.id) << stopped.status;
        EXPECT_LT(static_cast<double>(stopped.blocks - at), kMaxShare * whole)
            << form.name << " " << machine.name << ", cancelled after " << at << " of " << whole << " blocks";
      }
    }
  }
}

}  // namespace
}  // namespace mge
