#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs small models of an encoder and a decoder with random weights in MGE and in ONNX Runtime: Whisper, as the model builder of
ONNX Runtime GenAI writes it, and T5 and Marian, as PyTorch exports them beside a genai_config.json.

    python3 tests/models/encoder_decoders.py build/release [--only TEXT] [--keep FOLDER]

`mge.Generator` must return ONNX Runtime's logits for each token, and `mge generate --source` must choose the most probable tokens.
Needs the packages of language.py. Exit codes: 0, 1, and 77 (skipped) with the reason if a package is missing.
"""
import argparse
import importlib
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import language  # noqa: E402

START, STEPS, LARGEST_ERROR = [3, 7, 9], 12, 1e-4
LAYERS, HEADS, SIZE, HIDDEN, VOCABULARY = 2, 4, 16, 64, language.VOCABULARY


def sharpen(model):
    """Makes random weights larger, so that logits differ."""
    import torch
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() >= 2:
                parameter.mul_(4)
    return model.eval()


def whisper(place):
    import numpy
    import torch
    import transformers
    torch.manual_seed(0)
    config = transformers.WhisperConfig(
        vocab_size=VOCABULARY, num_mel_bins=80, encoder_layers=LAYERS, decoder_layers=LAYERS, encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS, d_model=HIDDEN, encoder_ffn_dim=128, decoder_ffn_dim=128, max_target_positions=128,
        bos_token_id=1, eos_token_id=2, pad_token_id=0, decoder_start_token_id=3, suppress_tokens=None, begin_suppress_tokens=None)
    folder = language.build_folder(sharpen(transformers.WhisperForConditionalGeneration(config)), place, "fp32")
    features = numpy.random.default_rng(0).standard_normal((1, 80, 3000)).astype(numpy.float32)
    return folder, {"audio_features": features}


def translator(place, model):
    """Exports an encoder and a decoder with caches of its own keys and values. The decoder reads the encoder's hidden states."""
    import numpy
    import torch
    from transformers import DynamicCache, EncoderDecoderCache

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = model.get_encoder()

        def forward(self, input_ids, attention_mask):
            return self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, hidden, mask, *past):
            own = DynamicCache()
            for i in range(LAYERS):
                own.update(past[2 * i], past[2 * i + 1], i)
            cache = EncoderDecoderCache(own, DynamicCache())
            out = self.model(encoder_outputs=(hidden,), attention_mask=mask, decoder_input_ids=input_ids, past_key_values=cache,
                             use_cache=True)
            layers = out.past_key_values.self_attention_cache.layers
            return (out.logits, *(x for layer in layers for x in (layer.keys, layer.values)))

    place.mkdir(parents=True, exist_ok=True)
    ids, mask = torch.randint(4, 200, (2, 7)), torch.ones(2, 7, dtype=torch.int64)
    names = [f"{i}.{part}" for i in range(LAYERS) for part in ("key", "value")]
    past = [torch.randn(2, HEADS, 3, SIZE) for _ in names]
    axes = {"input_ids": {0: "batch", 1: "tokens"}, "encoder_hidden_states": {0: "batch", 1: "source"},
            "encoder_attention_mask": {0: "batch", 1: "source"}, "logits": {0: "batch", 1: "tokens"},
            **{f"past_key_values.{n}": {0: "batch", 2: "past"} for n in names},
            **{f"present.{n}": {0: "batch", 2: "all"} for n in names}}
    with language.silence(), torch.no_grad():
        torch.onnx.export(Encoder().eval(), (ids, mask), str(place / "encoder.onnx"), dynamo=False, opset_version=17,
                          input_names=["input_ids", "attention_mask"], output_names=["last_hidden_state"],
                          dynamic_axes={n: {0: "batch", 1: "source"} for n in ("input_ids", "attention_mask", "last_hidden_state")})
        torch.onnx.export(Decoder().eval(), (ids[:, :2], torch.randn(2, 7, HIDDEN), mask, *past), str(place / "decoder.onnx"),
                          dynamo=False, opset_version=17, output_names=["logits"] + [f"present.{n}" for n in names],
                          input_names=["input_ids", "encoder_hidden_states", "encoder_attention_mask"] +
                                      [f"past_key_values.{n}" for n in names], dynamic_axes=axes)
    (place / "genai_config.json").write_text(json.dumps({
        "model": {"type": "marian", "vocab_size": VOCABULARY, "context_length": 128, "eos_token_id": 2, "bos_token_id": 1,
                  "pad_token_id": 0,
                  "encoder": {"filename": "encoder.onnx", "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask"},
                              "outputs": {"encoder_hidden_states": "last_hidden_state"}},
                  "decoder": {"filename": "decoder.onnx", "head_size": SIZE, "num_key_value_heads": HEADS,
                              "num_hidden_layers": LAYERS,
                              "inputs": {"input_ids": "input_ids", "encoder_hidden_states": "encoder_hidden_states",
                                         "encoder_attention_mask": "encoder_attention_mask",
                                         "past_key_names": "past_key_values.%d.key", "past_value_names": "past_key_values.%d.value"},
                              "outputs": {"logits": "logits", "present_key_names": "present.%d.key",
                                          "present_value_names": "present.%d.value"}}}, "search": {"max_length": 100}}))
    return place, {"input_ids": numpy.array([[5, 99, 17, 4, 42, 2]])}


