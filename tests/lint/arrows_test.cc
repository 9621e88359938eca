// SPDX-License-Identifier: Apache-2.0
// Allowed includes: a folder may include only lower layers.
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/lint/tree.h"

namespace mge::lint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Layers {
  std::vector<std::string> order;                        // lowest first
  std::map<std::string, std::set<std::string>> may_use;  // includes indirect uses
};

// Reads the layers from CMake's lists: MGE_LAYERS, and DEPS of every mge_layer().
Layers ReadLayers(const Tree& tree) {
  Layers layers;
  std::smatch match;
  auto text = [](const File& file) {
    std::string all;
    for (const std::string& line : file.lines) all += line + "\n";
    return all;
  };
  auto words = [](const std::string& list) {
    std::istringstream in(list);
    return std::vector<std::string>(std::istream_iterator<std::string>(in), {});
  };
  if (const File* file = tree.Find("core/CMakeLists.txt")) {
    std::string all = text(*file);
    static const std::regex order(R"(set\(MGE_LAYERS ([a-z_\s]+))");
    if (std::regex_search(all, match, order)) layers.order = words(match[1]);
  }
  static const std::regex row(R"(mge_layer\(([a-z_]+)([^)]*)\))");
  static const std::regex deps(R"(\bDEPS((\s+[a-z_]+)*))");
  for (const std::string& layer : layers.order) {
    layers.may_use[layer] = {layer};
    const File* file = tree.Find("core/" + layer + "/CMakeLists.txt");
    if (file == nullptr) continue;
    std::string all = text(*file);
    if (!std::regex_search(all, match, row) || match[1] != layer) continue;
    std::string arguments = match[2];
    if (!std::regex_search(arguments, match, deps)) continue;
    for (const std::string& used : words(match[1])) {  // lower layers are already complete
      layers.may_use[layer].insert(layers.may_use[used].begin(), layers.may_use[used].end());
    }
  }
  // The command uses the public API and the conformance kit. From the core it uses only base, for error texts, process, html,
  // and the interface of text, whose library it opens.
  layers.may_use["cli"] = {"cli", "conform", "process", "html", "text", "base"};
  return layers;
}

std::string Folder(const std::string& path, const std::string& below) {
  if (!StartsWith(path, below)) return "";
  size_t end = path.find('/', below.size());
  return end == std::string::npos ? "" : path.substr(below.size(), end - below.size());
}

Violations CheckArrows(const Tree& tree) {
  Layers layers = ReadLayers(tree);
  Violations out;
  for (const File& file : tree.files()) {
    std::string layer = Folder(file.path, "core/");
    if (layer.empty() || !IsCpp(file.path)) continue;
    auto row = layers.may_use.find(layer);
    if (row == layers.may_use.end()) {
      out.push_back(file.path + ": core/" + layer + " is not a layer of MGE_LAYERS");
      continue;
    }
    for (const auto& [line, path] : Includes(file)) {
      std::string used = Folder(path, "core/");
      if (!used.empty() && !row->second.contains(used)) out.push_back(At(file, line, layer + " may not use " + used));
      for (const char* other : {"plugins/", "tests/", "packaging/"}) {
        if (StartsWith(path, other)) out.push_back(At(file, line, "core may not include " + path));
      }
      if (path == "mge/plugin.hpp") out.push_back(At(file, line, "plugin.hpp is comfort for backends"));
    }
  }
  return out;
}

// A backend may include sdk/, its own folder, and the shared GPU kernels. sdk/ may include itself and the standard library.
Violations CheckBackendsAndSdk(const Tree& tree) {
  Violations out;
  for (const File& file : tree.files()) {
    std::string backend = Folder(file.path, "plugins/");
    bool sdk = StartsWith(file.path, "sdk/include/");
    for (const auto& [line, path] : Includes(file)) {
      bool ours = StartsWith(path, "core/") || StartsWith(path, "plugins/") || StartsWith(path, "tests/");
      if (sdk && (ours || (path.find('/') != std::string::npos && !StartsWith(path, "mge/")))) {
        out.push_back(At(file, line, "sdk stands alone; it may not include " + path));
      }
      if (!backend.empty() && path.find("..") != std::string::npos) {
        out.push_back(At(file, line, "backend " + backend + " may not include " + path));
      }
      if (backend.empty() || !ours) continue;
      std::string other = Folder(path, "plugins/");
      if (other != backend && other != "gpu") {
        out.push_back(At(file, line, "backend " + backend + " may not include " + path));
      }
    }
  }
  return out;
}

Violations CheckVendorHeaders(const Tree& tree) {
  static const std::regex vendor(
      "^(oneapi/|dnnl|mkl|cblas|lapacke|f77blas|openblas|cuda|cudnn|cublas|cusparse|cusolver|curand|nvrtc|nccl|"
      "nvtx|hip/|hip_|hipblas|rocblas|miopen|rccl|hsa/|CL/|xbyak)");
  static const std::regex library(
      "lib(dnnl|openblas|cblas|cuda|cudnn|cublas|cublasLt|nvrtc|nccl|amdhip64|rocblas|MIOpen)\\.");
  Violations out;
  for (const File& file : tree.files()) {
    if (StartsWith(file.path, "plugins/") || StartsWith(file.path, "tests/plugins/")) continue;
    for (const auto& [line, path] : Includes(file)) {
      if (std::regex_search(path, vendor)) out.push_back(At(file, line, "vendor header outside of plugins/: " + path));
    }
    if (StartsWith(file.path, "core/")) Search(file, file.code, library, "core names a vendor's library", out);
  }
  return out;
}

