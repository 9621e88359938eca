// SPDX-License-Identifier: Apache-2.0
// One model on several devices, some of them virtual GPUs: the device of each step, the copies between devices, the results.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

class SeveralDevices : public testing::Test {
 protected:
  void SetUp() override { Restart({}); }

  void Restart(std::vector<Assignment> settings) {
    plan_.reset();
    session_.reset();
    runtime_.reset();  // a running backend keeps the settings of its start
    settings.insert(settings.end(), {{"virtual.devices", "2"}, {"virtual.gpu", "1"}, {"virtual.poison", "1"}});
    runtime_ = NewRuntime(std::move(settings));
    ASSERT_NE(runtime_, nullptr);
  }

  // Creates the session and its plan.
  void Prepare(std::string_view text, const std::string& device, const std::vector<HostValue>& in) {
    auto session = Load(runtime_, text, device);
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    session_ = *session;
    std::vector<InputType> types;
    for (const HostValue& v : in) types.push_back(TypeOfValue(v));
    auto plan = session_->PlanFor(types);
    ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
    plan_ = *plan;
    why_ = PlanText(*plan_, true);
  }

  // Prepares the model and runs it three times on `device`. Each run must give the results of the CPU. The runs differ:
  // the first enqueues the work, the second records it, the third replays it. No step may run on the reference
  // evaluators.
  void Compare(std::string_view text, const std::string& device, const std::vector<HostValue>& in) {
    SCOPED_TRACE(device);
    auto cpu = Load(runtime_, text, "cpu0");
    ASSERT_TRUE(cpu.ok()) << FormatError(cpu.status());
    auto expected = ResultsOf(**cpu, in);
    ASSERT_TRUE(expected.ok()) << FormatError(expected.status());
    ASSERT_NO_FATAL_FAILURE(Prepare(text, device, in));
    EXPECT_EQ(plan_->report.reference_steps, 0) << why_;
    for (int round = 0; round < 3; ++round) {
      auto got = ResultsOf(*session_, in);
      ASSERT_TRUE(got.ok()) << FormatError(got.status()) << why_;
      ASSERT_EQ(got->size(), expected->size());
      for (size_t i = 0; i < got->size(); ++i) ASSERT_NEAR((*got)[i], (*expected)[i], 1e-4) << i << "\n" << why_;
    }
  }

  // Returns the device of each kernel, in order.
  std::vector<std::string> Places() const {
    std::vector<std::string> out;
    for (const Unit& u : plan_->units) {
      if (u.kind == Unit::Kind::kKernel) out.push_back(u.device);
    }
    return out;
  }
  std::map<std::string, int> KernelsOf() const {
    std::map<std::string, int> out;
    for (const std::string& device : Places()) ++out[device];
    return out;
  }
  // Returns the copies between memories, in order: "virtual0, copy in: copy from host".
  std::vector<std::string> Copies() const {
    std::vector<std::string> out;
    for (const Unit& u : plan_->units) {
      if (u.kind == Unit::Kind::kCopy && !u.queue.empty()) out.push_back(u.device + ", " + u.queue + ": " + u.kernel);
    }
    return out;
  }

  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<Session> session_;
  std::shared_ptr<const Plan> plan_;
  std::string why_;
};

// Returns a graph of sums, each of the two previous values.
std::string Sums(int count) {
  std::string text = "input x : float32[8,8]\na0 = Relu(x)\n";
  for (int i = 0; i < count; ++i) {
    std::string before = "a" + std::to_string(i), after = "a" + std::to_string(i + 1);
    text += after + " = Add(" + before + ", " + (i ? "a" + std::to_string(i - 1) : "x") + ")\n";
  }
  return text + "output a" + std::to_string(count) + "\n";
}

