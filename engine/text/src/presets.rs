//! Pre-tokenizers by the names of `tokenizer.ggml.pre`, as llama.cpp splits.
//!
//! The expressions are those of llama.cpp's table, not those of the models' own files: llama.cpp tells capital letters from
//! small ones in ASCII alone, and a GGUF file must give the tokens that it gives there. Where llama.cpp cuts with a function
//! of its own, the expression here says what that function does. Checked with tools/text/tokenizer_fixtures.py.

/// How a BPE tokenizer cuts text, and what files leave unsaid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preset {
    names: &'static [&'static str],
    /// Each cuts what those before it left whole.
    pub(crate) splits: &'static [&'static str],
    pub(crate) units: Units,
    /// A word that is a token is that token, whatever its merges give.
    pub(crate) ignore_merges: bool,
    pub(crate) add_bos: AddBos,
}

/// What merging starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Units {
    /// Bytes, written in GPT-2's alphabet.
    Bytes,
    /// Characters, with `▁` for a space and byte tokens for what has none.
    Chars {
        /// Line feeds in a row that are a token are that token, whatever its merges give.
        whole_newlines: bool,
    },
}

/// Whether bos is put in front of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddBos {
    /// If the file says so.
    No,
    /// Unless the file says no.
    Yes,
    /// Whatever the file says: files say the wrong thing.
    Always,
}

