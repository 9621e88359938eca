// SPDX-License-Identifier: Apache-2.0
// The compiler of elementwise chains by Halide: one loop over vectors, in one thread.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "compilers/halide/argument.h"
#include "compilers/halide/builder.h"
#include "compilers/image.h"
#include "compilers/steps.h"

namespace mge::jit {

extern "C" const char mge_jit_adapter[];
extern "C" const char mge_jit_adapter_end[];

Halide::Type HalideBuilder::ElementOf(uint32_t type) {
  switch (type) {
    case MGE_DTYPE_F32: return Halide::Float(32);
    case MGE_DTYPE_F16:
    case MGE_DTYPE_BF16: return Halide::UInt(16);
    case MGE_DTYPE_I8: return Halide::Int(8);
    case MGE_DTYPE_U8:
    case MGE_DTYPE_BOOL: return Halide::UInt(8);
    default: throw ChainError("a value has the type " + std::to_string(type));
  }
}

Halide::Expr HalideBuilder::Load(const mge_jit_value& v) {
  const bool single = (v.flags & MGE_JIT_SINGLE) != 0;
  auto it = operands_.find(v.place);
  if (it == operands_.end()) {
    Halide::ImageParam p(ElementOf(v.type), 1, "place" + std::to_string(v.place));
    p.dim(0).set_min(0).set_stride(1);
    if (single) p.dim(0).set_extent(1);
    it = operands_.emplace(v.place, std::move(p)).first;
  }
  const Halide::Expr x = single ? it->second(0) : it->second(x_);
  switch (v.type) {
    case MGE_DTYPE_F32: return x;
    case MGE_DTYPE_BF16: return FloatOfBits(ShiftLeft(Halide::cast<int32_t>(x), 16));
    case MGE_DTYPE_BOOL: return x != Halide::cast<uint8_t>(0);
    case MGE_DTYPE_F16: return FloatOfHalfBits(*this, Halide::cast<int32_t>(x));
    default: return Halide::cast<int32_t>(x);
  }
}

Halide::Expr HalideBuilder::Packed(const mge_jit_value& v, const Value& value) {
  switch (v.type) {
    case MGE_DTYPE_F32: return value;
    case MGE_DTYPE_F16: return Halide::cast<uint16_t>(HalfBits(*this, value));
    case MGE_DTYPE_BF16: return Halide::cast<uint16_t>(Functions<HalideBuilder>(this).Bfloat16Bits(value));
    case MGE_DTYPE_BOOL: return Halide::select(value, Halide::cast<uint8_t>(1), Halide::cast<uint8_t>(0));
    default: return Halide::cast(ElementOf(v.type), value);
  }
}

namespace {

constexpr const char* kFunction = "mge_jit_chain";

// A file in memory.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("mge_jit", MFD_CLOEXEC)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "a file in memory cannot be created");
  }
  MemoryFile(const MemoryFile&) = delete;
  ~MemoryFile() { close(fd_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  std::string Read() const {
    std::string bytes;
    char part[4096];
    ssize_t n;
    while ((n = pread(fd_, part, sizeof(part), static_cast<off_t>(bytes.size()))) > 0)
      bytes.append(part, static_cast<size_t>(n));
    return bytes;
  }

 private:
  const int fd_;
};

Halide::Target TargetOf(const std::string& name) {
  using T = Halide::Target;
  std::vector<T::Feature> features = {T::NoRuntime, T::NoAsserts, T::NoBoundsQuery, T::StrictFloat, T::SSE41,
                                      T::AVX,       T::AVX2,      T::FMA,           T::F16C};
  if (name == "avx512") features.insert(features.end(), {T::AVX512, T::AVX512_Skylake});
  return T(T::Linux, T::X86, 64, features);
}

// A chain as a function of Halide.
class Program {
 public:
  Program(const mge_jit_chain& chain, const std::string& target) : x_("x"), function_("chain"), target_(TargetOf(target)) {
    HalideBuilder builder(x_);
    const std::vector<std::optional<Halide::Expr>> stored = Steps<HalideBuilder>(chain, &builder).Run();
    std::vector<Halide::Expr> results;
    for (const auto& [place, operand] : builder.operands()) {
      inputs_.push_back(operand);
      const Halide::Type type = operand.type();
      Describe(place, type, operand.parameter().extent_constraint(0).defined());
    }
    for (uint32_t i = 0; i < chain.value_count; ++i) {
      const mge_jit_value& v = chain.values[i];
      if (!stored[i]) continue;
      results.push_back(builder.Packed(v, *stored[i]));
      Describe(v.place, HalideBuilder::ElementOf(v.type), false);
    }
    if (results.empty()) throw ChainError("the chain stores no result");
    if (arguments_.size() > MGE_JIT_MAX_ARGUMENTS) throw ChainError("the chain has too many operands and results");
    function_(x_) = Halide::Tuple(results);
    for (Halide::OutputImageParam& buffer : function_.output_buffers()) buffer.dim(0).set_stride(1);
    function_.output_buffers()[0].dim(0).set_min(0);
    function_.vectorize(x_, target == "avx512" ? 16 : 8, Halide::TailStrategy::GuardWithIf);
  }

  std::string Source() {
    const MemoryFile file;
    function_.compile_to_lowered_stmt(file.path(), inputs_, Halide::Text, target_);
    return file.Read();
  }
  std::string Object() {
    const MemoryFile file;
    function_.compile_to_object(file.path(), inputs_, kFunction, target_);
    return file.Read();
  }
  // Returns the table for adapter.c.
  std::string Arguments() const {
    const mge_jit_argument count = {static_cast<int32_t>(arguments_.size()), 0, 0, 0, 0};
    std::string bytes(reinterpret_cast<const char*>(&count), sizeof(count));
    return bytes.append(reinterpret_cast<const char*>(arguments_.data()), arguments_.size() * sizeof(count));
  }

 private:
  void Describe(int place, Halide::Type type, bool single) {
    arguments_.push_back(
        {place, static_cast<uint8_t>(single), static_cast<uint8_t>(type.bytes()), static_cast<uint8_t>(type.code()), 0});
  }

  Halide::Var x_;
  Halide::Func function_;
  const Halide::Target target_;
  std::vector<Halide::Argument> inputs_;
  std::vector<mge_jit_argument> arguments_;
};

int Compile(const mge_jit_chain* chain, const char* target, int with_source, void* context,
            void (*deliver)(void* context, const char* kind, const void* data, uint64_t bytes)) {
  const auto send = [&](const char* kind, const std::string& text) { deliver(context, kind, text.data(), text.size()); };
  std::string error;
  try {
    Program program(*chain, target);
    if (with_source) send("source", program.Source());
    const std::string object = program.Object(), arguments = program.Arguments();
    const std::string_view adapter(mge_jit_adapter, static_cast<size_t>(mge_jit_adapter_end - mge_jit_adapter));
    std::string image;
    error = LinkImage({adapter, object}, {{"mge_jit_arguments", arguments}}, "mge_jit_enter", &image);
    if (error.empty()) {
      send("image", image);
      return 0;
    }
  } catch (const Halide::Error& e) {
    error = e.what();
  } catch (const std::exception& e) {
    error = e.what();
  }
  send("error", error);
  return 1;
}

}  // namespace
}  // namespace mge::jit

const mge_jit_compiler* mge_jit_query() {
  static const mge_jit_compiler compiler = {MGE_JIT_INTERFACE, "Halide 14", mge::jit::Compile};
  return &compiler;
}
