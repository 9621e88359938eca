// SPDX-License-Identifier: Apache-2.0
#include "core/cli/tokenizer.h"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/base/input_file.h"
#include "core/cli/common.h"
#include "fmt/format.h"
#include "mge/mge.h"

namespace mge::cli {
namespace {

constexpr int64_t kMaxBytes = 256 << 20;  // of tokenizer.json
constexpr size_t kContext = 6;            // earlier tokens that the text of a token may depend on
constexpr size_t kMaxIncomplete = 16;     // tokens without a whole character; more are not UTF-8
constexpr std::string_view kIncomplete = "\xEF\xBF\xBD";

absl::StatusOr<const text::Library*> OpenLibrary() {
  void* file = ::dlopen(ProgramPath(text::kLibraryFile).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!file) {
    const char* reason = ::dlerror();
    return Fail(
        errors::kUnsupportedFeature, fmt::format("texts need {}, which cannot be opened", text::kLibraryFile),
        {.what = reason ? reason : "",
         .fix = "give token ids: --ids 1,15,7; or use Python: mge.Generator(FOLDER).generate(TEXT); or build MGE with "
                "libicu-dev"});
  }
  using Query = const text::Library* (*)();
  const auto query = reinterpret_cast<Query>(::dlsym(file, text::kLibrarySymbol));
  if (query && query()->version == MGE_VERSION) return query();
  return Fail(errors::kUnsupportedFeature, fmt::format("{} is of another version of MGE", text::kLibraryFile),
              {.fix = "install the command and its libraries from one package"});
}

// Returns the number of bytes at the end that may be the beginning of a stop text.
size_t BytesOfBegunStop(std::string_view text, const std::vector<std::string>& stops) {
  size_t most = 0;
  for (const std::string& stop : stops) {
    for (size_t n = std::min(stop.size(), text.size()); n > most; --n) {
      if (text.ends_with(std::string_view(stop).substr(0, n))) most = n;
    }
  }
  return most;
}

}  // namespace

absl::Status StatusOf(const text::Failure& failure) {
  if (failure.id == 0) return absl::OkStatus();
  const ErrorRow* row = errors::Find(failure.id);
  return Fail(row ? *row : errors::kInternal, failure.title, failure.parts);
}

absl::StatusOr<std::unique_ptr<text::Tokenizer>> OpenTokenizer(const std::string& folder) {
  MGE_ASSIGN_OR_RETURN(const text::Library* library, OpenLibrary());
  const std::string path = folder + "/tokenizer.json";
  absl::StatusOr<InputBytes> file = ReadInput(path, kMaxBytes);
  if (!file.ok()) {
    return Fail(errors::kFileAccess, "the folder has no tokenizer",
                {.what = ErrorTitle(file.status()) + ": " + PartsOf(file.status()).what,
                 .where = path,
                 .fix = "put tokenizer.json of the model into the folder, or give token ids: --ids 1,15,7"});
  }
  std::unique_ptr<text::Tokenizer> out;
  MGE_RETURN_IF_ERROR(AddWhere(StatusOf(library->open(AsText(file->bytes), out)), folder));
  return out;
}

TextStream::TextStream(text::Tokenizer& tokenizer, const std::vector<int64_t>& prompt, std::vector<std::string> stops)
    : tokenizer_(tokenizer), stops_(std::move(stops)) {
  tokens_.assign(prompt.end() - static_cast<ptrdiff_t>(std::min(kContext, prompt.size())), prompt.end());
  done_ = tokens_.size();
}

// Returns the text of the tokens that are not done: what the text of all is longer than that of the first ones.
absl::StatusOr<std::string> TextStream::Pending() {
  std::string known, all;
  MGE_RETURN_IF_ERROR(
      StatusOf(tokenizer_.Decode({tokens_.begin(), tokens_.begin() + static_cast<ptrdiff_t>(done_)}, known)));
  MGE_RETURN_IF_ERROR(StatusOf(tokenizer_.Decode(tokens_, all)));
  size_t same = static_cast<size_t>(std::ranges::mismatch(known, all).in2 - all.begin());
  while (same > 0 && same < all.size() && (static_cast<unsigned char>(all[same]) & 0xC0) == 0x80) --same;
  return all.substr(same);
}

void TextStream::Emit(std::string_view text, std::string& out) {
  held_ += text;
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) {
    if (!stop.empty()) first = std::min(first, held_.find(stop));
  }
  stopped_ = first != std::string::npos;
  const size_t ready = stopped_ ? first : held_.size() - BytesOfBegunStop(held_, stops_);
  out.append(held_, 0, ready);
  held_.erase(0, stopped_ ? std::string::npos : ready);
}

absl::Status TextStream::Add(int64_t id, std::string& out) {
  tokens_.push_back(id);
  MGE_ASSIGN_OR_RETURN(const std::string text, Pending());
  if (text.empty()) return absl::OkStatus();
  if (text.ends_with(kIncomplete) && tokens_.size() - done_ < kMaxIncomplete) return absl::OkStatus();
  done_ = tokens_.size();
  if (done_ > kContext) {
    tokens_.erase(tokens_.begin(), tokens_.end() - kContext);
    done_ = kContext;
  }
  Emit(text, out);
  return absl::OkStatus();
}

absl::Status TextStream::Finish(std::string& out) {
  if (stopped_) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(const std::string text, Pending());
  Emit(text, out);
  if (!stopped_) out += held_;
  held_.clear();
  return absl::OkStatus();
}

}  // namespace mge::cli
