// SPDX-License-Identifier: Apache-2.0
#include "mge/generate.hpp"

#include <charconv>
#include <cmath>

#include "core/cli/common.h"
#include "core/cli/generate.h"
#include "core/cli/interrupt.h"
#include "core/cli/memory_roof.h"
#include "core/cli/tokenizer.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct GenerateOptions {
  std::string folder, ids, prompt;
  std::vector<std::string> stop, source;
  int64_t max_tokens = 128;
  bool print_tokens = true;
  bool ends = true;  // false: goes on behind end tokens
  std::optional<double> temperature, top_k, top_p, min_p, repetition_penalty, seed;
};

// The tokens and the text of a generation with its times.
struct Generation {
  std::vector<int64_t> tokens;
  std::string text;          // with a tokenizer only
  absl::Status text_status;  // an error of the tokenizer, which ends the generation
  std::string end = "max tokens";
  double first_s = 0;   // from the prompt to the first token
  double others_s = 0;  // all other tokens
};

double Seconds(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Parses ids such as "1,15,7". Returns false if the text is not such a list.
bool ParseIds(std::string_view text, std::vector<int64_t>* out) {
  while (!text.empty()) {
    int64_t id = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (error != std::errc() || id < 0) return false;
    out->push_back(id);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty()) return true;
    if (text[0] != ',' || text.size() == 1) return false;
    text.remove_prefix(1);
  }
  return !out->empty();
}

// Returns the folder's options with those of the command line.
Status SetSampling(const GenerateOptions& o, const Generator& generator, Sampling* out) {
  if (Status s = generator.sampling().MoveTo(*out); !s.ok()) return s;
  if (o.temperature) out->temperature = *o.temperature;
  if (o.top_k) out->top_k = static_cast<int64_t>(*o.top_k);
  if (o.top_p) out->top_p = *o.top_p;
  if (o.min_p) out->min_p = *o.min_p;
  if (o.repetition_penalty) out->repetition_penalty = *o.repetition_penalty;
  if (o.seed) out->seed = static_cast<uint64_t>(*o.seed);
  return generator.SetSampling(*out);
}

// The end of a generation, and how its tokens become a text.
struct Ending {
  std::vector<int64_t> ids = {};  // tokens that end it
  TextStream* text = nullptr;     // null: ids are printed
};

void PrintAtOnce(const GenerateOptions& o, std::string_view text) {
  if (!o.print_tokens || text.empty()) return;
  Print(text);
}

// Prints a token: its id, or the text that is complete with it.
absl::Status PrintToken(const GenerateOptions& o, int64_t id, const Ending& ending, Generation* out) {
  if (!ending.text) return PrintAtOnce(o, fmt::format("{}{}", out->tokens.size() > 1 ? " " : "", id)), absl::OkStatus();
  const size_t before = out->text.size();
  if (absl::Status s = ending.text->Add(id, out->text); !s.ok()) return s;
  return PrintAtOnce(o, std::string_view(out->text).substr(before)), absl::OkStatus();
}

// Prints what the text held back, and ends the line.
absl::Status PrintEnd(const GenerateOptions& o, const Ending& ending, Generation* out) {
  const size_t before = out->text.size();
  if (ending.text) {
    if (absl::Status s = ending.text->Finish(out->text); !s.ok()) return s;
  }
  PrintAtOnce(o, std::string_view(out->text).substr(before));
  if (!out->tokens.empty()) PrintAtOnce(o, "\n");  // before the report on stderr
  return absl::OkStatus();
}

