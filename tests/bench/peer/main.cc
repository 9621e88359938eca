// SPDX-License-Identifier: Apache-2.0
// bench_peer RUNTIME LIBRARY MODEL [--threads N] [--seconds S] [--input NAME=FILE.npy]... [--output-dir FOLDER]
// Runs a model in ONNX Runtime ("onnxruntime") or OpenVINO ("openvino"). Prints "first" when the first result is complete,
// then one JSON object. With --seconds 0 it measures nothing.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/bench/peer/peer.h"

namespace mge::bench {

void Fail(std::string_view text) {
  std::fprintf(stderr, "bench_peer: %.*s\n", static_cast<int>(text.size()), text.data());
  std::exit(1);
}

Library::Library(const std::string& file) : file_(file), handle_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (!handle_) Fail(dlerror());
}

void* Library::Symbol(const char* name) const {
  void* found = dlsym(handle_, name);
  if (!found) Fail(file_ + " has no function " + name);
  return found;
}

namespace {

using Clock = std::chrono::steady_clock;
double Us(Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

// Returns the text after `key` in the header of a .npy file.
std::string_view After(std::string_view header, std::string_view key, const std::string& file) {
  size_t at = header.find(key);
  if (at == std::string_view::npos) Fail(file + " is not a .npy file that numpy writes: no " + std::string(key));
  return header.substr(at + key.size());
}

Array ReadNpy(const std::string& name, const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) Fail(file + " cannot be opened");
  std::string all((std::istreambuf_iterator<char>(stream)), {});
  if (all.size() < 12 || all.compare(0, 6, "\x93NUMPY") != 0) Fail(file + " is not a .npy file");
  auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(all[i])); };
  const size_t begin = all[6] == 1 ? 10 : 12;
  size_t length = byte(8) | byte(9) << 8;
  if (begin == 12) length |= byte(10) << 16 | byte(11) << 24;
  if (begin + length > all.size()) Fail(file + " ends within its header");
  std::string_view header = std::string_view(all).substr(begin, length);
  Array out;
  out.name = name;
  std::string_view type = After(header, "'descr': '", file);
  out.type = type.substr(0, type.find('\''));
  if (After(header, "'fortran_order': ", file).starts_with("True")) Fail(file + " is in Fortran's order");
  std::string_view shape = After(header, "'shape': (", file);
  std::istringstream dims(std::string(shape.substr(0, shape.find(')'))));
  for (std::string dim; std::getline(dims, dim, ',');) {
    if (dim.find_first_of("0123456789") != std::string::npos) out.dims.push_back(std::stoll(dim));
  }
  out.storage.assign(all.begin() + static_cast<std::ptrdiff_t>(begin + length), all.end());
  out.bytes = out.storage;
  return out;
}

void WriteNpy(const Array& array, const std::string& file) {
  std::string shape;
  for (int64_t d : array.dims) shape += std::to_string(d) + ",";
  std::string header = "{'descr': '" + array.type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.append(63 - (10 + header.size()) % 64, ' ').push_back('\n');
  std::ofstream stream(file, std::ios::binary);
  stream << "\x93NUMPY" << '\1' << '\0' << static_cast<char>(header.size() & 255) << static_cast<char>(header.size() >> 8)
         << header;
  stream.write(array.bytes.data(), static_cast<std::streamsize>(array.bytes.size()));
  if (!stream.flush()) Fail(file + " cannot be written");
}

// Returns the peak resident size of the process in bytes. getrusage() would include the size of the parent process.
long long PeakBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  Fail("/proc/self/status has no line VmHWM");
}

// Measures as `mge bench` does: two more warm-up runs, then at least 5 runs and at least `seconds`. Returns the times.
std::vector<double> Measure(Peer& peer, double seconds) {
  std::vector<double> us;
  if (seconds <= 0) return us;
  for (int i = 0; i < 2; ++i) peer.Run();
  auto start = Clock::now();
  while (us.size() < 5 || (Us(Clock::now() - start) < seconds * 1e6 && us.size() < 1'000'000)) {
    auto t = Clock::now();
    peer.Run();
    us.push_back(Us(Clock::now() - t));
  }
  std::sort(us.begin(), us.end());
  return us;
}

void Main(const std::vector<std::string>& args) {
  if (args.size() < 3) Fail("usage: RUNTIME LIBRARY MODEL [OPTION VALUE]...");
  int threads = 1;
  double seconds = 1;
  std::string folder;
  std::vector<Array> inputs;
  for (size_t i = 3; i < args.size(); i += 2) {
    if (i + 1 == args.size()) Fail(args[i] + " needs a value");
    const std::string& value = args[i + 1];
    if (args[i] == "--threads") {
      threads = std::stoi(value);
    } else if (args[i] == "--seconds") {
      seconds = std::stod(value);
    } else if (args[i] == "--output-dir") {
      folder = value;
    } else if (args[i] == "--input" && value.find('=') != std::string::npos) {
      size_t split = value.rfind('=');
      inputs.push_back(ReadNpy(value.substr(0, split), value.substr(split + 1)));
    } else {
      Fail("unknown option " + args[i] + " " + value);
    }
  }
  if (args[0] != "onnxruntime" && args[0] != "openvino") Fail("unknown runtime " + args[0]);
  std::unique_ptr<Peer> peer = args[0] == "openvino" ? OpenOpenVino(args[1]) : OpenOnnxRuntime(args[1]);
  auto begin = Clock::now();
  peer->Load(args[2], threads);
  const double load = Us(Clock::now() - begin);
  peer->Bind(inputs);
  peer->Run();
  std::printf("first\n");
  std::fflush(stdout);
  const double first = Us(Clock::now() - begin);
  std::vector<double> us = Measure(*peer, seconds);
  std::string outputs;
  std::vector<Array> results = folder.empty() ? std::vector<Array>() : peer->Outputs();
  for (size_t i = 0; i < results.size(); ++i) {
    std::string file = std::to_string(i) + ".npy";
    if (!results[i].type.empty()) WriteNpy(results[i], folder + "/" + file);
    outputs += (i ? ", " : "") + (results[i].type.empty() ? std::string("null") : '"' + file + '"');
  }
  std::printf("{\"version\": \"%s\", \"runs\": %zu, \"load_ms\": %.3f, \"first_result_ms\": %.3f, ", peer->Version().c_str(),
              us.size(), load / 1000, first / 1000);
  if (!us.empty()) std::printf("\"latency_us\": {\"min\": %.3f, \"p50\": %.3f}, ", us.front(), us[us.size() / 2]);
  std::printf("\"peak_rss_bytes\": %lld, \"outputs\": [%s]}\n", PeakBytes(), outputs.c_str());
  std::fflush(stdout);
}

}  // namespace
}  // namespace mge::bench

int main(int argc, char** argv) {
  mge::bench::Main(std::vector<std::string>(argv + 1, argv + argc));
  _exit(0);  // skips the runtime's shutdown, which is not measured
}
