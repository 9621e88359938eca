// SPDX-License-Identifier: Apache-2.0
// Structs with options of the C API: struct_size must be set, and no member is ignored.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <sstream>

#include "mge/eager.h"
#include "mge/generate.h"
#include "mge/mge.h"
#include "tests/core/api/load_bytes.h"
#include "tests/support/decoder_folder.h"
#include "tests/support/onnx_builder.h"

namespace mge {
namespace {

using testing::HasSubstr;

// Returns the text of a status, "" if it is NULL, and releases it.
std::string TextOf(mge_status* status) {
  std::string text = status ? mge_status_text(status) : "";
  mge_status_release(status);
  return text;
}

// A struct that a newer program knows: with another member.
template <typename T>
struct Newer {
  T options = {};
  int64_t member = 0;
};

class OptionStructs : public testing::Test {
 protected:
  // A struct of options, and a call that reads one. The call gets a struct that is zero except for `size` and `newer`.
  struct Row {
    std::string name;
    size_t size;
    std::function<mge_status*(size_t size, int64_t newer)> call;
  };

  OptionStructs() {
    mge_runtime_options options = {};
    options.struct_size = sizeof(options);
    options.no_built_in_plugins = options.no_environment = 1;
    EXPECT_EQ(mge_runtime_create(&options, &runtime_), nullptr);
    EXPECT_EQ(Load(nullptr, &session_), nullptr);
    EXPECT_EQ(mge_eager_create(runtime_, &eager_), nullptr);
    EXPECT_EQ(mge_runtime_set_default_device(runtime_, "host"), nullptr);
    WriteDecoderFolder(folder_);
    EXPECT_EQ(mge_generator_load(runtime_, folder_.c_str(), nullptr, &generator_), nullptr);
  }
  ~OptionStructs() override {
    mge_generator_release(generator_);
    std::filesystem::remove_all(folder_);
    mge_eager_release(eager_);
    mge_session_release(session_);
    mge_runtime_release(runtime_);
  }
  mge_status* Load(const mge_session_options* options, mge_session** out) {
    mge_session_options host = {};
    host.struct_size = sizeof(host);
    host.device = "host";
    return LoadBytes(runtime_, model_, options ? options : &host, out);
  }
  template <typename T, typename F>
  static void Add(std::vector<Row>& rows, const char* name, F call) {
    rows.push_back({name, sizeof(T), [call](size_t size, int64_t newer) {
                      Newer<T> given;
                      given.options.struct_size = size;
                      given.member = newer;
                      return call(&given.options);
                    }});
  }
  std::vector<Row> Rows() {
    std::vector<Row> rows;
    Add<mge_runtime_options>(rows, "mge_runtime_options", [](mge_runtime_options* o) {
      mge_runtime* made = nullptr;
      o->no_built_in_plugins = 1;
      mge_status* status = mge_runtime_create(o, &made);
      mge_runtime_release(made);
      return status;
    });
    Add<mge_session_options>(rows, "mge_session_options", [this](mge_session_options* o) {
      mge_session* made = nullptr;
      mge_status* status = Load(o, &made);
      mge_session_release(made);
      return status;
    });
    Add<mge_model_source>(rows, "mge_model_source", [this](mge_model_source* o) {
      mge_session* made = nullptr;
      o->data = model_.data();
      o->size = model_.size();
      mge_status* status = mge_session_load_from(runtime_, o, nullptr, &made);
      mge_session_release(made);
      return status;
    });
    Add<mge_training_options>(rows, "mge_training_options", [this](mge_training_options* o) {
      mge_session* made = nullptr;
      mge_session_options options = {};
      options.struct_size = sizeof(options);
      options.device = "host";
      options.training = o;
      o->loss = "mse";
      o->beta1 = 0.9;
      o->beta2 = 0.999;
      o->epsilon = 1e-8;
      mge_status* status = LoadBytes(runtime_, line_, &options, &made);
      mge_session_release(made);
      return status;
    });
    Add<mge_example_options>(rows, "mge_example_options", [this](mge_example_options* o) {
      mge_tensor* input = nullptr;
      mge_string* text = nullptr;
      mge_status* status = mge_session_example_inputs(session_, o, &input, 1, &text);
      mge_tensor_release(input);
      mge_string_release(text);
      return status;
    });
    Add<mge_value_facts>(rows, "mge_value_facts", [this](mge_value_facts* o) { return mge_session_input(session_, 0, o); });
    Add<mge_device_facts>(rows, "mge_device_facts", [this](mge_device_facts* o) {
      EXPECT_GT(mge_runtime_device_count(runtime_), 0u);
      return mge_runtime_device(runtime_, 0, o);
    });
    Add<mge_run_options>(rows, "mge_run_options", [this](mge_run_options* o) {
      const int64_t dims[] = {2};
      mge_tensor *x = nullptr, *y = nullptr;
      EXPECT_EQ(mge_tensor_create(MGE_DTYPE_F32, dims, 1, &x), nullptr);
      mge_status* status = mge_session_run(session_, &x, 1, &y, 1, o, nullptr);
      mge_tensor_release(x);
      mge_tensor_release(y);
      return status;
    });
    Add<mge_memory_facts>(rows, "mge_memory_facts", [this](mge_memory_facts* o) {
      const int64_t dims[] = {2};
      mge_tensor *x = nullptr, *y = nullptr;
      EXPECT_EQ(mge_tensor_create(MGE_DTYPE_F32, dims, 1, &x), nullptr);
      EXPECT_EQ(mge_session_run(session_, &x, 1, &y, 1, nullptr, nullptr), nullptr);
      mge_tensor_release(x);
      mge_tensor_release(y);
      return mge_session_memory(session_, o);
    });
    Add<mge_eager_operator>(rows, "mge_eager_operator", [this](mge_eager_operator* o) {
      const int64_t shape[] = {1};
      mge_attribute attribute = {};
      attribute.name = "shape";
      attribute.type = MGE_ATTRIBUTE_INTS;
      attribute.ints = shape;
      attribute.count = 1;
      o->op = "RandomUniform";
      o->device = "host";
      o->attributes = &attribute;
      o->attribute_count = 1;
      o->attribute_size = sizeof(attribute);
      mge_eager_tensor* made = nullptr;
      size_t count = 0;
      mge_status* status = mge_eager_apply(eager_, o, nullptr, 0, &made, 1, &count);
      mge_eager_tensor_release(made);
      return status;
    });
    Add<mge_generator_options>(rows, "mge_generator_options", [this](mge_generator_options* o) {
      mge_generator* made = nullptr;
      mge_status* status = mge_generator_load(runtime_, folder_.c_str(), o, &made);
      mge_generator_release(made);
      return status;
    });
    Add<mge_batch_options>(rows, "mge_batch_options", [this](mge_batch_options* o) {
      mge_batch* made = nullptr;
      mge_status* status = mge_batch_load(runtime_, folder_.c_str(), o, &made);
      mge_batch_release(made);
      return status;
    });
    Add<mge_schedule>(rows, "mge_schedule", [](mge_schedule* o) {
      double rate = 0;
      return mge_schedule_rate(o, 0.5, &rate);
    });
    Add<mge_generator_facts>(rows, "mge_generator_facts",
                             [this](mge_generator_facts* o) { return mge_generator_describe(generator_, o); });
    Add<mge_sampling>(rows, "mge_sampling", [this](mge_sampling* o) {
      o->repetition_penalty = o->top_p = 1;
      return mge_generator_set_sampling(generator_, o);
    });
    return rows;
  }

