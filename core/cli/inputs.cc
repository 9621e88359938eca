// SPDX-License-Identifier: Apache-2.0
#include "core/cli/inputs.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "core/base/input_file.h"
#include "core/base/nearest.h"
#include "core/base/npz_names.h"
#include "core/cli/compare.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

constexpr int kVariants = 3;     // number of values of mge_example_options::variant
constexpr size_t kMaxLines = 8;  // maximum number of inputs that are described one by one
constexpr int kInvalid = 3;      // kind of a status: the model or its input is invalid

std::pair<std::string, std::string> SplitAt(const std::string& text, char at) {
  size_t i = text.find(at);
  if (i == std::string::npos) return {text, ""};
  return {text.substr(0, i), text.substr(i + 1)};
}

template <typename Names>
bool Contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns the names of the arrays of a .npz file. Returns none if it is not one, or cannot be read: the reader of the input
// reports that.
std::vector<std::string> ArraysOf(const std::string& path) {
  if (!path.ends_with(".npz")) return {};
  absl::StatusOr<InputBytes> file = ReadInput(path, kMaxArrayFileBytes);
  if (!file.ok()) return {};
  return NpzNames(file->bytes, file->name).value_or(std::vector<std::string>());
}

// Replaces each .npz file by one text "NAME=FILE:NAME" per array, if its arrays have the names of inputs. A file of one array
// with another name is the next input. Sets *archive to the last file that was replaced. Returns 0, or the exit code of a
// usage error.
int ReplaceArchives(const Globals& globals, const std::vector<std::string>& names, std::vector<std::string>* files,
                    std::string* archive) {
  std::vector<std::string> out;
  for (const std::string& text : *files) {
    const auto [name, file] = SplitAt(text, '=');
    if (Contains(names, name) && !file.empty()) {
      out.push_back(Contains(ArraysOf(file), name) ? text + ":" + name : text);
      continue;
    }
    const std::vector<std::string> arrays = ArraysOf(text);
    if (arrays.empty() || (arrays.size() == 1 && !Contains(names, arrays[0]))) {
      out.push_back(text);
      continue;
    }
    for (const std::string& array : arrays) {
      if (!Contains(names, array)) {
        return ReportUsage(
            globals, fmt::format("--input {}: its array '{}' is not an input of the model", text, array),
            DidYouMeanOr(Nearest(array, names), fmt::format("the inputs are: {}; to use single arrays, give NAME={}:ARRAY",
                                                            fmt::join(names, ", "), text)));
      }
      out.push_back(fmt::format("{}={}:{}", array, text, array));
    }
    *archive = text;
  }
  *files = std::move(out);
  return 0;
}

// Assigns the values of an option to the inputs, by name or by position. Returns 0, or the exit code of a usage error.
int Assign(const Globals& globals, const std::vector<std::string>& names, const std::vector<std::string>& given,
           const char* option, std::vector<std::string>* to) {
  to->assign(names.size(), "");
  size_t next = 0;
  for (const std::string& text : given) {
    auto [name, value] = SplitAt(text, '=');
    auto at = std::find(names.begin(), names.end(), name);
    std::error_code ec;
    if (at != names.end() && !value.empty()) {
      std::string& place = (*to)[static_cast<size_t>(at - names.begin())];
      if (!place.empty()) return ReportUsage(globals, fmt::format("{} {}: input '{}' is given twice", option, text, name));
      place = value;
      continue;
    }
    // A path may contain '='.
    if (!value.empty() && !std::filesystem::exists(text, ec)) {
      return ReportUsage(globals, fmt::format("{} {}: the model has no input '{}'", option, text, name),
                         DidYouMeanOr(Nearest(name, names), fmt::format("its inputs are: {}", fmt::join(names, ", "))));
    }
    while (next < names.size() && !(*to)[next].empty()) ++next;
    if (next == names.size()) {
      return ReportUsage(globals,
                         fmt::format("{} {}: more values than inputs; the model has {}", option, text, names.size()),
                         fmt::format("its inputs are: {}", fmt::join(names, ", ")));
    }
    (*to)[next++] = text;
  }
  return 0;
}

// Describes a generated input, for example as
// "x: float32[1,3,224,224], floats in [-1, 1); batch = 1 (a batch of 1), axis 2 = 224 (a usual size of images)".
std::string Describe(const Json& row) {
  std::string out = fmt::format("{}: {}{}, {}", Escape(row["name"].get<std::string>()), row["dtype"].get<std::string>(),
                                row["shape"].dump(), row["values"].get<std::string>());
  const char* before = "; ";
  for (const Json& c : row["chosen"]) {
    const std::string name = c["name"];
    out += fmt::format("{}{} = {} ({})", std::exchange(before, ", "),
                       name.empty() ? fmt::format("axis {}", c["axis"].get<int>()) : Escape(name), c["size"].get<int64_t>(),
                       c["reason"].get<std::string>());
  }
  return out;
}

