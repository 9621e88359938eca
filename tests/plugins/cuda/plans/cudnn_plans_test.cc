// SPDX-License-Identifier: Apache-2.0
// Plans that the true cuDNN makes, without a GPU, for the properties of one. The tests skip if cuDNN is not installed.
#include "plugins/cuda/cudnn_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "plugins/cuda/cudnn_pools.h"

namespace mge {
namespace {

using cuda::ConvolutionShape;
using cuda::Descriptor;
using cuda::ExecutionPlan;
using cuda::PoolShape;

constexpr char kH200[] =
    R"({"cudaDeviceId":0,"deviceName":"NVIDIA H200","deviceVer":900,"driverVer":13000,"maxGridSize":[2147483647,65535,65535],)"
    R"("maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"multiProcessorCount":132,"smClockRateKHz":1980000,)"
    R"("memClockRateKHz":3201000,"l2CacheSize":62914560,"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
    R"("maxSharedMemoryPerBlockOptin":232448,"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"pciDeviceId":0,)"
    R"("maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"isTccDriver":0,"supportCoopLaunch":1,)"
    R"("totalGlobalMem":150754820096})";

// The library, and a device that is described by text.
class CudnnPlans : public testing::Test {
 protected:
  void SetUp() override {
    if (!library_.Load("libcudnn.so.9").ok() && !library_.Load(MGE_CUDA_LIBRARIES "/libcudnn.so.9").ok()) {
      GTEST_SKIP() << "no cuDNN of this version";
    }
    device_ = std::make_unique<Descriptor>(library_, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    device_->SetText(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, kH200).Finalize();
    ASSERT_TRUE(device_->result().ok()) << device_->result().text();
  }

  // Returns the convolutions that the backend asks the library for when it plans a model of the zoo.
  static std::vector<ConvolutionShape> ConvolutionsOf(const std::string& name) {
    char made[] = "/tmp/mge-plans-XXXXXX";
    const std::string folder = mkdtemp(made), mge = MGE_BINARY_DIR "/bin/mge ";
    const std::string commands =
        "cd " + folder + " && " + mge + "zoo " + name + " -o model.onnx >/dev/null 2>&1 && MGE_CACHE_DIR=" + folder +
        "/cache MGE_CUDA_DRIVER=" MGE_BINARY_DIR "/lib/mge/test/libcuda.so.1 MGE_CUDA_CUDNN=" MGE_BINARY_DIR
        "/tests/cuda/libcudnn.so RECORDED_CONVOLUTIONS=" +
        folder + "/list " + mge + "plan model.onnx --device cuda0 >/dev/null";
    EXPECT_EQ(std::system(commands.c_str()), 0);
    std::ifstream lines(folder + "/list");
    std::vector<ConvolutionShape> shapes;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream in(line);
      int type = 0, kind = 0;
      ConvolutionShape& s = shapes.emplace_back();
      in >> type >> s.images >> s.channels >> s.outputs >> s.groups >> s.bias >> s.residual >> s.relu >> kind >>
          s.channels_last;
      s.type = static_cast<cudnnDataType_t>(type);
      s.kind = static_cast<ConvolutionShape::Kind>(kind);
      for (auto& a : s.axis) in >> a.in >> a.out >> a.kernel >> a.stride >> a.dilation >> a.pad_begin >> a.pad_end;
      EXPECT_FALSE(in.fail()) << line;
    }
    std::filesystem::remove_all(folder);
    return shapes;
  }

  template <typename Shape>
  std::vector<ExecutionPlan> Find(const Shape& shape) const {
    std::vector<ExecutionPlan> plans;
    const Result r = FindPlans(library_, *device_, shape, &plans);
    EXPECT_TRUE(r.ok()) << r.text();
    return plans;
  }

  cuda::Cudnn library_;
  std::unique_ptr<Descriptor> device_;
};

// Returns whether all settings allow a plan.
bool IsStrict(const ExecutionPlan& plan) {
  constexpr uint64_t kRisks =
      MGE_KERNEL_REDUCED_PRECISION | MGE_KERNEL_TENSOR_CORE | MGE_KERNEL_WINOGRAD | MGE_KERNEL_FFT | MGE_KERNEL_COMPILES;
  return plan.attributes & MGE_KERNEL_DETERMINISTIC && !(plan.attributes & kRisks);
}

// The backend asks for both layouts. In both, every type has plans that all settings allow. With the channels last, 16-bit
// floats have plans for tensor cores, and floats have them rounded to TF32; none needs a compilation.
TEST_F(CudnnPlans, ExistForEveryConvolutionOfTheZooWithoutCompilation) {
  for (const char* model : {"resnet50", "mobilenetv2"}) {
    const std::vector<ConvolutionShape> shapes = ConvolutionsOf(model);
    EXPECT_GE(shapes.size(), 40u) << model;
    const auto last = [](const ConvolutionShape& s) { return s.channels_last; };
    EXPECT_EQ(std::count_if(shapes.begin(), shapes.end(), last), static_cast<int64_t>(shapes.size()) / 2) << model;
    for (const ConvolutionShape& shape : shapes) {
      SCOPED_TRACE(std::string(model) + ": " + shape.Text());
      for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}) {
        ConvolutionShape typed = shape;
        typed.type = type;
        const std::vector<ExecutionPlan> plans = Find(typed);
        EXPECT_TRUE(std::any_of(plans.begin(), plans.end(), IsStrict));
        for (const ExecutionPlan& plan : plans) {
          EXPECT_FALSE(plan.attributes & MGE_KERNEL_COMPILES);
          EXPECT_LE(plan.workspace, uint64_t{1} << 30);
          if (type == CUDNN_DATA_FLOAT && plan.attributes & MGE_KERNEL_TENSOR_CORE) {
            EXPECT_TRUE(plan.attributes & MGE_KERNEL_REDUCED_PRECISION);
          }
        }
        const auto on_tensor_cores = [](const ExecutionPlan& p) { return p.attributes & MGE_KERNEL_TENSOR_CORE; };
        if (shape.channels_last && shape.groups == 1) {
          EXPECT_TRUE(std::any_of(plans.begin(), plans.end(), on_tensor_cores)) << "type " << type;
        }
      }
    }
  }
}

