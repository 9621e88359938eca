# SPDX-License-Identifier: Apache-2.0
"""Language models: continue a sequence of tokens, or a text.

    generator = mge.Generator("folder")
    for piece in generator.generate("The capital of France is", max_tokens=32):
        print(piece, end="", flush=True)

    generator.append([1, 15, 7])
    for token in generator.tokens(max_tokens=32):
        ...
"""
from __future__ import annotations

import ctypes as c
import dataclasses
import json
import os
import pathlib
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from ._chat import render_chat
from ._handles import BatchHandle, Closable, GeneratorHandle, pointers
from ._native import BatchOptions, BatchToken as _BatchToken, GeneratorFacts, GeneratorOptions, Sampling as _Sampling, lib, text, texts
from .context import Context
from .errors import UnsupportedError, UsageError, raise_for
from .runs import RunControl
from .runtime import Runtime, Settings, default_runtime, setting_texts
from .values import handles_of

_ENDS = (None, "end token", "length")


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How the next token is chosen: the steps are done in the order of the members. With temperature 0 it is the most probable
    one. `top_k` 0, `top_p` 1 and `min_p` 0 keep all tokens."""

    repetition_penalty: float = 1.0
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0


class Generator(Closable):
    """A sequence of tokens, and the model that continues it. One thread at a time may use it. After an error the sequence is as
    before the call, and can be continued."""

    def __init__(self, folder: str | os.PathLike[str], *, device: str | Context | None = None, threads: int | None = None,
                 settings: Settings | None = None, max_length: int | None = None, runtime: Runtime | None = None) -> None:
        """`folder`: one of ONNX Runtime GenAI, with genai_config.json and a decoder. `max_length`: the most tokens of the sequence, the
        prompt included; by default what the folder says. The other arguments are those of Session."""
        handle = GeneratorHandle()
        self.folder = pathlib.Path(os.fspath(folder))
        options = GeneratorOptions(threads=threads or 0, max_length=max_length or 0)
        if device is not None:
            options.device = str(device).encode()
        options.settings, options.setting_count = texts(setting_texts(settings))
        raise_for(lib.mge_generator_load((runtime or default_runtime())._open(), os.fspath(folder).encode(), c.byref(options),
                                         c.byref(handle)))
        self._handle = handle
        self._tokenizer: Any = None

    def _facts(self) -> GeneratorFacts:
        facts = GeneratorFacts()
        raise_for(lib.mge_generator_describe(self._open(), c.byref(facts)))
        return facts

    @property
    def vocabulary(self) -> int:
        """The number of token ids; 0: not known."""
        return int(self._facts().vocabulary)

    @property
    def max_length(self) -> int:
        """The most tokens of the sequence."""
        return int(self._facts().max_length)

    @property
    def end_tokens(self) -> tuple[int, ...]:
        """The ids that end a text."""
        facts = self._facts()
        return tuple(facts.end_tokens[: facts.end_token_count])

    @property
    def device(self) -> str:
        return text(self._facts().device)

    @property
    def cache_bytes_per_token(self) -> int:
        """The memory of each token of the sequence."""
        return int(self._facts().cache_bytes_per_token)

    @property
    def weight_bytes(self) -> int:
        """The bytes of weights that each token reads."""
        return int(self._facts().weight_bytes)

    @property
    def sampling(self) -> Sampling:
        """How next() chooses. At first as the folder says; it may be set at any time."""
        raw = _Sampling()
        raise_for(lib.mge_generator_sampling(self._open(), c.byref(raw)))
        return Sampling(**{field.name: getattr(raw, field.name) for field in dataclasses.fields(Sampling)})

    @sampling.setter
    def sampling(self, value: Sampling) -> None:
        raise_for(lib.mge_generator_set_sampling(self._open(), c.byref(_Sampling(**dataclasses.asdict(value)))))

    @property
    def sequence(self) -> list[int]:
        """The tokens that were appended and generated."""
        count = c.c_size_t()
        data = lib.mge_generator_tokens(self._open(), c.byref(count))
        return list(data[: count.value])

    def set_source(self, *, control: RunControl | None = None, **inputs: Any) -> None:
        """Runs the encoder of a model that has one, on inputs by name: the features of speech, or the tokens of a text to translate. A mask
        that is not given is 1 for each token. The tokens of the sequence run again."""
        handles = handles_of(inputs, {})
        names = (c.c_char_p * max(1, len(handles)))(*[name.encode() for name in handles])
        raise_for(lib.mge_generator_set_source(self._open(), names, pointers(list(handles.values())), len(handles),
                                               None if control is None else control._open()))

    def append(self, ids: Iterable[int]) -> None:
        """Appends tokens. They run when the next token is needed."""
        array = np.ascontiguousarray(list(ids), np.int64)
        raise_for(lib.mge_generator_append(self._open(), array.ctypes.data_as(c.POINTER(c.c_int64)), array.size))

    def next(self, *, control: RunControl | None = None) -> int:
        """Chooses the next token, appends it and returns it."""
        return self._next(control)[0]

    def _next(self, control: RunControl | None) -> tuple[int, str | None]:
        token, end = c.c_int64(), c.c_int32()
        raise_for(lib.mge_generator_next(self._open(), None if control is None else control._open(), c.byref(token), c.byref(end)))
        return token.value, _ENDS[end.value]

    def logits(self, *, control: RunControl | None = None) -> Any:
        """Returns the logits of the next token as an array, which may be changed before next(): -inf forbids a token. It is valid until
        the sequence changes; copy it to keep it."""
        data, count = c.POINTER(c.c_float)(), c.c_size_t()
        handle = self._open()
        raise_for(lib.mge_generator_logits(handle, None if control is None else control._open(), c.byref(data), c.byref(count)))
        memory = (c.c_float * count.value).from_address(c.addressof(data.contents))
        memory._owner = handle
        return np.ctypeslib.as_array(memory)

    def rewind(self, count: int) -> None:
        """Keeps the first `count` tokens and what was computed for them."""
        if count < 0:
            raise UsageError(f"a sequence cannot be rewound to {count} tokens")
        raise_for(lib.mge_generator_rewind(self._open(), count))

    def tokens(self, max_tokens: int | None = None, *, choose: Callable[[Any], int | None] | None = None,
               control: RunControl | None = None) -> Iterator[int]:
        """Generates tokens until one ends the text, the sequence has max_length tokens, or there are `max_tokens` new ones. An end token
        is the last one. `choose(logits)` may change the logits and return None, or return the next token itself."""
        made = 0
        ends, most = set(self.end_tokens), self.max_length
        while max_tokens is None or made < max_tokens:
            token = None if choose is None else choose(self.logits(control=control))
            if token is None:
                token, end = self._next(control)
            else:
                token = int(token)
                self.append([token])
                end = "end token" if token in ends else "length" if len(self.sequence) >= most else None
            yield token
            made += 1
            if end:
                return

    # ---- text

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of tokenizer.json, an object of the package `tokenizers`."""
        if self._tokenizer is None:
            try:
                import tokenizers
            except ImportError as error:
                raise UnsupportedError("texts need the package tokenizers: pip install tokenizers; token ids work without it") from error
            path = self.folder / "tokenizer.json"
            if not path.is_file():
                raise UnsupportedError(f"the folder has no {path}, which texts need; token ids work without it")
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        return self._tokenizer

    def encode(self, prompt: str, *, add_special_tokens: bool = True) -> list[int]:
        """Returns the tokens of a text."""
        if not isinstance(prompt, str):
            raise UsageError("the prompt is not a text; for token ids, use append(ids) and tokens(max_tokens)")
        return list(self.tokenizer.encode(prompt, add_special_tokens=add_special_tokens).ids)

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """Returns the text of tokens."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=skip_special_tokens))

    def chat_prompt(self, messages: Sequence[Mapping[str, Any]], **values: Any) -> str:
        """Returns the prompt for a conversation, such as [{"role": "user", "content": "Hello"}], by the folder's chat template. Other
        arguments are variables of the template. Pass the result to generate() with add_special_tokens=False."""
        config = self._json("tokenizer_config.json")
        file = self.folder / "chat_template.jinja"
        template = file.read_text("utf-8") if file.is_file() else config.get("chat_template")
        special = {}
        for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
            value = config.get(name)
            special[name] = value["content"] if isinstance(value, dict) else value or ""
        given = {"messages": messages, "add_generation_prompt": True, "tools": None, **special, **values}
        return render_chat(template, self.folder, given)

    def _json(self, name: str) -> dict[str, Any]:
        path = self.folder / name
        return dict(json.loads(path.read_text("utf-8"))) if path.is_file() else {}

    def generate(self, prompt: str, *, max_tokens: int | None = None, stop: Sequence[str] = (),
                 choose: Callable[[Any], int | None] | None = None, add_special_tokens: bool = True,
                 control: RunControl | None = None) -> Iterator[str]:
        """Appends the text to the sequence and yields the continuation in pieces. It ends before the first of the texts in `stop`, also if
        one crosses tokens. The other arguments are those of tokens()."""
        self._open()
        stops = [stop] if isinstance(stop, str) else list(stop)
        ids = self.encode(prompt, add_special_tokens=add_special_tokens)
        self.append(ids)
        stream = _TextStream(self.decode, ids)
        held = ""
        for token in self.tokens(max_tokens, choose=choose, control=control):
            held += stream.add(token)
            found = [at for at in (held.find(s) for s in stops) if at >= 0]
            if found:
                if min(found):
                    yield held[: min(found)]
                return
            ready = len(held) - _held(held, stops)
            if ready:
                yield held[:ready]
                held = held[ready:]
        held += stream.rest()
        if held:
            yield held


@dataclasses.dataclass(frozen=True)
class BatchToken:
    """The next token of a sequence. `end`: None, "end token" or "length"."""

    sequence: int
    id: int
    end: str | None


class Batch(Closable):
    """Several sequences of one model, whose next tokens one run computes. Sequences join and leave at any time. One thread at a time may use
    it. After an error the sequences are as before the call.

        batch = mge.Batch("folder")
        first, second = batch.add([1, 15, 7]), batch.add([4, 2])
        while tokens := batch.step():
            ...
    """

    def __init__(self, folder: str | os.PathLike[str], *, device: str | Context | None = None, threads: int | None = None,
                 settings: Settings | None = None, max_length: int | None = None, cache_bytes: int | None = None,
                 runtime: Runtime | None = None) -> None:
        """`max_length`: the most tokens of each sequence. `cache_bytes`: the most memory of the caches of all sequences; by default there is no
        limit but that of the device. The other arguments are those of Generator."""
        handle = BatchHandle()
        options = BatchOptions(threads=threads or 0, max_length=max_length or 0, cache_bytes=cache_bytes or 0)
        if device is not None:
            options.device = str(device).encode()
        options.settings, options.setting_count = texts(setting_texts(settings))
        raise_for(lib.mge_batch_load((runtime or default_runtime())._open(), os.fspath(folder).encode(), c.byref(options), c.byref(handle)))
        self._handle = handle

    def add(self, ids: Iterable[int], *, max_tokens: int | None = None, sampling: Sampling | None = None) -> int:
        """Adds a sequence that begins with these tokens, and returns its number. It ends after `max_tokens` new tokens. `sampling`: by default
        what the folder says."""
        array = np.ascontiguousarray(list(ids), np.int64)
        raw = None if sampling is None else c.byref(_Sampling(**dataclasses.asdict(sampling)))
        sequence = c.c_int64()
        raise_for(lib.mge_batch_add(self._open(), array.ctypes.data_as(c.POINTER(c.c_int64)), array.size, raw, max_tokens or 0,
                                    c.byref(sequence)))
        return sequence.value

    def step(self, *, control: RunControl | None = None) -> list[BatchToken]:
        """Computes the next token of each sequence that has not ended. The list is empty if all have."""
        data, count = c.POINTER(_BatchToken)(), c.c_size_t()
        raise_for(lib.mge_batch_step(self._open(), None if control is None else control._open(), c.byref(data), c.byref(count)))
        return [BatchToken(t.sequence, t.id, _ENDS[t.end]) for t in data[: count.value]]

    def tokens(self, sequence: int) -> list[int]:
        """Returns the prompt and the new tokens of a sequence, also after its end."""
        data, count = c.POINTER(c.c_int64)(), c.c_size_t()
        raise_for(lib.mge_batch_tokens(self._open(), sequence, c.byref(data), c.byref(count)))
        return list(data[: count.value])

    def remove(self, sequence: int) -> None:
        """Ends and forgets a sequence."""
        raise_for(lib.mge_batch_remove(self._open(), sequence))


class _TextStream:
    """The text of tokens that come one by one. The text of a token depends on those before it: a blank between words, the bytes of one
    character. So a few earlier tokens are decoded with it, and only what they do not explain is new."""

    _CONTEXT = 6

    def __init__(self, decode: Callable[[Sequence[int]], str], before: Sequence[int]) -> None:
        self._decode = decode
        self._tokens = list(before[-self._CONTEXT:])
        self._first = 0  # of the earlier tokens
        self._next = len(self._tokens)  # the first token whose text was not returned

    def _new(self) -> str:
        known = self._decode(self._tokens[self._first: self._next])
        return self._decode(self._tokens[self._first:])[len(known):]

    def add(self, token: int) -> str:
        """Returns the text that is complete with this token."""
        self._tokens.append(token)
        new = self._new()
        if not new or new.endswith("\ufffd"):  # the bytes of a character are not complete
            return ""
        self._first, self._next = self._next, len(self._tokens)
        return new

    def rest(self) -> str:
        return self._new()


def _held(text: str, stops: Sequence[str]) -> int:
    """Returns how many characters at the end may be the beginning of a stop text."""
    return max((n for s in stops for n in range(1, len(s)) if text.endswith(s[:n])), default=0)