def t5(place):
    import torch
    import transformers
    torch.manual_seed(0)
    config = transformers.T5Config(vocab_size=VOCABULARY, d_model=HIDDEN, d_kv=SIZE, d_ff=128, num_layers=LAYERS, num_heads=HEADS,
                                   feed_forward_proj="gated-gelu", eos_token_id=2, pad_token_id=0, decoder_start_token_id=3)
    return translator(place, sharpen(transformers.T5ForConditionalGeneration(config)))


def marian(place):
    import torch
    import transformers
    torch.manual_seed(0)
    config = transformers.MarianConfig(
        vocab_size=VOCABULARY, d_model=HIDDEN, encoder_layers=LAYERS, decoder_layers=LAYERS, encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS, encoder_ffn_dim=128, decoder_ffn_dim=128, max_position_embeddings=128, eos_token_id=2,
        pad_token_id=0, decoder_start_token_id=3, forced_eos_token_id=None)
    return translator(place, sharpen(transformers.MarianMTModel(config)))


MODELS = {"whisper": whisper, "t5": t5, "marian": marian}


def reference(folder, source):
    """Returns the logits behind START and behind each of the most probable tokens, by ONNX Runtime."""
    import numpy
    import onnxruntime
    config = json.loads((folder / "genai_config.json").read_text())["model"]
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 4
    encoder, decoder = (onnxruntime.InferenceSession(str(folder / config[part]["filename"]), quiet,
                                                     providers=["CPUExecutionProvider"]) for part in ("encoder", "decoder"))
    feeds = dict(source)
    if any(i.name == "attention_mask" for i in encoder.get_inputs()):
        feeds["attention_mask"] = numpy.ones_like(source["input_ids"])
    encoded = dict(zip([o.name for o in encoder.get_outputs()], encoder.run(None, feeds)))
    encoded["encoder_hidden_states"] = encoded.get("last_hidden_state", encoded.get("hidden_states"))
    encoded["encoder_attention_mask"] = feeds.get("attention_mask")
    names, caches, ids, past, rows = [o.name for o in decoder.get_outputs()], {}, START, 0, []
    for _ in range(STEPS):
        feed = {}
        for each in decoder.get_inputs():
            if each.name == "input_ids":
                feed[each.name] = numpy.array([ids], numpy.int32 if each.type == "tensor(int32)" else numpy.int64)
            elif each.name == "position_ids":
                feed[each.name] = numpy.arange(past, past + len(ids))[None]
            elif each.name == "attention_mask":
                feed[each.name] = numpy.ones((1, past + len(ids)), numpy.int64)
            elif each.name in encoded:
                feed[each.name] = encoded[each.name]
            elif each.name.replace("past", "present") in encoded:  # keys and values of the encoder
                feed[each.name] = encoded[each.name.replace("past", "present")]
            else:
                feed[each.name] = caches.get(each.name, numpy.zeros((1, HEADS, 0, SIZE), numpy.float32))
        out = dict(zip(names, decoder.run(None, feed)))
        rows.append(out["logits"][0, -1])
        for name, value in out.items():
            caches[name.replace("present.", "past_key_values.").replace("present_", "past_")] = value
        past += len(ids)
        ids = [int(rows[-1].argmax())]
    return rows


def check(make, place, build):
    """Returns what to show of a model, and whether it is as it must be."""
    import mge
    import numpy
    folder, source = make(place)
    wanted = reference(folder, source)
    tokens = [int(row.argmax()) for row in wanted]
    error = 0.0
    with mge.Generator(folder, device="cpu0") as generator:
        generator.set_source(**source)
        generator.append(START)
        for row, token in zip(wanted, tokens):
            error = max(error, float(numpy.abs(generator.logits() - row).max() / numpy.abs(row).max()))
            generator.append([token])
    files = []
    for name, value in source.items():
        numpy.save(place / f"{name}.npy", value)
        files += ["--source", f"{name}={place / name}.npy"]
    done = subprocess.run([build / "bin/mge", "generate", folder, "--ids", ",".join(map(str, START)), *files, "--max-tokens",
                           str(STEPS), "--json"], capture_output=True, text=True)
    if done.returncode:
        return "mge generate: " + done.stderr.strip().splitlines()[0], False
    ends = tokens.index(2) if 2 in tokens else STEPS
    got = [token for token in json.loads(done.stdout)["tokens"] if token != 2]
    same = got == tokens[:ends]
    return f"error {error:.1e}, {'same tokens' if same else f'tokens {got} instead of {tokens[:ends]}'}", same and error <= LARGEST_ERROR


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path, help="the folder of a build")
    parser.add_argument("--only", default="", help="only models with this text in their names")
    parser.add_argument("--keep", type=pathlib.Path, help="keep the models in this folder")
    args = parser.parse_args()
    for package in language.PACKAGES:
        try:
            importlib.import_module(package)
        except ImportError as e:
            print(f"skipped: the package {package} is missing ({e})")
            return language.SKIP
    args.build = args.build.resolve()
    language.import_mge(args.build)
    bad = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, make in MODELS.items():
            if args.only not in name:
                continue
            place = (args.keep or pathlib.Path(scratch)) / name
            place.mkdir(parents=True, exist_ok=True)
            try:
                facts, good = check(make, place, args.build)
            except Exception as e:  # the model fails, the others are still of interest
                facts, good = f"{type(e).__name__}: {str(e).splitlines()[0][:160]}", False
            bad += not good
            print(f"{name:12} {'ok    ' if good else 'FAILED'} {facts}", flush=True)
    print(f"{bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