// Generates, and prints each token at once unless the report is JSON.
Status Continue(const GenerateOptions& o, const Ending& ending, const Generator& generator, const RunControl& control,
                const Interrupt& interrupt, Generation* out) {
  const Clock::time_point begin = Clock::now();
  Clock::time_point first = begin;
  while (static_cast<int64_t>(out->tokens.size()) < o.max_tokens) {
    const auto next = generator.Next(&control);
    if (!next.ok() && interrupt.received()) {
      out->end = "interrupted";
      break;
    }
    if (!next.ok()) return next.status();
    if (out->tokens.empty()) out->first_s = Seconds(begin), first = Clock::now();
    out->tokens.push_back(next->id);
    out->text_status = PrintToken(o, next->id, ending, out);
    if (!out->text_status.ok()) break;
    const bool stop_text = ending.text && ending.text->stopped();
    const bool stopped = stop_text || std::find(ending.ids.begin(), ending.ids.end(), next->id) != ending.ids.end();
    if (!stopped && (next->end == MGE_END_NONE || (next->end == MGE_END_TOKEN && !o.ends))) continue;
    out->end = stop_text                    ? "stop text"
               : stopped                    ? "stop token"
               : next->end == MGE_END_TOKEN ? "end token"
                                            : "length of the context";
    break;
  }
  out->others_s = out->tokens.empty() ? 0 : Seconds(first);
  out->text_status.Update(PrintEnd(o, ending, out));
  return Status();
}

