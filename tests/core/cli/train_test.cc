// SPDX-License-Identifier: Apache-2.0
// mge train: trains the digits' network of `mge demo` on its images.
#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>

#include "nlohmann/json.hpp"
#include "tests/support/command.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kDigits[] = MGE_SOURCE_DIR "/packaging/digits/digits.onnx";
constexpr char kData[] =
    " --input image=" MGE_SOURCE_DIR "/packaging/digits/digits_images.npy --input labels=" MGE_SOURCE_DIR
    "/packaging/digits/digits_labels.npy";

class Train : public Command {
 protected:
  // Writes a .npy file: `type` is NumPy's name for T, such as "<i8", `shape` a tuple such as "2, 3".
  template <typename T>
  void WriteArray(const std::string& name, const std::string& type, const std::string& shape, const std::vector<T>& data) {
    std::string head = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + ",), }";
    head.resize(117, ' ');
    Write(name, std::string("\x93NUMPY\x01\x00\x76\x00", 10) + head + "\n" +
                    std::string(reinterpret_cast<const char*>(data.data()), data.size() * sizeof(T)));
  }
};

TEST_F(Train, LowersTheLossAndWritesAModelThatIsRightMoreOften) {
  const std::string validation =
      " --validate-input image=" MGE_SOURCE_DIR "/packaging/digits/digits_images.npy --validate-input labels=" MGE_SOURCE_DIR
      "/packaging/digits/digits_labels.npy";
  const Outcome o = Mge(std::string("train ") + kDigits + kData + validation +
                        " --epochs 4 --batch 20 --optimizer adam -o trained.onnx --json");
  ASSERT_EQ(o.code, 0) << o.err;
  const auto report = nlohmann::json::parse(o.out);
  EXPECT_EQ(report["schema"], "mge.train/1");
  EXPECT_EQ(report["examples"], 48);
  EXPECT_EQ(report["parameters"], 6);
  ASSERT_EQ(report["epochs"].size(), 4u);
  EXPECT_LT(report["epochs"][3]["loss"], report["epochs"][0]["loss"]);
  EXPECT_EQ(report["epochs"][3]["accuracy"], 1.0);  // 47 of 48 before
  EXPECT_EQ(Mge("inspect trained.onnx").code, 0);
}

TEST_F(Train, GivesTheSameLossForTheSameSeed) {
  const std::string line = std::string("train ") + kDigits + kData + " --seed 5 --batch 7 --json --threads 1";
  const auto a = nlohmann::json::parse(Mge(line).out), b = nlohmann::json::parse(Mge(line).out);
  EXPECT_EQ(a["epochs"][0]["loss"], b["epochs"][0]["loss"]);
}

TEST_F(Train, TakesTheLabelsUnderTheNameOfTheOption) {
  const std::string line = std::string("train ") + kDigits + " --json --threads 1 --input image=" + MGE_SOURCE_DIR +
                           "/packaging/digits/digits_images.npy --input ";
  const std::string file = std::string("=") + MGE_SOURCE_DIR + "/packaging/digits/digits_labels.npy";
  const Outcome named = Mge(line + "digit" + file + " --labels-name digit"), plain = Mge(line + "labels" + file);
  ASSERT_EQ(named.code, 0) << named.err;
  EXPECT_EQ(nlohmann::json::parse(named.out)["epochs"][0]["loss"], nlohmann::json::parse(plain.out)["epochs"][0]["loss"]);
  EXPECT_THAT(Mge(line + "image" + file + " --labels-name image").err, HasSubstr("there is an input 'image' already"));
}

