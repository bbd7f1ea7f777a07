#!/usr/bin/env python3
"""Writes engine/text/tests/fixtures/tokenizers.json: what the PyPI package tokenizers makes of random texts with small
tokenizers of every kind that is supported.

pip install tokenizers==0.23.3, then: json_fixtures.py [TEXTS [SEED [OUTPUT]]]
The vocabularies are trained on documents of the checkout; those of a fixture that is there are kept.
More texts than the fixture has are compared with: json_fixtures.py 300 1 big.json, then
MEMRA_TOKENIZERS=big.json cargo test -p memra-text --test tokenizers
A tokenizer.json of one's own is compared with: json_fixtures.py 300 1 big.json tokenizer.json …
"""
import json
import pathlib
import random
import sys

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "engine" / "text" / "tests" / "fixtures" / "tokenizers.json"
PIECES = (
    "the of and The THE café naïve Größe ſt ǅ ʰ İ e\u0301 o\u0308 ﬁ ① Å 漢字 々かな カナ 한국어 हिन्दी ไทย привет 👩\u200d👩\u200d👧 🇯🇵 "
    "don't I'LL we've 'S x's 's 1 12 123 1234 1234567 ½ ٣ ² . , ! ?! … -- // { } ( ) [x] = += <a> <b> _x x_ $x \"q\" a.b "
    "<s> </s> <tool> [MASK] tool <0x41> \u0000 \u200b \u00ad ▁ ▁x Ġ Ċ \ufffd ＡＢ"
).split()
SPACES = [" ", " ", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n", "\u00a0", "\u3000"]

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
BAILING = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
HAN = r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}&&[^\p{Han}]]+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+"


def kind(name, **fields):
    return {"type": name, **fields}


def split(pattern, behavior="Isolated", invert=False, how="Regex"):
    return kind("Split", pattern={how: pattern}, behavior=behavior, invert=invert)


def sequence(field, *parts):
    return kind("Sequence", **{field: list(parts)})


def added(content, id, **flags):
    """A token whose id counts from the end of the vocabulary."""
    return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": False, **flags}


def template(*pieces):
    part = lambda p: {"Sequence": {"id": "A", "type_id": 0}} if p == "A" else {"SpecialToken": {"id": p, "type_id": 0}}
    ids = {"<s>": 0, "</s>": 1}
    tokens = {p: {"id": p, "ids": [ids[p]], "tokens": [p]} for p in pieces if p != "A"}
    pair = [*map(part, pieces), {"Sequence": {"id": "B", "type_id": 1}}]
    return kind("TemplateProcessing", single=list(map(part, pieces)), pair=pair, special_tokens=tokens)


SPECIALS = [added("<s>", 0, special=True), added("</s>", 1, special=True), added("<tool>", 2)]
ODD = [*SPECIALS, added("[MASK]", 3, special=True, lstrip=True), added("_x", 4, single_word=True, normalized=True),
       added("<a>", 5, rstrip=True), added("Größe", 6, normalized=True)]
