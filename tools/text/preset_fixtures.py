#!/usr/bin/env python3
"""Writes engine/text/tests/fixtures/presets.json: token ids that llama.cpp gives random texts, for every pre-tokenizer.

pip install llama-cpp-py-sync==0.11739 gguf, then: preset_fixtures.py [TEXTS [SEED [OUTPUT [any]]]]
With `any`, a third of the characters are any that there are.
The vocabulary is made up so that almost every wrong cut changes a token: all pairs of the bytes below merge, once.
More texts than the fixture has are compared with: preset_fixtures.py 5000 1 big.json, then
MEMRA_PRESETS=big.json cargo test -p memra-text --test llama_cpp presets
"""
import json
import pathlib
import random
import re
import sys
import tempfile

from llama_cpp import Vocab, write

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "engine" / "text" / "src" / "presets.rs"
OUTPUT = ROOT / "engine" / "text" / "tests" / "fixtures" / "presets.json"
# What texts are made of: what some pattern treats in a way of its own.
PIECES = (
    "a b A Z ab Ab aB AB the S s 's 'S 't 're 'VE 'll 'd 'x ' é À ß ǅ ʰ ª א क का ไ ກ 漢 漢字 々 〇 か カ ー 가 ᄀ ㄅ 𠀀 豈 "
    "1 12 123 1234 12345678 ½ ٣ Ⅷ . , ! ? / // … 。 ， 、 । ۔ ، ( ) [ ] { } < > = + - _ ^ ~ | ` $ & # @ : ; \" \\ * % "
    "€ ° ’ “ ” — ！ ： ￥ ﹏ <sentinel:12> IMGIMGABZ x_y.z http://a.b 😀 \u0301 \u0300a e\u0301 \u200d \u200b \ue000 \u0378"
).split()
SPACES = [" ", " ", " ", "  ", "   ", "    ", "\n", "\n\n", "\r\n", "\t", " \n", "\n ", "\u00a0", "\u3000", "\u0085", "\u2028"]


def alphabet():
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    chars = {b: chr(b) for b in printable} | {b: chr(0x100 + i) for i, b in enumerate(others)}
    return [chars[b] for b in range(256)]


def vocabulary(used):
    """All bytes, then every pair of used ones in an order that looks random; the test does the same."""
    tokens, merges = alphabet(), []
    count = len(used) ** 2
    for i in range(count):
        left, right = divmod(i * 7919 % count, len(used))
        pair = tokens[used[left]], tokens[used[right]]
        merges.append(" ".join(pair))
        tokens.append("".join(pair))
    return tokens, merges


def random_character(rng):
    code = rng.randrange(0x110000 - 0x800) if rng.random() < 0.3 else rng.randrange(0x3100)
    return chr(code if code < 0xD800 else code + 0x800)


def main(count=150, seed=0, output=OUTPUT, characters=""):
    names = re.findall(r'"([^"]+)"', " ".join(re.findall(r"&\[\s*((?:\"[a-z0-9_.-]+\",?\s*)+)\]", SOURCE.read_text())))
    names = list(dict.fromkeys(name for name in names if name not in ("gemma4", "granite-embed-multi-311m", "sarvam-moe")))
    used = sorted({byte for piece in PIECES + SPACES for byte in piece.encode()})
    used = [byte for byte in used if byte < 0x80 or (byte % 3 != 2 and not characters)]
    used += list(range(0x80, 0xC0)) if characters else []
    while len(used) ** 2 % 7919 == 0:
        used.pop()
    tokens, merges = vocabulary(used)
    rng = random.Random(int(seed))
    texts = []
    for _ in range(int(count)):
        parts = [rng.choice(SPACES) if rng.random() < 0.35 else rng.choice(PIECES) for _ in range(rng.randint(1, 12))]
        if characters:
            parts = [random_character(rng) if rng.random() < 0.33 else part for part in parts]
        if rng.random() < 0.1:
            parts.append(rng.choice(["a", "A", " ", "1", "\n", "漢"]) * rng.randint(5, 20))
        texts.append("".join(parts))
    results = [{} for _ in texts]
    known = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path = pathlib.Path(folder) / "vocab.gguf"
            write(path, "gpt2", tokens, [1] * len(tokens), pre=name, merges=merges, add_bos_token=False)
            try:
                vocab = Vocab(path)
            except ValueError:
                print(f"llama.cpp does not know {name}", file=sys.stderr)
                continue
            known.append(name)
            for text, result in zip(texts, results):
                ids = tuple(vocab.encode(text, False))
                result.setdefault(ids, []).append(len(known) - 1)
            vocab.close()
    dump = lambda value: json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    cases = [{"text": text, "results": [{"ids": ids, "names": who} for ids, who in result.items()]}
             for text, result in zip(texts, results)]
    lines = ",\n".join(dump(case) for case in cases)
    origin = f"ids by llama.cpp b11739, made up by tools/text/preset_fixtures.py with seed {seed}"
    pathlib.Path(output).write_text(
        f'{{\n"origin":{dump(origin)},\n"bytes":{dump(used)},\n"names":{dump(known)},\n"cases":[\n{lines}\n]}}\n')


main(*sys.argv[1:])
