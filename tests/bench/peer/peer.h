// SPDX-License-Identifier: Apache-2.0
// A runtime to compare with, called through its own C interface: no Python is in the time that is measured.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mge::bench {

struct Array {
  std::string name;               // of the model's input; empty for an output
  std::string type;               // as numpy writes it: "<f4"
  std::vector<int64_t> dims;
  std::span<const char> bytes;    // an output's are valid until the next run
  std::vector<char> storage = {}; // owns an input's bytes; must outlive the peer
};

// Prints "bench_peer: " and the text to stderr and ends the process with exit code 1.
[[noreturn]] void Fail(std::string_view text);

// One model in one runtime. Every function ends the process by Fail() when the runtime reports an error.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual std::string Version() = 0;
  virtual void Load(const std::string& model, int threads) = 0;
  virtual void Bind(std::vector<Array>& inputs) = 0;
  virtual void Run() = 0;
  // The last run's outputs in the model's order. One that is no numeric tensor has an empty type.
  virtual std::vector<Array> Outputs() = 0;
};

// `library` is the file of the runtime's shared library.
std::unique_ptr<Peer> OpenOnnxRuntime(const std::string& library);
std::unique_ptr<Peer> OpenOpenVino(const std::string& library);

// Functions of a shared library, by name.
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
