// SPDX-License-Identifier: Apache-2.0
#include "core/cli/common.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "core/base/float16.h"
#include "core/base/nearest.h"
#include "core/base/status.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

// A well-mixed number from a counter: inputs are the same on every machine.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Floats in [-1, 1), integers in 0..9, bools either way.
void FillRandom(Tensor& tensor, uint64_t seed) {
  auto unit = [&](uint64_t i) {
    return static_cast<float>(static_cast<double>(Mix(seed * 0x100000001b3u + i) >> 11) * 0x1p-52 - 1.0);
  };
  auto fill = [&](auto span, auto value) {
    for (size_t i = 0; i < span.size(); ++i) span[i] = value(i);
  };
  auto digit = [&](uint64_t i) { return Mix(seed * 0x100000001b3u + i) % 10; };
  switch (tensor.dtype()) {
    case MGE_DTYPE_F32: fill(tensor.data<float>(), unit); break;
    case MGE_DTYPE_F64: fill(tensor.data<double>(), unit); break;
    case MGE_DTYPE_F16:
    case MGE_DTYPE_BF16: {
      auto* bits = static_cast<uint16_t*>(tensor.raw_data());
      auto to_bits = tensor.dtype() == MGE_DTYPE_BF16 ? FloatToBFloat16Bits : FloatToHalfBits;
      for (uint64_t i = 0; i < tensor.elements(); ++i) bits[i] = to_bits(unit(i));
      break;
    }
    case MGE_DTYPE_I8: fill(tensor.data<int8_t>(), digit); break;
    case MGE_DTYPE_I16: fill(tensor.data<int16_t>(), digit); break;
    case MGE_DTYPE_I32: fill(tensor.data<int32_t>(), digit); break;
    case MGE_DTYPE_I64: fill(tensor.data<int64_t>(), digit); break;
    case MGE_DTYPE_U8: fill(tensor.data<uint8_t>(), digit); break;
    case MGE_DTYPE_U16: fill(tensor.data<uint16_t>(), digit); break;
    case MGE_DTYPE_U32: fill(tensor.data<uint32_t>(), digit); break;
    case MGE_DTYPE_U64: fill(tensor.data<uint64_t>(), digit); break;
    case MGE_DTYPE_BOOL: fill(tensor.data<bool>(), [&](uint64_t i) { return digit(i) % 2 == 1; }); break;
    default: break;
  }
}

std::pair<std::string, std::string> SplitAt(const std::string& text, char at) {
  size_t i = text.find(at);
  if (i == std::string::npos) return {text, ""};
  return {text.substr(0, i), text.substr(i + 1)};
}

// "1x3x224x224"
bool ParseShape(const std::string& text, std::vector<int64_t>* out) {
  size_t at = 0;
  while (at <= text.size()) {
    size_t end = std::min(text.find('x', at), text.size());
    char* stop = nullptr;
    std::string number = text.substr(at, end - at);
    long long d = std::strtoll(number.c_str(), &stop, 10);
    if (number.empty() || *stop || d < 0) return false;
    out->push_back(d);
    at = end + 1;
  }
  return true;
}

}  // namespace

int Report(const Globals& globals, const Status& status) {
  if (status.ok()) return kExitOk;
  std::fprintf(stderr, "mge: %s\n", std::string(status.text()).c_str());
  if (status.id() != 0) Talk(globals, fmt::format("  more:  mge help E{:04d}", status.id()));
  if (globals.json) {
    PrintJson({{"schema", "mge.error/1"}, {"id", status.id()}, {"exit_code", status.kind()}, {"title", status.title()},
               {"what", status.what()}, {"where", status.where()}, {"fix", status.fix()}});
  }
  return status.kind();
}

