// SPDX-License-Identifier: Apache-2.0
// The `mge` command: parses the command line, runs one sub-command and returns its exit code.
#include "CLI/CLI.hpp"
#include "core/base/nearest.h"
#include "core/base/output.h"
#include "core/base/thread.h"
#include "core/cli/command.h"
#include "core/cli/common.h"
#include "core/cli/option_table.h"
#include "core/cli/removed_options.h"
#include "core/cli/terminal.h"
#include "core/cli/unexpected.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

constexpr Command kCommands[] = {
    {"run", "Runs a model once and shows or writes its outputs.", DeclareRun,
     "mge run model.onnx\nmge run model.onnx --input x=x.npy --output-dir out\n"
     "mge run model.onnx --shape x=1x3x224x224 --device gpu0,cpu0"},
    {"compare", "Compares two models, devices or runtimes, by their outputs or node by node.", DeclareCompare,
     "mge compare model.onnx --device cpu0\nmge compare model.onnx quantized.onnx --rtol 0.05\n"
     "mge compare model.onnx --layers --with onnxruntime --python venv/bin/python"},
    {"train", "Trains a model on examples, and writes it with its new weights.", DeclareTrain,
     "mge train model.onnx --data examples.npz --optimizer adam --epochs 5 -o trained.onnx\n"
     "mge train model.onnx --input x=x.npy --input labels=y.npy --loss mse -o trained.onnx"},
    {"generate", "Continues a prompt with a language model; reports its speed beside the memory's bandwidth.",
     DeclareGenerate,
     "mge generate folder --ids 1,15,7\nmge generate folder --ids 1,15,7 --max-tokens 32 --temperature 0.8 --seed 1 --json"},
    {"check", "Runs folders of ONNX backend tests and compares the results with the expected ones.", DeclareCheck,
     "mge check onnx/backend/test/data/node\nmge check test_relu --gaps none -v"},
    {"bench", "Measures latency, load time and memory of a model.", DeclareBench,
     "mge bench model.onnx --threads 2\nmge bench model.onnx --shape x=8x3x224x224 --runs 50 --json\nmge bench model.onnx "
     "--trace trace.json\nmge bench diff before.json after.json --html diff.html"},
    {"profile", "Shows the time of each step and of each type of operator in a run.", DeclareProfile,
     "mge profile model.onnx\nmge profile model.onnx --shape x=1x3x48x320 --threads 2\nmge profile model.onnx --html "
     "profile.html"},
    {"plan", "Shows the plan of a model: fusions, kernels, layouts; --why adds the reasons.", DeclarePlan,
     "mge plan model.onnx --why --measure\nmge plan model.onnx --measure --html plan.html\nmge plan model.onnx --skip "
     "cpu.elementwise_chain"},
    {"memory", "Compares planned with measured memory; shows the largest buffers, or what several models need.",
     DeclareMemory, "mge memory model.onnx --top 20\nmge memory model.onnx --html memory.html\nmge memory a.onnx b.onnx"},
    {"inspect", "Shows a model's inputs, outputs, operators and weights.", DeclareInspect,
     "mge inspect model.onnx\nmge inspect model.onnx --json"},
    {"devices", "Lists the devices of all backends.", DeclareDevices, "mge devices\nmge devices --all"},
    {"plugins", "Lists all backend files with a verdict; also verifies, installs and removes files.", DeclarePlugins,
     "mge plugins\nmge plugins install mge_demo.so"},
    {"doctor", "Tests every backend in its own process and runs an operator on each device.", DeclareDoctor,
     "mge doctor\nmge doctor --html report.html"},
    {"env", "Lists every setting with its value and origin.", DeclareEnv,
     "mge env\nmge env memory\nmge env --changed\nmge env --aliases\nmge env explain NNVM_EXEC_MATCH_RANGE"},
    {"zoo", "Writes a standard architecture with seeded random weights.", DeclareZoo,
     "mge zoo\nmge zoo resnet50 -o rn50.onnx"},
    {"demo", "Reads handwritten digits with a small built-in network.", DeclareDemo,
     "mge demo\nmge demo --device gpu0,cpu0"},
    {"sdk", "Commands for authors of backends.", DeclareSdk, "mge sdk new mydev folder\nmge sdk test build/mge_demo.so"},
    {"help", "Explains a command, or an error by its number.", DeclareHelp,
     "mge help bench\nmge help E0502\nmge help errors"},
    {"version", "Shows the version.", DeclareVersion, "mge version --verbose\nmge version --json"},
};