/// English endings behind an apostrophe, in either case.
macro_rules! endings {
    () => {
        r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
    };
}
/// White space: up to the last line break; all but the last; the last.
macro_rules! blanks {
    () => {
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    };
}
/// Letters with one other character in front, numbers as given, and runs of the rest.
macro_rules! words {
    ($numbers:literal) => {
        concat!(endings!(), r"|[^\r\n\p{L}\p{N}]?\p{L}+|", $numbers, r"| ?[^\s\p{L}\p{N}]+[\r\n]*", blanks!())
    };
}
/// Words that end where a small ASCII letter precedes a capital one.
macro_rules! cased {
    ($letters:literal, $endings:expr, $numbers:literal) => {
        concat!(
            r"[^\r\n\p{L}\p{N}]?[",
            $letters,
            "&&[^a-z]]*[",
            $letters,
            "&&[^A-Z]]+",
            $endings,
            r"|[^\r\n\p{L}\p{N}]?[",
            $letters,
            "&&[^a-z]]+[",
            $letters,
            "&&[^A-Z]]*",
            $endings,
            "|",
            $numbers,
            r"| ?[^\s\p{L}\p{N}]+[\r\n/]*",
            blanks!()
        )
    };
}
/// The same where llama.cpp does not tell case at all, with marks among the letters.
macro_rules! uncased {
    ($numbers:literal) => {
        concat!(
            r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+",
            endings!(),
            "?|",
            $numbers,
            r"| ?[^\s\p{L}\p{N}]+[\r\n/]*",
            blanks!()
        )
    };
}
/// A sign goes with the ASCII letters behind it; letters with their marks; other signs, with what is given behind them.
macro_rules! signs {
    ($behind:literal) => {
        concat!(r"[!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+", $behind)
    };
}
/// Chinese characters by blocks, letters or not.
macro_rules! han {
    () => {
        r"\u3400-\u4DBF\u4E00-\u9FFF\uF900-\uFAFF\u{20000}-\u{2A6DF}\u{2A700}-\u{2EBEF}\u{2F800}-\u{2FA1F}"
    };
}

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = words!(r"\p{N}{1,3}");
const QWEN2: &str = words!(r"\p{N}");
const QWEN35: &str =
    concat!(endings!(), r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*", blanks!());
const GPT4O: &str = cased!(r"\p{L}", concat!(endings!(), "?"), r"\p{N}{1,3}");
const TEKKEN: &str = cased!(r"\p{L}", "", r"\p{N}");
const GRANITE_97M: &str = cased!(r"\p{L}\p{M}", concat!(endings!(), "?"), r"\p{N}{1,3}");
const DEEPSEEK3: &str = concat!(signs!(r"[\r\n]*"), blanks!());
const SPARK: &str = concat!(signs!(""), r"|[\r\n]|\s+(?!\S)|\s+");
const BAILING: &str =
    concat!(endings!(), r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+");
const SEED: &str = concat!(endings!(), r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+", blanks!());
const NO_ENDINGS: &str = concat!(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*", blanks!());
const EXAONE_MOE: &str = concat!(
    endings!(),
    r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]",
    r"|\s+(?!\S)|\s+"
);
const JAIS2: &str = concat!(
    endings!(),
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)",
    r"|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s"
);
const KIMI: &str = concat!(
    "[",
    han!(),
    r"]+|[^\r\n\p{L}\p{N}]?[\p{L}&&[^",
    han!(),
    "]]+",
    endings!(),
    r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*",
    blanks!()
);
/// Unified ideographs and kana.
const KANA: &str = r"[\u4E00-\u9FA5\u3040-\u30FF]+";
/// Numbers in threes from the right; the first goes with what is in front of it.
const THREES: &str = r"\P{N}*+(?:\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))|\z)";
/// The scripts that AFMoE sets apart. Its table begins compatibility ideographs at the unified one that looks the same.
const AFMOE_SCRIPTS: &str = concat!(
    r"[\u4E00-\u9FFF\u3400-\u4DBF\u8C48-\uFAFF\u3040-\u30FF\uFF65-\uFF9F\u2F00-\u2FDF\u0E40-\u0EFF\u1780-\u17FF",
    r"\u1000-\u109F\uAA60-\uAA7F\uA9E0-\uA9FF\uAC00-\uD7AF\u1100-\u11FF]+"
);
const YOUTU_SCRIPTS: &str = concat!(
    r"[\uAC00-\uD7A3\u3131-\u318E]+|[\uFF01\u2026\u201C\u201D\u2018\u2019\u2014\uFF1A\uFF1B\uFF0C\u3001-\u303F",
    r"\uFE30-\uFE4F]+|[\u3105-\u312F]+|[\u4E00-\u9FA5\u3040-\u30FF]+"
);
const BLOOM: &str = r" ?[^(\s|.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C)]+";
const NEWLINES: &str = r"[^\n]+|\n+";
/// All from the Samaritan to the Chinese script, and Korean. llama.cpp hides white space from ranges of characters.
const IDEOGRAPHS: &str = r"[\u0800-\u9FA5\uAC00-\uD7FF&&\S]+";
/// Letters that have case, as DeepSeek-LLM has them.
const DEEPSEEK_LETTERS: &str = concat!(
    r"\s?[",
    r"A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293\u0295-\u02AF",
    r"\u0370-\u0373\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C\u038E-\u03A1\u03A3-\u03F5",
    r"\u03F7-\u0481\u048A-\u052F\u0531-\u0556\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA",
    r"\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45",
    r"\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE",
    r"\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4\u1FF6-\u1FFC\u2102",
    r"\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128\u212A-\u212D\u212F-\u2134\u2139",
    r"\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4\u2CEB-\u2CEE\u2CF2\u2CF3",
    r"\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E\uAB70-\uABBF\uFB00-\uFB06",
    r"\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A\u{10400}-\u{1044F}\u{104B0}-\u{104D3}\u{104D8}-\u{104FB}",
    r"\u{10C80}-\u{10CB2}\u{10CC0}-\u{10CF2}\u{118A0}-\u{118DF}\u{1E900}-\u{1E943}",
    "]+"
);

/// A preset of byte-level BPE without further facts.
const fn plain(names: &'static [&'static str], splits: &'static [&'static str]) -> Preset {
    Preset { names, splits, units: Units::Bytes, ignore_merges: false, add_bos: AddBos::No }
}

/// With words that are tokens taken whole.
const fn whole(names: &'static [&'static str], splits: &'static [&'static str]) -> Preset {
    Preset { ignore_merges: true, ..plain(names, splits) }
}

/// With characters for units.
const fn chars(names: &'static [&'static str], whole_newlines: bool, add_bos: AddBos) -> Preset {
    let units = Units::Chars { whole_newlines };
    Preset { names, splits: &[NEWLINES], units, ignore_merges: false, add_bos }
}

