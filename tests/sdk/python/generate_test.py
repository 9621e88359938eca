# SPDX-License-Identifier: Apache-2.0
"""Generation by language models (mge.Generator)."""
import importlib.util
import json
import os
import pathlib
import struct
import tempfile
import unittest
import unittest.mock

import numpy as np

import mge
from onnx_model import FLOAT, INT64, data, model_of, node, number, tensor

SIZE, END = 20, 6


def after(token):
    """Returns the most probable token behind another one: 1 3 9 7 2 6."""
    return {0: 1, 7: 2}.get(token, token * 3 % SIZE)


def initializer(name, kind, dims, raw):
    return data(5, b"".join(number(1, d) for d in dims) + number(2, kind) + data(8, name) + data(9, raw))


def write_folder(folder):
    """Writes the smallest language model: each token determines the next one."""
    table = np.zeros((SIZE, SIZE), np.float32)
    for token in range(SIZE):
        table[token, after(token)] = 4
    axis = data(5, data(1, "axis") + number(3, 2) + number(20, 2))
    nodes = [node("Gather", ["table", "input_ids"], ["logits"]), node("Unsqueeze", ["logits", "axes"], ["row"]),
             node("Concat", ["past_key_values.0.key", "row"], ["present.0.key"], axis)]
    model = model_of(nodes, {"input_ids": tensor(INT64, "B", "S"), "past_key_values.0.key": tensor(FLOAT, "B", 1, "P", SIZE)},
                     {"logits": tensor(FLOAT, "B", "S", SIZE), "present.0.key": tensor(FLOAT, "B", 1, "T", SIZE)},
                     initializer("table", FLOAT, (SIZE, SIZE), table.tobytes()),
                     initializer("axes", INT64, (1,), struct.pack("<q", 1)))
    folder = pathlib.Path(folder)
    (folder / "model.onnx").write_bytes(model)
    (folder / "genai_config.json").write_text(json.dumps({"model": {
        "vocab_size": SIZE, "context_length": 64, "eos_token_id": END, "decoder": {"filename": "model.onnx"}}}))


class Words:
    """A tokenizer whose tokens are the words t0, t1, and so on, as the package tokenizers has them."""

    class Encoding:
        def __init__(self, ids):
            self.ids = ids

    def encode(self, prompt, add_special_tokens=True):
        return self.Encoding([int(word[1:]) for word in prompt.split()])

    def decode(self, ids, skip_special_tokens=True):
        return " ".join(f"t{i}" for i in ids if not skip_special_tokens or i != END)


