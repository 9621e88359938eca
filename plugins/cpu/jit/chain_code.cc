// SPDX-License-Identifier: Apache-2.0
#include "jit/chain_code.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <system_error>
#include <unordered_map>

#include "jit/expressible.h"
#include "mge/plugin/jit_files.hpp"
#include "settings.h"
#include "support/kernel.h"

namespace mge::cpu {
namespace {

Result NoPages(const char* what) {
  return {MGE_UNAVAILABLE, std::string("the system refuses executable pages (") + what + ": " +
                               std::error_code(errno, std::generic_category()).message() +
                               "); allow them, for example by systemd's MemoryDenyWriteExecute=no, or set cpu.jit to 0"};
}

// Returns whether the process may have executable pages. Tries it once.
const Result& PagesAllowed() {
  static const Result allowed = [] {
    std::shared_ptr<const ChainCode> code;
    constexpr uint8_t kReturn = 0xc3;
    Result r = ChainCode::Make({kReturn}, &code);
    if (!r.ok()) Log(MGE_LOG_WARNING, "elementwise chains are interpreted: " + r.text());
    return r;
  }();
  return allowed;
}

// The code of the chains that were used last.
class CodeCache {
 public:
  std::shared_ptr<const ChainCode> Find(const std::string& key) {
    std::lock_guard lock(mutex_);
    auto it = index_.find(key);
    if (it == index_.end()) return nullptr;
    order_.splice(order_.begin(), order_, it->second);
    return it->second->second;
  }

  void Add(const std::string& key, std::shared_ptr<const ChainCode> code) {
    std::lock_guard lock(mutex_);
    if (index_.contains(key)) return;
    order_.emplace_front(key, std::move(code));
    index_[key] = order_.begin();
    if (order_.size() <= kMaxCachedCodes) return;
    index_.erase(order_.back().first);
    order_.pop_back();
  }

 private:
  using Entry = std::pair<std::string, std::shared_ptr<const ChainCode>>;
  std::mutex mutex_;
  std::list<Entry> order_;  // the last used first
  std::unordered_map<std::string, std::list<Entry>::iterator> index_;
};

CodeCache& TheCache() {
  static CodeCache kept;
  return kept;
}

// Returns a name for a key: the same in every process.
std::string FileName(const std::string& key) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : key) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  char text[32];
  std::snprintf(text, sizeof(text), "cpu_chain_%016llx", static_cast<unsigned long long>(hash));
  return text;
}

// Returns whether storing `out` would overwrite elements that the range still reads: values of different sizes share a place.
bool Overwrites(const Chain& chain, ChainRange range, int out) {
  const ChainValue& result = chain.values[static_cast<size_t>(out)];
  for (int i = range.first; i < range.last; ++i) {
    const ChainStep& s = chain.steps[static_cast<size_t>(i)];
    for (int operand : {s.a, s.b, s.c}) {
      if (operand < 0) continue;
      const ChainValue& v = chain.values[static_cast<size_t>(operand)];
      if (!v.single && v.place == result.place && SizeOf(v.type) != SizeOf(result.type)) return true;
    }
  }
  return false;
}

}  // namespace

Result ChainCode::Make(const std::vector<uint8_t>& code, std::shared_ptr<const ChainCode>* out) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t bytes = (code.size() + page - 1) / page * page;
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return NoPages("mmap");
  std::memcpy(pages, code.data(), code.size());
  if (mprotect(pages, bytes, PROT_READ | PROT_EXEC) != 0) {
    Result r = NoPages("mprotect");
    munmap(pages, bytes);
    return r;
  }
  out->reset(new ChainCode(pages, bytes));
  return {};
}

ChainCode::~ChainCode() { munmap(pages_, bytes_); }

Result CanMakeCode(Isa isa, Compiler compiler) {
  if (!ToBool(SettingOf(kJitSetting))) return {MGE_UNIMPLEMENTED, "cpu.jit is off"};
  if (isa == Isa::kPortable) {
    return {MGE_UNIMPLEMENTED, "code is made for AVX2 and AVX-512, which the processor lacks or cpu.isa forbids"};
  }
  if (compiler != Compiler::kOwn) {
    if (Result r = CheckCompiler(compiler); !r.ok()) return r;
  } else if (const char* why = WhyNoGenerator(); *why) {
    return {MGE_UNIMPLEMENTED, why};
  }
  return PagesAllowed();
}

Result CodeOf(const Chain& chain, ChainRange range, Isa isa, Compiler compiler, std::shared_ptr<const ChainCode>* out) {
  const std::string text = std::string(IsaName(isa)) + '\n' + TextOf(chain, range);
  const std::string key = NameOf(compiler) + (' ' + text);
  if ((*out = TheCache().Find(key))) return {};
  std::vector<uint8_t> code;
  CompiledChain compiled;
  if (compiler != Compiler::kOwn) {
    if (Result r = CompileChain(compiler, chain, range, isa, text, &compiled); !r.ok()) return r;
    code.assign(compiled.image.begin(), compiled.image.end());
  } else if (Result r = GenerateCode(chain, range, isa, &code); !r.ok()) {
    return r;
  }
  if (KeepsJitFiles()) {
    const std::string_view bytes(reinterpret_cast<const char*>(code.data()), code.size());
    KeepJitFiles(FileName(key), {{".txt", key}, {".bin", bytes}});
    if (!compiled.source.empty()) KeepJitFiles(FileName(key), {{compiled.suffix, compiled.source}});
  }
  if (Result r = ChainCode::Make(code, out); !r.ok()) return r;
  TheCache().Add(key, *out);
  return {};
}

CodePlan PlanCode(const Chain& chain, Compiler compiler) {
  CodePlan plan;
  const auto interpret = [&plan](const std::string& name) {
    if (plan.interpreted.find(name) != std::string::npos) return;
    plan.interpreted += (plan.interpreted.empty() ? "" : ", ") + name;
  };
  ChainRange open = {chain.first, chain.first};
  int weight = 0;
  auto close = [&](int next) {
    constexpr int kMinSteps = 2;  // a single step is a loop of machine code already
    if (open.last - open.first >= kMinSteps) {
      const char* why = compiler == Compiler::kOwn ? "" : WhyNotCompiled(chain, open);
      if (*why) {
        interpret(why);
      } else {
        plan.ranges.push_back(open);
      }
    }
    open = {next, next};
    weight = 0;
  };
  for (int i = chain.first; i < static_cast<int>(chain.steps.size()); ++i) {
    const ChainStep& s = chain.steps[static_cast<size_t>(i)];
    if (!HasCode(chain, s)) {
      interpret(NameOf(s.op));
      close(i + 1);
      continue;
    }
    const ChainRange with = {open.first, i + 1};
    if (weight + WeightOf(s.op) > kMaxRangeWeight || Overwrites(chain, with, s.out)) close(i);
    open.last = i + 1;
    weight += WeightOf(s.op);
  }
  close(0);
  return plan;
}

}  // namespace mge::cpu
