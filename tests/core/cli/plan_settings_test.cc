// SPDX-License-Identifier: Apache-2.0
// Settings of the planner as `mge memory` shows them: planned and measured bytes change together.
#include "nlohmann/json.hpp"
#include "tests/support/command.h"

namespace mge {
namespace {

using nlohmann::json;
namespace ob = onnx_builder;

class PlanSettings : public Command {
 protected:
  // Writes a chain of products and of operators that can work in place.
  void SetUp() override {
    Command::SetUp();
    std::vector<std::string> nodes;
    std::string last = "x";
    for (int i = 0; i < 4; ++i) {
      const std::string n = std::to_string(i);
      nodes.push_back(ob::NodeProto("Softmax", {last}, {"s" + n}));
      nodes.push_back(ob::NodeProto("Transpose", {"s" + n}, {"t" + n}));
      nodes.push_back(ob::NodeProto("Exp", {"t" + n}, {i == 3 ? "y" : "e" + n}));
      last = "e" + n;
    }
    Model("m.onnx", nodes, {}, {int64_t{64}, int64_t{64}});
  }

  // Returns the planned peak, which must be the measured one.
  int64_t Bytes(const std::string& env, const std::string& device) {
    const Outcome o = Mge("memory m.onnx --json --device " + device, env + " MGE_VIRTUAL_DEVICES=1");
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.err.find("warning"), o.err.npos) << o.err;
    if (o.code != 0) return -1;
    const json report = json::parse(o.out);
    EXPECT_EQ(report["planned_peak_bytes"], report["measured_peak_bytes"]) << env;
    return report["planned_peak_bytes"].get<int64_t>();
  }
};

TEST_F(PlanSettings, WithoutInPlaceAPlanTakesMoreBytes) {
  for (const char* device : {"cpu0", "virtual0"}) {
    const int64_t on = Bytes("MXNET_EXEC_ENABLE_INPLACE=1 NNVM_EXEC_MATCH_RANGE=0", device);
    EXPECT_EQ(Bytes("NNVM_EXEC_MATCH_RANGE=0", device), on);
    EXPECT_GT(Bytes("MXNET_EXEC_ENABLE_INPLACE=0 NNVM_EXEC_MATCH_RANGE=0", device), on) << device;
  }
}

TEST_F(PlanSettings, TheMatchRangeZeroSharesNoMemoryBetweenNodes) {
  for (const char* device : {"cpu0", "virtual0"}) {
    const int64_t unset = Bytes("", device);
    EXPECT_GT(Bytes("NNVM_EXEC_MATCH_RANGE=0", device), unset) << device;
    EXPECT_EQ(Bytes("NNVM_EXEC_MATCH_RANGE=16", device), unset) << device;
  }
}

}  // namespace
}  // namespace mge
