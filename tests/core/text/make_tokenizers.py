#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small tokenizer of each kind with the package `tokenizers`, and writes the ids that it gives to texts of many scripts.

    python3 make_tokenizers.py FOLDER [--texts 10000]

FOLDER then holds, for each kind, KIND.json and KIND.cases: a line of JSON for each text, [text, ids, text of the ids].
MGE_TEST_TOKENIZERS=FOLDER test_core_text compares them. The files in data/ were written with --texts 60.
"""
import argparse
import base64
import json
import pathlib
import random
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
DEEPSEEK = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"""
            r"\s*[\r\n]+|\s+(?!\S)|\s+")
BYTES = [f"<0x{b:02X}>" for b in range(256)]
# A table of SentencePiece, which its trainer made from some rules: A is a, fi for its ligature, 1 for the circled 1, e with an accent, m3
# for its square, nothing for the soft hyphen, and :) for a face.
REPLACEMENTS = base64.b64decode(
    "AAQAAAAAAQBBDQAABgAAgGIdAAAOAACAzAgCAIEFAAAQAACArQUAAAAAAICRhAIAoB0AAAEAAICOnAIACwAAgKUFAACsAAIAgQ0AAAgAAICfeAIAgAkAAJgE"
    "AgADAACAFgAAABkAAAAYAAAAGwAAABoAAAAdAAAAHAAAAB8AAAAeAAAAIQAAAGEAAQAjAAAAIgAAACUAAABlsAMAJwAAACYAAAApAAAAKAAAACsAAAAqAAAA"
    "LQAAACwAAAAvAAAALgAAADEAAAAwAAAAMwAAADIAAAA1AAAANAAAADcAAAA2AAAAOQAAADgAAAA7AAAAOgAAAD0AAAA8AAAAPwAAAD4AAABBAAAAQAAAAEMA"
    "AABCAAAARQAAAEQAAABHAAAARgAAAEkAAABIAAAASwAAAEoAAABNAAAATAAAAE8AAABOAAAAUQAAAFAAAABTAAAAUgAAAFUAAABUAAAAVwAAAFYAAABZAAAA"
    "WAAAAFsAAABaAAAAXQAAAFwAAABfAAAAXgAAAGEAAABgAAAAYwAAAGIAAABlAAAAZAAAAGcAAABmAAAAaQAAAGgAAABrAAAAagAAAG0AAABsAAAAbwAAAG4A"
    "AABxAAAAcAAAAHMAAAByAAAAdQAAAHQAAAB3AAAAdgAAAHkAAAB4AAAAewAAAHoAAAB9AAAAfAAAAH8AAAB+AAAAgQAAAIAAAADCnAAAggAAAIUAAACEAAAA"
    "hwAAAIYAAACJAAAAiAAAAIsAAACKAAAAjQAAAIwAAACPAAAAjgAAAJEAAACQAAAAkwAAAJIAAACVAAAAlAAAAJcAAACWAAAAmQAAAJgAAACbAAAAmgAAAJ0A"
    "AACcAAAAnwAAAJ4AAAChAAAAoAAAAOLkAADjgAAApQAAAKQAAACnAAAApgAAAKkAAACoAAAAqwAAAKoAAACtAAAArAAAAK8AAADvTAAA8PAAALAAAACzAAAA"
    "sgAAALUAAAC0AAAAtwAAALYAAAC5AAAAuAAAALsAAAC6AAAAvQAAALwAAAC/AAAAvgAAAMEAAADAAAAAwwAAAMIAAADFAAAAxAAAAMcAAADGAAAAyQAAAMgA"
    "AADLAAAAygAAAM0AAADMAAAAzwAAAM4AAADRAAAA0AAAANMAAADSAAAA1QAAANQAAADXAAAA1gAAANkAAADYAAAA2wAAANoAAADdAAAA3AAAAN8AAADeAAAA"
    "4QAAAOAAAADjAAAA4gAAAOUAAADkAAAA5wAAAOYAAADpAAAA6AAAAOsAAADqAAAA7QAAAOwAAADvAAAA7gAAAPEAAADwAAAA8wAAAPIAAAD1AAAA9AAAAPcA"
    "AAD2AAAA+QAAAPgAAAD7AAAA+gAAAP0AAAD8AAAA/wAAAP4AAAAAMQA6KQBhAGZpAG0zAHgAw6kA")

