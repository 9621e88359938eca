// SPDX-License-Identifier: Apache-2.0
// mge train on several processes that mpirun starts: the numbers of one process, and what happens if a process fails. The
// tests skip where mpirun is missing.
#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "tests/plugins/mpi/mpi_command.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

const std::string kDigits = MGE_SOURCE_DIR "/packaging/digits/";
const std::string kData = " --input image=" + kDigits + "digits_images.npy --input labels=" + kDigits + "digits_labels.npy";
const std::string kTrain = "train " + kDigits + "digits.onnx" + kData + " --data-parallel ";

class Mpi : public MpiCommand {};

nlohmann::json EpochsOf(const Outcome& o) {
  auto epochs = nlohmann::json::parse(o.out)["epochs"];
  for (auto& epoch : epochs) epoch.erase("examples_per_second");
  return epochs;
}

TEST_F(Mpi, TrainsToTheBitsOfOneProcessWithAsManyReplicas) {
  // 48 examples in batches of 15: the last step of an epoch has 3, fewer than processes.
  const std::string options = "--epochs 2 --batch 15 --momentum 0.9 --threads 1 --json ";
  for (const auto& [count, devices] : {std::pair("2", "cpu0,cpu0"), {"4", "cpu0,cpu0,cpu0,cpu0"}}) {
    const Outcome one = Mge(kTrain + options + "--set kvstore.type=local --device " + devices + " -o one.onnx");
    ASSERT_EQ(one.code, 0) << one.err;
    const Outcome many =
        Shell(std::string("mpirun -n ") + count + " $TOOL " + kTrain + options + "--device cpu0 -o many.onnx");
    ASSERT_EQ(many.code, 0) << many.err;
    EXPECT_EQ(EpochsOf(one), EpochsOf(many));
    EXPECT_EQ(nlohmann::json::parse(many.out)["processes"], std::stoi(count));
    EXPECT_TRUE(Read("one.onnx") == Read("many.onnx")) << "the weights differ";
    EXPECT_THAT(many.err, AllOf(HasSubstr("of each of " + std::string(count) + " processes"), Not(HasSubstr("error"))));
  }
}

TEST_F(Mpi, SumsInBucketsAndDividesTheOptimizerToTheSameBits) {
  const std::string train = kTrain + "--epochs 2 --batch 15 --optimizer adamw --threads 1 --json ";
  const Outcome one = Mge(train + "--set kvstore.type=local --device cpu0,cpu0,cpu0 -o one.onnx");
  ASSERT_EQ(one.code, 0) << one.err;
  for (const char* setting : {"--set kvstore.big_array_elements=100", "--set train.shard_optimizer=1",
                              "--set kvstore.big_array_elements=1 --set train.shard_optimizer=1"}) {
    const Outcome many = Shell("mpirun -n 3 $TOOL " + train + setting + " --device cpu0 -o many.onnx");
    ASSERT_EQ(many.code, 0) << many.err;
    EXPECT_EQ(EpochsOf(one), EpochsOf(many)) << setting;
    EXPECT_TRUE(Read("one.onnx") == Read("many.onnx")) << setting;
    const auto report = nlohmann::json::parse(many.out)["communication"];
    EXPECT_GT(report["sum_us"], 0);
    EXPECT_GE(report["hidden"], 0);
    EXPECT_LE(report["hidden"], 1);
    if (std::string(setting).find("elements") != std::string::npos) {
      EXPECT_GT(report["buckets"], 1);
    }
  }
}

