// SPDX-License-Identifier: Apache-2.0
// Results, views and callbacks, which the C++ classes add to the C API.
#include <gmock/gmock.h>

#include <cstring>
#include <mutex>
#include <span>
#include <thread>

#include "mge/mge.hpp"
#include "tests/core/api/api_models.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CppClasses : public testing::Test {
 protected:
  static RuntimeOptions Plain() {
    RuntimeOptions options;
    options.built_in_plugins = options.environment = false;
    return options;
  }
  Session Load() {
    auto session = Session::LoadBytes(*runtime_, model_.data(), model_.size(), {.device = "host"});
    EXPECT_TRUE(session.ok()) << session.status().text();
    return *std::move(session);
  }

  const std::string model_ = api_models::RunningTotal();
  Result<Runtime> runtime_ = Runtime::Create(Plain());
};

TEST_F(CppClasses, GiveAValueOrAnError) {
  auto good = Tensor::Of<float>({2}, {1, 2});
  ASSERT_TRUE(good.ok());
  EXPECT_TRUE(good.status().ok());
  EXPECT_EQ(good->elements(), 2u);
  Tensor kept;
  EXPECT_TRUE(std::move(good).MoveTo(kept).ok());
  EXPECT_THAT(kept.data<float>(), ElementsAre(1, 2));

  auto bad = Tensor::Of<float>({3}, {1, 2});
  EXPECT_FALSE(bad.ok());
  const Status copy = bad.status();
  EXPECT_EQ(copy.id(), 305);
  EXPECT_EQ(std::move(bad).MoveTo(kept).id(), 305);
  EXPECT_THAT(kept.data<float>(), ElementsAre(1, 2));  // unchanged
}

TEST_F(CppClasses, EndTheProgramIfAValueIsUsedThatIsNotThere) {
  EXPECT_DEATH((void)Tensor::Of<float>({3}, {1, 2}).value(), "error has taken the place of.*E0305");
  EXPECT_DEATH((void)Result<int>(Status()), "an OK status");
}

TEST_F(CppClasses, TakeListsVectorsAndSpansAlike) {
  const std::vector<int64_t> dims = {0, 3};
  EXPECT_THAT(Tensor::Create(MGE_DTYPE_F32, {0, 3})->dims(), ElementsAre(0, 3));
  EXPECT_THAT(Tensor::Create(MGE_DTYPE_F32, dims)->dims(), ElementsAre(0, 3));
  EXPECT_THAT(Tensor::Create(MGE_DTYPE_F32, std::span(dims))->dims(), ElementsAre(0, 3));
  const Tensor flags = *Tensor::Of<bool>({2}, {true, false});
  const std::span<bool> view = flags.data<bool>();
  EXPECT_THAT(view, ElementsAre(true, false));
  EXPECT_THAT(flags.data<float>(), IsEmpty());
}

TEST_F(CppClasses, ConvertStringsAsAWhole) {
  const Tensor text = *Tensor::OfStrings({3}, {"one", "", "three"});
  EXPECT_THAT(*text.Strings(), ElementsAre("one", "", "three"));
  Tensor changed = *Tensor::OfStrings({1}, {"one"});
  EXPECT_TRUE(changed.SetString(0, "two").ok());
  EXPECT_EQ(changed.string(0), "two");
  EXPECT_THAT(*Tensor::OfStrings({0}, {})->Strings(), IsEmpty());
  EXPECT_EQ(Tensor::Of<float>({1}, {1})->Strings().status().id(), 207);
}