BYTE_LEVEL = kind("ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True)
BYTES_ONLY = {**BYTE_LEVEL, "use_regex": False}
SPELLED = sequence("decoders", kind("Replace", pattern={"String": "▁"}, content=" "), kind("ByteFallback"), kind("Fuse"),
                   kind("Strip", content=" ", start=1, stop=0))
PLAIN = sequence("decoders", kind("Replace", pattern={"String": "▁"}, content=" "), kind("ByteFallback"), kind("Fuse"))
REPLACE = kind("Replace", pattern={"String": " "}, content="▁")


def metaspace(scheme, split=True):
    return kind("Metaspace", replacement="▁", prepend_scheme=scheme, split=split)


def by_bytes(pre, tokens=SPECIALS, post=None, normalizer=None, **model):
    return {"vocabulary": "bytes", "added_tokens": tokens, "normalizer": normalizer, "pre_tokenizer": pre,
            "post_processor": post, "decoder": BYTE_LEVEL, "model": model}


def by_chars(pre, tokens=SPECIALS, post=None, normalizer=None, decoder=PLAIN, **model):
    return {"vocabulary": "chars", "added_tokens": tokens, "normalizer": normalizer, "pre_tokenizer": pre,
            "post_processor": post, "decoder": decoder, "model": {"unk_token": "<unk>", **model}}


KINDS = {
    "gpt2": by_bytes(BYTE_LEVEL, post=BYTE_LEVEL),
    "gpt2-prefix": by_bytes({**BYTE_LEVEL, "add_prefix_space": True}, tokens=ODD),
    "roberta": by_bytes(BYTE_LEVEL, tokens=ODD, post=kind(
        "RobertaProcessing", sep=["</s>", 1], cls=["<s>", 0], trim_offsets=True, add_prefix_space=True)),
    "llama3": by_bytes(sequence("pretokenizers", split(LLAMA3), BYTES_ONLY), ignore_merges=True,
                       post=sequence("processors", BYTE_LEVEL, template("<s>", "A"))),
    "o200k": by_bytes(sequence("pretokenizers", split(O200K), BYTES_ONLY)),
    "bailing": by_bytes(sequence("pretokenizers", split(BAILING), BYTES_ONLY)),
    "deepseek": by_bytes(sequence("pretokenizers", *map(split, DEEPSEEK), BYTES_ONLY), post=template("<s>", "A", "</s>")),
    "han": by_bytes(sequence("pretokenizers", split(HAN), BYTES_ONLY)),
    "starcoder": by_bytes(sequence("pretokenizers", kind("Digits", individual_digits=True), BYTE_LEVEL)),
    "falcon": by_bytes(sequence("pretokenizers", kind("Punctuation", behavior="Contiguous"), BYTE_LEVEL,
                                kind("Digits", individual_digits=False), split("[0-9][0-9][0-9]"))),
    "nfc": by_bytes(BYTE_LEVEL, tokens=ODD, normalizer=kind("NFC")),
    "qwen": by_bytes(sequence("pretokenizers", split(LLAMA3.replace("{1,3}", "")), BYTES_ONLY), normalizer=kind("NFC")),
    "removed": by_bytes(sequence("pretokenizers", split(r"\s+", "Removed"), BYTES_ONLY)),
    "inverted": by_bytes(sequence("pretokenizers", split(r"\w+", "Removed", True), BYTES_ONLY)),
    "previous": by_bytes(sequence("pretokenizers", split(" ", "MergedWithPrevious", how="String"), BYTES_ONLY)),
    "next": by_bytes(sequence("pretokenizers", split(r"[\s\p{P}]", "MergedWithNext"), BYTES_ONLY)),
    "contiguous": by_bytes(sequence("pretokenizers", split(r"\p{L}", "Contiguous"), BYTES_ONLY)),
    "byte-normalizer": by_bytes(None, normalizer=kind("ByteLevel")),
    "llama2": by_chars(None, normalizer=sequence("normalizers", kind("Prepend", prepend="▁"), REPLACE), decoder=SPELLED,
                       post=template("<s>", "A"), byte_fallback=True, fuse_unk=True),
    "gemma": by_chars(split(" ", "MergedWithPrevious", how="String"), normalizer=REPLACE, byte_fallback=True,
                      tokens=[*SPECIALS, added("\n\n", 3), added("▁▁", 4)]),
    "always": by_chars(metaspace("always"), decoder=metaspace("always"), fuse_unk=True),
    "first": by_chars(metaspace("first"), decoder=metaspace("first"), tokens=ODD),
    "never": by_chars(metaspace("never", split=False), decoder=metaspace("never")),
    "changed": by_chars(metaspace("always"), decoder=metaspace("always"), tokens=ODD, normalizer=sequence(
        "normalizers", kind("NFKC"), kind("Lowercase"), kind("Strip", strip_left=True, strip_right=True),
        kind("Replace", pattern={"Regex": " {2,}"}, content=" "))),
    "accents": by_chars(metaspace("first"), decoder=metaspace("first"), byte_fallback=True,
                        normalizer=sequence("normalizers", kind("NFD"), kind("StripAccents"))),
    "whitespace": by_chars(kind("Whitespace")),
    "words": by_chars(sequence("pretokenizers", kind("WhitespaceSplit"), kind("Punctuation", behavior="Isolated"))),
    "delimiter": by_chars(kind("CharDelimiterSplit", delimiter="x")),
}


def numbered(value, size):
    """The document with ids of added tokens behind a vocabulary of `size`."""
    if isinstance(value, list):
        is_pair = len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], int)
        return [value[0], value[1] + size] if is_pair else [numbered(item, size) for item in value]
    if isinstance(value, dict):
        shift = lambda key, item: item + size if key == "id" and isinstance(item, int) else (
            [i + size for i in item] if key == "ids" else numbered(item, size))
        return {key: shift(key, item) for key, item in value.items()}
    return value