TEST_F(Mpi, SavesDividedStatesWholeForAnyNumberOfProcesses) {
  const std::string train = kTrain + "--batch 8 --optimizer adam --threads 1 ", saves = "--checkpoint states --every 3 ";
  const std::string divides = "--set train.shard_optimizer=1 ";
  ASSERT_EQ(Shell("mpirun -n 3 $TOOL " + train + "--device cpu0 --epochs 2 -o whole.onnx").code, 0);
  const Outcome first = Shell("mpirun -n 3 $TOOL " + train + divides + saves + "--device cpu0 --epochs 1 -o first.onnx");
  ASSERT_EQ(first.code, 0) << first.err;
  ASSERT_EQ(std::system(("cp -r " + folder_ + "/states " + folder_ + "/others").c_str()), 0);
  const std::string resume = "--checkpoint states --every 3 --resume --epochs 2 --device cpu0 ";
  const Outcome same = Shell("mpirun -n 3 $TOOL " + train + divides + resume + "-o same.onnx");
  ASSERT_EQ(same.code, 0) << same.err;
  EXPECT_TRUE(Read("whole.onnx") == Read("same.onnx")) << "not the bits of an uninterrupted training with whole states";
  const std::string other = "--checkpoint others --every 3 --resume --epochs 2 --device cpu0 --json ";
  const Outcome two = Shell("cp -r others two; mpirun -n 2 $TOOL " + train + divides + other + "-o two.onnx");
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_THAT(two.err, HasSubstr("continues after step 6"));
  const Outcome alone =
      Mge("train " + kDigits + "digits.onnx" + kData + " --batch 8 --optimizer adam --threads 1 --checkpoint " + folder_ +
          "/two --every 3 --resume --epochs 2 --device cpu0 --json");
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_NEAR(EpochsOf(two).back()["loss"], EpochsOf(alone).back()["loss"], 1e-5);
}

TEST_F(Mpi, SaysItsPlaceOncePerProcess) {
  const Outcome o = Shell("mpirun -n 2 $TOOL " + kTrain + "--device cpu0 --set log.level=info");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.err, AllOf(HasSubstr("rank 0 of 2 by mpirun on host"), HasSubstr("rank 1 of 2 by mpirun on host"),
                           HasSubstr("over 2 processes by Open MPI")));
  EXPECT_THAT(o.out, Not(HasSubstr("\x1b"))) << "colours in a pipe";
}

TEST_F(Mpi, GivesReplicasOfSeveralProcessesAndDevicesTheirPart) {
  const std::string options = "--epochs 2 --batch 8 --json --threads 1 ";
  const Outcome one = Mge(kTrain + options + "--device cpu0 --set kvstore.type=device");
  const Outcome many = Shell("mpirun -n 2 $TOOL " + kTrain + options + "--device cpu0,cpu0");
  ASSERT_EQ(many.code, 0) << many.err;
  EXPECT_NEAR(EpochsOf(one)[1]["loss"], EpochsOf(many)[1]["loss"], 1e-5);
}

TEST_F(Mpi, ContinuesFromCheckpointsToTheBitsOfAnUninterruptedTraining) {
  const std::string run = "mpirun -n 2 $TOOL " + kTrain + "--device cpu0 --batch 8 --momentum 0.9 --threads 1 ";
  ASSERT_EQ(Shell(run + "--epochs 4 -o whole.onnx").code, 0);
  ASSERT_EQ(Shell(run + "--epochs 2 --checkpoint states --every 3 -o first.onnx").code, 0);
  // The schedule is constant, so that the number of epochs changes no step.
  const Outcome rest = Shell(run + "--epochs 4 --checkpoint states --every 3 --resume -o rest.onnx");
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_THAT(rest.err, HasSubstr("continues after step 12"));
  EXPECT_TRUE(Read("whole.onnx") == Read("rest.onnx"));
}

// MGE_TEST_KILLS: how often a process is killed, at a random time.
TEST_F(Mpi, ContinuesToTheSameBitsAfterKillsOfItsProcesses) {
  const char* const given = std::getenv("MGE_TEST_KILLS");
  const int kills = given ? std::atoi(given) : 2;
  const std::string train = kTrain + "--device cpu0 --batch 8 --momentum 0.9 --threads 1 --set train.shard_optimizer=1 ";
  const std::string resume = "--checkpoint states --every 1 --resume ";
  const std::string run = "mpirun -n 2 bash -c 'echo $$ > rank$OMPI_COMM_WORLD_RANK; exec $TOOL " + train + resume;
  std::mt19937 random(1);
  for (int k = 0; k < kills; ++k) {
    const int rank = static_cast<int>(random() % 2), wait = 300 + static_cast<int>(random() % 1500);
    const Outcome o = Shell(
        "rm -f rank0 rank1; " + run + "--epochs 1000000' & while [ ! -s rank0 ] || [ ! -s rank1 ]; do " +
        fmt::format("sleep 0.02; done; sleep {}.{:03}; kill -9 $(cat rank{}); wait $!", wait / 1000, wait % 1000, rank));
    ASSERT_NE(o.code, 0);
    ASSERT_THAT(o.err, Not(HasSubstr("the checkpoint before it is used"))) << "kill " << k;
  }
  int64_t steps = 0;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/states", none)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("step-")) steps = std::max<int64_t>(steps, std::atoll(name.c_str() + 5));
  }
  ASSERT_GT(steps, 0);
  const std::string epochs = "--epochs " + std::to_string(steps / 6 + 1);  // 48 examples in batches of 8
  const Outcome rest = Shell("mpirun -n 2 $TOOL " + train + resume + epochs + " -o rest.onnx");
  ASSERT_EQ(rest.code, 0) << rest.err;
  ASSERT_EQ(Shell("mpirun -n 2 $TOOL " + train + epochs + " -o whole.onnx").code, 0);
  EXPECT_TRUE(Read("whole.onnx") == Read("rest.onnx")) << "after " << steps << " steps";
}

