// SPDX-License-Identifier: Apache-2.0
// The pages of --html in a browser without a window: their colours, and texts that overlap or are cut off.
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/support/command.h"
#include "tests/support/png.h"

namespace mge {
namespace {

namespace ob = onnx_builder;

// Finds texts of pictures that overlap each other or leave their picture. The pages forbid scripts; a copy that allows this
// one writes what it finds into its title.
constexpr char kMeasuring[] = R"(<script>
const found = [];
for (const svg of document.querySelectorAll("svg")) {
  const whole = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
  texts.forEach(([text, a], i) => {
    if (a.left < whole.left - 1 || a.right > whole.right + 1 || a.top < whole.top - 1 || a.bottom > whole.bottom + 1)
      found.push("cut: " + text);
    for (const [other, b] of texts.slice(i + 1))
      if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3)
        found.push("overlap: " + text + " | " + other);
  });
}
document.title = "measured:" + found.slice(0, 5).join(", ");
</script>
</body>)";

class Screenshots : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
      if (std::system(("command -v " + std::string(name) + " >/dev/null 2>&1").c_str()) == 0) browser_ = name;
    }
    if (browser_.empty()) GTEST_SKIP() << "there is no browser; install chromium";
    // A model with several operators, two branches and long names.
    std::vector<std::string> nodes;
    std::string before = "x";
    for (int i = 0; i < 12; ++i) {
      const std::string value = i == 11 ? "y" : "layers/a_long_name_of_a_value/with_parts/output_" + std::to_string(i);
      const char* op = i % 3 == 0 ? "MatMul" : i % 3 == 1 ? "Softmax" : "Erf";
      const std::vector<std::string> inputs = i % 3 == 0 ? std::vector<std::string>{before, before} : std::vector{before};
      nodes.push_back(ob::NodeProto(op, inputs, {value}, {.name = "node_of_" + value}));
      before = value;
    }
    Model("m.onnx", nodes, {}, {int64_t{64}, int64_t{64}});
  }

  // Runs the browser on a page with these options. Returns what it printed.
  std::string Browse(const std::string& page, const std::string& options) const {
    const std::string line =
        "cd " + folder_ + " && timeout 120 " + browser_ +
        " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --user-data-dir=" +
        Path("profile_of_browser") + " " + options + " file://" + Path(page) +
        " >browser.txt 2>browser_errors.txt </dev/null";
    EXPECT_EQ(std::system(line.c_str()), 0) << Read("browser_errors.txt");
    return Read("browser.txt");
  }

  enum Scheme { kDark, kLight };  // as the browser numbers them

  // Expects a page with the colours of the scheme, in which no text overlaps another one.
  void ExpectReadable(const std::string& page, Scheme scheme) const {
    std::filesystem::remove(Path("shot.png"));
    Browse(page,
           "--window-size=1150,1000 --screenshot=shot.png --blink-settings=preferredColorScheme=" + std::to_string(scheme));
    const Picture shot = ReadPng(Read("shot.png"));
    ASSERT_EQ(shot.width, 1150u) << page;
    EXPECT_GT(shot.colors(), 20u) << page;  // not blank
    const auto corner = shot.At(2, 2);
    const int brightness = corner[0] + corner[1] + corner[2];
    EXPECT_TRUE(scheme == kDark ? brightness < 150 : brightness > 700) << page << ": " << brightness;
    std::string copy = Read(page);
    const std::string policy = "default-src 'none'; style-src 'unsafe-inline'";
    copy.replace(copy.find(policy), policy.size(), "default-src 'unsafe-inline'");
    copy.replace(copy.rfind("</body>"), 7, kMeasuring);
    Write("copy.html", copy);
    const std::string dom = Browse("copy.html", "--window-size=1150,1000 --dump-dom");
    EXPECT_THAT(dom, testing::HasSubstr("<title>measured:</title>"))
        << page << ": " << dom.substr(std::min(dom.find("<title>"), dom.size()), 600);
  }

  std::string browser_;
};

TEST_F(Screenshots, ShowPlansAndMemory) {
  ASSERT_EQ(Mge("plan m.onnx --measure --html plan.html").code, 0);
  ExpectReadable("plan.html", kDark);
  ASSERT_EQ(Mge("memory m.onnx --html memory.html").code, 0);
  ExpectReadable("memory.html", kLight);
}

TEST_F(Screenshots, ShowProfilesAndComparisons) {
  const Outcome o = Mge("profile m.onnx --runs 5 --json --html profile.html");
  ASSERT_EQ(o.code, 0) << o.err;
  ExpectReadable("profile.html", kDark);
  Write("p.json", o.out);
  Write("q.json", Mge("profile m.onnx --runs 5 --json").out);
  ASSERT_EQ(Mge("bench diff p.json q.json --html diff.html").code, 0);
  ExpectReadable("diff.html", kLight);
  Write("b.json", Mge("bench m.onnx --runs 5 --json").out);
  Write("c.json", Mge("bench m.onnx --runs 5 --json").out);
  ASSERT_EQ(Mge("bench diff b.json c.json --html diff.html").code, 0);
  ExpectReadable("diff.html", kLight);
}

TEST_F(Screenshots, ShowTrainingsAndTheMachine) {
  const std::string digits = MGE_SOURCE_DIR "/packaging/digits/digits";
  ASSERT_EQ(Mge("train " + digits + ".onnx --input image=" + digits + "_images.npy --input labels=" + digits +
                "_labels.npy --epochs 8 --batch 4 --schedule cosine --warmup 0.2 --html train.html")
                .code,
            0);
  ExpectReadable("train.html", kLight);
  Mge("doctor --html doctor.html");
  ExpectReadable("doctor.html", kDark);
  ExpectReadable("doctor.html", kLight);
}

}  // namespace
}  // namespace mge
