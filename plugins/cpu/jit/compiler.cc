// SPDX-License-Identifier: Apache-2.0
#include "jit/compiler.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <map>
#include <mutex>
#include <set>

#include "compilers/compiler.h"
#include "mge/plugin/blob.hpp"
#include "mge/plugin/jit_files.hpp"

namespace mge::cpu {
namespace {

struct CompilerRow {
  Compiler compiler;
  const char* name;     // in jit.backend
  const char* suffix;   // of a file with its source
  const char* library;  // the package of the compiler, with which the helper is built
};
constexpr CompilerRow kCompilers[] = {
    {Compiler::kHalide, "halide", ".stmt", "libhalide14-0-dev"},
    {Compiler::kMlir, "mlir", ".mlir", "libmlir-15-dev and llvm-15-dev"},
};

const CompilerRow& RowOf(Compiler compiler) { return kCompilers[compiler == Compiler::kHalide ? 0 : 1]; }

// Returns the path of a helper library: the folder jit beside that of this backend's file.
std::string PathOf(const CompilerRow& row) {
  Dl_info self = {};
  static const char kHere = 0;
  std::string folder = dladdr(&kHere, &self) && self.dli_fname ? self.dli_fname : "";
  for (int levels = 0; levels < 2; ++levels) folder.resize(std::min(folder.size(), folder.find_last_of('/')));
  return folder + "/jit/libmge_jit_" + row.name + ".so";
}

// Returns the file's size and time, which differ for each build, or an empty text if it is missing.
std::string IdentityOf(const std::string& path) {
  struct stat s;
  if (stat(path.c_str(), &s) != 0) return "";
  return std::to_string(s.st_size) + " " + std::to_string(s.st_mtim.tv_sec) + "." + std::to_string(s.st_mtim.tv_nsec);
}

Result Missing(const CompilerRow& row, const std::string& path) {
  return {MGE_UNAVAILABLE, std::string("jit.backend is ") + row.name + ", but its library " + path +
                               " is missing; install the package mge-jit-" + row.name + ", or build MGE with " +
                               row.library + ", or set jit.backend to auto"};
}

// A compiler of this process.
class Helper {
 public:
  // Compiles the chain. Calls do not overlap: Halide allows no others.
  Result Compile(const CompilerRow& row, const mge_jit_chain& chain, Isa isa, CompiledChain* out) {
    std::lock_guard lock(mutex_);
    if (!failure_.ok()) return failure_;
    Result r = compiler_ ? Result() : Open(row);
    std::string error;
    if (r.ok()) {
      Delivery delivery = {out, &error};
      const int failed = compiler_->compile(&chain, std::string(IsaName(isa)).c_str(), KeepsJitFiles(), &delivery, Deliver);
      if (failed != 0 || out->image.empty()) r = {MGE_INTERNAL, std::string(compiler_->release) + ": " + error};
    }
    if (r.ok()) return r;
    failure_ = r;
    Log(MGE_LOG_WARNING,
        std::string("the compiler ") + row.name +
            " is not used any more; elementwise chains that it has not compiled are interpreted: " + r.text());
    return r;
  }

  // Returns the reason why it is not used any more.
  Result failure() {
    std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  struct Delivery {
    CompiledChain* out;
    std::string* error;
  };

  static void Deliver(void* context, const char* kind, const void* data, uint64_t bytes) {
    auto& to = *static_cast<Delivery*>(context);
    std::string text(static_cast<const char*>(data), bytes);
    const std::string_view name = kind;
    if (name == "image") to.out->image = std::move(text);
    if (name == "source") to.out->source = std::move(text);
    if (name == "error") *to.error = std::move(text);
  }

  Result Open(const CompilerRow& row) {
    const std::string path = PathOf(row);
    if (IdentityOf(path).empty()) return Missing(row, path);
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char* why = dlerror();
      return {MGE_UNAVAILABLE, std::string("the library of ") + row.name + " cannot be opened: " + (why ? why : path)};
    }
    auto query = reinterpret_cast<decltype(&mge_jit_query)>(dlsym(library, "mge_jit_query"));
    const mge_jit_compiler* compiler = query ? query() : nullptr;
    if (!compiler || compiler->interface_version != MGE_JIT_INTERFACE) {
      return {MGE_UNAVAILABLE, path + " belongs to another version of MGE; install the package of this version"};
    }
    compiler_ = compiler;
    return {};
  }