// Returns "Examples:" and the indented lines, or "" if there are none.
std::string ExampleText(std::string_view lines) {
  std::string out;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    out += fmt::format("{}\n  {}", out.empty() ? "Examples:" : "", lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return out;
}

// Returns a sentence that names the options of every command.
std::string CommonOptions(const CommandRow& root) {
  std::vector<std::string> names;
  for (const OptionRow& o : root.options) {
    if (o.names.back() == "--help" || o.names.back() == "--version") continue;
    names.push_back(o.names.back() + (o.value.empty() ? "" : " " + o.value));
  }
  return Wrapped(fmt::format("Every command takes {}; mge --help explains them.", fmt::join(names, ", ")), 0);
}

std::string Footer() {
  std::string codes = "Exit codes:";
  for (const ExitCodeRow& e : kExitCodes) codes += fmt::format("{} {} {}", &e == kExitCodes ? "" : ",", e.code, e.meaning);
  std::string out = Wrapped(codes + ".", 0) + "Examples:";
  for (const char* example : kExamples) out += fmt::format("\n  {}", example);
  return out;
}

// Reports a wrong command line: the unknown sub-command or option with the nearest known one, else CLI11's message.
int WrongCommandLine(const Globals& globals, CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  std::vector<std::string> words;
  CLI::App* at = &app;
  std::string path = "mge";
  int depth = 0;
  for (CLI::App* next = at; next != nullptr;) {
    at = next;
    next = nullptr;
    for (CLI::App* sub : at->get_subcommands({})) {
      if (sub->parsed()) next = sub;
    }
    if (next != nullptr) path += " " + next->get_name(), ++depth;
  }
  const std::vector<CLI::App*> subs = at->get_subcommands({});
  for (const CLI::Option* o : at->get_options()) {
    for (const std::string& name : o->get_lnames()) words.push_back("--" + name);
  }
  for (const CLI::Option* o : app.get_options()) {
    for (const std::string& name : o->get_lnames()) words.push_back("--" + name);
  }
  for (const CLI::App* sub : subs) words.push_back(sub->get_name());
  // Whether a word must be a command: `mge bench` has one, and takes a model, too.
  const bool commands_only =
      !subs.empty() && std::ranges::none_of(at->get_options({}), [](const CLI::Option* o) { return o->get_positional(); });
  std::string fix = path + " --help";
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word.empty()) break;  // CLI11's message is about this word
    if (size_t equals = word.find('='); word.starts_with("--") && equals != std::string::npos) word.resize(equals);
    bool known = std::find(words.begin(), words.end(), word) != words.end();
    bool option = word.starts_with("-");
    if (known || (!option && !commands_only) || (!option && i <= depth)) continue;
    for (const RemovedOption& removed : kRemovedOptions) {
      if (path != removed.command || word != removed.name) continue;
      return ReportUsage(globals, fmt::format("'{}' has no option '{}'", path, word),
                         fmt::format("it is now named {} ({})", removed.successor, fix));
    }
    if (std::string_view near = Nearest(word, words); !near.empty()) {
      return ReportUsage(globals, fmt::format("unknown option or command '{}'", word),
                         fmt::format("{} ({})", DidYouMeanOr(near, ""), fix));
    }
    if (!option && i == depth + 1) return ReportUsage(globals, fmt::format("there is no command '{}'", word), fix);
  }
  return ReportUsage(globals, error.what(), fix);
}