TEST_F(Train, GivesTheLossAndTheModelOfOneDeviceOnSeveral) {
  const std::string line = std::string("train ") + kDigits + kData + " --epochs 2 --batch 7 --momentum 0.9 --json ";
  const Outcome one = Mge(line + "--device virtual0 -o one.onnx", "MGE_VIRTUAL_DEVICES=1");
  ASSERT_EQ(one.code, 0) << one.err;
  const double expected = nlohmann::json::parse(one.out)["epochs"][1]["loss"];
  const std::string image = std::string(" --input image=") + MGE_SOURCE_DIR + "/packaging/digits/digits_images.npy";
  for (const char* devices : {"virtual0,virtual1", "virtual0,virtual1,virtual2", "cpu0,virtual0"}) {
    for (const char* env : {"", "MXNET_KVSTORE_USETREE=1"}) {
      const Outcome many =
          Mge(line + "--data-parallel -o many.onnx --device " + devices, std::string("MGE_VIRTUAL_DEVICES=3 ") + env);
      ASSERT_EQ(many.code, 0) << many.err;
      const auto report = nlohmann::json::parse(many.out);
      EXPECT_NEAR(report["epochs"][1]["loss"], expected, 1e-4 * expected) << devices << env;
      EXPECT_EQ(report["devices"].size(), std::string(devices) == "virtual0,virtual1,virtual2" ? 3u : 2u);
    }
  }
  EXPECT_EQ(Mge("run many.onnx --device host" + image).code, 0);
}

TEST_F(Train, OnSeveralDevicesNamesTheDeviceThatFails) {
  const Outcome o = Mge(std::string("train ") + kDigits + kData + " --epochs 9 --data-parallel --device virtual0,virtual1",
                        "MGE_VIRTUAL_DEVICES=2 MGE_VIRTUAL_FAULT=1:kernel@100+=fail");
  EXPECT_NE(o.code, 0);
  EXPECT_THAT(o.err, HasSubstr("replica 1 on virtual1"));
}

TEST_F(Train, RefusesAnOutputThatCannotBeWrittenBeforeItTrains) {
  const Outcome o = Mge(std::string("train ") + kDigits + kData + " -o nowhere/trained.onnx");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, AllOf(HasSubstr("nowhere/trained.onnx: no file can be written there"), Not(HasSubstr("examples"))));
}

TEST_F(Train, SaysHowManyLabelsDoNotCount) {
  std::vector<int64_t> labels(48, 0);
  labels.back() = -1;
  WriteArray("labels.npy", "<i8", "48", labels);
  const std::string images = MGE_SOURCE_DIR "/packaging/digits/digits_images.npy";
  const Outcome o = Mge(std::string("train ") + kDigits + " --input image=" + images + " --input labels=labels.npy");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.err, HasSubstr("1 of 48 labels are no numbers of the 10 classes"));
}

// Scores of 16 bits, which are 2 at the label and 0 elsewhere.
TEST_F(Train, ShowsTheAccuracyOfScoresOf16Bits) {
  using namespace onnx_builder;  // NOLINT: its functions build models
  for (const DType type : {DType::kF16, DType::kBF16}) {
    NodeOptions to;
    to.attributes = {IntAttr("to", static_cast<int64_t>(type))};
    Model("narrow.onnx", {NodeProto("MatMul", {"x", "w"}, {"s"}), NodeProto("Cast", {"s"}, {"y"}, to)},
          {FloatTensor("w", {2, 2}, {2, 0, 0, 2})}, {"N", int64_t{2}});
    WriteArray<float>("x.npy", "<f4", "3, 2", {1, 0, 0, 1, 1, 0});
    WriteArray<int64_t>("labels.npy", "<i8", "3", {0, 1, 0});
    const Outcome o =
        Mge("train narrow.onnx --input x=x.npy --input labels=labels.npy --validate-input x=x.npy "
            "--validate-input labels=labels.npy -o trained.onnx --json");
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(nlohmann::json::parse(o.out)["epochs"][0]["accuracy"], 1.0);
  }
}

