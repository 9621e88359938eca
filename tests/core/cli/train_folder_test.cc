// SPDX-License-Identifier: Apache-2.0
// mge train with a folder of arrays in several files: the bits of arrays in memory, and what is wrong with files.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "tests/support/command.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kDigits = MGE_SOURCE_DIR "/packaging/digits/";
const std::string kTrain = "train " + kDigits + "digits.onnx --epochs 2 --batch 7 --threads 1 --json ";

class TrainFolder : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    std::filesystem::create_directory(Path("data"));
    images_ = ReadFile(kDigits + "digits_images.npy").substr(128);
    labels_ = ReadFile(kDigits + "digits_labels.npy").substr(128);
    ASSERT_EQ(images_.size(), 48 * kImageBytes);
    ASSERT_EQ(labels_.size(), 48 * sizeof(int64_t));
  }
  static constexpr size_t kImageBytes = 64 * sizeof(float);

  static std::string ReadFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Writes a .npy file. `head`: the other entries of its header.
  void WriteArray(const std::string& name, const std::string& shape, const std::string& bytes,
                  const std::string& head = "'descr': '<f4', 'fortran_order': False") const {
    std::string text = "{" + head + ", 'shape': (" + shape + "), }";
    text.resize(117, ' ');
    Write(name, std::string("\x93NUMPY\x01\x00\x76\x00", 10) + text + "\n" + bytes);
  }
  void WriteImages(const std::string& name, size_t begin, size_t count) const {
    WriteArray(name, fmt::format("{}, 1, 8, 8", count), images_.substr(begin * kImageBytes, count * kImageBytes));
  }
  void WriteLabels(const std::string& name, size_t begin, size_t count) const {
    WriteArray(name, fmt::format("{},", count), labels_.substr(begin * sizeof(int64_t), count * sizeof(int64_t)),
               "'descr': '<i8', 'fortran_order': False");
  }
  std::string images_, labels_;
};

nlohmann::json LossesOf(const Outcome& o) {
  auto epochs = nlohmann::json::parse(o.out)["epochs"];
  for (auto& epoch : epochs) epoch.erase("examples_per_second");
  return epochs;
}

TEST_F(TrainFolder, GivesTheBitsOfArraysInMemory) {
  // Files of an array need not have the rows of those of another one.
  WriteImages("data/image-000.npy", 0, 10);
  WriteImages("data/image-001.npy", 10, 1);
  WriteImages("data/image-002.npy", 11, 37);
  WriteLabels("data/labels-a.npy", 0, 30);
  WriteLabels("data/labels-b.npy", 30, 18);
  const std::string arrays =
      "--input image=" + kDigits + "digits_images.npy --input labels=" + kDigits + "digits_labels.npy ";
  const Outcome whole = Mge(kTrain + arrays + "-o whole.onnx"), files = Mge(kTrain + "--data data -o files.onnx");
  ASSERT_EQ(whole.code, 0) << whole.err;
  ASSERT_EQ(files.code, 0) << files.err;
  EXPECT_EQ(LossesOf(whole), LossesOf(files));
  EXPECT_TRUE(Read("whole.onnx") == Read("files.onnx")) << "the weights differ";
}

TEST_F(TrainFolder, ConvertsClassNumbersAndValidates) {
  WriteImages("data/image.npy", 0, 48);
  std::string small;
  for (size_t i = 0; i < 48; ++i) small += labels_[i * sizeof(int64_t)];
  WriteArray("data/labels.npy", "48,", small, "'descr': '|u1', 'fortran_order': False");
  const Outcome o = Mge(kTrain + "--data data --validate data");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_GT(nlohmann::json::parse(o.out)["epochs"][1]["accuracy"], 0.9);
}

TEST_F(TrainFolder, NamesTheFileThatIsWrong) {
  WriteLabels("data/labels.npy", 0, 48);
  auto error = [&] { return Mge(kTrain + "--data data").err; };
  EXPECT_THAT(error(), AllOf(HasSubstr("it has no files of the input 'image'"), HasSubstr("image.npy or image-*.npy")));
  WriteImages("data/image-0.npy", 0, 40);
  EXPECT_THAT(error(), HasSubstr("'image' has 40 examples"));
  WriteArray("data/image-1.npy", "8, 64", images_.substr(0, 8 * kImageBytes));
  EXPECT_THAT(error(), AllOf(HasSubstr("image-1.npy"), HasSubstr("its rows are not those of"), HasSubstr("image-0.npy")));
  WriteArray("data/image-1.npy", "8, 1, 8, 8", images_.substr(0, 7 * kImageBytes));
  EXPECT_THAT(error(), AllOf(HasSubstr("image-1.npy"), HasSubstr("error")));
  WriteArray("data/image-1.npy", "8, 1, 8, 8", images_.substr(0, 8 * kImageBytes), "'descr': '<f4', 'fortran_order': True");
  EXPECT_THAT(error(), AllOf(HasSubstr("image-1.npy"), HasSubstr("order of columns")));
  WriteArray("data/image-1.npy", "8, 1, 8, 8", images_.substr(0, 8 * kImageBytes), "'descr': '>f4', 'fortran_order': False");
  EXPECT_THAT(error(), AllOf(HasSubstr("image-1.npy"), HasSubstr("big-endian")));
  Write("data/image-1.npy", "no array");
  EXPECT_THAT(error(), HasSubstr("image-1.npy"));
}

}  // namespace
}  // namespace mge