double PerSecond(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

std::string ReportText(const Json& r, const Generation& g) {
  std::string out = fmt::format("prompt: {} tokens, first token after {:.1f} ms, {:.1f} tokens/s\n",
                                Text(r["prompt_tokens"]), g.first_s * 1e3, r["prompt_tokens_per_s"].get<double>());
  out += fmt::format("generated: {} tokens ({}), {:.1f} tokens/s behind the first", g.tokens.size(), g.end,
                     r["tokens_per_s"].get<double>());
  if (!r.contains("roof_fraction")) return out;
  return out + fmt::format("\nmemory: {} per token, {:.1f} GB/s: {:.0f} % of the {:.1f} GB/s that {} thread{} can read",
                           HumanBytes(r["bytes_per_token"]), r["read_gb_per_s"].get<double>(),
                           r["roof_fraction"].get<double>() * 100, r["roof_gb_per_s"].get<double>(), Text(r["threads"]),
                           r["threads"] == 1 ? "" : "s");
}

// Returns the report "mge.generate/1". The bandwidth is measured on a CPU only.
Json MakeReport(const mge_generator_facts& facts, size_t prompt, const Generation& g, const Sampling& sampling) {
  const double others = g.tokens.empty() ? 0 : static_cast<double>(g.tokens.size() - 1),
               rate = PerSecond(others, g.others_s);
  const double length = static_cast<double>(prompt) + static_cast<double>(g.tokens.size()) / 2;
  const auto bytes = static_cast<uint64_t>(static_cast<double>(facts.weight_bytes) +
                                           static_cast<double>(facts.cache_bytes_per_token) * length);
  Json out = {{"schema", "mge.generate/1"},
              {"device", facts.device},
              {"threads", facts.threads},
              {"prompt_tokens", prompt},
              {"tokens", g.tokens},
              {"end", g.end},
              {"seed", sampling.seed},
              {"first_token_ms", g.first_s * 1e3},
              {"prompt_tokens_per_s", PerSecond(static_cast<double>(prompt), g.first_s)},
              {"tokens_per_s", rate},
              {"weight_bytes", facts.weight_bytes},
              {"cache_bytes_per_token", facts.cache_bytes_per_token},
              {"cache_bytes", facts.cache_bytes},
              {"bytes_per_token", bytes}};
  if (rate == 0 || !std::string_view(facts.device).starts_with("cpu")) return out;
  const double roof = MeasureReadBandwidth(facts.threads);
  if (roof == 0) return out;
  out["read_gb_per_s"] = rate * static_cast<double>(bytes) / 1e9;
  out["roof_gb_per_s"] = roof / 1e9;
  out["roof_fraction"] = rate * static_cast<double>(bytes) / roof;
  return out;
}

Status LoadFolder(const Globals& globals, const std::string& folder, Runtime* runtime, Generator* out) {
  if (Status s = MakeRuntime(globals, runtime); !s.ok()) return s;
  GeneratorOptions options;
  options.device = globals.device;
  options.threads = globals.threads;
  return Generator::Load(*runtime, folder, options).MoveTo(*out);
}

int RefuseDataFolder(const Globals& globals) {
  return ReportUsage(globals, "a language model has no --data-folder", "put the model's external data into FOLDER");
}

// Sets the prompt's tokens and what ends the generation, from ids or from texts. Returns the exit code.
int ReadPrompt(const Globals& globals, const GenerateOptions& o, std::unique_ptr<text::Tokenizer>* tokenizer,
               std::vector<int64_t>* prompt, std::optional<TextStream>* stream, Ending* ending) {
  if (!o.prompt.empty()) {
    absl::StatusOr<std::unique_ptr<text::Tokenizer>> opened = OpenTokenizer(o.folder);
    if (!opened.ok()) return Report(globals, opened.status());
    *tokenizer = *std::move(opened);
    if (absl::Status s = StatusOf((*tokenizer)->Encode(o.prompt, true, *prompt)); !s.ok()) return Report(globals, s);
    stream->emplace(**tokenizer, *prompt, o.stop);
    ending->text = &**stream;
    return kExitOk;
  }
  if (o.ids.empty())
    return ReportUsage(globals, "there is no prompt", "give a text: --prompt TEXT; or token ids: --ids 1,15,7");
  if (!ParseIds(o.ids, prompt)) {
    return ReportUsage(globals, fmt::format("--ids '{}' is not a list of token ids", o.ids), "write 1,15,7");
  }
  for (const std::string& stop : o.stop) {
    if (ParseIds(stop, &ending->ids)) continue;
    return ReportUsage(globals, fmt::format("--stop '{}' is not a list of token ids", stop),
                       "with --ids, write 1,15,7; with --prompt, it is a text");
  }
  return kExitOk;
}

// Runs the encoder on files, NAME=FILE each. Returns the exit code.
int SetSource(const Globals& globals, const std::vector<std::string>& source, const Generator& generator,
              const RunControl& control) {
  if (source.empty()) return kExitOk;
  std::vector<std::string> names;
  std::vector<Tensor> tensors(source.size());
  std::vector<const Tensor*> pointers;
  for (size_t i = 0; i < source.size(); ++i) {
    const size_t equals = source[i].find('=');
    if (equals == std::string::npos) {
      return ReportUsage(globals, fmt::format("--source '{}' names no input", source[i]), "write NAME=FILE");
    }
    names.push_back(source[i].substr(0, equals));
    if (Status s = Tensor::Read(source[i].substr(equals + 1)).MoveTo(tensors[i]); !s.ok()) return Report(globals, s);
    pointers.push_back(&tensors[i]);
  }
  return Report(globals, generator.SetSource(names, pointers, &control));
}

int Generate(const Globals& globals, const GenerateOptions& o) {
  if (!globals.data_folder.empty()) return RefuseDataFolder(globals);
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::vector<int64_t> prompt;
  std::optional<TextStream> stream;
  Ending ending;
  if (const int code = ReadPrompt(globals, o, &tokenizer, &prompt, &stream, &ending); code != kExitOk) return code;
  auto control = RunControl::Create();
  if (!control.ok()) return Report(globals, control.status());
  const Interrupt interrupt(*control);
  Runtime runtime;
  Generator generator;
  Sampling sampling;
  mge_generator_facts facts;
  if (Status s = LoadFolder(globals, o.folder, &runtime, &generator); !s.ok()) return Report(globals, s);
  if (Status s = SetSampling(o, generator, &sampling); !s.ok()) return Report(globals, s);
  if (const int code = SetSource(globals, o.source, generator, *control); code != kExitOk) return code;
  if (Status s = generator.Append(prompt); !s.ok()) return Report(globals, s);
  Generation g;
  const Status status = Continue(o, ending, generator, *control, interrupt, &g);
  if (Status s = generator.Describe().MoveTo(facts); !s.ok()) return Report(globals, s);
  if (!status.ok()) return Report(globals, status);
  if (!g.text_status.ok()) return Report(globals, g.text_status);
  Json report = MakeReport(facts, prompt.size(), g, sampling);
  if (ending.text) report["text"] = g.text;
  globals.json ? PrintJson(report) : PrintMessage(globals, ReportText(report, g));
  return g.end == "interrupted" ? ExitCode(ErrorKind::kInterrupted) : kExitOk;
}

}  // namespace

