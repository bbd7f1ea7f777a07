"""llama.cpp's tokenizers through the PyPI wheel llama-cpp-py-sync, for the scripts beside this file."""
import sys

from gguf import GGUFWriter
from llama_cpp_py_sync._cffi_bindings import get_ffi, get_lib

ffi, lib = get_ffi(), get_lib()


@ffi.callback("void(enum ggml_log_level, const char *, void *)")
def quiet(level, text, data):
    pass


lib.llama_log_set(quiet, ffi.NULL)
lib.llama_backend_init()


class Vocab:
    """The tokenizer of a GGUF file."""

    def __init__(self, path):
        params = lib.llama_model_default_params()
        params.vocab_only = True
        self.model = lib.llama_model_load_from_file(str(path).encode(), params)
        if self.model == ffi.NULL:
            raise ValueError(f"llama.cpp cannot load {path}")
        self.vocab = lib.llama_model_get_vocab(self.model)

    def encode(self, text, parse_special, add_special=True):
        data = text.encode()
        ids = ffi.new("int32_t[]", len(data) + 16)
        n = lib.llama_tokenize(self.vocab, data, len(data), ids, len(data) + 16, add_special, parse_special)
        return list(ids[0:n])

    def decode(self, ids, special):
        piece, out = ffi.new("char[]", 1024), b""
        for token in ids:
            n = lib.llama_token_to_piece(self.vocab, token, piece, 1024, 0, special)
            out += ffi.buffer(piece, n)[:]
        return out.decode("utf-8", "replace")

    def ends(self, count):
        return [i for i in range(count) if lib.llama_vocab_is_eog(self.vocab, i)]

    def close(self):
        lib.llama_model_free(self.model)


def write(path, model, tokens, token_types, pre=None, merges=None, scores=None, bos=None, eos=None, **flags):
    """A GGUF file of a tokenizer and nothing else."""
    writer = GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    if pre is not None:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(token_types)
    if merges is not None:
        writer.add_token_merges(merges)
    if scores is not None:
        writer.add_token_scores(scores)
    if bos is not None:
        writer.add_bos_token_id(bos)
    if eos is not None:
        writer.add_eos_token_id(eos)
    for name, value in flags.items():
        writer.add_bool(f"tokenizer.ggml.{name}", value)
    for name in ("context_length", "embedding_length", "block_count", "head_count", "feed_forward_length"):
        getattr(writer, f"add_{name}")(32)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