// Scores [N,2,2] and labels [N,2]: the classes may be either dimension.
TEST_F(Train, ShowsAnAccuracyOnlyIfTheDimensionOfTheClassesIsKnown) {
  using namespace onnx_builder;  // NOLINT: its functions build models
  Model("square.onnx", {NodeProto("MatMul", {"x", "w"}, {"y"})}, {FloatTensor("w", {2, 2}, {2, 0, 0, 2})},
        {"N", int64_t{2}, int64_t{2}});
  WriteArray<float>("x.npy", "<f4", "1, 2, 2", {0, 1, 0, 1});
  WriteArray<int64_t>("labels.npy", "<i8", "1, 2", {1, 1});
  const std::string command =
      "train square.onnx --input x=x.npy --input labels=labels.npy --validate-input x=x.npy "
      "--validate-input labels=labels.npy -o trained.onnx --json";
  const Outcome without = Mge(command);
  ASSERT_EQ(without.code, 0) << without.err;
  EXPECT_THAT(without.err, HasSubstr("does not tell which dimension of the scores has the classes"));
  EXPECT_FALSE(nlohmann::json::parse(without.out)["epochs"][0].contains("accuracy"));
  EXPECT_TRUE(nlohmann::json::parse(without.out)["epochs"][0].contains("validation_loss"));
  const Outcome o = Mge(command + " --loss token_cross_entropy");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(nlohmann::json::parse(o.out)["epochs"][0]["accuracy"], 1.0);
}

constexpr char kValidation[] =
    " --validate-input image=" MGE_SOURCE_DIR "/packaging/digits/digits_images.npy --validate-input labels=" MGE_SOURCE_DIR
    "/packaging/digits/digits_labels.npy";

TEST_F(Train, ContinuesFromEachCheckpointWithTheBitsOfTheWholeTraining) {
  for (const char* optimizer : {"sgd", "sgd --momentum 0.9", "adam", "adamw"}) {
    const std::string line = std::string("train ") + kDigits + kData + kValidation +
                             " --epochs 3 --batch 20 --seed 3 --schedule cosine --every 2 --keep 100 --optimizer " +
                             optimizer;
    const std::string whole = std::string("whole_") + optimizer[0] + std::to_string(std::string(optimizer).size());
    ASSERT_EQ(Mge(line + " --checkpoint " + whole + " -o whole.onnx").code, 0);
    for (const int step : {2, 4, 6}) {  // in the first and second epoch, and at the end of the second
      const std::string name = "step-00000000000" + std::to_string(step) + ".ckpt", part = whole + std::to_string(step);
      std::filesystem::create_directory(Path(part));
      Write(part + "/" + name, Read(whole + "/" + name));
      const Outcome o = Mge(line + " --resume --checkpoint " + part + " -o part.onnx");
      ASSERT_EQ(o.code, 0) << o.err;
      EXPECT_THAT(o.err, HasSubstr("continues after step " + std::to_string(step)));
      EXPECT_EQ(Read("whole.onnx"), Read("part.onnx")) << optimizer << step;
      EXPECT_EQ(Read(whole + "/step-000000000009.ckpt"), Read(part + "/step-000000000009.ckpt")) << optimizer << step;
      EXPECT_EQ(Read(whole + "/best.ckpt"), Read(part + "/best.ckpt")) << optimizer << step;
    }
  }
}

TEST_F(Train, KeepsTheNewestCheckpointsAndUsesTheOneBeforeADamagedOne) {
  const std::string line =
      std::string("train ") + kDigits + kData + " --batch 20 --checkpoint c --every 1 --keep 2 --epochs ";
  ASSERT_EQ(Mge(line + "2").code, 0);
  EXPECT_FALSE(std::filesystem::exists(Path("c/step-000000000004.ckpt")));
  EXPECT_TRUE(std::filesystem::exists(Path("c/step-000000000005.ckpt")));
  EXPECT_TRUE(std::filesystem::exists(Path("c/best.ckpt")));
  const Outcome again = Mge(line + "2");
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("has checkpoints already"));
  const Outcome other = Mge(line + "3 --seed 4 --resume");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("the checkpoint is of a training with --seed 0"));
  std::string newest = Read("c/step-000000000006.ckpt");
  newest[newest.size() / 2] ^= 1;
  Write("c/step-000000000006.ckpt", newest);
  Write("c/.mge-0123.tmp", "of a killed process");
  const Outcome o = Mge(line + "3 --resume");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.err, AllOf(HasSubstr("the checkpoint before it is used"), HasSubstr("continues after step 5")));
  EXPECT_FALSE(std::filesystem::exists(Path("c/.mge-0123.tmp")));
}

