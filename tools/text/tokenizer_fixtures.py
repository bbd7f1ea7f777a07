#!/usr/bin/env python3
"""Grades engine/text/tests/fixtures/*.json with llama.cpp: keeps every text, rewrites the ids that llama.cpp gives it.

pip install llama-cpp-py-sync==0.11739 gguf, then: tokenizer_fixtures.py SMOLLM2.gguf
To add a case, add a text to a fixture and run this again.
"""
import json
import pathlib
import sys
import tempfile

from gguf import GGUFWriter
from llama_cpp_py_sync._cffi_bindings import get_ffi, get_lib

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "engine" / "text" / "tests" / "fixtures"
ffi, lib = get_ffi(), get_lib()


@ffi.callback("void(enum ggml_log_level, const char *, void *)")
def quiet(level, text, data):
    pass


class Vocab:
    def __init__(self, path):
        params = lib.llama_model_default_params()
        params.vocab_only = True
        self.model = lib.llama_model_load_from_file(str(path).encode(), params)
        if self.model == ffi.NULL:
            sys.exit(f"llama.cpp cannot load {path}")
        self.vocab = lib.llama_model_get_vocab(self.model)

    def encode(self, text, parse_special):
        data = text.encode()
        ids = ffi.new("int32_t[]", len(data) + 16)
        n = lib.llama_tokenize(self.vocab, data, len(data), ids, len(data) + 16, True, parse_special)
        return list(ids[0:n])

    def decode(self, ids, special):
        piece, out = ffi.new("char[]", 1024), b""
        for token in ids:
            n = lib.llama_token_to_piece(self.vocab, token, piece, 1024, 0, special)
            out += ffi.buffer(piece, n)[:]
        return out.decode("utf-8", "replace")

    def grade(self, text):
        ids = self.encode(text, True)
        return {
            "text": text,
            "ids": ids,
            "ids_noparse": self.encode(text, False),
            "detok": self.decode(ids, True),
            "detok_skip": self.decode(ids, False),
        }


def small_vocab(fixture, pre, folder):
    path = pathlib.Path(folder) / f"{pre}.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(fixture["tokens"])
    writer.add_token_types(fixture["token_types"])
    writer.add_token_merges(fixture["merges"])
    writer.add_bos_token_id(fixture["bos"])
    writer.add_eos_token_id(fixture["eos"])
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    for name in ("context_length", "embedding_length", "block_count", "head_count", "feed_forward_length"):
        getattr(writer, f"add_{name}")(32)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return Vocab(path)


def save(path, fixture):
    """One case a line, everything else a line each."""
    dump = lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    cases = ",\n".join(dump(case) for case in fixture["cases"])
    rest = "".join(f"{dump(key)}:{dump(value)},\n" for key, value in fixture.items() if key != "cases")
    path.write_text(f'{{\n{rest}"cases":[\n{cases}\n]}}\n')


lib.llama_log_set(quiet, ffi.NULL)
lib.llama_backend_init()
path = FIXTURES / "smollm2.json"
fixture = json.loads(path.read_text())
model = Vocab(sys.argv[1])
fixture["cases"] = [model.grade(case["text"]) for case in fixture["cases"]]
save(path, fixture)
path = FIXTURES / "small.json"
fixture = json.loads(path.read_text())
with tempfile.TemporaryDirectory() as folder:
    vocabs = {pre: small_vocab(fixture, pre, folder) for pre in ("gpt-2", "smollm")}
    texts = dict.fromkeys(case["text"] for case in fixture["cases"])
    fixture["cases"] = [{"pre": pre, **vocab.grade(text)} for text in texts for pre, vocab in vocabs.items()]
    fixture["end_of_generation"] = [
        i for i in range(len(fixture["tokens"])) if lib.llama_vocab_is_eog(vocabs["gpt-2"].vocab, i)
    ]
save(path, fixture)