TEST_F(SeveralDevices, JoinedByPlusShareAModel) {
  Restart({{"plan.skip", "virtual.elementwise_chain"}});  // many kernels to divide
  const std::vector<HostValue> in = {Numbers({8, 8})};
  Compare(Sums(10), "gpu0+gpu1", in);
  EXPECT_THAT(KernelsOf(), UnorderedElementsAre(Pair("virtual0", Gt(2)), Pair("virtual1", Gt(2)))) << why_;
  EXPECT_EQ(Copies().front(), "virtual0, copy in: copy from host");
  EXPECT_THAT(Copies(), Contains("virtual1, communication: peer copy")) << why_;
  EXPECT_EQ(Copies().back(), "virtual1, copy out: copy to host");
  EXPECT_THAT(why_, AllOf(HasSubstr("device virtual0+virtual1: "), HasSubstr("part 1 of 2 of about equal cost"),
                          HasSubstr("peer copy  on virtual1, communication"),
                          HasSubstr("virtual1 reads it; 256 bytes from virtual0 to virtual1 directly over memory")));

  Compare(Sums(10), "gpu0+cpu0", in);
  EXPECT_THAT(KernelsOf(), UnorderedElementsAre(Pair("virtual0", Gt(0)), Pair("cpu0", Gt(0)))) << why_;
  EXPECT_EQ(Copies().front(), "virtual0, copy in: copy from host");
  EXPECT_EQ(Copies().back(), "virtual0, copy out: copy to host");
  EXPECT_THAT(why_, AllOf(HasSubstr("device virtual0+cpu0: "), HasSubstr("part 2 of 2 of about equal cost"),
                          HasSubstr("cpu0 reads it; 256 bytes from virtual0 to the host")));

  Compare(Sums(10), "cpu0+gpu0", in);
  EXPECT_EQ(Copies().back(), "virtual0, copy out: copy to host");
  EXPECT_EQ(Places().front(), "cpu0");
  EXPECT_EQ(Places().back(), "virtual0");
}

TEST_F(SeveralDevices, ComputeTheNodesThatTheModelAssignsToThem) {
  constexpr char kModel[] = R"(
input x : float32[4,4]
a = Relu(x) on "gpu1"
b = Relu(a) on "virtual0"
c = Add(b, a) on "cpu0"
d = Add(c, b) on "gpu1"
output d
)";
  const std::vector<HostValue> in = {Numbers({4, 4})};
  for (const char* device : {"gpu0+gpu1+cpu0", "gpu0,gpu1,cpu0", "cpu0,virtual0,virtual1"}) {
    Compare(kModel, device, in);
    EXPECT_THAT(Places(), ElementsAre("virtual1", "virtual0", "cpu0", "virtual1")) << why_;
    EXPECT_THAT(Copies(), ElementsAre("virtual1, copy in: copy from host", "virtual0, communication: peer copy",
                                      "virtual0, copy out: copy to host", "virtual1, copy out: copy to host",
                                      "virtual1, copy in: copy from host", "virtual1, communication: peer copy",
                                      "virtual1, copy out: copy to host"))
        << why_;
    EXPECT_THAT(why_, HasSubstr("there because the model asks for it"));
  }
  Compare(kModel, "gpu0", in);
  EXPECT_THAT(Places(), Each("virtual0"));
  EXPECT_THAT(why_, HasSubstr("the model asks for gpu1, which this session does not have"));
}

TEST_F(SeveralDevices, InAListRunStepsThatEarlierDevicesCannotRun) {
  const std::vector<HostValue> in = {Numbers({2, 512})};
  // Ten dimensions are too many for the GPU. The CPU merges them into fewer.
  Compare(R"(
input x : float32[2,512]
const ten = int64[10]<2,2,2,2,2,2,2,2,2,2>
const two = int64[2]<2,512>
a = Relu(x)
b = Reshape(a, ten)
c = Transpose(b) {perm=[9,7,8,6,5,3,4,1,2,0]}
d = Reshape(c, two)
e = Neg(d)
output e
)",
          "gpu0,cpu0", in);
  EXPECT_THAT(Places(), ElementsAre("virtual0", "cpu0", "virtual0")) << why_;
  EXPECT_THAT(Copies(), ElementsAre("virtual0, copy in: copy from host", "virtual0, copy out: copy to host",
                                    "virtual0, copy in: copy from host", "virtual0, copy out: copy to host"))
      << why_;
  EXPECT_THAT(why_, HasSubstr("there because virtual0 has no kernel for it; Transpose: more than 8 dimensions"));

  constexpr char kDropout[] =
      "input x : float32[2,512]\nconst none = float32[]<0>\nconst yes = bool[]<true>\na = Relu(x)\nb = Dropout(a, none, "
      "yes)\n"
      "c = Neg(b)\noutput c\n";
  auto host = Load(runtime_, kDropout, "host");
  ASSERT_TRUE(host.ok());
  ASSERT_NO_FATAL_FAILURE(Prepare(kDropout, "cpu0,gpu1", in));
  EXPECT_THAT(Places(), ElementsAre("cpu0", "virtual1", "cpu0")) << why_;
  EXPECT_THAT(Copies(), ElementsAre("virtual1, copy in: copy from host", "virtual1, copy out: copy to host")) << why_;
  EXPECT_THAT(why_, HasSubstr("there because cpu0 has no kernel for it"));
  EXPECT_EQ(*ResultsOf(*session_, in), *ResultsOf(**host, in));
}