void Say(const Globals& globals, const InputFacts& facts) {
  size_t made = 0;
  for (const Json& row : facts.rows) {
    if (row["given"].get<bool>()) continue;
    if (++made <= kMaxLines) PrintMessage(globals, fmt::format("generated input {}", Describe(row)));
  }
  if (made > kMaxLines) PrintMessage(globals, fmt::format("generated {} more inputs", made - kMaxLines));
}

Status MakeVariant(const Globals& globals, const Session& session, const InputOptions& options, int variant,
                   std::vector<Tensor>* out, int* usage_error, InputFacts* facts) {
  *usage_error = 0;
  const size_t count = session.input_count();
  std::vector<std::string> names, files, shapes, given = options.files;
  std::string archive;
  for (size_t i = 0; i < count; ++i) names.emplace_back(session.input(i).name());
  if ((*usage_error = ReplaceArchives(globals, names, &given, &archive))) return {};
  if ((*usage_error = Assign(globals, names, given, "--input", &files))) return {};
  if ((*usage_error = Assign(globals, names, options.shapes, "--shape", &shapes))) return {};
  ExampleOptions example;
  example.seed = options.seed;
  example.variant = variant;
  out->resize(count);
  facts->made_up = false;
  facts->variant = variant;
  for (size_t i = 0; i < count; ++i) {
    if (files[i].empty()) {
      if (!archive.empty() && shapes[i].empty()) {
        *usage_error = ReportUsage(
            globals, fmt::format("--input {}: it has no array for the input '{}'", archive, names[i]),
            fmt::format("add the array, or give --input {0}=FILE, or --shape {0}=SHAPE to generate the input", names[i]));
        return {};
      }
      facts->made_up = true;
      (*out)[i] = Tensor();
      if (!shapes[i].empty()) example.shapes.push_back(names[i] + "=" + shapes[i]);
    } else if (!shapes[i].empty()) {
      *usage_error =
          ReportUsage(globals, fmt::format("--shape {}={}: the input is read from {}", names[i], shapes[i], files[i]),
                      "give either --input or --shape for an input");
      return {};
    } else if (variant == 0) {  // later variants keep the tensor, because a pipe can be read only once
      if (Status s = session.ReadInput(i, files[i]).MoveTo((*out)[i]); !s.ok()) return s;
    }
  }
  auto made = session.ExampleInputs(example, std::move(*out));
  if (!made.ok()) return made.status();
  *out = std::move(made->inputs);
  facts->rows = Json::parse(made->report)["inputs"];
  return {};
}

// Returns the index of the first output with a NaN, or npos.
size_t FirstWithNan(const std::vector<Tensor>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (HoldsNan(outputs[i])) return i;
  }
  return std::string::npos;
}

constexpr int64_t kMaxRuns = 4096;  // limit of the sizes of a list

// A list of sizes in the text of a shape, "8..64" in "x=1x8..64x3": characters `begin` to `end`. `end` is 0 if there is none.
struct SizeList {
  size_t begin = 0, end = 0;
  int64_t first = -1, last = -1;  // -1: not a number
};

SizeList ListIn(const std::string& text) {
  SizeList list;
  const size_t dots = text.find("..");
  if (dots == std::string::npos) return list;
  const auto digit = [&](size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  list.begin = dots;
  while (list.begin > 0 && digit(list.begin - 1)) --list.begin;
  list.end = dots + 2;
  while (digit(list.end)) ++list.end;
  std::from_chars(text.data() + list.begin, text.data() + dots, list.first);
  std::from_chars(text.data() + dots + 2, text.data() + list.end, list.last);
  return list;
}

}  // namespace

void InputOptions::Declare(Arguments app) {
  app.Add("--input", files,
          "An input from a .npy, .npz (FILE.npz:ARRAY) or .pb file, or from - (standard input); without NAME= in order. "
          "Arrays of a .npz with the names of inputs are these inputs")
      .ValueName("NAME=FILE")
      .IsInput()
      .Repeats();
  app.Add("--shape", shapes,
          "The shape of a generated input, such as data=1x3x224x224. In bench and plan, a size may be a list, such as "
          "ids=1x8..64: "
          "each run has the next size")
      .ValueName("NAME=SHAPE")
      .Repeats();
  app.Add("--seed", seed, "Seed of the random inputs");
}