TEST_F(Mpi, LeavesOtherCommandsAlone) {
  const Outcome o = Shell("mpirun -n 2 $TOOL run " + Good());
  EXPECT_EQ(o.code, 0) << o.err;
  const Outcome none = Shell("mpirun -n 2 $TOOL " + kTrain + "--device cpu0 --set collective.launcher=none");
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_THAT(none.err, HasSubstr("--data-parallel has no effect"));
}

TEST_F(Mpi, NamesAnOptionThatDiffersBeforeTheFirstStep) {
  const struct {
    const char *first, *second, *text;
  } rows[] = {{"--batch 8", "--batch 16", "'--batch' is '8' in rank 0 of 2"},
              {"", "--class-weights 1,1,1,1,1,1,1,1,1,2", "'class_weights' is '' in rank 0 of 2"},
              {"--group '*:rate=2'", "--group '*:rate=3'", "'group' is '* rate 2 "},
              {"--schedule table --schedule-points 0:1,1:0.5", "--schedule table --schedule-points 0:1,1:0.1",
               "'--schedule-points' is '0:1,1:0.5'"}};
  for (const auto& row : rows) {
    const std::string run = "$TOOL " + kTrain + "--device cpu0 -o out.onnx ";
    const Outcome o = Shell("mpirun -n 1 " + run + row.first + " : -n 1 " + run + row.second);
    EXPECT_EQ(o.code, 1) << o.err;
    EXPECT_THAT(o.err, AllOf(HasSubstr(row.text), HasSubstr("in rank 1 of 2"))) << row.second;
    EXPECT_EQ(Read("out.onnx"), "");
  }
}

TEST_F(Mpi, NamesAModelThatDiffersBeforeTheFirstStep) {
  ASSERT_EQ(Mge("train " + kDigits + "digits.onnx" + kData + " -o other.onnx").code, 0);
  const Outcome o = Shell("mpirun -n 1 $TOOL " + kTrain + "--device cpu0 : -n 1 $TOOL train other.onnx" + kData +
                          " --data-parallel --device cpu0");
  EXPECT_EQ(o.code, 1) << o.err;
  EXPECT_THAT(o.err, HasSubstr("'weights of the model'"));
}

TEST_F(Mpi, NamesAProcessThatIsLate) {
  // Rank 1 stops when the group has come together.
  const Outcome o = Shell(
      "mpirun -n 2 bash -c 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then (sleep 3; kill -STOP $$; sleep 12; kill -KILL $$) & fi; "
      "exec " +
      std::string("$TOOL ") + kTrain + "--device cpu0 --epochs 1000000 --set collective.timeout_seconds=2'");
  EXPECT_NE(o.code, 0);
  EXPECT_THAT(o.err, AllOf(HasSubstr("[rank 0/2, "), HasSubstr("rank 1 of 2 (host "),
                           HasSubstr("has not come to the sum of the"), HasSubstr("within 2 s")));
}

TEST_F(Mpi, EndsAllWithinSecondsIfAProcessDies) {
  for (const char* signal : {"KILL", "TERM"}) {
    const auto begin = std::chrono::steady_clock::now();
    const Outcome o = Shell(std::string("mpirun -n 3 bash -c 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then (sleep 3; kill -") +
                            signal + " $$) & fi; exec $TOOL " + kTrain + "--device cpu0 --epochs 1000000'");
    EXPECT_NE(o.code, 0);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(13)) << o.err;
  }
}