TEST_F(SeveralDevices, JoinedByPlusRunAStepOnTheOnlyOneThatCan) {
  constexpr char kModel[] =
      "input x : float32[2,512]\nconst none = float32[]<0>\nconst yes = bool[]<true>\na = Dropout(x, none, yes)\n"
      "b = Dropout(a, none, yes)\nc = Dropout(b, none, yes)\noutput c\n";
  const std::vector<HostValue> in = {Numbers({2, 512})};
  auto host = Load(runtime_, kModel, "host");
  ASSERT_TRUE(host.ok());
  for (const char* device : {"gpu0+cpu0", "cpu0+gpu0"}) {
    ASSERT_NO_FATAL_FAILURE(Prepare(kModel, device, in));
    EXPECT_THAT(Places(), ElementsAre("virtual0", "virtual0", "virtual0")) << why_;
    EXPECT_THAT(why_, HasSubstr("it is the only device with a kernel"));
    EXPECT_EQ(*ResultsOf(*session_, in), *ResultsOf(**host, in));
  }
}

TEST_F(SeveralDevices, GetWholeClaimedGroups) {
  const std::vector<HostValue> in = {Numbers({8, 8})};
  auto kernels = [&](const std::string& device, int blocks) {
    Compare(Blocks(blocks), device, in);
    return KernelsOf();
  };
  const int on_gpu = kernels("gpu0", 1)["virtual0"], on_cpu = kernels("cpu0", 1)["cpu0"];
  ASSERT_LT(std::max(on_gpu, on_cpu), 7);  // both devices fuse some of the nodes
  for (int blocks : {3, 5, 8}) {
    auto both = kernels("gpu0+gpu1", blocks);
    EXPECT_EQ(both["virtual0"] + both["virtual1"], blocks * on_gpu) << why_;
    EXPECT_GT(both["virtual1"], 0) << why_;
    auto mixed = kernels("gpu0+cpu0", blocks);
    int gpu_groups = 0, cpu_groups = 0;
    for (const Unit& u : plan_->units) (u.device == "cpu0" ? cpu_groups : gpu_groups) += !u.fusion.empty();
    EXPECT_EQ(gpu_groups + cpu_groups, blocks) << why_;
    EXPECT_GT(mixed["cpu0"], 0) << why_;
  }
}

TEST_F(SeveralDevices, CopyAlongTheLinksOfTheMatrix) {
  const std::string path = testing::TempDir() + "mge_links_" + std::to_string(getpid()) + ".csv";
  const std::vector<HostValue> in = {Numbers({4, 4})};
  constexpr char kModel[] = "input x : float32[4,4]\na = Relu(x) on \"gpu0\"\nb = Neg(a) on \"gpu1\"\noutput b\n";
  auto with_links = [&](const char* matrix) {
    std::ofstream(path) << matrix;
    ASSERT_NO_FATAL_FAILURE(Restart({{"virtual.links", path}}));
    Compare(kModel, "gpu0+gpu1", in);
  };
  with_links("0, 25/1.9\n25/1.9, 0\n");
  EXPECT_THAT(Copies(), ElementsAre("virtual0, copy in: copy from host", "virtual1, communication: peer copy",
                                    "virtual1, copy out: copy to host"));
  EXPECT_THAT(why_, HasSubstr("64 bytes from virtual0 to virtual1 directly over "));
  EXPECT_THAT(why_, HasSubstr("(25.0 GB/s); estimated 1.90 us"));

  with_links("0, 12/10/host\n12/10/host, 0\n");
  EXPECT_THAT(Copies(), ElementsAre("virtual0, copy in: copy from host", "virtual0, copy out: copy to host",
                                    "virtual1, copy in: copy from host", "virtual1, copy out: copy to host"));
  EXPECT_THAT(why_, HasSubstr("64 bytes from virtual0 to the host, as there is no direct way between the devices"));
  std::filesystem::remove(path);
}