  const std::string model_ = onnx_builder::ReluModel();
  const std::string line_ = [] {
    using namespace onnx_builder;  // NOLINT: its functions build models
    return ModelProto({.graph = GraphProto({.nodes = {NodeProto("MatMul", {"x", "w"}, {"y"})},
                                            .inputs = {ValueInfo("x", DType::kF32, {"N", int64_t{1}})},
                                            .outputs = {ValueInfo("y", DType::kF32, {"N", int64_t{1}})},
                                            .initializers = {FloatTensor("w", {1, 1}, {1})}})});
  }();
  const std::string folder_ = testing::TempDir() + "option_structs_" + std::to_string(getpid());
  mge_generator* generator_ = nullptr;
  mge_runtime* runtime_ = nullptr;
  mge_session* session_ = nullptr;
  mge_eager* eager_ = nullptr;
};

TEST_F(OptionStructs, WithoutASizeAreErrorsThatNameTheMemberToSet) {
  for (const Row& row : Rows()) {
    for (const size_t size : {size_t{0}, sizeof(void*), row.size - 1, size_t{1} << 40}) {
      const std::string text = TextOf(row.call(size, 0));
      EXPECT_THAT(text, HasSubstr("E0207")) << row.name;
      EXPECT_THAT(text, HasSubstr("struct_size of " + row.name)) << size;
      EXPECT_THAT(text, HasSubstr("call " + row.name + "_init()")) << size;
    }
    EXPECT_EQ(TextOf(row.call(row.size, 7)), "") << row.name;
  }
}

TEST_F(OptionStructs, OfANewerProgramMayOnlySetMembersThatTheLibraryKnows) {
  for (const Row& row : Rows()) {
    EXPECT_EQ(TextOf(row.call(row.size + sizeof(int64_t), 0)), "") << row.name;
    if (row.name.ends_with("_facts")) continue;  // the library writes it
    EXPECT_THAT(TextOf(row.call(row.size + sizeof(int64_t), 7)), HasSubstr("does not know")) << row.name;
  }
}

// Fails if a header has a struct with struct_size that Rows() lacks.
TEST_F(OptionStructs, AreAllInTheTableOfThisTest) {
  std::stringstream text;
  for (const char* name : {"mge.h", "eager.h", "generate.h", "context.h"}) {
    text << std::ifstream(MGE_SOURCE_DIR "/sdk/include/mge/" + std::string(name)).rdbuf();
  }
  const std::string header = text.str();
  static const std::regex kStruct(R"(typedef struct (mge_\w+) \{\s+size_t struct_size;)");
  std::set<std::string> declared, tested;
  for (std::sregex_iterator at(header.begin(), header.end(), kStruct), end; at != end; ++at) declared.insert((*at)[1]);
  for (const Row& row : Rows()) tested.insert(row.name);
  EXPECT_EQ(declared, tested);
}

}  // namespace
}  // namespace mge