def train():
    """Vocabularies: bytes in GPT-2's alphabet, and characters with ▁ for a space."""
    corpus = [path.read_text() for path in sorted(ROOT.glob("*.md"))] + [" ".join(PIECES)] * 3
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(corpus, trainers.BpeTrainer(
        vocab_size=520, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    found = {"bytes": json.loads(tokenizer.to_str())["model"]}
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer.train_from_iterator(corpus, trainers.BpeTrainer(
        vocab_size=700, limit_alphabet=100, special_tokens=special, show_progress=False))
    found["chars"] = json.loads(tokenizer.to_str())["model"]
    merges = lambda model: [" ".join(pair) for pair in model["merges"]]
    return {name: {"vocab": model["vocab"], "merges": merges(model)} for name, model in found.items()}


def random_text(rng):
    parts = [rng.choice(SPACES) if rng.random() < 0.4 else rng.choice(PIECES) for _ in range(rng.randint(1, 14))]
    return "".join(parts)


def grade(tokenizer, text):
    """Ids with all special tokens, ids of text that a user wrote, and texts of the former where they differ from `text`."""
    tokenizer.encode_special_tokens = False
    ids = tokenizer.encode(text).ids
    tokenizer.encode_special_tokens = True
    plain = tokenizer.encode(text, add_special_tokens=False).ids
    case = {"text": text, "ids": ids}
    shown = [tokenizer.decode(ids, skip_special_tokens=skip) for skip in (False, True)]
    case |= {"plain": plain} if plain != ids else {}
    case |= {"shown": shown[0]} if shown[0] != text else {}
    return case | ({"skipped": shown[1]} if shown[1] != shown[0] else {})


def main(count=16, seed=0, output=OUTPUT, *files):
    rng = random.Random(int(seed))
    vocabularies = json.loads(OUTPUT.read_text())["vocabularies"] if OUTPUT.exists() else train()
    dump = lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    rows = []
    for name, given in KINDS.items():
        vocabulary = vocabularies[given["vocabulary"]]
        document = {key: value for key, value in given.items() if key != "vocabulary"}
        document = numbered(document, len(vocabulary["vocab"]))
        merges = [merge.split(" ") for merge in vocabulary["merges"]] if name > "m" else vocabulary["merges"]
        model = {"type": "BPE", **document["model"], "vocab": vocabulary["vocab"], "merges": merges}
        tokenizer = Tokenizer.from_str(json.dumps({"version": "1.0", **document, "model": model}))
        cases = [grade(tokenizer, random_text(rng)) for _ in range(int(count))]
        rows.append(f'{{"name":{dump(name)},"pairs":{dump(name > "m")},"vocabulary":{dump(given["vocabulary"])},'
                    f'"document":{dump(document)},"cases":[\n' + ",\n".join(map(dump, cases)) + "\n]}")
    for file in files:
        text = pathlib.Path(file).read_text()
        tokenizer = Tokenizer.from_str(text)
        cases = [grade(tokenizer, random_text(rng)) for _ in range(int(count))]
        rows.append(f'{{"name":{dump(file)},"document":{text},"cases":[\n' + ",\n".join(map(dump, cases)) + "\n]}")
    origin = (f"vocabularies trained with the PyPI package tokenizers 0.23.3 on the checkout's pages; ids and texts by the same "
              f"package (tools/text/json_fixtures.py, seed {seed})")
    pathlib.Path(output).write_text(
        f'{{\n"origin":{dump(origin)},\n"vocabularies":{dump(vocabularies)},\n"tokenizers":[\n' + ",\n".join(rows) + "\n]}\n")


main(*sys.argv[1:])