int EachRun(const Globals& globals, const InputOptions& options, std::vector<InputOptions>* runs) {
  runs->assign(1, options);
  size_t lists = 0;
  for (size_t i = 0; i < options.shapes.size(); ++i) {
    const std::string& text = options.shapes[i];
    const SizeList list = ListIn(text);
    if (list.end == 0) continue;
    const auto fault = [&](std::string why) { return ReportUsage(globals, fmt::format("--shape {}: {}", text, why)); };
    if (list.first < 0 || list.last < list.first || list.last - list.first >= kMaxRuns) {
      return fault(
          fmt::format("a list of sizes such as 8..64 has at most {} sizes and ends with the largest one", kMaxRuns));
    }
    if (ListIn(text.substr(list.end)).end != 0) return fault("only one size may be a list");
    const auto count = static_cast<size_t>(list.last - list.first + 1);
    if (lists++ == 0) runs->assign(count, options);
    if (runs->size() != count) {
      return fault(fmt::format("it lists {} sizes, and another shape lists {}", count, runs->size()));
    }
    for (size_t run = 0; run < count; ++run) {
      (*runs)[run].shapes[i] =
          fmt::format("{}{}{}", text.substr(0, list.begin), list.first + static_cast<int64_t>(run), text.substr(list.end));
    }
  }
  for (size_t run = 1; run < runs->size(); ++run) (*runs)[run].say = false;
  return 0;
}

Status MakeInputs(const Globals& globals, const Session& session, const InputOptions& options, std::vector<Tensor>* out,
                  int* usage_error, InputFacts* facts) {
  InputFacts own;
  if (!facts) facts = &own;
  Status s = MakeVariant(globals, session, options, 0, out, usage_error, facts);
  if (s.ok() && !*usage_error && options.say) Say(globals, *facts);
  return s;
}

Status MakeInputsAndRun(const Globals& globals, Session& session, const InputOptions& options,
                        const std::function<Status(const std::vector<Tensor>& inputs)>& run,
                        const std::vector<Tensor>& outputs, std::vector<Tensor>* inputs, int* usage_error,
                        InputFacts* facts) {
  Status first = MakeInputs(globals, session, options, inputs, usage_error, facts);
  if (!first.ok() || *usage_error) return first;
  first = run(*inputs);
  if (!facts->made_up || (!first.ok() && first.exit_code() != kInvalid)) return first;
  std::string why;
  if (!first.ok()) {
    why = fmt::format("the model fails for the first values ({})", Escape(first.title()));
  } else if (const size_t nan = FirstWithNan(outputs); nan != std::string::npos) {
    why = fmt::format("output '{}' holds NaN for the first values", Escape(session.output(nan).name()));
  } else {
    return {};
  }
  // Uses the first variant without an error and without NaN, else the first one without an error.
  int with_nan = first.ok() ? 0 : -1;
  for (int variant = 1; variant < kVariants; ++variant) {
    if (Status s = MakeVariant(globals, session, options, variant, inputs, usage_error, facts); !s.ok()) return s;
    if (Status s = run(*inputs); !s.ok()) {
      if (s.exit_code() != kInvalid) return s;
      continue;
    }
    if (FirstWithNan(outputs) == std::string::npos) {
      PrintMessage(globals, why + "; other values are used:");
      Say(globals, *facts);
      return {};
    }
    if (with_nan < 0) with_nan = variant;
  }
  if (with_nan < 0) return first;
  if (Status s = MakeVariant(globals, session, options, with_nan, inputs, usage_error, facts); !s.ok()) return s;
  if (Status s = run(*inputs); !s.ok()) return s;
  PrintMessage(globals,
               fmt::format("output '{}' holds NaN for all generated values for which the model runs; give real ones "
                           "with --input",
                           Escape(session.output(FirstWithNan(outputs)).name())));
  return {};
}

Status MakeInputsAndRun(const Globals& globals, Session& session, const InputOptions& options, std::vector<Tensor>* outputs,
                        std::vector<Tensor>* inputs, int* usage_error) {
  InputFacts facts;
  auto run = [&](const std::vector<Tensor>& now) { return session.Run(Pointers(now), *outputs); };
  return MakeInputsAndRun(globals, session, options, run, *outputs, inputs, usage_error, &facts);
}

std::vector<const Tensor*> Pointers(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> out;
  for (const Tensor& t : tensors) out.push_back(&t);
  return out;
}

}  // namespace mge::cli