  std::mutex mutex_;
  const mge_jit_compiler* compiler_ = nullptr;
  Result failure_;
};

Helper& HelperOf(Compiler compiler) {
  static Helper halide, mlir;
  return compiler == Compiler::kHalide ? halide : mlir;
}

bool IsStored(const Chain& chain, ChainRange range, int value) {
  const ChainValue& v = chain.values[static_cast<size_t>(value)];
  return v.output || v.last_use >= range.last;
}

// The steps of a range as data of the C interface. Values that the range does not use are left out.
struct ChainData {
  std::vector<mge_jit_value> values;
  std::vector<mge_jit_step> steps;
};

ChainData DataOf(const Chain& chain, ChainRange range) {
  ChainData data;
  std::map<int, int32_t> numbers;
  const auto number = [&](int value) -> int32_t {
    if (value < 0) return -1;
    const auto [it, is_new] = numbers.try_emplace(value, static_cast<int32_t>(data.values.size()));
    if (is_new) {
      const ChainValue& v = chain.values[static_cast<size_t>(value)];
      const uint32_t flags = (v.single ? MGE_JIT_SINGLE : 0) | (v.constant ? MGE_JIT_CONSTANT : 0);
      data.values.push_back({static_cast<uint32_t>(v.type), flags, v.place, v.number});
    }
    return it->second;
  };
  for (int i = range.first; i < range.last; ++i) {
    const ChainStep& s = chain.steps[static_cast<size_t>(i)];
    mge_jit_step step = {NameOf(s.op),  static_cast<uint32_t>(s.half), number(s.a), number(s.b), number(s.c),
                         number(s.out), {s.params[0], s.params[1]}};
    if (IsStored(chain, range, s.out)) data.values[static_cast<size_t>(step.out)].flags |= MGE_JIT_STORED;
    data.steps.push_back(step);
  }
  return data;
}

}  // namespace

Compiler WantedCompiler() {
  std::string_view wanted;
  if (!ReadCoreSetting("jit.backend", &wanted).ok()) return Compiler::kOwn;
  for (const CompilerRow& row : kCompilers) {
    if (wanted == row.name) return row.compiler;
  }
  return Compiler::kOwn;
}

const char* NameOf(Compiler compiler) { return compiler == Compiler::kOwn ? "jit" : RowOf(compiler).name; }

std::string InstalledCompilers() {
  std::string names;
  for (const CompilerRow& row : kCompilers) {
    if (!IdentityOf(PathOf(row)).empty()) names += (names.empty() ? "" : " ") + std::string(row.name);
  }
  return names;
}

Result CheckCompilerSetting() {
  const Compiler compiler = WantedCompiler();
  if (compiler == Compiler::kOwn) return {};
  const std::string path = PathOf(RowOf(compiler));
  return IdentityOf(path).empty() ? Missing(RowOf(compiler), path) : Result();
}

Result CheckCompiler(Compiler compiler) {
  const std::string path = PathOf(RowOf(compiler));
  return IdentityOf(path).empty() ? Missing(RowOf(compiler), path) : HelperOf(compiler).failure();
}

bool StoresSeveral(const Chain& chain, ChainRange range) {
  int stored = 0;
  for (int i = range.first; i < range.last; ++i) stored += IsStored(chain, range, chain.steps[static_cast<size_t>(i)].out);
  return stored > 1;
}

const char* WhyNotCompiled(const Chain& chain, ChainRange range) {
  const bool several = StoresSeveral(chain, range);
  std::set<int> computed, read;  // values; places that are read
  for (int i = range.first; i < range.last; ++i) {
    const ChainStep& s = chain.steps[static_cast<size_t>(i)];
    for (int operand : {s.a, s.b, s.c}) {
      if (operand < 0 || computed.contains(operand)) continue;
      const ChainValue& v = chain.values[static_cast<size_t>(operand)];
      if (!v.constant) read.insert(v.place);
    }
    computed.insert(s.out);
  }
  for (int value : computed) {
    if (!IsStored(chain, range, value)) continue;
    const ChainValue& result = chain.values[static_cast<size_t>(value)];
    if (result.single) return "steps whose result is one element in memory";
    if (several && read.contains(result.place)) return "steps with several results that reuse the memory of an operand";
  }
  return "";
}

Result CompileChain(Compiler compiler, const Chain& chain, ChainRange range, Isa isa, const std::string& text,
                    CompiledChain* out) {
  const CompilerRow& row = RowOf(compiler);
  out->suffix = row.suffix;
  const std::string key = std::string("chain by ") + row.name + " " + IdentityOf(PathOf(row)) + "\n" + text;
  if (!KeepsJitFiles() && LoadBlob(key, &out->image)) return {};
  const ChainData data = DataOf(chain, range);
  const mge_jit_chain chain_data = {data.values.data(), data.steps.data(), static_cast<uint32_t>(data.values.size()),
                                    static_cast<uint32_t>(data.steps.size())};
  if (Result r = HelperOf(compiler).Compile(row, chain_data, isa, out); !r.ok()) return r;
  StoreBlob(key, out->image);
  return {};
}

}  // namespace mge::cpu