// Returns a random graph of nodes with one or two inputs on random devices. Inputs are among the last six values.
std::string RandomGraph(std::minstd_rand& random) {
  std::string text = "input x0 : float32[8,8]\ninput x1 : float32[8,8]\n";
  std::vector<std::string> values = {"x0", "x1"};
  auto any = [&] { return values[values.size() - 1 - random() % std::min<size_t>(values.size(), 6)]; };
  for (int i = 2; i < 20; ++i) {
    static constexpr const char* kOps[] = {"Tanh", "Neg", "Sub", "Max", "Hardmax"};
    static constexpr const char* kPlaces[] = {"", " on \"gpu0\"", " on \"gpu1\"", " on \"cpu0\""};
    std::string name = "x" + std::to_string(i), op = kOps[random() % std::size(kOps)];
    text += name + " = " + op + "(" + any() + (op == "Sub" || op == "Max" ? ", " + any() : "") + ")";
    text += kPlaces[random() % std::size(kPlaces)] + std::string("\n");
    values.push_back(name);
  }
  return text + "output x19\noutput x18\noutput x15\n";
}

TEST_F(SeveralDevices, WaitForEachOtherForEveryAssignmentOfNodes) {
  // Slow work reveals a device that does not wait for it.
  Restart({{"virtual.fault", "0:any@1+=slow(200us), 1:copy@1+=slow(100us)"}});
  std::minstd_rand random(7);
  const std::vector<HostValue> in = {Numbers({8, 8}), Numbers({8, 8}, 2)};
  int copies = 0;
  for (int i = 0; i < 40; ++i) {
    const std::string text = RandomGraph(random);
    for (const char* device : {"gpu0+gpu1+cpu0", "gpu1,gpu0,cpu0"}) {
      SCOPED_TRACE(text);
      ASSERT_NO_FATAL_FAILURE(Compare(text, device, in));
      copies += static_cast<int>(Copies().size());
    }
  }
  EXPECT_GT(copies, 500);
}

// Returns a graph with a node, RandomUniformLike, that only virtual devices have a kernel for.
std::string Random(const std::string& on = "") {
  return "input x : float32[1,2,4,4]\nr = Relu(x)\nb = RandomUniformLike(r)" + on + "\ny = Exp(b)\noutput y\n";
}

TEST_F(SeveralDevices, UseTheFallbackForAStepThatNoneOfThemCanRun) {
  const std::vector<HostValue> in = {Numbers({1, 2, 4, 4})};
  for (const char* strategy : {"heuristic", "reproducible"}) {
    Restart({{"select.strategy", strategy}});
    Prepare(Random(), "cpu0+host,virtual0", in);
    EXPECT_EQ(plan_->report.reference_steps, 0) << why_;
    EXPECT_THAT(Places(), Contains("virtual0")) << why_;
    EXPECT_TRUE(ResultsOf(*session_, in).ok());
  }
}

TEST_F(SeveralDevices, UseTheFallbackForANodeAssignedToADeviceThatCannotRunIt) {
  const std::vector<HostValue> in = {Numbers({1, 2, 4, 4})};
  Prepare(Random(" on \"cpu0\""), "cpu0,virtual0", in);
  EXPECT_EQ(plan_->report.reference_steps, 0) << why_;
  EXPECT_THAT(Places(), Contains("virtual0")) << why_;
}

// Returns a graph of `count` inputs with one kernel each, alternating between the two devices.
std::string Pipelines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "input x" + std::to_string(i) + " : float32[64]\n";
  for (int i = 0; i < count; ++i) {
    std::string n = std::to_string(i);
    text += "y" + n + " = Relu(x" + n + ") on \"gpu" + std::to_string(i % 2) + "\"\n";
  }
  for (int i = 0; i < count; ++i) text += "output y" + std::to_string(i) + "\n";
  return text;
}

