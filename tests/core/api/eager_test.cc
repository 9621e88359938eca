// SPDX-License-Identifier: Apache-2.0
// Eager mode through the C API.
#include "mge/eager.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

template <typename T, void (*kRelease)(T*)>
struct Release {
  void operator()(T* p) const { kRelease(p); }
};
using Tensor = std::unique_ptr<mge_tensor, Release<mge_tensor, mge_tensor_release>>;
using EagerTensor = std::unique_ptr<mge_eager_tensor, Release<mge_eager_tensor, mge_eager_tensor_release>>;
using Tape = std::unique_ptr<mge_eager_tape, Release<mge_eager_tape, mge_eager_tape_release>>;

std::string TextOf(mge_status* status) {
  const std::string text = status ? mge_status_text(status) : "";
  mge_status_release(status);
  return text;
}

class EagerApi : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* directory = MGE_BINARY_DIR "/lib/mge/plugins";
    const char* settings[] = {"virtual.devices=1", "eager.drop=1"};
    mge_runtime_options options = {};
    options.struct_size = sizeof(options);
    options.settings = settings;
    options.setting_count = 2;
    options.plugin_directories = &directory;
    options.plugin_directory_count = 1;
    options.no_built_in_plugins = options.no_environment = 1;
    mge_runtime* runtime = nullptr;
    ASSERT_EQ(TextOf(mge_runtime_create(&options, &runtime)), "");
    ASSERT_EQ(TextOf(mge_eager_create(runtime, &eager_)), "");
    mge_runtime_release(runtime);  // eager mode keeps it
  }
  void TearDown() override { mge_eager_release(eager_); }

  static Tensor Floats(std::vector<int64_t> dims, const std::vector<float>& elements) {
    mge_tensor* t = nullptr;
    EXPECT_EQ(TextOf(mge_tensor_create(MGE_DTYPE_F32, dims.data(), dims.size(), &t)), "");
    std::copy(elements.begin(), elements.end(), static_cast<float*>(mge_tensor_data(t)));
    return Tensor(t);
  }
  EagerTensor Put(std::vector<int64_t> dims, const std::vector<float>& elements) {
    mge_eager_tensor* out = nullptr;
    EXPECT_EQ(TextOf(mge_eager_put(eager_, Floats(std::move(dims), elements).get(), GetParam(), &out)), "");
    return EagerTensor(out);
  }
  EagerTensor Apply(mge_eager_operator op, std::vector<mge_eager_tensor*> inputs) {
    op.struct_size = sizeof(op);
    op.attribute_size = sizeof(mge_attribute);
    mge_eager_tensor* out = nullptr;
    size_t count = 0;
    EXPECT_EQ(TextOf(mge_eager_apply(eager_, &op, inputs.data(), inputs.size(), &out, 1, &count)), "");
    EXPECT_EQ(count, 1u);
    return EagerTensor(out);
  }
  EagerTensor Apply(const char* op, std::vector<mge_eager_tensor*> inputs) {
    mge_eager_operator o = {};
    o.op = op;
    return Apply(o, std::move(inputs));
  }
  std::vector<float> Get(const EagerTensor& t) {
    mge_tensor* out = nullptr;
    EXPECT_EQ(TextOf(mge_eager_tensor_get(t.get(), &out)), "");
    if (!out) return {};
    const Tensor got(out);
    mge_tensor* host = nullptr;
    EXPECT_EQ(TextOf(mge_tensor_create(mge_tensor_dtype(out), mge_tensor_dims(out), mge_tensor_rank(out), &host)), "");
    const Tensor copy(host);
    EXPECT_EQ(TextOf(mge_tensor_copy(out, host)), "");
    const float* data = static_cast<const float*>(mge_tensor_data(host));
    return {data, data + mge_tensor_elements(host)};
  }

  mge_eager* eager_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Devices, EagerApi, testing::Values("cpu0", "virtual0"));