# Letters of scripts, as ranges.
SCRIPTS = [[(0x61, 0x7A)], [(0x61, 0x7A), (0x41, 0x5A)], [(0xE0, 0xF6), (0x61, 0x7A)], [(0x3B1, 0x3C9), (0x391, 0x3A1)],
           [(0x430, 0x44F), (0x410, 0x42F)], [(0x561, 0x586)], [(0x5D0, 0x5EA)], [(0x621, 0x63A), (0x641, 0x64A), (0x64B, 0x652)],
           [(0x905, 0x939), (0x93E, 0x94C)], [(0x985, 0x98C), (0x9BE, 0x9C4)], [(0xB85, 0xB8A), (0xBBE, 0xBC2)],
           [(0xE01, 0xE3A), (0xE40, 0xE4E)], [(0x10D0, 0x10F0)], [(0x1200, 0x1248)], [(0x3041, 0x3096)], [(0x30A1, 0x30FA), (0x30FC, 0x30FC)],
           [(0x4E00, 0x4E80), (0x9FA0, 0x9FA5)], [(0xAC00, 0xAC80)], [(0x1780, 0x17B3)], [(0x20000, 0x20040)]]
MARKS = [*".,;:!?'\"()[]{}<>-_/\\@#$%^&*+=~`|", "…", "—", "“", "”", "。", "、", "،", "।", "¿", "€", "№", "½", "Ⅷ", "²", "٣", "५"]
BLANKS = [" "] * 30 + ["  ", "   ", "\n", "\n\n", "\r\n", "\t", "\u00a0", "\u2003", "\u3000", " \n ", "\u200b", "\u2028", "\x0b", "\x85"]
ENGLISH = ("the of and to in is that it was for don't I'll you've he's we're they'd I'M it'S do not n't e.g. http://www.example.org/a?b=1 "
           "Token tokens TOKENS CamelCase snake_case x=y+1; 3.14 1,000,000 2024-11-29 ﬁne ſ's İstanbul Straße naïve café cafe\u0301").split()
OTHER = ["😀", "👩‍👩‍👧", "🇩🇪", "👍🏽", "\u0301", "e\u0301\u0323", "\ufeff", "\u200d", "①", "ﷺ", "ｆｕｌｌ", "㍿", "가", "각", "\u00ad", "\ufffd", "\x01",
         "\u2581", "<s>", "</s>", "<|user|>", "[MASK]", " <|user|> ", "word", "wordy", "<unk>", "<0x0A>", "##a", "Ġ"]
# The tables of the package are older than ICU's: characters that Unicode added since then may give other ids.
ASSIGNED = [c for c in map(chr, [*range(0x20, 0x3000), *range(0xA000, 0xA48D), *range(0xFB00, 0xFE00)])
            if unicodedata.ucd_3_2_0.category(c) != "Cn"]


def make_text(rng: random.Random) -> str:
    out = []
    script = rng.choice(SCRIPTS)
    for _ in range(rng.choice([0, 1, 2, 5, 10, 20, 40])):
        kind = rng.random()
        if kind < 0.1:
            script = rng.choice(SCRIPTS)
        if kind < 0.5:
            letters = []
            for _ in range(rng.randint(1, 8)):
                first, last = rng.choice(script)
                letters.append(chr(first + int((last - first + 1) * rng.random() ** 2)))
            out.append("".join(letters))
        elif kind < 0.7:
            out.append(rng.choice(ENGLISH))
        elif kind < 0.8:
            out.append("".join(rng.choice(MARKS) for _ in range(rng.randint(1, 3))))
        elif kind < 0.88:
            out.append(str(rng.randint(0, 10 ** rng.randint(1, 9))))
        elif kind < 0.95:
            out.append(rng.choice(OTHER))
        else:
            out.append(rng.choice(ASSIGNED))
        if rng.random() < 0.75:
            out.append(rng.choice(BLANKS))
    return "".join(out)


def byte_level(pre, normalizer=None, ignore_merges=False, **trainer):
    t = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    t.normalizer = normalizer
    t.pre_tokenizer = pre
    t.decoder = decoders.ByteLevel()
    return t, trainers.BpeTrainer(initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **trainer)


def split_byte_level(*splits, **rest):
    return byte_level(pre_tokenizers.Sequence([*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]), **rest)


def byte_fallback(normalizer, pre=None):
    t = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    t.normalizer, t.pre_tokenizer = normalizer, pre
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return t, trainers.BpeTrainer(special_tokens=["<unk>", "<s>", "</s>", *BYTES], limit_alphabet=150)


def unigram(normalizer, pre, **rest):
    t = Tokenizer(models.Unigram())
    t.normalizer, t.pre_tokenizer, t.decoder = normalizer, pre, decoders.Metaspace()
    return t, trainers.UnigramTrainer(special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", **rest)


def word_piece():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20))
    t.normalizer, t.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    return t, trainers.WordPieceTrainer(special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])


def word_level(normalizer, pre):
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.normalizer, t.pre_tokenizer = normalizer, pre
    return t, trainers.WordLevelTrainer(special_tokens=["<unk>"])


