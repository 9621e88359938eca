// SPDX-License-Identifier: Apache-2.0
// Settings of the engine, observed with the mge command.
#include "nlohmann/json.hpp"
#include "tests/support/command.h"

namespace mge {
namespace {

using nlohmann::json;

class Engine : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    using onnx_builder::NodeProto;
    Model("m.onnx",
          {NodeProto("Relu", {"x"}, {"a"}), NodeProto("MatMul", {"a", "w"}, {"b"}), NodeProto("Softmax", {"b"}, {"c"}),
           NodeProto("ReduceSum", {"x"}, {"d"}), NodeProto("Add", {"c", "d"}, {"y"})},
          {onnx_builder::FloatTensor("w", {3, 3}, std::vector<float>(9, 0.5f))});
  }
  json Run(const std::string& args, const std::string& env) const {
    const Outcome o = Mge("run m.onnx --json " + args, env);
    EXPECT_EQ(o.code, 0) << o.err;
    return o.code == 0 ? json::parse(o.out) : json();
  }
};

TEST_F(Engine, CountsOperationsInTheReportOfARun) {
  const json one = Run("", "");
  EXPECT_EQ(one["engine_operations"], 1);
  EXPECT_GT(one["steps"], 1);
  Write("bulk.toml", "[engine]\nbulk_inference = false\n");
  const std::pair<const char*, const char*> ways[] = {{"", "MXNET_EXEC_BULK_EXEC_INFERENCE=0"},
                                                      {"--set engine.bulk_inference=false", ""},
                                                      {"--config bulk.toml", ""},
                                                      {"", "MXNET_ENGINE_TYPE=NaiveEngine"}};
  for (const auto& [args, env] : ways) {
    for (const char* device : {"cpu0", "gpu0"}) {
      SCOPED_TRACE(std::string(args) + env + " on " + device);
      const json each = Run(std::string(args) + " --set virtual.devices=1 --set virtual.gpu=1 --device " + device, env);
      EXPECT_EQ(each["engine_operations"], each["steps"]);
      EXPECT_GT(each["steps"], 1);
      EXPECT_EQ(each["outputs"][0]["type"], one["outputs"][0]["type"]);
    }
  }
  EXPECT_EQ(Run("--set engine.bulk_inference=false", "")["outputs"], one["outputs"]) << "the results do not depend on it";
}

TEST_F(Engine, IsTheDefaultOneIfItsVariableIsEmpty) {
  EXPECT_EQ(Run("", "MXNET_ENGINE_TYPE=")["engine_operations"], 1);
  const Outcome o = Mge("run m.onnx", "MXNET_ENGINE_TYPE=QuickEngine");
  EXPECT_NE(o.code, 0);
  EXPECT_NE(o.err.find("MXNET_ENGINE_TYPE"), std::string::npos) << o.err;
}

}  // namespace
}  // namespace mge
