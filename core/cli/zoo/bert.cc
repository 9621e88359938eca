// SPDX-License-Identifier: Apache-2.0
// BERT encoders (J. Devlin et al., 2018). Layer normalisation and GELU consist of elementary operators, as exporters write
// them, so that the planner must recognise them.
#include <cmath>

#include "core/cli/zoo/architectures.h"
#include "core/cli/zoo/model_writer.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

struct Sizes {
  const char* name;
  int64_t layers, hidden, heads, feed_forward, tokens, vocabulary;
};

class Encoder {
 public:
  Encoder(const Sizes& sizes, const ModelRequest& request) : s_(sizes), batch_(request.batch), m_(sizes.name, request) {}

  std::string Write() {
    two_ = m_.Scalar("two", 2.0f);
    epsilon_ = m_.Scalar("epsilon", 1e-12f);
    root_two_ = m_.Scalar("root_two", std::sqrt(2.0f));
    one_ = m_.Scalar("one", 1.0f);
    half_ = m_.Scalar("half", 0.5f);
    scale_ = m_.Scalar("scale", std::sqrt(static_cast<float>(s_.hidden / s_.heads)));
    split_ = m_.Ints("split_heads", {batch_, s_.tokens, s_.heads, s_.hidden / s_.heads});
    join_ = m_.Ints("join_heads", {batch_, s_.tokens, s_.hidden});
    std::string ids = m_.Input("input_ids", {batch_, s_.tokens}, kInt64);
    std::string x = m_.Node("Gather", {m_.Weight("words", {s_.vocabulary, s_.hidden}, 0.02f), ids});
    x = m_.Node("Add", {x, m_.Weight("positions", {1, s_.tokens, s_.hidden}, 0.02f)});
    x = LayerNorm(x, "embeddings.norm");
    for (int64_t i = 0; i < s_.layers; ++i) x = Layer(x, fmt::format("layer{}", i), i + 1 == s_.layers);
    m_.Output("hidden", {batch_, s_.tokens, s_.hidden});
    return m_.Finish();
  }

 private:
  std::string Dense(const std::string& x, const std::string& name, int64_t in, int64_t out) {
    std::string y = m_.Node("MatMul", {x, m_.Weight(name + ".w", {in, out}, 1.0f / std::sqrt(static_cast<float>(in)))});
    return m_.Node("Add", {y, m_.Weight(name + ".b", {out}, 0.02f)});
  }

  std::string LayerNorm(const std::string& x, const std::string& name, const std::string& output = {}) {
    std::vector<AttributeRow> last = {{"axes", std::vector<int64_t>{-1}}};
    std::string centred = m_.Node("Sub", {x, m_.Node("ReduceMean", {x}, last)});
    std::string variance = m_.Node("ReduceMean", {m_.Node("Pow", {centred, two_})}, last);
    std::string deviation = m_.Node("Sqrt", {m_.Node("Add", {variance, epsilon_})});
    std::string y =
        m_.Node("Mul", {m_.Node("Div", {centred, deviation}), m_.Weight(name + ".gamma", {s_.hidden}, 0.02f, 1.0f)});
    return m_.Node("Add", {y, m_.Weight(name + ".beta", {s_.hidden}, 0.02f)}, {}, output);
  }

  std::string Gelu(const std::string& x) {
    std::string inner = m_.Node("Add", {m_.Node("Erf", {m_.Node("Div", {x, root_two_})}), one_});
    return m_.Node("Mul", {m_.Node("Mul", {x, inner}), half_});
  }

  std::string Heads(const std::string& x, std::vector<int64_t> perm) {
    return m_.Node("Transpose", {m_.Node("Reshape", {x, split_})}, {{"perm", std::move(perm)}});
  }

  std::string Layer(const std::string& x, const std::string& name, bool last) {
    std::string q = Heads(Dense(x, name + ".query", s_.hidden, s_.hidden), {0, 2, 1, 3});
    std::string k = Heads(Dense(x, name + ".key", s_.hidden, s_.hidden), {0, 2, 3, 1});
    std::string v = Heads(Dense(x, name + ".value", s_.hidden, s_.hidden), {0, 2, 1, 3});
    std::string scores = m_.Node("Softmax", {m_.Node("Div", {m_.Node("MatMul", {q, k}), scale_})}, {{"axis", int64_t{-1}}});
    std::string mixed = m_.Node("Transpose", {m_.Node("MatMul", {scores, v})}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    std::string attended = Dense(m_.Node("Reshape", {mixed, join_}), name + ".output", s_.hidden, s_.hidden);
    std::string y = LayerNorm(m_.Node("Add", {attended, x}), name + ".norm1");
    std::string z = Gelu(Dense(y, name + ".ff1", s_.hidden, s_.feed_forward));
    z = Dense(z, name + ".ff2", s_.feed_forward, s_.hidden);
    return LayerNorm(m_.Node("Add", {z, y}), name + ".norm2", last ? "hidden" : "");
  }

  const Sizes& s_;
  const int64_t batch_;
  ModelWriter m_;
  std::string two_, epsilon_, root_two_, one_, half_, scale_, split_, join_;
};

}  // namespace

std::string WriteBertBase(const ModelRequest& r) { return Encoder({"bert-base", 12, 768, 12, 3072, 128, 30522}, r).Write(); }

std::string WriteBertTiny(const ModelRequest& r) { return Encoder({"bert-tiny", 2, 128, 2, 512, 128, 30522}, r).Write(); }

}  // namespace mge::cli
