#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs small language models with random weights, as real exporters write them, in MGE and in ONNX Runtime.

    python3 tests/models/language.py build/release [--only TEXT] [--keep FOLDER] [--dynamo]

Two kinds of models: folders of ONNX Runtime GenAI's model builder, and exports of PyTorch with caches as inputs and outputs.
Each runs a prompt and then single tokens. The logits of each step must equal ONNX Runtime's, and `mge generate` must choose the
tokens that onnxruntime-genai chooses for weights in float32. Where a plan serves one length only, the reason is shown. What a
builder, an exporter or ONNX Runtime refuses is shown and is no failure of MGE.

Needs the packages torch, transformers, onnx, onnxruntime, onnxruntime-genai and tokenizers. Exit codes: 0, 1, and 77 (skipped)
with the reason if one is missing.
"""
import argparse
import contextlib
import importlib
import io
import json
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile

SKIP = 77
PACKAGES = ("numpy", "torch", "transformers", "onnx", "onnxruntime", "onnxruntime_genai", "tokenizers")
VOCABULARY, HIDDEN, FFN, LAYERS, HEADS, KV_HEADS, CONTEXT = 256, 64, 128, 2, 4, 2, 512
PROMPT, STEPS = [1, 15, 7, 200, 33, 9, 4, 88, 120, 3, 17], 16
LARGEST_ERROR = {"fp32": 1e-5, "int4": 0.1, "export": 1e-4}  # of the largest logit; int4: ONNX Runtime rounds activations

COMMON = {"vocab_size": VOCABULARY, "hidden_size": HIDDEN, "intermediate_size": FFN, "num_hidden_layers": LAYERS,
          "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "max_position_embeddings": CONTEXT,
          "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
LONG_ROPE = {"rope_type": "longrope", "type": "longrope", "rope_theta": 10000.0, "long_factor": [2.0] * 8,
             "short_factor": [1.0] * 8, "factor": 16.0, "original_max_position_embeddings": 32}

# Name: the classes' stem in transformers, and what differs from COMMON. An entry None is removed.
FOLDERS = {
    "llama": ("Llama", {}),
    "mistral": ("Mistral", {"sliding_window": 8, "head_dim": 16}),
    "qwen2": ("Qwen2", {}),
    "qwen3": ("Qwen3", {"head_dim": 32}),
    "gemma": ("Gemma", {"head_dim": 32}),
    "gemma2": ("Gemma2", {"head_dim": 32, "sliding_window": 8, "query_pre_attn_scalar": 32}),
    "phi": ("Phi", {"num_key_value_heads": HEADS, "partial_rotary_factor": 0.5}),
    "phi3": ("Phi3", {"original_max_position_embeddings": CONTEXT, "sliding_window": 16}),
    "phi3-long": ("Phi3", {"original_max_position_embeddings": 32, "rope_parameters": LONG_ROPE}),
    "granite": ("Granite", {"embedding_multiplier": 2.0, "residual_multiplier": 0.5, "logits_scaling": 2.0}),
    "olmo": ("Olmo", {}),
    "nemotron": ("Nemotron", {}),
    "ernie": ("Ernie4_5", {"head_dim": 16}),
    "lfm2": ("Lfm2", {"layer_types": ["conv", "full_attention"], "conv_L_cache": 3}),
    "lfm2-moe": ("Lfm2Moe", {"layer_types": ["conv", "full_attention"], "conv_L_cache": 3, "num_experts": 4,
                             "num_experts_per_tok": 2, "moe_intermediate_size": 64, "num_dense_layers": 1}),
    "gpt-oss": ("GptOss", {"head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8,
                           "intermediate_size": 64}),
}
EXPORTS = {
    "llama": ("Llama", {}),
    "mistral": ("Mistral", {"sliding_window": 8, "head_dim": 16}),
    "qwen3": ("Qwen3", {"head_dim": 32}),
    "gemma3": ("Gemma3", {"head_dim": 32, "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]}),
    "phi3": ("Phi3", {"original_max_position_embeddings": CONTEXT}),
    "gpt2": ("GPT2", {"n_embd": HIDDEN, "n_layer": LAYERS, "n_head": HEADS, "n_positions": CONTEXT}),
    "gpt-neox": ("GPTNeoX", {"num_key_value_heads": None}),
    "opt": ("OPT", {"ffn_dim": FFN, "word_embed_proj_dim": HIDDEN}),
    "falcon": ("Falcon", {"multi_query": True, "alibi": False}),
    "bloom": ("Bloom", {"n_layer": LAYERS, "n_head": HEADS}),
}
WITHOUT_POSITIONS = ("opt", "falcon", "bloom")
HEAD_CLASS = {"GPT2": "GPT2LMHeadModel"}
CONFIG_CLASS = {"Gemma3": "Gemma3TextConfig"}


def model_of(stem, different):
    import torch
    import transformers
    torch.manual_seed(0)
    config = {k: v for k, v in {**COMMON, **different}.items() if v is not None}
    config = getattr(transformers, CONFIG_CLASS.get(stem, stem + "Config"))(**config)
    model = getattr(transformers, HEAD_CLASS.get(stem, stem + "ForCausalLM"))(config).eval()
    with torch.no_grad():  # larger than the usual first weights, so that logits differ
        for parameter in model.parameters():
            if parameter.dim() >= 2:
                parameter.mul_(4)
    return model


@contextlib.contextmanager
def silence():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def write_tokenizer(folder):
    from tokenizers import Tokenizer, models
    Tokenizer(models.WordLevel({f"t{i}": i for i in range(VOCABULARY)}, unk_token="t0")).save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "t0", "bos_token": "t1", "eos_token": "t2"}))


def build_folder(model, place, precision):
    """Writes a folder of ONNX Runtime GenAI."""
    import onnxruntime_genai
    source, out = place / "source", place / precision
    model.save_pretrained(source)
    config = json.loads((source / "config.json").read_text())
    if (config.get("rope_parameters") or {}).get("rope_type") == "longrope":  # what the builder reads
        config["rope_parameters"]["type"] = "longrope"
        (source / "config.json").write_text(json.dumps(config))
    write_tokenizer(source)
    tools = pathlib.Path(onnxruntime_genai.__file__).parent / "models"
    sys.path.insert(0, str(tools))
    arguments, sys.argv = sys.argv, ["builder", "-m", str(source), "-o", str(out), "-p", precision, "-e", "cpu", "-c", str(place)]
    try:
        with silence():
            runpy.run_path(str(tools / "builder.py"), run_name="__main__")
    finally:
        sys.argv = arguments
        sys.path.remove(str(tools))
    return out


def export(name, model, path, dynamo, opset):
    """Writes a decoder whose caches are inputs and outputs, in the layout and with the names of Optimum."""
    import torch
    from transformers import DynamicCache
    config = model.config
    layers = config.num_hidden_layers
    heads = 1 if name == "falcon" else getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    has_positions = name not in WITHOUT_POSITIONS

    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask, *rest):
            past = rest[1:] if has_positions else rest
            more = {"position_ids": rest[0]} if has_positions else {}
            cache = DynamicCache()
            for i in range(layers):
                cache.update(past[2 * i], past[2 * i + 1], i)
            out = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True, **more)
            return (out.logits, *(x for layer in out.past_key_values.layers for x in (layer.keys, layer.values)))

    batch, tokens, before = 2, 3, 4
    inputs = {"input_ids": torch.randint(3, 250, (batch, tokens)),
              "attention_mask": torch.ones(batch, before + tokens, dtype=torch.int64)}
    axes = {"input_ids": {0: "batch", 1: "tokens"}, "attention_mask": {0: "batch", 1: "all"}, "logits": {0: "batch", 1: "tokens"}}
    if has_positions:
        inputs["position_ids"] = torch.arange(before, before + tokens).expand(batch, tokens).contiguous()
        axes["position_ids"] = {0: "batch", 1: "tokens"}
    caches = [f"{i}.{part}" for i in range(layers) for part in ("key", "value")]
    for cache in caches:
        inputs["past_key_values." + cache] = torch.randn(batch, heads, before, size)
        axes["past_key_values." + cache] = {0: "batch", 2: "past"}
        axes["present." + cache] = {0: "batch", 2: "all"}
    names = {"input_names": list(inputs), "output_names": ["logits"] + ["present." + c for c in caches]}
    with silence(), torch.no_grad():
        if dynamo:
            shapes = [{a: torch.export.Dim.DYNAMIC for a in axes[n]} for n in inputs]
            torch.onnx.export(Step().eval(), tuple(inputs.values()), str(path), dynamic_shapes=(*shapes[:2], tuple(shapes[2:])),
                              opset_version=opset, dynamo=True, external_data=False, **names)
        else:
            torch.onnx.export(Step().eval(), tuple(inputs.values()), str(path), dynamic_axes=axes, opset_version=opset,
                              dynamo=False, **names)
    return path


def inputs_of(declared, ids, past, caches, head_size, window):
    import numpy
    types = {"tensor(float)": numpy.float32, "tensor(float16)": numpy.float16, "tensor(int64)": numpy.int64,
             "tensor(int32)": numpy.int32}
    out = {}
    for each in declared:
        dtype = types[each.type]
        if each.name in caches:
            out[each.name] = caches[each.name]
        elif each.name == "input_ids":
            out[each.name] = numpy.array([ids], dtype)
        elif each.name == "attention_mask":
            out[each.name] = numpy.ones((1, past + len(ids)), dtype)
        elif each.name == "position_ids":
            out[each.name] = numpy.arange(past, past + len(ids), dtype=dtype)[None]
        else:  # an empty cache; one of a window has its size from the beginning
            size = lambda axis, d: (d if isinstance(d, int) else 1 if axis == 0 else head_size if axis == len(each.shape) - 1
                                    else window if "sliding" in d else 0)
            out[each.name] = numpy.zeros([size(*d) for d in enumerate(each.shape)], dtype)
    return out


def logits_of(run, declared, tokens, head_size, window):
    """Runs the prompt and then one token after the other. Returns the logits behind each; `tokens` None: the most probable ones."""
    names = {each.name for each in declared}
    caches, past, ids, out = {}, 0, PROMPT, []
    for step in range(STEPS):
        results = run(inputs_of(declared, ids, past, caches, head_size, window))
        out.append(results["logits"][0, -1].astype("float64"))
        for name, value in results.items():
            for place in (name.replace("present.", "past_key_values."), name.replace("present", "past")):
                if place in names and name != place:
                    caches[place] = value
        past += len(ids)
        ids = [int(out[-1].argmax()) if tokens is None else tokens[step]]
    return out


def compare(path, kind, head_size, window=0):
    """Returns what to show of a model, and whether it is as it must be."""
    import mge
    import numpy
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        peer = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        names = [o.name for o in peer.get_outputs()]
        wanted = logits_of(lambda feed: dict(zip(names, peer.run(None, feed))), peer.get_inputs(), None, head_size, window)
    except Exception as e:  # whatever it says
        return f"ONNX Runtime refuses it: {str(e).splitlines()[0][:80]}", True
    feeds = []
    with mge.Session(str(path), device="cpu0") as session:
        def run(feed):
            feeds[:] = [feed]
            return session.run(feed)
        got = logits_of(run, peer.get_inputs(), [int(x.argmax()) for x in wanted], head_size, window)
        why = [line for line in session.plan(feeds[0], why=True).splitlines() if line.startswith("for these sizes only")]
    error = max(float(numpy.abs(a - b).max() / numpy.abs(b).max()) for a, b in zip(got, wanted))
    return f"error {error:.1e}, plans {why[0] if why else 'of ranges'}", error <= LARGEST_ERROR[kind]


def tokens_of_genai(folder, count):
    code = ("import onnxruntime_genai as og, json, sys\n"
            "folder, prompt, count = json.loads(sys.argv[1])\n"
            "model = og.Model(folder); params = og.GeneratorParams(model)\n"
            "params.set_search_options(max_length=len(prompt) + count, do_sample=False)\n"
            "g = og.Generator(model, params); g.append_tokens(prompt)\n"
            "while not g.is_done(): g.generate_next_token()\n"
            "print(json.dumps([int(t) for t in g.get_sequence(0)[len(prompt):]]))\n")
    done = subprocess.run([sys.executable, "-c", code, json.dumps([str(folder), PROMPT, count])], capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 and done.stdout else None


def compare_tokens(folder, build):
    """Compares the tokens of `mge generate` with those of onnxruntime-genai."""
    count = 24
    wanted = tokens_of_genai(folder, count)
    if wanted is None:
        return "onnxruntime-genai refuses it", True
    done = subprocess.run([build / "bin/mge", "generate", folder, "--ids", ",".join(map(str, PROMPT)), "--max-tokens", str(count),
                           "--json"], capture_output=True, text=True)
    if done.returncode:
        return "mge generate: " + done.stderr.strip().splitlines()[0], False
    got = json.loads(done.stdout)["tokens"]
    wanted = wanted[:-1] if wanted[-1] == COMMON["eos_token_id"] else wanted  # mge does not show the end token
    got = got[:-1] if got and got[-1] == COMMON["eos_token_id"] else got
    return ("same tokens", True) if got == wanted else (f"tokens {got} instead of {wanted}", False)


def check_folder(name, stem, different, precision, place, build):
    try:
        folder = build_folder(model_of(stem, different), place, precision)
    except Exception as e:  # of the builder
        return f"the builder refuses it: {e!r:.80}", True
    config = json.loads((folder / "genai_config.json").read_text())["model"]["decoder"]
    window = config.get("sliding_window", {}).get("window_size", 0)
    facts, good = compare(folder / config["filename"], precision, config["head_size"], window)
    if precision == "fp32":
        tokens, same = compare_tokens(folder, build)
        facts, good = f"{facts}; {tokens}", good and same
    return facts, good


def check_export(name, stem, different, dynamo, opset, place):
    model = model_of(stem, different)
    try:
        path = export(name, model, place / "model.onnx", dynamo, opset)
    except Exception as e:  # of the exporter
        return f"the exporter refuses it: {e!r:.80}", True
    return compare(path, "export", 0)


def import_mge(build):
    """Imports the Python package of this tree with the library of a build."""
    os.environ["MGE_LIBRARY_PATH"] = str(build / "lib/libmge.so.0")
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "sdk/python"))
    import mge  # noqa: F401  reads the variable
    del os.environ["MGE_LIBRARY_PATH"]  # is no setting of the command


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path, help="the folder of a build")
    parser.add_argument("--only", default="", help="only models with this text in their names")
    parser.add_argument("--keep", type=pathlib.Path, help="keep the models in this folder")
    parser.add_argument("--dynamo", action="store_true", help="also PyTorch's new exporter, which takes a minute for each model")
    args = parser.parse_args()
    for package in PACKAGES:
        try:
            importlib.import_module(package)
        except ImportError as e:
            print(f"skipped: the package {package} is missing ({e})")
            return SKIP
    args.build = args.build.resolve()
    import_mge(args.build)

    rows = [(f"{name} {precision}", check_folder, (name, *FOLDERS[name], precision))
            for name in FOLDERS for precision in ("fp32", "int4")]
    kinds = [("TorchScript", False, 17)] + ([("dynamo", True, 18), ("dynamo", True, 23)] if args.dynamo else [])
    rows += [(f"{name} {kind} {opset}", check_export, (name, *EXPORTS[name], dynamo, opset))
             for name in EXPORTS for kind, dynamo, opset in kinds]
    bad = 0
    with tempfile.TemporaryDirectory() as scratch:
        for title, check, arguments in rows:
            if args.only not in title:
                continue
            place = (args.keep or pathlib.Path(scratch)) / title.replace(" ", "-")
            place.mkdir(parents=True, exist_ok=True)
            more = (place, args.build) if check is check_folder else (place,)
            try:
                facts, good = check(*arguments, *more)
            except Exception as e:  # of MGE: the row fails, the others are still of interest
                facts, good = f"{type(e).__name__}: {str(e).splitlines()[0][:120]}", False
            bad += not good
            print(f"{title:24} {'ok    ' if good else 'FAILED'} {facts}", flush=True)
    print(f"{bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