class Generation(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        write_folder(self.folder)
        self.generator = mge.Generator(self.folder, device="cpu0")

    def words(self):
        self.generator._tokenizer = Words()
        return self.generator

    def test_yields_tokens_until_the_end_token(self):
        self.generator.append([5, 1])
        self.assertEqual(list(self.generator.tokens()), [3, 9, 7, 2, 6])
        self.assertEqual(self.generator.sequence, [5, 1, 3, 9, 7, 2, 6])

    def test_ends_after_as_many_tokens_as_asked_for_and_can_go_on(self):
        self.generator.append([1])
        self.assertEqual(list(self.generator.tokens(2)), [3, 9])
        self.assertEqual(self.generator.next(), 7)
        self.generator.rewind(2)
        self.assertEqual(self.generator.next(), 9)

    def test_ends_at_the_maximal_length(self):
        generator = mge.Generator(self.folder, device="cpu0", max_length=4)
        generator.append([1, 1])
        self.assertEqual(list(generator.tokens()), [3, 9])
        with self.assertRaisesRegex(mge.Error, "0 more fit") as caught:
            generator.next()
        self.assertEqual(caught.exception.id, 310)

    def test_lets_a_function_change_the_logits_or_choose(self):
        def never_nine(logits):
            logits[9] = -np.inf

        self.generator.append([1])
        self.assertEqual(list(self.generator.tokens(2, choose=never_nine)), [3, 0])
        self.generator.rewind(1)
        self.assertEqual(list(self.generator.tokens(choose=lambda logits: END if logits.argmax() == 9 else None)), [3, END])

    def test_samples_with_options_that_repeat_themselves(self):
        self.assertEqual(self.generator.sampling.temperature, 0)
        self.generator.sampling = mge.Sampling(temperature=100, top_k=3, seed=4)
        self.assertEqual(self.generator.sampling, mge.Sampling(temperature=100, top_k=3, seed=4))
        self.generator.append([1])
        first = list(self.generator.tokens(10))
        self.generator.rewind(1)
        self.assertEqual(list(self.generator.tokens(10)), first)
        with self.assertRaisesRegex(mge.UsageError, "min_p is 3"):
            self.generator.sampling = mge.Sampling(min_p=3)

    def test_describes_itself(self):
        self.assertEqual((self.generator.vocabulary, self.generator.max_length, self.generator.end_tokens), (SIZE, 64, (END,)))
        self.assertEqual(self.generator.device, "cpu0")
        self.assertEqual(self.generator.cache_bytes_per_token, 4 * SIZE)
        self.assertGreaterEqual(self.generator.weight_bytes, 0)

    def test_names_bad_input_and_goes_on(self):
        with self.assertRaisesRegex(mge.Error, "the ids 0 to 19"):
            self.generator.append([1, 20])
        with self.assertRaisesRegex(mge.Error, "so 64 fit"):
            self.generator.append([1] * 65)
        with self.assertRaises(mge.UsageError):
            self.generator.rewind(-1)
        with self.assertRaisesRegex(mge.UsageError, "append"):
            next(self.generator.generate([1, 2]))
        self.generator.append([1])
        control = mge.RunControl()
        control.cancel()
        with self.assertRaises(mge.CancelledError):
            self.generator.next(control=control)
        self.assertEqual(self.generator.next(), 3)
        with self.assertRaisesRegex(mge.FileError, "genai_config.json"):
            mge.Generator(self.folder + "/none")
        with self.generator:
            pass
        with self.assertRaises(mge.ClosedError):
            self.generator.next()

    def test_continues_several_sequences_that_join_and_leave(self):
        batch = mge.Batch(self.folder, device="cpu0", cache_bytes=80 * 128)  # 128 tokens
        first = batch.add([5, 1], max_tokens=3)
        self.assertEqual(batch.step(), [mge.BatchToken(first, 3, None)])
        second = batch.add([9], sampling=mge.Sampling())
        self.assertEqual(batch.step(), [mge.BatchToken(first, 9, None), mge.BatchToken(second, 7, None)])
        self.assertEqual(batch.step(), [mge.BatchToken(first, 7, "length"), mge.BatchToken(second, 2, None)])
        self.assertEqual(batch.step(), [mge.BatchToken(second, 6, "end token")])
        self.assertEqual(batch.step(), [])
        self.assertEqual((batch.tokens(first), batch.tokens(second)), ([5, 1, 3, 9, 7], [9, 7, 2, 6]))
        batch.remove(first)
        with self.assertRaisesRegex(mge.UsageError, "there is no sequence 0"):
            batch.tokens(first)
        batch.add([1])
        batch.add([1])
        with self.assertRaisesRegex(mge.OutOfMemoryError, "0 tokens fit"):
            batch.add([1])

    def test_streams_a_text(self):
        self.assertEqual(list(self.words().generate("t5 t1")), [" t3", " t9", " t7", " t2"])

    def test_ends_before_a_stop_text_that_crosses_tokens(self):
        self.assertEqual("".join(self.words().generate("t1", stop=["9 t7"])), " t3 t")
        self.assertEqual(self.generator.sequence, [1, 3, 9, 7])

    def test_shows_what_only_began_like_a_stop_text(self):
        self.assertEqual("".join(self.words().generate("t1", stop=["t9 t8", "zzz"])), " t3 t9 t7 t2")

    def test_shows_a_character_when_all_its_bytes_are_there(self):
        class Bytes(Words):
            def decode(self, ids, skip_special_tokens=True):
                return bytes({1: 0x61, 3: 0xE2, 9: 0x82, 7: 0xAC, 2: 0x62}.get(i, 0x2E) for i in ids).decode("utf-8", "replace")

        self.generator._tokenizer = Bytes()
        self.assertEqual(list(self.generator.generate("t1")), ["\u20ac", "b", "."])

    def test_of_texts_names_what_is_missing(self):
        with unittest.mock.patch.dict("sys.modules", {"tokenizers": None}):
            with self.assertRaisesRegex(mge.UnsupportedError, "pip install tokenizers; token ids work without it"):
                next(self.generator.generate("t1"))
        if importlib.util.find_spec("tokenizers"):
            with self.assertRaisesRegex(mge.UnsupportedError, "tokenizer.json"):
                self.generator.encode("t1")


class ChatPrompts(unittest.TestCase):
    TEMPLATE = "{{ bos_token }}{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}<bot>{% endif %}"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        write_folder(self.folder)
        self.generator = mge.Generator(self.folder, device="cpu0")
        self.messages = [{"role": "user", "content": "Hello"}]

    def test_follow_the_template_of_the_folder(self):
        if not importlib.util.find_spec("jinja2"):
            self.skipTest("the package jinja2 is not installed")
        config = {"chat_template": self.TEMPLATE, "bos_token": {"content": "<s>"}}
        (self.folder / "tokenizer_config.json").write_text(json.dumps(config))
        self.assertEqual(self.generator.chat_prompt(self.messages), "<s><user>Hello<bot>")
        (self.folder / "chat_template.jinja").write_text("{{ raise_exception('no ' + messages[0]['role']) }}")
        with self.assertRaisesRegex(mge.UsageError, "refuses the messages: no user"):
            self.generator.chat_prompt(self.messages)

    def test_have_what_templates_of_transformers_use(self):
        if not importlib.util.find_spec("jinja2"):
            self.skipTest("the package jinja2 is not installed")
        template = self.folder / "chat_template.jinja"
        tools = [{"name": "a<b>", "text": "\u00e9"}]
        template.write_text("{{ tools | tojson }}{% generation %}-{{ messages[0].content }}{% endgeneration %}")
        self.assertEqual(self.generator.chat_prompt(self.messages, tools=tools), '[{"name": "a<b>", "text": "\u00e9"}]-Hello')
        template.write_text("{{ strftime_now('%Y') | int > 2000 }}{% for m in messages %}{% break %}{% endfor %}")
        self.assertEqual(self.generator.chat_prompt(self.messages), "True")
        template.write_text("{{ messages[0].content.nothing() }}")
        with self.assertRaisesRegex(mge.UsageError, "the chat template of .* fails"):
            self.generator.chat_prompt(self.messages)
        template.unlink()
        both = [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "tools"}]
        (self.folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": both}))
        self.assertEqual(self.generator.chat_prompt(self.messages), "plain")
        self.assertEqual(self.generator.chat_prompt(self.messages, tools=tools), "tools")

    def test_name_what_is_missing(self):
        with unittest.mock.patch.dict("sys.modules", {"jinja2": None, "jinja2.sandbox": None}):
            with self.assertRaisesRegex(mge.UnsupportedError, "pip install jinja2"):
                self.generator.chat_prompt(self.messages)
        if importlib.util.find_spec("jinja2"):
            with self.assertRaisesRegex(mge.UnsupportedError, "has no chat template"):
                self.generator.chat_prompt(self.messages)


def folders():
    root = os.environ.get("MGE_TEST_DATA")
    return sorted(path.parent for path in pathlib.Path(root, "genai_tiny").glob("**/genai_config.json")) if root else []


class Folders(unittest.TestCase):
    """Folders of ONNX Runtime GenAI give the tokens of onnxruntime, which is run by hand with the same caches."""

    def reference(self, folder, prompt, count):
        import onnxruntime

        decoder = json.loads((folder / "genai_config.json").read_text())["model"]["decoder"]
        session = onnxruntime.InferenceSession(str(folder / decoder["filename"]), providers=["CPUExecutionProvider"])
        types = {"tensor(int32)": np.int32, "tensor(int64)": np.int64, "tensor(float)": np.float32, "tensor(float16)": np.float16}
        caches = {}
        for value in session.get_inputs():
            if value.name.startswith("past"):
                shape = [1 if isinstance(d, str) and "batch" in d else 0 if isinstance(d, str) else d for d in value.shape]
                caches[value.name] = np.zeros(shape, types[value.type])
        names = [value.name for value in session.get_outputs()]
        tokens, ids, rows = list(prompt), list(prompt), []
        for _ in range(count):
            feeds = dict(caches)
            for value in session.get_inputs():
                if value.name == "input_ids":
                    feeds[value.name] = np.array([ids], types[value.type])
                elif value.name == "attention_mask":
                    feeds[value.name] = np.ones((1, len(tokens)), types[value.type])
                elif value.name == "position_ids":
                    feeds[value.name] = np.arange(len(tokens) - len(ids), len(tokens), dtype=types[value.type])[None]
            out = dict(zip(names, session.run(None, feeds)))
            rows.append(out["logits"][0, -1].astype(np.float32))
            ids = [int(rows[-1].argmax())]
            tokens += ids
            caches = {name: out[name.replace("past_key_values", "present").replace("past_", "present_")] for name in caches}
        return tokens, rows

    def test_give_the_tokens_of_onnxruntime(self):
        if not folders():
            self.skipTest("MGE_TEST_DATA is not set, or has no folder genai_tiny")
        if not importlib.util.find_spec("onnxruntime"):
            self.skipTest("the package onnxruntime is not installed")
        for folder in folders():
            with self.subTest(folder.name):
                generator = mge.Generator(folder, device="cpu0")
                if folder.name == "dummy-decoder":  # its outputs are constants for two sequences
                    generator.append([1, 2])
                    with self.assertRaisesRegex(mge.UnsupportedError, r"the model returned float32\[2,2,2,4\]"):
                        generator.next()
                    continue
                prompt = [int(i) for i in np.random.default_rng(1).integers(3, min(90, generator.vocabulary), 24)]
                try:
                    tokens, rows = self.reference(folder, prompt, 16)
                except Exception as error:  # its types are those of onnxruntime
                    self.skipTest(f"onnxruntime cannot run {folder.name}: {error}")
                generator.append(prompt)
                for step, row in enumerate(rows):
                    np.testing.assert_allclose(generator.logits(), row, rtol=1e-2, atol=2e-3, err_msg=f"token {step}")
                    generator.append([tokens[len(prompt) + step]])


if __name__ == "__main__":
    unittest.main()
