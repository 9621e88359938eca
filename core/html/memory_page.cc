// SPDX-License-Identifier: Apache-2.0
#include "core/html/memory_page.h"

#include <algorithm>
#include <map>

#include "core/base/byte_size.h"
#include "core/html/chart.h"
#include "fmt/format.h"

namespace mge::html {
namespace {

constexpr size_t kMaxBodies = 20;         // bodies of control flow with pictures of their own
constexpr size_t kMaxColumnsOfUse = 500;  // points of the line of the bytes in use
constexpr size_t kLargest = 20;           // rows of the table
constexpr int kActivation = 0, kWorkspace = 2;

std::string BytesOf(const Json& value) { return HumanBytes(value.get<uint64_t>()); }

int64_t FirstOf(const Json& buffer) { return buffer["first_step"].get<int64_t>(); }
int64_t EndOf(const Json& buffer) { return buffer["last_step"].get<int64_t>() + 1; }

// Returns the buffers, the largest first.
std::vector<const Json*> BySize(const Json& buffers) {
  std::vector<const Json*> all;
  for (const Json& buffer : buffers) all.push_back(&buffer);
  std::ranges::stable_sort(all, [](const Json* a, const Json* b) { return (*a)["bytes"] > (*b)["bytes"]; });
  return all;
}

Axis StepAxis(const Json& buffers) {
  int64_t end = 1;
  for (const Json& buffer : buffers) end = std::max(end, EndOf(buffer));
  return {.title = "step", .low = 0, .high = static_cast<double>(end), .unit = Unit::kCount};
}

// Draws one arena. `buffers` are those that the page shows.
std::string ArenaPicture(const std::vector<const Json*>& buffers, size_t arena, double size, const Axis& steps) {
  Chart chart(steps, {.title = "offset in the arena", .low = 0, .high = std::max(size, 1.0), .unit = Unit::kBytes},
              Chart::Size{.height = 420});
  chart.Legend(kActivation, "results of nodes", Chart::Of::kAreas);
  chart.Legend(kWorkspace, "workspaces of kernels", Chart::Of::kAreas);
  for (const Json* b : buffers) {
    const Json& offset = (*b)["offset"];
    if ((*b)["arena"] != arena) continue;
    const double low = offset.get<double>();
    chart.Area((*b)["category"] == "workspace" ? kWorkspace : kActivation, {static_cast<double>(FirstOf(*b)), low},
               {static_cast<double>(EndOf(*b)), low + (*b)["bytes"].get<double>()},
               fmt::format("{}\n{} {}, offset {}\nsteps {} to {}", Plain((*b)["name"]), Plain((*b)["category"]),
                           BytesOf((*b)["bytes"]), Plain(offset), FirstOf(*b), EndOf(*b) - 1),
               Plain((*b)["name"]));
  }
  return chart.Html();
}

// Draws the bytes in use at each step. Several steps share a point if there are many: the one with the most bytes.
std::string UsePicture(const Json& buffers, const Axis& steps, double arena_bytes) {
  const auto count = static_cast<size_t>(steps.high);
  std::vector<int64_t> change(count + 1, 0);
  for (const Json& b : buffers) {
    change[static_cast<size_t>(FirstOf(b))] += b["bytes"].get<int64_t>();
    change[static_cast<size_t>(EndOf(b))] -= b["bytes"].get<int64_t>();
  }
  const size_t each = (count + kMaxColumnsOfUse - 1) / kMaxColumnsOfUse;
  std::vector<Point> line;
  int64_t now = 0;
  double peak = 0;
  for (size_t first = 0; first < count; first += each) {
    int64_t most = 0;
    const size_t end = std::min(count, first + each);
    for (size_t i = first; i < end; ++i) most = std::max(most, now += change[i]);
    line.push_back({static_cast<double>(first), static_cast<double>(most)});
    line.push_back({static_cast<double>(end), static_cast<double>(most)});
    peak = std::max(peak, static_cast<double>(most));
  }
  Chart chart(steps, AxisOf("bytes in use", {0, peak, arena_bytes * 1.08}, Unit::kBytes, true), Chart::Size{.height = 240});
  std::vector<Point> floor = line;
  for (Point& p : floor) p.y = 0;
  chart.Band(0, floor, line);
  chart.Line(0, line);
  chart.Guide({0, arena_bytes}, {steps.high, arena_bytes},
              "size of the arena: " + HumanBytes(static_cast<uint64_t>(arena_bytes)));
  return chart.Html();
}

std::string LargestBuffers(const std::vector<const Json*>& buffers) {
  std::vector<std::vector<std::string>> rows;
  for (const Json* b : buffers) {
    if (rows.size() == kLargest) break;
    rows.push_back({Plain((*b)["name"]), Plain((*b)["category"]), BytesOf((*b)["bytes"]),
                    fmt::format("{} to {}", FirstOf(*b), EndOf(*b) - 1), Plain((*b)["offset"])});
  }
  return Table({{"name"}, {"kind"}, {"size", true}, {"steps", true}, {"offset", true}}, rows);
}

}  // namespace

std::string MemoryBody(const Json& memory) {
  auto bytes = [&](const char* key) { return BytesOf(memory[key]); };
  std::string out = Facts({{"device", Plain(memory["device"])},
                           {"planned peak", bytes("planned_peak_bytes")},
                           {"measured peak", bytes("measured_peak_bytes")},
                           {"results without sharing", bytes("activation_bytes_without_sharing")},
                           {"packed constants", bytes("packed_constant_bytes")},
                           {"plain constants", bytes("constant_bytes")},
                           {"in memory of the process", bytes("resident_bytes")}});
  std::vector<const Json*> buffers = BySize(memory["buffers"]);
  const size_t all = buffers.size();
  if (all == 0) return out + Paragraph("The plan has no buffers in arenas.");
  if (buffers.size() > kMaxItems) buffers.resize(kMaxItems);
  out += LeftOut(buffers.size(), all, "buffers, the largest ones");
  const Axis steps = StepAxis(memory["buffers"]);
  out += Heading("Bytes in use by step") + UsePicture(memory["buffers"], steps, memory["arena_bytes"].get<double>());
  for (size_t arena = 0; arena < memory["arenas"].size(); ++arena) {
    const Json& facts = memory["arenas"][arena];
    out += Heading(fmt::format("Arena {} on {}: {}", arena, Plain(facts["device"]), BytesOf(facts["bytes"])));
    out += ArenaPicture(buffers, arena, facts["bytes"].get<double>(), steps);
  }
  size_t bodies = 0, left = kMaxItems;  // the bodies share the number of rectangles
  for (const Json& body : memory["bodies"]) {
    if (body["buffers"].empty()) continue;
    if (++bodies > kMaxBodies || left == 0) break;
    std::vector<const Json*> own = BySize(body["buffers"]);
    own.resize(std::min(own.size(), left));
    left -= own.size();
    std::map<size_t, double> sizes;
    for (const Json* b : own) {
      double& size = sizes[(*b)["arena"].get<size_t>()];
      size = std::max(size, (*b)["offset"].get<double>() + (*b)["bytes"].get<double>());
    }
    out += Heading(fmt::format("Body {}: {}", Plain(body["body"]), BytesOf(body["arena_bytes"])));
    for (const auto& [arena, size] : sizes) out += ArenaPicture(own, arena, size, StepAxis(body["buffers"]));
  }
  return out + Heading("Largest buffers") + LargestBuffers(buffers);
}

}  // namespace mge::html