TEST_F(Mpi, EndsAllWithTheErrorOfOne) {
  // Rank 0 cannot write the model after the first epoch: the folder has gone.
  const auto begin = std::chrono::steady_clock::now();
  const Outcome o = Shell("mkdir out; mpirun -n 2 $TOOL " + kTrain +
                          "--device cpu0 --epochs 1000000 -o out/t.onnx & sleep 3; " + "mv out gone; wait $!");
  EXPECT_NE(o.code, 0);
  EXPECT_THAT(o.err, AllOf(HasSubstr("[rank 0/2, "), HasSubstr("[rank 1/2, "), HasSubstr("rank 0 of 2 (host ")));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(13));
}

TEST_F(Mpi, EndsAllAtAnInterruptAndLeavesAWholeCheckpoint) {
  const Outcome o = Shell("mpirun -n 2 $TOOL " + kTrain +
                          "--device cpu0 --epochs 1000000 --checkpoint states --every 1 & sleep 4; kill -INT $!; wait $!; "
                          "sleep 1; pgrep -f \"mge train.*$PWD/states\" && exit 99; exit 0");
  EXPECT_EQ(o.code, 0) << o.err;
  const Outcome rest =
      Mge("train " + kDigits + "digits.onnx" + kData + " --epochs 1 --checkpoint states --resume --device cpu0");
  EXPECT_THAT(rest.err, AllOf(HasSubstr("continues after step"), Not(HasSubstr("the checkpoint before it is used"))));
}

TEST_F(Mpi, TrainsProgramsInPython) {
  if (std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) GTEST_SKIP() << "there is no NumPy";
  Write("train.py", R"(
import sys
import numpy as np
import mge
place = mge.distributed.init()
images, labels = (np.load(f"{sys.argv[1]}digits_{name}.npy") for name in ("images", "labels"))
with mge.Trainer(sys.argv[1] + "digits.onnx", device=sys.argv[2], threads=1, data_parallel=True) as trainer:
    part = trainer.part(len(images))
    assert len(part) == len(images) // place.ranks and part.start == len(part) * place.rank, part
    for step in range(3):
        loss = trainer.step(image=images, labels=labels, learning_rate=0.01)
    if place.rank == 0:
        print(place.ranks, place.launcher, repr(loss))
)");
  const std::string python = "env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=" MGE_SOURCE_DIR
                             "/sdk/python MGE_LIBRARY_PATH=" MGE_BINARY_DIR "/lib/libmge.so.0 /usr/bin/python3 train.py " +
                             kDigits + " ";
  const Outcome one = Shell("MGE_KVSTORE_TYPE=local " + python + "cpu0,cpu0"), two = Shell("mpirun -n 2 " + python + "cpu0");
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_THAT(two.out, testing::StartsWith("2 mpirun 0."));
  EXPECT_EQ(one.out.substr(one.out.rfind(' ')), two.out.substr(two.out.rfind(' ')));
}

TEST_F(Mpi, MeasuresTheSumsOfItsProcesses) {
  const Outcome o = Shell("mpirun -n 2 $TOOL doctor --collective --json");
  ASSERT_EQ(o.code, 0) << o.err;
  const auto report = nlohmann::json::parse(o.out);
  EXPECT_EQ(report["ranks"], 2);
  EXPECT_EQ(report["sums"].back()["bytes"], 100'000'000);
  EXPECT_GT(report["sums"].back()["bytes_per_second"], 1e6);
  EXPECT_THAT(Mge("doctor --collective").err, HasSubstr("mpirun -n 2 mge doctor --collective"));
}

TEST_F(Mpi, ExplainsTypesOfKvstoreThatCannotBe) {
  EXPECT_THAT(Mge(kTrain + "--device cpu0 --set kvstore.type=dist_async").err,
              AllOf(HasSubstr("dist_async is not supported"), HasSubstr("parameter servers")));
  EXPECT_THAT(Mge(kTrain + "--device cpu0 --set kvstore.type=dist_device_sync").err,
              AllOf(HasSubstr("kvstore.type is dist_sync, but there is one process"), HasSubstr("mpirun")));
  EXPECT_THAT(Mge(kTrain + "--device cpu0", "DMLC_ROLE=worker").err, HasSubstr("MGE_COLLECTIVE_RANK"));
}

}  // namespace
}  // namespace mge