int ReportUsage(const Globals& globals, std::string_view title, std::string_view fix) {
  std::string text = fmt::format("mge: error[E0201] {}\n", Escape(title));
  if (!fix.empty()) text += fmt::format("  fix:   {}\n", Escape(fix));
  std::fputs(text.c_str(), stderr);
  if (globals.json) {
    PrintJson({{"schema", "mge.error/1"}, {"id", 201}, {"exit_code", kExitUsage}, {"title", title}, {"what", ""},
               {"where", "command line"}, {"fix", fix}});
  }
  return kExitUsage;
}

int ReportError(const Globals& globals, const ErrorText& e) {
  std::string text = fmt::format("mge: error[E{:04}] {}\n", e.id, Escape(e.title));
  const std::pair<const char*, const std::string&> parts[] = {{"what:  ", e.what}, {"where: ", e.where}, {"fix:   ", e.fix}};
  for (const auto& [name, part] : parts) {
    if (!part.empty()) text += fmt::format("  {}{}\n", name, Escape(part));
  }
  std::fputs(text.c_str(), stderr);
  Talk(globals, fmt::format("  more:  mge help E{:04d}", e.id));
  if (globals.json) {
    PrintJson({{"schema", "mge.error/1"}, {"id", e.id}, {"exit_code", e.exit_code}, {"title", e.title}, {"what", e.what},
               {"where", e.where}, {"fix", e.fix}});
  }
  return e.exit_code;
}

void Print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);  // a backend that is closed later may end the process; FlushOutput() tells of what could not be written
}

void PrintJson(const Json& json) { Print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"); }

void Talk(const Globals& globals, std::string_view text) {
  if (!globals.quiet) std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
}

Status MakeRuntime(const Globals& globals, Runtime* out) {
  RuntimeOptions options;
  options.command_line = globals.settings;
  options.config_files = globals.config_files;
  return Runtime::Create(options, out);
}

Status OpenModel(const Globals& globals, const std::string& path, Runtime* runtime, Session* session,
                 const std::vector<std::string>& skip) {
  if (!runtime->get()) {
    if (Status s = MakeRuntime(globals, runtime); !s.ok()) return s;
  }
  SessionOptions options;
  options.device = globals.device;
  options.threads = globals.threads;
  options.skip = skip;
  return Session::Load(*runtime, path, options, session);
}

void InputOptions::Declare(CLI::App& app) {
  app.add_option("--input", files, "An input from a .npy, .npz (FILE.npz:ARRAY) or .pb file; without NAME= in order")
      ->type_name("NAME=FILE")->take_all()->allow_extra_args(false);
  app.add_option("--shape", dims, "The shape of an input that is made up, such as data=1x3x224x224")
      ->type_name("NAME=SHAPE")->take_all()->allow_extra_args(false);
  app.add_option("--seed", seed, "Start of the numbers that inputs are made of");
}

Status MakeInputs(const Globals& globals, const Session& session, const InputOptions& options, std::vector<Tensor>* out,
                  int* usage_error) {
  *usage_error = 0;
  size_t count = session.input_count();
  std::vector<std::string> names, files(count), shapes(count);
  for (size_t i = 0; i < count; ++i) names.emplace_back(session.input_name(i));
  auto assign = [&](const std::vector<std::string>& given, std::vector<std::string>& to, const char* option) {
    size_t next = 0;
    for (const std::string& text : given) {
      // A path may hold '=': a name counts only if the model has it, or if nothing else makes sense.
      auto [name, value] = SplitAt(text, '=');
      auto at = std::find(names.begin(), names.end(), name);
      if (value.empty() && next < count) {
        to[next++] = text;
      } else if (at != names.end()) {
        to[static_cast<size_t>(at - names.begin())] = value;
      } else {
        std::string_view near = Nearest(name, names);
        *usage_error = ReportUsage(globals, fmt::format("{} {}: the model has no input '{}'", option, text, name),
                                   near.empty() ? fmt::format("its inputs are: {}", fmt::join(names, ", "))
                                                : fmt::format("did you mean '{}'?", near));
        return;
      }
    }
  };
  assign(options.files, files, "--input");
  if (!*usage_error) assign(options.dims, shapes, "--shape");
  if (*usage_error) return Status();
  for (size_t i = 0; i < count; ++i) {
    Tensor tensor;
    if (!files[i].empty()) {
      if (Status s = session.ReadInput(i, files[i], &tensor); !s.ok()) return s;
    } else {
      std::vector<int64_t> dims;
      if (!shapes[i].empty()) {
        if (!ParseShape(shapes[i], &dims)) {
          *usage_error = ReportUsage(globals, fmt::format("--shape {}: '{}' is no shape", names[i], shapes[i]),
                                     "write sizes joined by x, as in 1x3x224x224");
          return Status();
        }
      } else {
        for (int64_t d : session.input_dims(i)) dims.push_back(d < 0 ? 1 : d);
      }
      if (Status s = Tensor::Create(session.input_dtype(i), dims, &tensor); !s.ok()) return s;
      FillRandom(tensor, options.seed * 1000003 + i + 1);
    }
    out->push_back(std::move(tensor));
  }
  return Status();
}

std::vector<const Tensor*> Pointers(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> out;
  for (const Tensor& t : tensors) out.push_back(&t);
  return out;
}

CLI::Validator Between(double least, double most) {
  CLI::Range range(least, most);
  auto check = [range, least, most](std::string& text) {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && std::isnan(value)) {
      return fmt::format("Value {} not in range [{} - {}]", text, least, most);
    }
    return range(text);
  };
  return {check, range.get_description()};
}

