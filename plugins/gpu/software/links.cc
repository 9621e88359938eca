// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/software/links.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

namespace mge::software {
namespace {

constexpr size_t kMaxDevices = 1024;
constexpr size_t kLongestFile = 1 << 20;

// The link classes of a DGX-1V with V100 cards: PCIe 3.0 x16 to the host; NVLink 2 with 25 GB/s per link and direction.
const Link kClasses[] = {
    {false, 0, 0, "none"}, {false, 12, 10, "PCIe"}, {true, 25, 1.9, "NVLink"}, {true, 50, 1.9, "NVLink x2"}};

std::optional<double> Number(std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < 0) return std::nullopt;
  return value;
}

bool ParseCell(std::string_view cell, Link* out) {
  if (cell.size() == 1 && cell[0] >= '0' && cell[0] <= '3') {
    *out = kClasses[cell[0] - '0'];
    return true;
  }
  bool peer = true;
  if (cell.ends_with("/host")) {
    peer = false;
    cell.remove_suffix(5);
  }
  size_t slash = cell.find('/');
  if (slash == cell.npos) return false;
  std::optional<double> bandwidth = Number(cell.substr(0, slash)), latency = Number(cell.substr(slash + 1));
  if (!bandwidth || !latency || *bandwidth == 0 || *latency > 1e6) return false;
  *out = {peer, *bandwidth, *latency, peer ? "link" : "over the host"};
  return true;
}

std::string Figures(const Link& link) {
  char text[64];
  std::snprintf(text, sizeof(text), "%g/%g", link.bandwidth_gb_s, link.latency_us);
  return text;
}

// Reads each device's link to the host from its cells over the host. On error, `row` is the row; the text names no line.
Result ReadHosts(const std::vector<std::vector<Link>>& rows, std::vector<Link>* hosts, size_t* row) {
  hosts->assign(rows.size(), Link{false, 0, 0, "none"});
  for (size_t i = *row = 0; i < rows.size(); *row = ++i) {
    for (size_t j = 0; j < rows.size(); ++j) {
      const Link& link = rows[i][j];
      if (link.peer && i == j) {
        return {MGE_INVALID_ARGUMENT, "a peer link from device " + std::to_string(i) +
                                          " to itself; the diagonal is 0 or "
                                          "the device's link to the host"};
      }
      if (link.peer || link.bandwidth_gb_s == 0) continue;
      for (size_t device : {i, j}) {
        Link& host = (*hosts)[device];
        if (host.bandwidth_gb_s == 0) host = link;
        if (host.bandwidth_gb_s == link.bandwidth_gb_s && host.latency_us == link.latency_us) continue;
        return {MGE_INVALID_ARGUMENT, "device " + std::to_string(device) + " reaches the host by " + Figures(link) +
                                          " here and by " + Figures(host) + " in a cell before; it has one way to the host"};
      }
    }
  }
  return {};
}

}  // namespace

Result LinkMatrix::Parse(std::string_view text, std::string_view place, LinkMatrix* out) {
  std::vector<std::vector<Link>> rows;
  std::vector<int> lines;
  auto bad = [&](int line, const std::string& why) -> Result {
    return {MGE_INVALID_ARGUMENT, std::string(place) + ":" + std::to_string(line) + ": " + why};
  };
  for (int line = 1; !text.empty(); ++line) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    row = row.substr(0, row.find('#'));
    std::vector<Link> cells;
    while (true) {
      size_t begin = row.find_first_not_of(", \t\r");
      if (begin == row.npos) break;
      row.remove_prefix(begin);
      std::string_view cell = row.substr(0, row.find_first_of(", \t\r"));
      row.remove_prefix(cell.size());
      if (!ParseCell(cell, &cells.emplace_back())) {
        return bad(line, "the cell '" + std::string(cell.substr(0, 40)) +
                             "' is not valid; allowed: 0, 1, 2, 3, GB/s/us such as 25/1.9, and the latter with /host");
      }
      if (cells.size() > kMaxDevices) return bad(line, "a row has more than " + std::to_string(kMaxDevices) + " cells");
    }
    if (cells.empty()) continue;
    if (!rows.empty() && cells.size() != rows[0].size()) {
      return bad(line,
                 "this row has " + std::to_string(cells.size()) + " cells, the first has " + std::to_string(rows[0].size()));
    }
    rows.push_back(std::move(cells));
    lines.push_back(line);
  }
  if (rows.empty()) return bad(1, "there is no row of a link matrix");
  if (rows.size() != rows[0].size()) {
    return bad(lines.back(), "a link matrix must be square; this one has " + std::to_string(rows.size()) + " rows of " +
                                 std::to_string(rows[0].size()) + " cells");
  }
  size_t row = 0;
  std::vector<Link> hosts;
  if (Result r = ReadHosts(rows, &hosts, &row); !r.ok()) return bad(lines[row], r.text());
  out->size_ = static_cast<int>(rows.size());
  out->hosts_ = std::move(hosts);
  out->cells_.clear();
  for (std::vector<Link>& row : rows) out->cells_.insert(out->cells_.end(), row.begin(), row.end());
  return {};
}

Result LinkMatrix::Read(const std::string& path, LinkMatrix* out) {
  auto unreadable = [&](const std::string& why) -> Result {
    return {MGE_NOT_FOUND, "the link matrix " + path + " cannot be read: " + why};
  };
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (exists(status) && !is_regular_file(status)) {  // opening a FIFO would wait for a writer
    return unreadable("it is not a regular file");
  }
  std::string text(kLongestFile + 1, '\0');
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof() && !file) return unreadable(std::strerror(errno ? errno : EIO));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kLongestFile) {
    return {MGE_INVALID_ARGUMENT, path + " is longer than " + std::to_string(kLongestFile) + " bytes; not a link matrix"};
  }
  return Parse(text, path, out);
}

}  // namespace mge::software