static PRESETS: &[Preset] = &[
    plain(
        &[
            "gpt-2",
            "phi-2",
            "jina-es",
            "jina-de",
            "jina-v2-es",
            "jina-v2-de",
            "jina-v1-en",
            "jina-v2-code",
            "roberta-bpe",
            "gigachat",
            "a.x-4.0",
            "mellum",
            "modern-bert",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
            "exaone4",
        ],
        &[GPT2],
    ),
    plain(
        &["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"],
        &[r"\p{N}", GPT2],
    ),
    Preset {
        add_bos: AddBos::Yes,
        ..whole(
            &[
                "llama-bpe",
                "llama3",
                "llama-v3",
                "falcon3",
                "falcon-h1",
                "pixtral",
                "midm-2.0",
                "lfm2",
                "jina-v5-nano",
            ],
            &[LLAMA3],
        )
    },
    plain(&["dbrx", "smaug-bpe", "chatglm-bpe"], &[LLAMA3]),
    whole(&["glm4", "glm5"], &[LLAMA3]),
    plain(
        &[
            "qwen2",
            "deepseek-r1-qwen",
            "kormo",
            "f2llmv2",
            "megrez",
            "stablelm2",
            "hunyuan",
            "solar-open",
            "grok-2",
        ],
        &[QWEN2],
    ),
    plain(&["qwen35"], &[QWEN35]),
    plain(&["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"], &[GPT4O]),
    Preset { add_bos: AddBos::Yes, ..whole(&["tekken"], &[TEKKEN]) },
    whole(&["granite-embed-multi-97m"], &[GRANITE_97M]),
    plain(&["tiny_aya", "cohere2moe"], &[THREES, uncased!(r"\p{N}{1,3}")]),
    whole(&["youtu"], &[YOUTU_SCRIPTS, uncased!(r"\p{N}")]),
    plain(&["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"], &[r"\p{N}{1,3}", KANA, DEEPSEEK3]),
    plain(&["spark2_5"], &[r"\p{N}{1,3}", KANA, SPARK, r"\p{N}"]),
    plain(&["afmoe"], &[THREES, AFMOE_SCRIPTS, DEEPSEEK3]),
    plain(
        &["deepseek-llm"],
        &[
            r"[\r\n]",
            DEEPSEEK_LETTERS,
            r"\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3001\u3002]+",
            r"\s+$",
            IDEOGRAPHS,
            r"\p{N}+",
        ],
    ),
    plain(&["deepseek-coder"], &[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", IDEOGRAPHS, r"\p{N}"]),
    plain(&["default"], &[r"[\p{P}$+<=>^~|]+", GPT2, r"\p{N}+", "[0-9]{3}"]),
    plain(&["falcon"], &[r"[\p{P}$+<=>^~|`]+", GPT2, "[0-9]{3}"]),
    plain(&["bloom", "poro-chat", "gpt3-finnish"], &[BLOOM]),
    plain(&["viking"], &[BLOOM, r"\p{N}"]),
    plain(&["bailingmoe", "bailingmoe2", "llada-moe"], &[BAILING]),
    plain(&["seed-coder"], &[SEED]),
    plain(&["ufakzeka"], &[NO_ENDINGS]),
    plain(&["exaone-moe"], &[EXAONE_MOE]),
    plain(&["jais-2"], &[JAIS2]),
    plain(&["kimi-k2"], &[KIMI]),
    plain(&["laguna"], &[NEWLINES, QWEN2]),
    whole(&["minicpm5"], &[r"\p{N}{1,3}", words!(r"\p{N}+")]),
    plain(&["superbpe"], &[r"\p{N}+", "(?=(?:[0-9]{3})+(?![0-9]))"]),
    Preset {
        add_bos: AddBos::Yes,
        ..plain(
            &["chameleon"],
            &[
                "<sentinel:[0-9]+>",
                "IMGIMG[A-I]{1,4}Z",
                r"[\t\n]|    |  ",
                r"\p{N}",
                r"[\p{P}!-/:-@\[-`{-~]",
                GPT2,
            ],
        )
    },
    chars(&["gemma4", "granite-embed-multi-311m"], true, AddBos::Always),
    chars(&["sarvam-moe"], false, AddBos::No),
];

impl Preset {
    /// The preset of this name.
    pub(crate) fn find(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.names.contains(&name))
    }

    /// Names that are known.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().flat_map(|preset| preset.names).copied()
    }
}