def clip():
    t = Tokenizer(models.BPE(end_of_word_suffix="</w>", unk_token="<unk>"))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.BPEDecoder()
    return t, trainers.BpeTrainer(special_tokens=["<unk>"], end_of_word_suffix="</w>",
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


P, N = pre_tokenizers, normalizers
KINDS = {
    "gpt2": lambda: byte_level(P.ByteLevel(add_prefix_space=False)),
    "prefix": lambda: byte_level(P.ByteLevel(add_prefix_space=True)),
    "llama3": lambda: split_byte_level(P.Split(Regex(LLAMA3), "isolated"), ignore_merges=True),
    "qwen": lambda: split_byte_level(P.Split(Regex(QWEN), "isolated"), normalizer=N.NFC()),
    "o200k": lambda: split_byte_level(P.Split(Regex(O200K), "isolated")),
    "deepseek": lambda: split_byte_level(P.Split(Regex(r"\p{N}{1,3}"), "isolated"), P.Split(Regex("[一-龥\u3040-ゟ゠-ヿ]+"), "isolated"),
                                         P.Split(Regex(DEEPSEEK), "isolated")),
    "splits": lambda: split_byte_level(P.Split(",", "merged_with_previous"), P.Split(Regex(r"[.!]"), "merged_with_next"),
                                       P.Punctuation("contiguous"), P.Digits(individual_digits=False), P.UnicodeScripts(),
                                       P.Split(Regex(r"\w\d"), "isolated")),
    "lengths": lambda: split_byte_level(P.CharDelimiterSplit("a"), P.FixedLength(3), P.Digits(individual_digits=True)),
    "llama2": lambda: byte_fallback(N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")])),
    "gemma": lambda: byte_fallback(N.Replace(" ", "▁"), P.Split("▁", "merged_with_previous")),
    "metaspace": lambda: byte_fallback(None, P.Metaspace(prepend_scheme="first")),
    "t5": lambda: unigram(N.Sequence([N.Nmt(), N.NFKC(), N.Replace(Regex(" {2,}"), " "), N.Strip()]), P.Metaspace()),
    "unigram": lambda: unigram(N.NFKD(), P.Sequence([P.WhitespaceSplit(), P.Metaspace(prepend_scheme="never")])),
    "replacements": lambda: unigram(N.Sequence([N.Precompiled(REPLACEMENTS), N.Replace(Regex(" {2,}"), " ")]), P.Metaspace()),
    "bert": word_piece,
    "words": lambda: word_level(N.Sequence([N.NFD(), N.StripAccents(), N.Lowercase()]), P.Whitespace()),
    "clip": clip,
}


def finish(name: str, t: Tokenizer) -> None:
    """Adds tokens and a post-processor, as folders of models have them."""
    if name in ("llama3", "qwen", "llama2", "gpt2", "t5"):
        t.add_special_tokens([AddedToken("<|user|>", special=True), AddedToken("[MASK]", lstrip=True, rstrip=name == "t5", special=True)])
        t.add_tokens([AddedToken("word", single_word=True, normalized=True), AddedToken("WORDY", normalized=True)])
    if name in ("llama3", "llama2"):
        t.add_special_tokens(["<s>"])
        begin = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", t.token_to_id("<s>"))])
        t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), begin])
    if name == "t5":
        t.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    if name == "bert":
        t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
        t.enable_truncation(50)
        t.enable_padding()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--texts", type=int, default=10000)
    parser.add_argument("--only", default="")
    parser.add_argument("--replacements", type=pathlib.Path, help="a larger table, in base64")
    args = parser.parse_args()
    if args.replacements:
        global REPLACEMENTS
        REPLACEMENTS = base64.b64decode(args.replacements.read_text())
    args.folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(1)
    corpus = [make_text(rng) for _ in range(400)]
    texts = ["", " ", "Hello world", "I've  3 apples,\n\n don't you?", *(make_text(rng) for _ in range(args.texts - 4))]
    for name, make in KINDS.items():
        if args.only not in name:
            continue
        t, trainer = make()
        trainer.show_progress = False
        trainer.vocab_size = {"t5": 1600, "unigram": 1600, "replacements": 1600, "bert": 700, "words": 300}.get(name, 460)
        t.train_from_iterator(corpus, trainer)
        finish(name, t)
        data = json.loads(t.to_str())
        data["added_tokens"] = [a for a in data["added_tokens"] if a["content"] not in BYTES]  # the trainer took them for special ones
        text = json.dumps(data, ensure_ascii=False)
        (args.folder / f"{name}.json").write_text(text, "utf-8")
        t = Tokenizer.from_str(text)
        with open(args.folder / f"{name}.cases", "w", encoding="utf-8") as out:
            for text in texts:
                ids = t.encode(text).ids
                out.write(json.dumps([text, ids, t.decode(ids)], ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
