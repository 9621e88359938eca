// SPDX-License-Identifier: Apache-2.0
// Lets the n-th allocation, copy or kernel of a device fail, for every n that a session reaches. The failure must be a typed
// error and leak nothing, and the session must still work.
#include "fmt/format.h"
#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

using testing::HasSubstr;

// A model with constants to upload, products with workspaces, a host step between two device steps, and shapes known only in
// the run.
constexpr char kModel[] = R"(
input x : float32[N,64]
const w = float32[64,64]<0.125>
const v = float32[64,64]<-0.25>
m = MatMul(x, w)
r = Relu(m)
e = Det(v)
a = Add(r, e)
s = Softmax(a)
p = MatMul(s, v)
i = NonZero(r)
f = Cast(i) {to=1}
g = Neg(f)
y = Sub(p, a)
output y
output g
)";

struct Outcome {
  absl::Status status;  // error of the first call that failed
  std::vector<float> values;
};

// Loads the model if `session` is null. Then runs it four times until a run fails: a first run, one that is recorded, one
// that replays, and one with another shape.
Outcome UseModel(const std::shared_ptr<Runtime>& runtime, const std::string& device, std::shared_ptr<Session>& session) {
  Outcome out;
  if (!session) {
    auto loaded = Load(runtime, kModel, device);
    if (!loaded.ok()) return {loaded.status(), {}};
    session = *std::move(loaded);
  }
  for (int64_t n : {3, 3, 3, 40}) {
    auto got = ResultsOf(*session, {Numbers({n, 64})});
    if (!got.ok()) return {got.status(), {}};
    out.values.insert(out.values.end(), got->begin(), got->end());
  }
  return out;
}

struct Way {
  const char* device;  // device of the session
  const char* fails;   // prefix of the fault rule; "0:copy": copies of virtual0
  const char* pool = "naive";
  const char* strategy = "heuristic";
};
void PrintTo(const Way& w, std::ostream* out) {
  *out << fmt::format("{}, {}, pool {}, strategy {}", w.device, w.fails, w.pool, w.strategy);
}

class Faults : public testing::TestWithParam<Way> {
 protected:
  static std::shared_ptr<Runtime> RuntimeWith(const std::string& fault) {
    return NewRuntime({{"virtual.devices", "2"},
                       {"virtual.poison", "1"},
                       {"virtual.fault", fault},
                       {"memory.pool", GetParam().pool},
                       {"select.strategy", GetParam().strategy},
                       {"MGE_FASTRUN_CACHE_TYPE", "memory"}});
  }

  // Expects that the runtime's devices have no memory in use.
  static void ExpectNothingIsHeld(Runtime& runtime) {
    for (const auto& device : runtime.devices().all()) {
      device->Trim(MGE_TRIM_ALL);
      const MemoryStats stats = device->Stats();
      EXPECT_EQ(stats.charged, 0u) << device->name();
      if (device->class_name() != "virtual") continue;
      EXPECT_EQ(stats.device.free_bytes, stats.device.total_bytes) << device->name();
    }
  }
};

TEST_P(Faults, AreTypedErrorsAndTheSessionStillWorks) {
  const Way& way = GetParam();
  std::vector<float> expected;
  {
    std::shared_ptr<Session> session;
    Outcome good = UseModel(RuntimeWith(""), way.device, session);
    ASSERT_TRUE(good.status.ok()) << FormatError(good.status);
    expected = good.values;
  }
  const int id = std::string_view(way.fails).ends_with("allocation") ? errors::kOutOfMemory.id : errors::kKernelFailed.id;
  int failures = 0;
  for (int n = 1, quiet = 0; quiet < 3; ++n) {
    ASSERT_LT(n, 300) << "it never ends";
    ++quiet;
    for (const char* later : {"", "+"}) {
      const std::string fault = fmt::format("{}@{}{}=fail", way.fails, n, later);
      SCOPED_TRACE(fault);
      auto runtime = RuntimeWith(fault);
      std::shared_ptr<Session> session;
      Outcome first = UseModel(runtime, way.device, session);
      if (!first.status.ok()) {
        ++failures;
        quiet = 0;
        EXPECT_EQ(ErrorId(first.status), id) << FormatError(first.status);
        EXPECT_THAT(FormatError(first.status), HasSubstr("as the fault " + fault + " asks"));
        Outcome again = UseModel(runtime, way.device, session);
        if (*later) {
          EXPECT_EQ(ErrorId(again.status), id) << FormatError(again.status);
        } else {
          EXPECT_TRUE(again.status.ok()) << FormatError(again.status);
          EXPECT_EQ(again.values, expected);
        }
      } else {
        EXPECT_EQ(first.values, expected);
      }
      session.reset();
      ExpectNothingIsHeld(*runtime);
    }
    std::shared_ptr<Session> session;
    EXPECT_EQ(UseModel(RuntimeWith(""), way.device, session).values, expected);
  }
  EXPECT_GT(failures, 1);  // at least two, although the pool `growing` retries each of its two slabs with a smaller size
}

INSTANTIATE_TEST_SUITE_P(Virtual, Faults,
                         testing::Values(Way{"virtual0", "allocation", "growing"}, Way{"virtual0", "allocation", "naive"},
                                         Way{"virtual0", "allocation", "round"}, Way{"virtual0", "allocation", "unpooled"},
                                         Way{"virtual0", "allocation", "naive", "profile"},
                                         Way{"virtual0+virtual1", "1:allocation", "unpooled"},
                                         Way{"virtual0+cpu0", "0:allocation", "growing"}, Way{"virtual0", "copy"},
                                         Way{"virtual0", "kernel"}, Way{"virtual0+virtual1", "1:any"}));

}  // namespace
}  // namespace mge