TEST_P(EagerApi, RunsOperatorsWithAttributes) {
  const EagerTensor x = Put({2, 3}, {1, -2, 3, -4, 5, -6});
  EXPECT_THAT(Get(Apply("Relu", {x.get()})), ElementsAre(1, 0, 3, 0, 5, 0));
  const int64_t perm[] = {1, 0};
  mge_attribute attribute = {};
  attribute.name = "perm";
  attribute.type = MGE_ATTRIBUTE_INTS;
  attribute.ints = perm;
  attribute.count = 2;
  mge_eager_operator transpose = {};
  transpose.op = "Transpose";
  transpose.attributes = &attribute;
  transpose.attribute_count = 1;
  const EagerTensor y = Apply(transpose, {x.get()});
  EXPECT_THAT(Get(y), ElementsAre(1, -4, -2, 5, 3, -6));
  int32_t kind = -1;
  mge_dtype dtype = 0;
  size_t rank = 0;
  const int64_t* dims = nullptr;
  ASSERT_EQ(TextOf(mge_eager_tensor_type(y.get(), &kind, &dtype, &rank, &dims)), "");
  EXPECT_EQ(kind, MGE_VALUE_TENSOR);
  EXPECT_EQ(dtype, MGE_DTYPE_F32);
  EXPECT_THAT(std::vector<int64_t>(dims, dims + rank), ElementsAre(3, 2));
  EXPECT_STREQ(mge_eager_tensor_device(y.get()), GetParam());
  EXPECT_EQ(TextOf(mge_eager_tensor_wait(y.get())), "");
  EXPECT_EQ(mge_eager_tensor_state(y.get()), MGE_EAGER_READY);
}

TEST_P(EagerApi, TapesComputeGradients) {
  const EagerTensor x = Put({2}, {2, 3}), other = Put({2}, {1, 1});
  mge_eager_tape* made = nullptr;
  ASSERT_EQ(TextOf(mge_eager_tape_create(eager_, &made)), "");
  const Tape tape(made);
  ASSERT_EQ(TextOf(mge_eager_tape_watch(made, x.get())), "");
  ASSERT_EQ(TextOf(mge_eager_tape_start(made)), "");
  const EagerTensor y = Apply("Mul", {x.get(), x.get()});
  ASSERT_EQ(TextOf(mge_eager_tape_stop(made)), "");
  mge_eager_tensor* sources[] = {x.get(), other.get()};
  mge_eager_tensor* gradients[2] = {};
  ASSERT_EQ(TextOf(mge_eager_tape_gradient(made, y.get(), nullptr, sources, 2, gradients)), "");
  EXPECT_THAT(Get(EagerTensor(gradients[0])), ElementsAre(4, 6));
  EXPECT_EQ(gradients[1], nullptr);
}

TEST_P(EagerApi, ErrorsNameTheArgument) {
  const EagerTensor x = Put({2}, {2, 3});
  mge_eager_operator op = {};
  op.struct_size = sizeof(op);
  mge_eager_tensor* in[] = {x.get()};
  mge_eager_tensor* out[1] = {};
  size_t count = 0;
  EXPECT_THAT(TextOf(mge_eager_apply(eager_, &op, in, 1, out, 1, &count)), AllOf(HasSubstr("E0207"), HasSubstr("op->op")));
  op.op = "TopK";
  op.output_count = 2;
  EXPECT_THAT(TextOf(mge_eager_apply(eager_, &op, in, 1, out, 1, &count)),
              HasSubstr("TopK has 2 outputs, and there is room for 1"));
  mge_attribute attribute = {};
  attribute.name = "alpha";
  attribute.type = 99;
  op.op = "LeakyRelu";
  op.output_count = 0;
  op.attributes = &attribute;
  op.attribute_count = 1;
  EXPECT_THAT(TextOf(mge_eager_apply(eager_, &op, in, 1, out, 1, &count)),
              AllOf(HasSubstr("attribute_size"), HasSubstr("mge_eager_operator_init()")));
  op.attribute_size = sizeof(attribute);
  EXPECT_THAT(TextOf(mge_eager_apply(eager_, &op, in, 1, out, 1, &count)),
              AllOf(HasSubstr("'alpha'"), HasSubstr("the type 99")));
  attribute.type = MGE_ATTRIBUTE_FLOAT;
  EXPECT_THAT(TextOf(mge_eager_apply(eager_, &op, in, 1, out, 1, &count)),
              AllOf(HasSubstr("'alpha'"), HasSubstr("the count 0")));
  attribute.count = 1;
  EXPECT_THAT(TextOf(mge_eager_apply(eager_, &op, in, 1, out, 1, &count)), HasSubstr("no floats"));
  mge_string* text = nullptr;
  EXPECT_THAT(TextOf(mge_eager_report(eager_, "mge.eager/2", &text)), HasSubstr("mge.eager/1"));
  EXPECT_THAT(TextOf(mge_eager_tensor_swap_out(x.get())), AllOf(HasSubstr("E0207"), HasSubstr("eager.swap")));
  EXPECT_EQ(TextOf(mge_eager_tensor_drop(x.get())), "");  // allowed, and ignored with a warning
  EXPECT_EQ(TextOf(mge_eager_synchronize(eager_)), "");
}