TEST_F(Train, BeginsWithoutACheckpointAndNeedsTheFolderForItsOptions) {
  const std::string line = std::string("train ") + kDigits + kData;
  const Outcome o = Mge(line + " --checkpoint new --resume");
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.err, AllOf(HasSubstr("has no checkpoint; the training begins"), HasSubstr("without --output")));
  EXPECT_EQ(Mge(line + " --resume").code, 2);
}

TEST_F(Train, StopsAtALossThatIsNotFiniteAndKeepsTheFile) {
  std::ifstream in(MGE_SOURCE_DIR "/packaging/digits/digits_images.npy", std::ios::binary);
  std::string bad{std::istreambuf_iterator<char>(in), {}};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bad.data() + bad.size() - sizeof(nan), &nan, sizeof(nan));
  Write("bad.npy", bad);
  Write("trained.onnx", "an earlier file");
  const std::string line = std::string("train ") + kDigits + " --input image=bad.npy --input labels=" + MGE_SOURCE_DIR +
                           "/packaging/digits/digits_labels.npy -o trained.onnx --batch 8";
  const Outcome stopped = Mge(line);
  EXPECT_EQ(stopped.code, 3);
  EXPECT_THAT(stopped.err, AllOf(HasSubstr("E0312"), HasSubstr("the loss is NaN"), HasSubstr("input 'image' has NaN")));
  EXPECT_EQ(Read("trained.onnx"), "an earlier file");
  const Outcome continued = Mge(line + " --on-nan continue");
  EXPECT_EQ(continued.code, 3);
  EXPECT_THAT(continued.err, HasSubstr("has NaN"));
  EXPECT_EQ(Read("trained.onnx"), "an earlier file");
  const Outcome skipped = Mge(line + " --on-nan skip");
  EXPECT_EQ(skipped.code, 0) << skipped.err;
  EXPECT_EQ(Mge("inspect trained.onnx").code, 0);
}

TEST_F(Train, RefusesLabelsThatAreNoClassesIfAsked) {
  std::vector<int64_t> labels(48, -100);
  labels[5] = 10;
  WriteArray("labels.npy", "<i8", "48", labels);
  const std::string line = std::string("train ") + kDigits + " --input image=" + MGE_SOURCE_DIR +
                           "/packaging/digits/digits_images.npy --input labels=labels.npy -o t.onnx";
  const Outcome strict = Mge(line + " --strict-labels");
  EXPECT_EQ(strict.code, 2);
  EXPECT_THAT(strict.err, HasSubstr("label 5 is 10, and the classes are 0 to 9"));
  const Outcome o = Mge(line + " --json");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(nlohmann::json::parse(o.out)["epochs"][0]["loss"], 0.0);
  EXPECT_THAT(o.err, HasSubstr("a batch has no label that is the number of a class"));
}

TEST_F(Train, ChangesTheRateByItsScheduleAndWarmup) {
  const std::string line = std::string("train ") + kDigits + kData + " --batch 8 --epochs 2 --json --threads 1";
  std::set<double> losses;
  for (const char* schedule :
       {"", " --schedule linear", " --schedule cosine", " --schedule step --step-factor 0.5",
        " --schedule step --step-count 1", " --warmup 0.5", " --schedule linear --warmup 0.1", " --schedule one_cycle"}) {
    const Outcome o = Mge(line + schedule);
    ASSERT_EQ(o.code, 0) << o.err;
    losses.insert(nlohmann::json::parse(o.out)["epochs"][1]["loss"].get<double>());
  }
  EXPECT_EQ(losses.size(), 8u);
  EXPECT_THAT(Mge(line + " --schedule linear --step-count 3").err, HasSubstr("need --schedule step"));
}

