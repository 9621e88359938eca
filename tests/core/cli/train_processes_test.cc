// SPDX-License-Identifier: Apache-2.0
// mge train in several processes without MPI: devices with collectives of their own meet over TCP.
#include <gmock/gmock.h>

#include "nlohmann/json.hpp"
#include "tests/support/command.h"
#include "tests/support/free_port.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kFolder = MGE_SOURCE_DIR "/packaging/digits/";
const std::string kTraining = "train " + kFolder + "digits.onnx --input image=" + kFolder +
                              "digits_images.npy --input labels=" + kFolder +
                              "digits_labels.npy --data-parallel --batch 7 --epochs 2 --threads 1 ";

class TrainProcesses : public Command {
 protected:
  // Trains in two processes with these options, at the same time. Returns what they say, by rank.
  std::vector<Outcome> Two(const std::string& first, const std::string& second) const {
    const std::string env =
        "env -u MGE_DEFAULT_DEVICE WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 MGE_COLLECTIVE_BIND="
        "127.0.0.1 MGE_COLLECTIVE_TOKEN=secret MGE_VIRTUAL_DEVICES=2 MGE_COLLECTIVE_PORT=" +
        std::to_string(FreePort()) + " MGE_COLLECTIVE_TIMEOUT_SECONDS=20 ";
    const std::string command = std::string(" timeout 100 ") + MGE_BINARY_DIR "/bin/mge " + kTraining;
    const std::string line = "cd " + folder_ + "; " + env + "RANK=1" + command + second + " >out1 2>err1 & pid=$!; cd " +
                             folder_ + "; " + env + "RANK=0" + command + first +
                             " >out0 2>err0; echo $? >code0; wait $pid; echo $? >code1";
    Write("line.sh", line);
    EXPECT_EQ(std::system(("bash " + Path("line.sh") + " </dev/null").c_str()), 0);
    std::vector<Outcome> out;
    for (const char* rank : {"0", "1"}) {
      const std::string code = Read(std::string("code") + rank);
      out.push_back({code.empty() ? -1 : std::stoi(code), Read(std::string("out") + rank), Read(std::string("err") + rank)});
    }
    return out;
  }
};

TEST_F(TrainProcesses, MeetOverTcpAndGiveTheBitsOfOneProcess) {
  const Outcome one = Mge(kTraining + "--device virtual0,virtual1 --json -o one.onnx", "MGE_VIRTUAL_DEVICES=2");
  ASSERT_EQ(one.code, 0) << one.err;
  const std::vector<Outcome> two = Two("--device virtual0 --json -o two.onnx", "--device virtual1 --json -o two.onnx");
  ASSERT_EQ(two[0].code, 0) << two[0].err;
  ASSERT_EQ(two[1].code, 0) << two[1].err;
  EXPECT_EQ(nlohmann::json::parse(one.out)["epochs"][1]["loss"], nlohmann::json::parse(two[0].out)["epochs"][1]["loss"]);
  EXPECT_TRUE(Read("one.onnx") == Read("two.onnx")) << "the weights differ";
  EXPECT_EQ(two[1].out + two[1].err, "");  // rank 0 speaks
}

TEST_F(TrainProcesses, TellBothWhatDiffers) {
  for (const Outcome& o : Two("--device virtual0", "--device virtual1 --seed 9")) {
    EXPECT_EQ(o.code, 1);
    EXPECT_THAT(o.err, AllOf(HasSubstr("'--seed' is '0' in rank 0 of 2"), HasSubstr("'9' in rank 1 of 2")));
  }
}

TEST_F(TrainProcesses, OnDevicesWithoutCollectivesNeedMpi) {
  const std::string env = "RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500";
  const Outcome o = Mge(kTraining + "--device cpu0", env);
  EXPECT_EQ(o.code, 4);
  EXPECT_THAT(o.err,
              AllOf(HasSubstr("[rank 1/2, "), HasSubstr("nothing connects cpu0"), HasSubstr("mpirun -n 2 mge train")));
  const Outcome none = Mge(kTraining + "--device cpu0", env + " MGE_COLLECTIVE_LAUNCHER=none");
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_THAT(none.err, Not(HasSubstr("[rank")));
}

TEST_F(TrainProcesses, NeedTheHostAndThePortOfTheFirst) {
  const std::string line = kTraining + "--device virtual0", env = "MGE_VIRTUAL_DEVICES=1 RANK=1 WORLD_SIZE=2 ";
  EXPECT_THAT(Mge(line, env).err, AllOf(HasSubstr("MASTER_ADDR is not set"), HasSubstr("scontrol")));
  EXPECT_THAT(Mge(line, env + "MASTER_ADDR=127.0.0.1").err, HasSubstr("MASTER_PORT is not set"));
  EXPECT_THAT(Mge(line, env + "MASTER_ADDR=127.0.0.1 MASTER_PORT=65535").err, HasSubstr("MASTER_PORT is 65535"));
  EXPECT_THAT(Mge(line, env + "MASTER_ADDR=127.0.0.1 MASTER_PORT=1 MGE_COLLECTIVE_TIMEOUT_SECONDS=0.3").err,
              AllOf(HasSubstr("rank 1 of 2"), HasSubstr("cannot reach rank 0 at 127.0.0.1:2")));
}

}  // namespace
}  // namespace mge