TEST_F(SeveralDevices, CopyAtTheSameTimeAndBothWaysAtOnce) {
  // Each device receives four inputs and returns four outputs. A copy takes 15 ms. The first output can follow after one
  // copy, so the least time is five copies. It is eight copies if inputs and outputs alternate, sixteen if the devices
  // alternate.
  constexpr std::chrono::milliseconds kCopy{15};
  Restart({{"virtual.latency_us", "15000"}});
  std::vector<HostValue> in;
  for (int i = 0; i < 8; ++i) in.push_back(Numbers({64}, i));
  Compare(Pipelines(8), "gpu0+gpu1", in);
  std::map<std::string, int> queues;
  for (const PlanQueue& q : plan_->queues) queues[q.device->name() + " " + std::to_string(q.kind)] += 1;
  EXPECT_EQ(queues.size(), 6u);  // compute, copy-in and copy-out queues of both devices
  auto shortest = std::chrono::steady_clock::duration::max();
  for (int attempt = 0; attempt < 20 && shortest >= 8 * kCopy; ++attempt) {  // repeats, because the machine may be busy
    auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(ResultsOf(*session_, in).ok());
    shortest = std::min(shortest, std::chrono::steady_clock::now() - begin);
  }
  EXPECT_GE(shortest, 5 * kCopy);
  EXPECT_LT(shortest, 8 * kCopy) << why_;
}

// Returns a model of two chains of `length` products and their sum.
std::string TwoChains(int length) {
  std::string text = "input x : float32[96,96]\nconst wa = float32[96,96]<0.01>\nconst wb = float32[96,96]<0.02>\n";
  text += "t = Tanh(x)\n";  // products of one tensor would be one kernel
  for (const char* chain : {"a", "b"}) {
    std::string before = *chain == 'a' ? "x" : "t";
    for (int i = 0; i < length; ++i) {
      const std::string after = chain + std::to_string(i);
      text += after + " = MatMul(" + before + ", w" + chain + ")\n";
      before = after;
    }
  }
  const std::string last = std::to_string(length - 1);
  return text + "y = Sub(a" + last + ", b" + last + ")\nz = Neg(a" + last + ")\noutput y\noutput z\n";
}

class ComputeQueues : public SeveralDevices {
 protected:
  std::chrono::steady_clock::duration ShortestRun(const std::vector<HostValue>& in) {
    auto shortest = std::chrono::steady_clock::duration::max();
    for (int attempt = 0; attempt < 3; ++attempt) {
      auto begin = std::chrono::steady_clock::now();
      EXPECT_TRUE(ResultsOf(*session_, in).ok());
      shortest = std::min(shortest, std::chrono::steady_clock::now() - begin);
    }
    return shortest;
  }
};

TEST_F(ComputeQueues, RunBranchesAtTheSameTime) {
  const std::vector<HostValue> in = {Numbers({96, 96})};
  const Assignment latency = {"virtual.launch_latency_us", "20000"};
  Restart({latency});
  Compare(TwoChains(4), "virtual0", in);
  EXPECT_THAT(why_, testing::Not(HasSubstr("compute 1")));
  const auto one_after_the_other = ShortestRun(in);
  Restart({latency, {"virtual.compute_queues", "2"}});
  Compare(TwoChains(4), "virtual0", in);
  EXPECT_THAT(why_, HasSubstr("on virtual0, compute 1"));
  EXPECT_LT(ShortestRun(in), one_after_the_other * 4 / 5) << why_;
}

// A queue works on behind a failure of another one. Only the host passes the failure on.
TEST_F(ComputeQueues, FailARunIfAnyOfThemFails) {
  const std::vector<HostValue> in = {Numbers({96, 96})};
  for (int kernel = 1; kernel <= 8; ++kernel) {
    const std::string fault = "0:kernel@" + std::to_string(kernel) + "=fail";
    Restart({{"virtual.compute_queues", "2"}, {"virtual.fault", fault}});
    Prepare(TwoChains(4), "virtual0", in);
    auto failed = ResultsOf(*session_, in);
    EXPECT_THAT(FormatError(failed.status()), HasSubstr("as the fault " + fault + " asks"));
    auto again = ResultsOf(*session_, in);
    EXPECT_TRUE(again.ok()) << FormatError(again.status());
  }
}

TEST_F(SeveralDevices, CopyBetweenEachOtherOnCommunicationQueues) {
  Compare("input x : float32[8,8]\na = Relu(x) on \"gpu0\"\nb = Neg(a) on \"gpu1\"\noutput b\n", "gpu0+gpu1",
          {Numbers({8, 8})});
  EXPECT_THAT(Copies(), Contains("virtual1, communication: peer copy"));
}

}  // namespace
}  // namespace mge