int BenchGeneration(const Globals& globals, const std::string& folder, int64_t prompt_tokens, int64_t max_tokens) {
  if (!globals.data_folder.empty()) return RefuseDataFolder(globals);
  auto control = RunControl::Create();
  if (!control.ok()) return Report(globals, control.status());
  const Interrupt interrupt(*control);
  Runtime runtime;
  Generator generator;
  mge_generator_facts facts;
  if (Status s = LoadFolder(globals, folder, &runtime, &generator); !s.ok()) return Report(globals, s);
  if (Status s = generator.Describe().MoveTo(facts); !s.ok()) return Report(globals, s);
  std::vector<int64_t> prompt(static_cast<size_t>(prompt_tokens));
  for (uint32_t state = 1; int64_t & id : prompt) {
    id = (state = state * 1664525 + 1013904223) / 256 % std::max<int64_t>(facts.vocabulary, 1);
  }
  Generation g;
  for (const int64_t count :
       {std::min<int64_t>(max_tokens, 4), max_tokens}) {  // the first time prepares kernels and weights
    g = Generation();
    GenerateOptions o;
    o.max_tokens = count;
    o.print_tokens = o.ends = false;
    if (Status s = generator.Rewind(0); !s.ok()) return Report(globals, s);
    if (Status s = generator.SetSampling({}); !s.ok()) return Report(globals, s);
    if (Status s = generator.Append(prompt); !s.ok()) return Report(globals, s);
    if (Status s = Continue(o, {}, generator, *control, interrupt, &g); !s.ok()) return Report(globals, s);
  }
  if (Status s = generator.Describe().MoveTo(facts); !s.ok()) return Report(globals, s);
  const Json report = MakeReport(facts, prompt.size(), g, {});
  globals.json ? PrintJson(report) : Print(ReportText(report, g) + "\n");
  return g.end == "interrupted" ? ExitCode(ErrorKind::kInterrupted) : kExitOk;
}

Action DeclareGenerate(Arguments app, const Globals& globals) {
  auto o = std::make_shared<GenerateOptions>();
  app.Add("FOLDER", o->folder, "A folder of ONNX Runtime GenAI: genai_config.json beside a decoder")
      .Required()
      .ValueName("FOLDER");
  const Argument ids = app.Add("--ids", o->ids, "The prompt as token ids: 1,15,7").ValueName("IDS");
  app.Add("--prompt", o->prompt, "The prompt as a text, by the folder's tokenizer.json; the output is a text, too")
      .ValueName("TEXT")
      .Excludes(ids);
  app.Add("--source", o->source, "A tensor that the model's encoder reads (npy, pb)").ValueName("NAME=FILE").Repeats();
  app.Add("--max-tokens", o->max_tokens, "The most tokens to generate").Between(1, 1e9);
  app.Add("--temperature", o->temperature, "0: the most probable token; default of each option: what the folder says")
      .Between(0, 1e6);
  app.Add("--top-k", o->top_k, "Chooses among the K most probable tokens; 0: all").Between(0, 1e9).ValueName("K");
  app.Add("--top-p", o->top_p, "Chooses among the fewest tokens with this sum of probabilities").Between(0, 1);
  app.Add("--min-p", o->min_p, "Chooses among tokens with this fraction of the largest probability").Between(0, 1);
  app.Add("--repetition-penalty", o->repetition_penalty, "Above 1: makes tokens of the text less probable").Between(0, 1e6);
  app.Add("--seed", o->seed, "Repeats the choices of an earlier call; default: the folder's, or random").Between(0, 1e15);
  app.Add("--stop", o->stop, "A text that ends the output, which does not contain it; with --ids, token ids: 11,7")
      .ValueName("TEXT")
      .Repeats();
  return [&globals, o] {
    o->print_tokens = !globals.json;
    return Generate(globals, *o);
  };
}

}  // namespace mge::cli
