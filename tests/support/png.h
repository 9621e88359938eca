// SPDX-License-Identifier: Apache-2.0
// Reads pictures that a browser has written.
#pragma once

#include <zlib.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

namespace mge {

struct Picture {
  size_t width = 0, height = 0;
  std::vector<std::array<uint8_t, 3>> pixels;  // red, green, blue; row by row

  std::array<uint8_t, 3> At(size_t x, size_t y) const { return pixels[y * width + x]; }
  size_t colors() const { return std::set<std::array<uint8_t, 3>>(pixels.begin(), pixels.end()).size(); }
};

// Returns the picture of a PNG of 8 bits in RGB or RGBA, without interlacing. Empty for anything else.
inline Picture ReadPng(const std::string& bytes) {
  auto number = [&](size_t at) {
    uint32_t out = 0;
    for (size_t i = 0; i < 4; ++i) out = out << 8 | static_cast<uint8_t>(bytes[at + i]);
    return static_cast<size_t>(out);
  };
  Picture picture;
  std::string packed;
  size_t samples = 0;
  for (size_t at = 8; at + 12 <= bytes.size() && at + 12 + number(at) <= bytes.size(); at += 12 + number(at)) {
    const std::string kind = bytes.substr(at + 4, 4);
    if (kind == "IHDR") {
      picture.width = number(at + 8);
      picture.height = number(at + 12);
      samples = bytes[at + 16] != 8 ? 0 : bytes[at + 17] == 2 ? 3 : bytes[at + 17] == 6 ? 4 : 0;
    }
    if (kind == "IDAT") packed += bytes.substr(at + 8, number(at));
  }
  if (samples == 0) return {};
  const size_t row = picture.width * samples;
  std::vector<uint8_t> raw((row + 1) * picture.height);
  uLongf size = raw.size();
  if (uncompress(raw.data(), &size, reinterpret_cast<const Bytef*>(packed.data()), packed.size()) != Z_OK) return {};
  for (size_t y = 0; y < picture.height; ++y) {
    uint8_t* now = &raw[y * (row + 1) + 1];
    const uint8_t* above = y > 0 ? now - (row + 1) : nullptr;
    for (size_t i = 0; i < row; ++i) {
      const int a = i >= samples ? now[i - samples] : 0, b = above ? above[i] : 0,
                c = above && i >= samples ? above[i - samples] : 0, p = a + b - c;
      const int da = std::abs(p - a), db = std::abs(p - b), dc = std::abs(p - c);
      const int paeth = da <= db && da <= dc ? a : db <= dc ? b : c;
      const int predictions[] = {0, a, b, (a + b) / 2, paeth};  // of the five filters
      now[i] = static_cast<uint8_t>(now[i] + predictions[now[-1] % 5]);
      if (i % samples == samples - 1)
        picture.pixels.push_back({now[i - samples + 1], now[i - samples + 2], now[i - samples + 3]});
    }
  }
  return picture;
}

}  // namespace mge