TEST_F(Train, FreezesByPatternsAndAccumulates) {
  const std::string line = std::string("train ") + kDigits + kData + " --batch 8 --json --freeze '*' ";
  EXPECT_THAT(Mge(line).err, HasSubstr("the loss depends on no parameter"));
  const std::string steps = std::string("train ") + kDigits + kData + " --epochs 2 --json --threads 1 --batch ";
  const auto once = nlohmann::json::parse(Mge(steps + "48").out);
  const auto twice = nlohmann::json::parse(Mge(steps + "24 --accumulate 2").out);
  EXPECT_NEAR(once["epochs"][1]["loss"], twice["epochs"][1]["loss"], 1e-5);
}

TEST_F(Train, ConvertsClassNumbersOfOtherIntegers) {
  std::vector<int32_t> labels;
  for (int i = 0; i < 48; ++i) labels.push_back(i % 10);
  WriteArray<int32_t>("narrow.npy", "<i4", "48", labels);
  WriteArray<int64_t>("wide.npy", "<i8", "48", {labels.begin(), labels.end()});
  nlohmann::json epochs[2];
  for (const int wide : {0, 1}) {
    const std::string file = wide ? "wide.npy" : "narrow.npy", image = MGE_SOURCE_DIR "/packaging/digits/digits_images.npy";
    const Outcome o =
        Mge(std::string("train ") + kDigits + " --json --threads 1 --input image=" + image + " --input labels=" + file +
            " --validate-input image=" + image + " --validate-input labels=" + file);
    ASSERT_EQ(o.code, 0) << o.err;
    epochs[wide] = nlohmann::json::parse(o.out)["epochs"][0];
  }
  EXPECT_EQ(epochs[0]["loss"], epochs[1]["loss"]);
  EXPECT_EQ(epochs[0]["accuracy"], epochs[1]["accuracy"]);
}

TEST_F(Train, HasGroupsWeightsAndTables) {
  const std::string line = std::string("train ") + kDigits + kData + " --json --threads 1 --epochs 2 ";
  auto loss = [&](const std::string& more) {
    const Outcome o = Mge(line + more);
    EXPECT_EQ(o.code, 0) << o.err;
    return o.code == 0 ? nlohmann::json::parse(o.out)["epochs"][1]["loss"].get<double>() : -1;
  };
  const double plain = loss("--learning-rate 0.02");
  EXPECT_EQ(loss("--learning-rate 0.01 --group '*:rate=2'"), plain);
  EXPECT_EQ(loss("--learning-rate 0.04 --schedule table --schedule-points 0:0.5,1:0.5"), plain);
  EXPECT_NEAR(loss("--learning-rate 0.02 --class-weights 3,3,3,3,3,3,3,3,3,3"), plain, 1e-5);
  EXPECT_THAT(Mge(line + "--group head:lr=1").err, HasSubstr("'lr=1' is not valid"));
  EXPECT_THAT(Mge(line + "--class-weights 1,x").err, HasSubstr("'x' is not valid"));
  EXPECT_THAT(Mge(line + "--schedule table").err, HasSubstr("need each other"));
  EXPECT_EQ(Mge(line + "--schedule-points 1:1,0:1 --schedule table").code, 2);
}

TEST_F(Train, NamesTheArraysThatAreMissing) {
  const Outcome o = Mge(std::string("train ") + kDigits);
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, AllOf(HasSubstr("no data for the input 'image'"), HasSubstr("arrays image, labels")));
}

TEST_F(Train, RefusesArraysOfDifferentLengths) {
  const std::string images = MGE_SOURCE_DIR "/packaging/digits/digits_images.npy";
  WriteArray<int64_t>("labels.npy", "<i8", "2", {0, 0});
  const Outcome o = Mge(std::string("train ") + kDigits + " --input image=" + images + " --input labels=labels.npy");
  EXPECT_EQ(o.code, 2) << o.err;
  EXPECT_THAT(o.err, HasSubstr("'image' has 48 examples"));
}

}  // namespace
}  // namespace mge