TEST_F(CudnnPlans, ExistForTransposedConvolutions) {
  for (const int64_t groups : {1, 4}) {
    for (const int64_t pad_end : {1, 0}) {
      for (const bool last : {false, true}) {
        ConvolutionShape shape = {.images = 2, .channels = 64, .outputs = 32, .groups = groups, .channels_last = last};
        shape.kind = ConvolutionShape::kTransposed;
        shape.axis[0] = {1, 1, 1, 1, 1, 0, 0};
        shape.axis[1] = shape.axis[2] = {14, 29 - pad_end, 4, 2, 1, 1, pad_end};
        SCOPED_TRACE(shape.Text());
        const std::vector<ExecutionPlan> plans = Find(shape);
        EXPECT_TRUE(std::any_of(plans.begin(), plans.end(), IsStrict));
      }
    }
  }
}

// The gradients that training ResNet-50 and MobileNetV2 needs, and one of three axes.
TEST_F(CudnnPlans, ExistForGradientsOfConvolutionsByTheirFilters) {
  constexpr gpu::WindowAxis kNone = {1, 1, 1, 1, 1, 0, 0}, kThree = {14, 14, 3, 1, 1, 1, 1}, kHalf = {28, 14, 3, 2, 1, 1, 1},
                            kOne = {14, 14, 1, 1, 1, 0, 0}, kLine = {9, 8, 2, 1, 1, 0, 0},
                            kFirst = {224, 112, 7, 2, 1, 3, 3};
  const std::pair<int64_t, std::array<gpu::WindowAxis, 3>> kCases[] = {
      {1, {kNone, kThree, kThree}}, {1, {kNone, kHalf, kHalf}},  {1, {kNone, kOne, kOne}},    {64, {kNone, kThree, kThree}},
      {4, {kNone, kThree, kThree}}, {1, {kLine, kThree, kLine}}, {1, {kNone, kFirst, kFirst}}};
  for (const auto& [groups, axes] : kCases) {
    ConvolutionShape shape = {.images = 8, .channels = 64, .outputs = 64, .groups = groups};
    shape.kind = ConvolutionShape::kFilterGradient;
    std::copy(axes.begin(), axes.end(), shape.axis);
    SCOPED_TRACE(shape.Text());
    const std::vector<ExecutionPlan> plans = Find(shape);
    EXPECT_TRUE(std::any_of(plans.begin(), plans.end(), IsStrict));
  }
}

// Plans pools of every mode and type, with one to three axes and pads that differ.
TEST_F(CudnnPlans, ExistForPools) {
  for (cudnnResampleMode_t mode :
       {CUDNN_RESAMPLE_MAXPOOL, CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING}) {
    for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}) {
      for (const int first : {0, 1, 2}) {
        PoolShape shape = {.type = type, .mode = mode, .images = 2, .channels = 6};
        for (int d = 0; d < 3; ++d) shape.axis[d] = {1, 1, 1, 1, 1, 0, 0};
        for (int d = first; d < 3; ++d) shape.axis[d] = {12, 6, 3, 2, 1, 1, 0};
        shape.axis[2] = {8, 5, 3, 2, 1, 1, 2};
        SCOPED_TRACE(shape.Text());
        const std::vector<ExecutionPlan> plans = Find(shape);
        EXPECT_TRUE(std::any_of(plans.begin(), plans.end(), IsStrict));
      }
    }
  }
}

TEST_F(CudnnPlans, AreReadFromTheirTextWithTheSameWorkspace) {
  ConvolutionShape shape = {.images = 32, .channels = 256, .outputs = 256, .bias = true, .residual = true, .relu = true};
  shape.axis[0] = {1, 1, 1, 1, 1, 0, 0};
  shape.axis[1] = shape.axis[2] = {14, 14, 3, 1, 1, 1, 1};
  std::vector<ExecutionPlan> plans;
  ASSERT_TRUE(cuda::ReadPlans(cuda::WritePlans(Find(shape)), &plans));
  EXPECT_GE(plans.size(), 4u);
  for (const ExecutionPlan& plan : plans) {
    Descriptor read(library_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    read.Set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *device_)
        .SetText(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, plan.json)
        .Finalize();
    EXPECT_EQ(static_cast<uint64_t>(read.Get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)), plan.workspace);
    EXPECT_TRUE(read.result().ok()) << read.result().text();
  }
}

}  // namespace
}  // namespace mge