TEST_F(CppClasses, PassMessagesToTheLogUntilNothingUsesTheRuntime) {
  auto messages = std::make_shared<std::vector<std::string>>();
  RuntimeOptions options = Plain();
  options.settings = {"log.level=debug"};
  options.log = [messages, mutex = std::make_shared<std::mutex>()](int level, std::string_view text) {
    std::lock_guard lock(*mutex);
    if (level <= 3) messages->emplace_back(text);
  };
  {
    auto runtime = Runtime::Create(options);
    ASSERT_TRUE(runtime.ok()) << runtime.status().text();
    auto session = Session::LoadBytes(*runtime, model_.data(), model_.size(), {.device = "host"});
    ASSERT_TRUE(session.ok());
    *runtime = Runtime();  // the session keeps the log
    const Tensor x = *Tensor::Of<float>({1}, {1});
    EXPECT_TRUE(session->Run({&x, &x}).ok());
    EXPECT_EQ(messages.use_count(), 3);
  }
  EXPECT_FALSE(messages->empty());
  EXPECT_EQ(messages.use_count(), 2);  // that of `options`
  options.settings = {"no.such=1"};
  EXPECT_FALSE(Runtime::Create(options).ok());
  EXPECT_EQ(messages.use_count(), 2);
}

TEST_F(CppClasses, ReleaseWrappedMemoryOnceAlsoOnFailure) {
  alignas(64) float numbers[2] = {1, 2};
  int released = 0;
  auto release = [&] { ++released; };
  {
    auto wrapped = Tensor::WrapOn(*runtime_, "host", MGE_DTYPE_F32, {2}, numbers, sizeof(numbers), release);
    ASSERT_TRUE(wrapped.ok()) << wrapped.status().text();
    EXPECT_EQ(*wrapped->Map(), numbers);
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  EXPECT_FALSE(Tensor::WrapOn(*runtime_, "gpu9", MGE_DTYPE_F32, {2}, numbers, sizeof(numbers), release).ok());
  EXPECT_EQ(released, 2);
}

TEST_F(CppClasses, ShareMemoryByDlpack) {
  const Tensor given = *Tensor::Of<float>({2}, {1, 2});
  const auto shared = given.ToDlpack();
  ASSERT_TRUE(shared.ok()) << shared.status().text();
  const auto taken = Tensor::FromDlpack(*shared);
  ASSERT_TRUE(taken.ok()) << taken.status().text();
  EXPECT_EQ(taken->raw_data(), given.raw_data());
  const auto old = Tensor::FromDlpack(*runtime_, "host", *given.ToOldDlpack());
  EXPECT_TRUE(old.ok()) << old.status().text();
  Tensor constant = *Tensor::Of<float>({1}, {1});
  constant.SetReadOnly();
  EXPECT_TRUE(Tensor::FromDlpack(*constant.ToDlpack())->read_only());
  EXPECT_EQ(constant.ToOldDlpack().status().id(), 207);
}

TEST_F(CppClasses, RunWithACallbackAnInboxOrMemoryForOutputs) {
  const Session session = Load();
  const Tensor one = *Tensor::Of<float>({1}, {1}), three = *Tensor::Of<float>({1}, {3});
  std::vector<Tensor> outputs(2);
  outputs[0] = *Tensor::Of<float>({1}, {0});
  const float* const memory = outputs[0].data<float>().data();
  ASSERT_TRUE(session.Run({&one, &three}, outputs).ok());
  EXPECT_EQ(outputs[0].data<float>().data(), memory);
  EXPECT_EQ(*memory, 4);
  EXPECT_THAT(outputs[1].data<float>(), ElementsAre(16));

  Inbox inbox = *Inbox::Create();
  EXPECT_GE(inbox.descriptor(), 0);
  EXPECT_FALSE(TakeRun(inbox, 2));
  auto posted = session.Run({&one, &three}, {.output_names = {"y"}, .inbox = &inbox, .tag = 7});
  ASSERT_TRUE(posted.ok()) << posted.status().text();
  EXPECT_THAT(*posted, IsEmpty());
  std::optional<EndedRun> ended;
  while (!(ended = TakeRun(inbox, 2))) std::this_thread::yield();
  EXPECT_EQ(ended->tag, 7u);
  ASSERT_TRUE(ended->outputs.ok());
  EXPECT_THAT((*ended->outputs)[0].data<float>(), ElementsAre(16));
  RunControl cancelled = *RunControl::Create();
  cancelled.Cancel();
  ASSERT_TRUE(session.Run({&one, &three}, {.control = &cancelled, .inbox = &inbox}).ok());
  while (!(ended = TakeRun(inbox, 2))) std::this_thread::yield();
  EXPECT_EQ(ended->outputs.status().code(), MGE_CANCELLED);
}

TEST_F(CppClasses, LoadModelsInPiecesAndTellTheProgress) {
  auto owned = std::make_shared<int>(0);
  ModelSource source;
  source.read = [this, owned, at = size_t{0}](void* buffer, uint64_t capacity) mutable {
    const size_t size = std::min<size_t>({static_cast<size_t>(capacity), model_.size() - at, 7});
    std::memcpy(buffer, model_.data() + at, size);
    at += size;
    return static_cast<int64_t>(size);
  };
  source.release = [owned] { ++*owned; };
  std::vector<std::string> stages;
  auto told = std::make_shared<int>(0);
  SessionOptions options;
  options.device = "host";
  options.progress = [&stages, told](std::string_view stage, uint64_t, uint64_t) { stages.emplace_back(stage); };
  auto session = Session::Load(*runtime_, source, options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  const Tensor x = *Tensor::Of<float>({1}, {1});
  EXPECT_TRUE(session->Run({&x, &x}).ok());
  EXPECT_THAT(stages, testing::Contains("read"));
  source = {};
  *session = Session();
  EXPECT_EQ(*owned, 1);
  EXPECT_EQ(owned.use_count(), 1);
  EXPECT_EQ(told.use_count(), 2);  // that of `options`
  source.read = [](void*, uint64_t) { return int64_t{-1}; };
  EXPECT_FALSE(Session::Load(*runtime_, source, options).ok());
  EXPECT_EQ(told.use_count(), 2);
  RunControl control = *RunControl::Create();
  control.Cancel();
  options.control = &control;
  EXPECT_EQ(Session::LoadBytes(*runtime_, model_.data(), model_.size(), options).status().code(), MGE_CANCELLED);
}

TEST_F(CppClasses, KeepProgressInAnInbox) {
  Inbox inbox = *Inbox::Create();
  SessionOptions options;
  options.device = "host";
  options.progress_inbox = &inbox;
  ASSERT_TRUE(Session::LoadBytes(*runtime_, model_.data(), model_.size(), options).ok());
  const std::optional<StageProgress> first = inbox.TakeProgress();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->stage, "read");
  EXPECT_EQ(first->done, first->total);
  while (inbox.TakeProgress()) continue;
}

TEST_F(CppClasses, KeepMessagesInAnInbox) {
  Inbox inbox = *Inbox::Create();
  RuntimeOptions options = Plain();
  options.settings = {"log.level=debug"};
  options.log_inbox = &inbox;
  auto runtime = Runtime::Create(options);
  ASSERT_TRUE(runtime.ok()) << runtime.status().text();
  auto session = Session::LoadBytes(*runtime, model_.data(), model_.size(), {.device = "host"});
  ASSERT_TRUE(session.ok());
  const Tensor x = *Tensor::Of<float>({1}, {1});
  ASSERT_TRUE(session->Run({&x, &x}).ok());
  std::vector<std::string> texts;
  while (auto message = inbox.TakeMessage()) texts.push_back(message->text);
  EXPECT_FALSE(texts.empty());
}

TEST_F(CppClasses, TellWhatDoesNotExist) {
  EXPECT_EQ(Context::Create("gpi").status().id(), 501);
  EXPECT_THAT(runtime_->Get("no.such").status().text(), HasSubstr("no.such"));
  EXPECT_FALSE(ContextScope::Enter("gpu(").ok());
  EXPECT_FALSE(Session());
}

}  // namespace
}  // namespace mge