std::string HumanBytes(uint64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string HumanTime(double us) {
  if (us < 1000) return fmt::format("{:.1f} us", us);
  if (us < 1e6) return fmt::format("{:.2f} ms", us / 1000);
  return fmt::format("{:.2f} s", us / 1e6);
}

std::string ShapeText(std::span<const int64_t> dims) { return fmt::format("[{}]", fmt::join(dims, ",")); }

std::string TypeText(const Tensor& tensor) {
  if (tensor.kind() == MGE_VALUE_SEQUENCE) return fmt::format("sequence of {}", tensor.part_count());
  if (tensor.kind() == MGE_VALUE_OPTIONAL) return tensor.part_count() ? "optional" : "empty optional";
  return fmt::format("{}{}", mge_dtype_name(tensor.dtype()), ShapeText(tensor.dims()));
}

std::string Escape(std::string_view text) { return EscapeControl(text); }

std::string Wrapped(std::string_view text, size_t indent) {
  constexpr size_t kWidth = 100;
  std::string out;
  while (!text.empty()) {
    size_t end = text.size();
    if (end + indent > kWidth) {
      end = text.rfind(' ', kWidth - indent);
      if (end == std::string_view::npos) end = std::min(text.find(' '), text.size());
    }
    out += std::string(indent, ' ') + std::string(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += Escape(row[i]);
      if (i + 1 < row.size()) line += std::string(widths[i] + 2 - std::min(row[i].size(), widths[i]), ' ');
    }
    out += line + "\n";
  }
  return out;
}

Progress::Progress(const Globals& globals, std::string text, size_t total)
    : on_(!globals.quiet && isatty(STDERR_FILENO)), text_(std::move(text)), total_(total),
      begin_(std::chrono::steady_clock::now()), last_(begin_) {}

Progress::~Progress() {
  if (shown_) std::fprintf(stderr, "\r%*s\r", 78, "");
}

void Progress::Step(size_t done) {
  if (!on_) return;
  auto now = std::chrono::steady_clock::now();
  if (now - begin_ < std::chrono::seconds(1) || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  shown_ = true;
  double elapsed = std::chrono::duration<double>(now - begin_).count();
  double left = done ? elapsed / static_cast<double>(done) * static_cast<double>(total_ - done) : 0;
  std::fprintf(stderr, "\r%s %zu/%zu, %.0f s left ", text_.c_str(), done, total_, left);
}

}  // namespace mge::cli
