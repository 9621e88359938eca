// SPDX-License-Identifier: Apache-2.0
// A runtime to compare with, called through its C interface, so that measured times contain no Python.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mge::bench {

struct Array {
  std::string name;  // name of the model's input; empty for an output
  std::string type;  // element type in numpy's notation: "<f4"
  std::vector<int64_t> dims;
  std::span<const char> bytes;     // an output's are valid until the next run
  std::vector<char> storage = {};  // owns an input's bytes; must outlive the peer
};

// Prints "bench_peer: " and the text to stderr, and ends the process with exit code 1.
[[noreturn]] void Fail(std::string_view text);

// One model in one runtime. Every function ends the process by Fail() when the runtime reports an error.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual std::string Version() = 0;
  virtual void Load(const std::string& model, int threads) = 0;
  virtual void Bind(std::vector<Array>& inputs) = 0;
  virtual void Run() = 0;
  // Returns the outputs of the last run in the model's order. The type is empty for an output that is not a numeric tensor.
  virtual std::vector<Array> Outputs() = 0;
};

// Opens ONNX Runtime. `library` is the path of its shared library.
std::unique_ptr<Peer> OpenOnnxRuntime(const std::string& library);
std::unique_ptr<Peer> OpenOpenVino(const std::string& library);

// A shared library whose functions are found by name.
class Library {
 public:
  explicit Library(const std::string& file);
  template <typename F>
  F* Function(const char* name) const {
    return reinterpret_cast<F*>(Symbol(name));
  }

 private:
  void* Symbol(const char* name) const;
  std::string file_;
  void* handle_;
};

}  // namespace mge::bench
