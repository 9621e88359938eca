// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/open_library.h"

#include <dlfcn.h>
#include <locale.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/errno_text.h"
#include "core/base/lines.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/needed.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {
namespace {

// Returns the text of the last failed dlopen() in English, also if the application has set another locale.
std::string DlopenError() {
  locale_t before = uselocale(newlocale(LC_ALL_MASK, "C", nullptr));  // cannot fail for "C"
  const char* text = dlerror();
  uselocale(before);
  return text ? text : "";
}

// Converts the text of a failed dlopen() to a verdict, for example "libfoo.so.1: cannot open shared object file: No such
// file or directory". There is no error code, so the texts of glibc are compared.
void CheckOpenFailure(PluginFile& file, std::string text) {
  constexpr std::string_view kNoFile = ": cannot open shared object file: No such file";
  // The dynamic linker reports an existing file as missing if it has no memory for its name.
  const bool there = text.starts_with(fmt::format("{}{}", file.path, kNoFile)) && access(file.path.c_str(), F_OK) == 0;
  if (there || text.ends_with(ErrnoText(ENOMEM)) || text.ends_with("out of memory")) {
    return CheckLack(file, VerdictCode::kOutOfMemory, fmt::format("there is not enough memory to open it: {}", text));
  }
  constexpr std::string_view kNoSymbol = "undefined symbol: ";
  constexpr std::string_view kNoVersion = ": version `";
  if (size_t at = text.find(kNoFile); at != std::string::npos && !text.starts_with(file.path)) {
    std::string library = text.substr(0, at);
    const std::vector<std::string> own = ReadElfNeeds(file.path).value_or(ElfNeeds()).libraries;
    bool direct = std::find(own.begin(), own.end(), library) != own.end();
    return SetVerdict(file, Verdict::kRefused, VerdictCode::kMissingLibrary,
                      direct ? fmt::format("it needs the library {}, which is not found", library)
                             : fmt::format("a library that it needs ({}) needs {} in turn, which is not found",
                                           fmt::join(own, ", "), library),
                      fmt::format("install {}, or add its directory to the system's library path (ldconfig)", library));
  }
  if (size_t at = text.find(kNoSymbol); at != std::string::npos) {
    std::string who = text.substr(0, text.find(": "));
    std::string symbol = text.substr(at + kNoSymbol.size());
    symbol = symbol.substr(0, symbol.find_first_of(", ("));
    return SetVerdict(file, Verdict::kRefused, VerdictCode::kMissingSymbol,
                      fmt::format("{} needs the symbol {}, which no library provides", who, symbol),
                      "install the versions of its libraries that it was built with, or build it again");
  }
  if (text.find(kNoVersion) != std::string::npos) {
    return SetVerdict(file, Verdict::kRefused, VerdictCode::kMissingLibrary,
                      fmt::format("a library that it needs is too old: {}", text),
                      "install the versions of its libraries that it was built with, or build it again");
  }
  SetVerdict(file, Verdict::kRefused, VerdictCode::kNotOpened, fmt::format("it cannot be opened: {}", text),
             "install it again, or build it again for this system");
}

}  // namespace

void CheckLack(PluginFile& file, VerdictCode code, std::string reason) {
  SetVerdict(file, Verdict::kSkipped, code, std::move(reason),
             code == VerdictCode::kUnavailable
                 ? "install the driver that it needs, if this machine has such a device"
                 : "end other programs, or raise the limit of this one (ulimit -v, its control group), and try again");
}

void CheckThrown(PluginFile& file, const std::string& thrown) {
  SetVerdict(
      file, Verdict::kRefused, VerdictCode::kOpenThrew, "while it was being opened, " + thrown,
      fmt::format("run `mge doctor` to put it into quarantine, or set MGE_PLUGIN_SKIP={} to leave it out; then restart "
                  "this process, in which other threads wait forever when they open a library",
                  file.name));
}

boost::dll::shared_library OpenLibraryFile(PluginFile& file, std::string& thrown) {
  namespace mode = boost::dll::load_mode;
  const std::filesystem::path path(file.path);
  boost::dll::shared_library handle;
  std::error_code code;
  mge_error error;
  CallBackend(error, [&](mge_error*) {
    handle.load(path, mode::rtld_now | mode::rtld_local, code);
    return MGE_OK;
  });
  if (error.code != MGE_OK) {  // the library is loaded only if its own code threw, else dlopen() or Boost.DLL did
    handle.load(path, mode::rtld_now | mode::rtld_local | static_cast<mode::type>(RTLD_NOLOAD), code);
    if (handle.is_loaded()) {
      thrown = TextOfBackend(error.code, error);
    } else {
      CheckLack(file, VerdictCode::kOutOfMemory, "it cannot be opened: " + TextOfBackend(error.code, error));
    }
  } else if (code) {
    const std::string text = DlopenError();
    CheckOpenFailure(file, EscapeControl(text.empty() ? code.message() : text));
  }
  return handle;
}

}  // namespace mge