TEST_P(EagerApi, ReportsCounters) {
  const EagerTensor x = Put({2}, {2, 3});
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Get(Apply("Neg", {x.get()})), ElementsAre(-2, -3));
  mge_string* text = nullptr;
  ASSERT_EQ(TextOf(mge_eager_report(eager_, "mge.eager/1", &text)), "");
  EXPECT_THAT(mge_string_data(text),
              AllOf(HasSubstr("\"schema\": \"mge.eager/1\""), HasSubstr("\"runs\": 3"), HasSubstr("\"operators\": 1")));
  mge_string_release(text);
}

TEST_P(EagerApi, TensorsOutliveEagerMode) {
  const EagerTensor x = Put({2}, {2, 3}), y = Apply("Neg", {x.get()});
  mge_eager_release(eager_);
  eager_ = nullptr;
  EXPECT_THAT(Get(y), ElementsAre(-2, -3));
}

TEST_P(EagerApi, HostOperandsAreCopied) {
  const EagerTensor x = Put({2}, {2, 3});
  Tensor two = Floats({}, {2});
  mge_eager_tensor* made = nullptr;
  ASSERT_EQ(TextOf(mge_eager_host_operand(eager_, two.get(), &made)), "");
  const EagerTensor operand(made);
  static_cast<float*>(mge_tensor_data(two.get()))[0] = 100;
  EXPECT_THAT(Get(Apply("Mul", {x.get(), made})), ElementsAre(4, 6));
  EXPECT_STREQ(mge_eager_tensor_device(made), "");
}

TEST(EagerClasses, RunOperatorsAndComputeGradients) {
  mge::RuntimeOptions options;
  options.plugin_directories = {MGE_BINARY_DIR "/lib/mge/plugins"};
  options.built_in_plugins = options.environment = false;
  mge::Runtime runtime;
  mge::Eager eager;
  mge::Tensor host, result;
  mge::EagerTensor x, y;
  auto ok = [](const mge::Status& s) { EXPECT_TRUE(s.ok()) << s.text(); };
  ok(mge::Runtime::Create(options).MoveTo(runtime));
  ok(mge::Eager::Create(runtime).MoveTo(eager));
  ok(mge::Tensor::Of<float>({4}, {-1, 2, -3, 4}).MoveTo(host));
  ok(eager.Put(host, "cpu0").MoveTo(x));
  mge::GradientTape tape;
  ok(mge::GradientTape::Create(eager).MoveTo(tape));
  ok(tape.Watch(x));
  ok(tape.Start());
  ok(eager.Apply(mge::EagerOp("LeakyRelu").Set("alpha", 0.5f), {&x}).MoveTo(y));
  ok(tape.Stop());
  ok(y.Get().MoveTo(result));
  EXPECT_THAT(result.data<float>(), ElementsAre(-0.5f, 2, -1.5f, 4));
  std::vector<mge::EagerTensor> gradients, parts;
  ok(tape.Gradient(y, {&x}).MoveTo(gradients));
  ok(gradients[0].Get().MoveTo(result));
  EXPECT_THAT(result.data<float>(), ElementsAre(0.5f, 1, 0.5f, 1));
  ok(eager.ApplyAll(mge::EagerOp("Split").Set("axis", 0).Set("num_outputs", 2), {&x}, 2).MoveTo(parts));
  const auto type = parts[1].Type();
  ok(type.status());
  EXPECT_EQ(type->dtype, MGE_DTYPE_F32);
  EXPECT_THAT(type->dims, ElementsAre(2));
  std::string report;
  ok(eager.Synchronize());
  ok(eager.Report().MoveTo(report));
  EXPECT_THAT(report, HasSubstr("mge.eager/1"));
}

}  // namespace