TEST(Includes, PointToLowerLayers) {
  Violations violations = CheckArrows(Tree::Read(MGE_SOURCE_DIR));
  EXPECT_THAT(violations, IsEmpty()) << Join(violations);
}

TEST(Includes, OfBackendsAreOfTheSdkAndTheirOwnFolder) {
  Violations violations = CheckBackendsAndSdk(Tree::Read(MGE_SOURCE_DIR));
  EXPECT_THAT(violations, IsEmpty()) << Join(violations);
}

TEST(Includes, OfVendorHeadersAreInBackendsOnly) {
  Violations violations = CheckVendorHeaders(Tree::Read(MGE_SOURCE_DIR));
  EXPECT_THAT(violations, IsEmpty()) << Join(violations);
}

TEST(Includes, LayersAreReadFromCMake) {
  Layers layers = ReadLayers(Tree::Read(MGE_SOURCE_DIR));
  ASSERT_GE(layers.order.size(), 9u);
  EXPECT_EQ(layers.order.front(), "base");
  EXPECT_TRUE(layers.may_use["ops"].contains("base"));
  EXPECT_FALSE(layers.may_use["graph"].contains("ops"));
}

const std::pair<const std::string, std::string> kLayers = {"core/CMakeLists.txt",
                                                           "set(MGE_LAYERS base graph\n    ops plan CACHE INTERNAL \"\")\n"};
const std::pair<const std::string, std::string> kGraph = {"core/graph/CMakeLists.txt", "mge_layer(graph DEPS base)\n"};
const std::pair<const std::string, std::string> kOps = {"core/ops/CMakeLists.txt",
                                                        "mge_layer(ops DEPS graph\n  LINK fmt::fmt)\n"};

TEST(IncludesCheck, FindsAnIncludeOfAHigherLayer) {
  Tree tree = {kLayers,
               kGraph,
               kOps,
               {"core/graph/a.cc", "// #include \"core/ops/c.h\"\n#include \"core/base/x.h\"\n#include \"core/ops/b.h\"\n"},
               {"core/ops/deep/a.cc", "#include \"core/base/x.h\"\n#include \"core/plan/b.h\"\n"},
               {"core/cli/main.cc", "#include \"core/plan/plan.h\"\n#include \"mge/mge.h\"\n"},
               {"core/other/a.cc", ""},
               {"core/base/a.cc", "#include \"plugins/cpu/device.h\"\n"}};
  EXPECT_THAT(
      CheckArrows(tree),
      ElementsAre("core/base/a.cc:1: core may not include plugins/cpu/device.h", "core/cli/main.cc:1: cli may not use plan",
                  "core/graph/a.cc:3: graph may not use ops", "core/ops/deep/a.cc:2: ops may not use plan",
                  "core/other/a.cc: core/other is not a layer of MGE_LAYERS"));
}

TEST(IncludesCheck, FindsABackendThatIncludesOtherFolders) {
  Tree tree = {{"plugins/cuda/a.cu", "#include \"plugins/gpu/k.h\"\n#include \"plugins/cpu/d.h\"\n"},
               {"plugins/cpu/a.cc", "#include \"device.h\"\n#include \"core/base/status.h\"\n#include \"../null/d.h\"\n"},
               {"sdk/include/mge/plugin.h", "#include <stdint.h>\n#include \"mge/types.h\"\n#include <absl/x.h>\n"}};
  EXPECT_THAT(CheckBackendsAndSdk(tree),
              ElementsAre("plugins/cpu/a.cc:2: backend cpu may not include core/base/status.h",
                          "plugins/cpu/a.cc:3: backend cpu may not include ../null/d.h",
                          "plugins/cuda/a.cu:2: backend cuda may not include plugins/cpu/d.h",
                          "sdk/include/mge/plugin.h:3: sdk stands alone; it may not include absl/x.h"));
}

TEST(IncludesCheck, FindsVendorHeadersOutsideOfBackends) {
  Tree tree = {{"core/base/a.cc", "#include <cuda_runtime.h>\nopen(\"libcudnn.so.9\");\n"},
               {"core/base/b.cc", "#include <oneapi/dnnl/dnnl.hpp>\n"},
               {"plugins/cpu/a.cc", "#include <cblas.h>\n"}};
  EXPECT_THAT(CheckVendorHeaders(tree),
              ElementsAre("core/base/a.cc:1: vendor header outside of plugins/: cuda_runtime.h",
                          "core/base/a.cc:2: core names a vendor's library",
                          "core/base/b.cc:1: vendor header outside of plugins/: oneapi/dnnl/dnnl.hpp"));
}

}  // namespace
}  // namespace mge::lint
