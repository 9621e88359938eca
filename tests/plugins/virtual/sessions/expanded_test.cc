// SPDX-License-Identifier: Apache-2.0
// Operators without a kernel in any backend, because a rewrite expands them into other operators.
#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

struct Model {
  const char* text;
  std::vector<HostValue> in;
};

std::vector<Model> Models() {
  return {{"input q : float32[2,3,4,8]\ninput k : float32[2,5,4,8]\ns = Einsum(q, k) {equation=\"bqhd,bkhd->bhqk\"}\n"
           "w = Softmax(s) {axis=-1}\ny = Einsum(w, k) {equation=\"bhqk,bkhd->bqhd\"}\noutput y\n",
           {Numbers({2, 3, 4, 8}), Numbers({2, 5, 4, 8}, 2)}},
          {"input x : float32[4,6]\nconst w = float32[5,6,3]<0.5>\ny = Einsum(x, w) {equation=\"ni,oij->noj\"}\noutput y\n",
           {Numbers({4, 6})}},
          {"input x : float32[3,4,4]\ninput z : float32[3,4]\ny = Einsum(x, z) {equation=\"bii,bi->b\"}\noutput y\n",
           {Numbers({3, 4, 4}), Numbers({3, 4}, 2)}},
          {"input x : float32[2,3]\ninput y : float32[3,4]\ninput z : float32[4,5]\nr = Einsum(x, y, z) "
           "{equation=\"ij,jk,kl->il\"}\n"
           "output r\n",
           {Numbers({2, 3}), Numbers({3, 4}, 2), Numbers({4, 5}, 3)}}};
}

TEST(Expanded, RunByKernelsOfEveryBackendWithEveryStrategy) {
  for (const char* strategy : {"heuristic", "reproducible"}) {
    auto runtime = NewRuntime({{"select.strategy", strategy}, {"virtual.devices", "1"}});
    ASSERT_NE(runtime, nullptr);
    for (const Model& m : Models()) {
      SCOPED_TRACE(m.text);
      auto host = Load(NewRuntime({}), m.text, "host");
      ASSERT_TRUE(host.ok()) << FormatError(host.status());
      auto expected = ResultsOf(**host, m.in);
      ASSERT_TRUE(expected.ok()) << FormatError(expected.status());
      for (const char* device : {"cpu0", "virtual0"}) {
        auto session = Load(runtime, m.text, device);
        ASSERT_TRUE(session.ok()) << FormatError(session.status());
        auto got = ResultsOf(**session, m.in);
        ASSERT_TRUE(got.ok()) << FormatError(got.status());
        EXPECT_EQ((*session)->last_plan()->report.reference_steps, 0) << PlanText(*(*session)->last_plan(), true);
        ASSERT_EQ(got->size(), expected->size());
        for (size_t i = 0; i < got->size(); ++i) EXPECT_NEAR((*got)[i], (*expected)[i], 1e-4) << device << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace mge