// Prints the help that --help asks for; as JSON with --json, which may come after it.
int PrintHelp(Globals globals, const CLI::App& app, const CLI::Error& help, int argc, char** argv) {
  globals.json |= std::any_of(argv + 1, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
  if (!globals.json) return app.exit(help);
  std::vector<std::string> topic;
  for (const CLI::App* at = &app; at != nullptr;) {
    const CLI::App* next = nullptr;
    for (const CLI::App* sub : at->get_subcommands([](const CLI::App* a) { return a->parsed(); })) next = sub;
    if (next != nullptr) topic.push_back(next->get_name());
    at = next;
  }
  return HelpOnCommand(globals, app, topic);
}

// Makes empty arguments an error. An empty argument usually comes from an unset variable of a script; if it were treated
// like an omitted one, a command could apply to everything.
void RefuseEmptyArguments(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    option->check([](const std::string& text) { return text.empty() ? "it must not be empty" : std::string(); });
  }
  for (CLI::App* sub : app.get_subcommands([](CLI::App*) { return true; })) RefuseEmptyArguments(*sub);
}

// The help with the default of an option after its description.
class HelpFormat : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    const std::string usual = "=" + option->get_default_str();
    if (const size_t at = text.find(usual); usual.size() > 1 && at != std::string::npos) text.erase(at, usual.size());
    return text;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string usual = option->get_default_str();
    return option->get_description() + (usual.empty() ? "" : "; default: " + usual);
  }
};

int Main(int argc, char** argv) {
  CLI::App app("MGE runs ONNX models on the backends it finds.", "mge");
  app.formatter(std::make_shared<HelpFormat>());
  Globals globals;
  app.footer(Footer());
  app.require_subcommand(1);
  app.fallthrough();
  Arguments arguments(app);
  arguments.AddFlag("--json", globals.json, "Data as JSON on stdout; the first field names the schema");
  arguments.AddFlag("-q,--quiet", globals.quiet, "Print only errors to stderr");
  arguments.Add("--color", globals.color, "Colours: auto is on a terminal, unless NO_COLOR is set")
      .OneOf({"auto", "always", "never"})
      .ValueName("{auto,always,never}");
  arguments.Add("--device", globals.device, "cpu0, gpu1, \"gpu0,cpu0\" in order of preference; default: MGE_DEFAULT_DEVICE")
      .ValueName("DEVICE");
  arguments.Add("--threads", globals.threads, "Threads per run; 0: all that the process may use").Between(0, 1024);
  arguments.Add("--data-folder", globals.data_folder, "Folder of a model's external data; default: the model's folder")
      .ValueName("FOLDER");
  arguments.Add("--set", globals.settings, "A setting (see mge env)").ValueName("NAME=VALUE").Repeats();
  arguments.Add("--config", globals.config_files, "A TOML file of settings; a later file wins").ValueName("FILE").Repeats();
  bool version = false;
  app.add_flag_callback(
      "--version",
      [&version] {
        version = true;
        throw CLI::Success();  // no command is needed
      },
      "Display program version information and exit");
  const std::string common = CommonOptions(ReadOptionTable(app));
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Command& c : kCommands) {
    CLI::App* sub = app.add_subcommand(c.name, c.doc);
    sub->footer(ExampleText(c.examples) + "\n\n" + common);
    actions.emplace_back(sub, c.declare(Arguments(*sub), globals));
  }
  RefuseEmptyArguments(app);
  if (argc == 1) {
    Print(app.help());
    return kExitOk;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (version) {
      // The options after --version were not parsed.
      globals.json |=
          std::any_of(argv + 1, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
      return PrintVersion(globals, false);
    }
    if (e.get_exit_code() == 0) return PrintHelp(globals, app, e, argc, argv);
    return WrongCommandLine(globals, app, e, argc, argv);
  }
  SetColor(globals.color);
  for (auto& [sub, action] : actions) {
    if (sub->parsed()) return action();
  }
  return kExitUsage;
}

}  // namespace
}  // namespace mge::cli

int main(int argc, char** argv, char** variables) {
  mge::HoldStandardFiles();
  mge::cli::SetVariables(variables);
  return mge::CallOnLargeStack(
      [](int count, char** words) { return mge::FlushOutput(mge::cli::RunGuarded(mge::cli::Main, count, words)); }, argc,
      argv);
}
