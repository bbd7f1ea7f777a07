//! The parts of `tokenizer.json` that are understood, as they are written. A part of another type is refused by its name.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::HashMap;
use std::fmt;

#[derive(Debug, Deserialize)]
pub(super) struct Document {
    #[serde(default)]
    pub(super) added_tokens: Vec<AddedToken>,
    #[serde(default)]
    pub(super) normalizer: Option<Normalizer>,
    #[serde(default)]
    pub(super) pre_tokenizer: Option<PreTokenizer>,
    #[serde(default)]
    pub(super) post_processor: Option<PostProcessor>,
    #[serde(default)]
    pub(super) decoder: Option<Decoder>,
    pub(super) model: Model,
}

#[derive(Debug, Deserialize)]
pub(super) struct AddedToken {
    pub(super) id: u32,
    pub(super) content: String,
    #[serde(default)]
    pub(super) single_word: bool,
    #[serde(default)]
    pub(super) lstrip: bool,
    #[serde(default)]
    pub(super) rstrip: bool,
    #[serde(default)]
    pub(super) normalized: bool,
    #[serde(default)]
    pub(super) special: bool,
}

/// What is looked for: text as it stands, or a regular expression.
#[derive(Debug, Deserialize)]
pub(super) enum Text {
    String(String),
    Regex(String),
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(super) enum Normalizer {
    #[serde(rename = "NFC")]
    Nfc,
    #[serde(rename = "NFD")]
    Nfd,
    #[serde(rename = "NFKC")]
    Nfkc,
    #[serde(rename = "NFKD")]
    Nfkd,
    Lowercase,
    StripAccents,
    Strip {
        strip_left: bool,
        strip_right: bool,
    },
    Prepend {
        prepend: String,
    },
    Replace {
        pattern: Text,
        content: String,
    },
    ByteLevel,
    Sequence {
        normalizers: Vec<Normalizer>,
    },
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) enum Behavior {
    Removed,
    Isolated,
    MergedWithPrevious,
    MergedWithNext,
    Contiguous,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PrependScheme {
    Always,
    First,
    Never,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(super) enum PreTokenizer {
    ByteLevel {
        #[serde(default)]
        add_prefix_space: bool,
        #[serde(default = "yes")]
        use_regex: bool,
    },
    Split {
        pattern: Text,
        behavior: Behavior,
        #[serde(default)]
        invert: bool,
    },
    Digits {
        #[serde(default)]
        individual_digits: bool,
    },
    Punctuation {
        #[serde(default = "isolated")]
        behavior: Behavior,
    },
    Metaspace {
        replacement: char,
        #[serde(default)]
        prepend_scheme: Option<PrependScheme>,
        #[serde(default = "yes")]
        add_prefix_space: bool,
        #[serde(default = "yes")]
        split: bool,
    },
    Whitespace,
    WhitespaceSplit,
    CharDelimiterSplit {
        delimiter: char,
    },
    Sequence {
        pretokenizers: Vec<PreTokenizer>,
    },
}

fn yes() -> bool {
    true
}

fn isolated() -> Behavior {
    Behavior::Isolated
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(super) enum PostProcessor {
    TemplateProcessing {
        single: Vec<Piece>,
        #[serde(default)]
        special_tokens: HashMap<String, TemplateToken>,
    },
    RobertaProcessing {
        sep: (String, u32),
        cls: (String, u32),
    },
    BertProcessing {
        sep: (String, u32),
        cls: (String, u32),
    },
    ByteLevel,
    Sequence {
        processors: Vec<PostProcessor>,
    },
}

/// A part of a template.
#[derive(Debug, Deserialize)]
pub(super) enum Piece {
    SpecialToken {
        id: String,
    },
    /// The text itself.
    Sequence {},
}

#[derive(Debug, Deserialize)]
pub(super) struct TemplateToken {
    pub(super) ids: Vec<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(super) enum Decoder {
    ByteLevel,
    Metaspace {
        replacement: char,
        #[serde(default)]
        prepend_scheme: Option<PrependScheme>,
        #[serde(default = "yes")]
        add_prefix_space: bool,
    },
    ByteFallback,
    Fuse,
    Replace {
        pattern: Text,
        content: String,
    },
    Strip {
        content: char,
        start: usize,
        stop: usize,
    },
    Sequence {
        decoders: Vec<Decoder>,
    },
}

#[derive(Debug, Deserialize)]
pub(super) struct Model {
    /// Absent in old files.
    #[serde(default, rename = "type")]
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) vocab: Vocabulary,
    #[serde(default)]
    pub(super) merges: Option<Vec<MergePair>>,
    #[serde(default)]
    pub(super) unk_token: Option<String>,
    #[serde(default)]
    pub(super) continuing_subword_prefix: Option<String>,
    #[serde(default)]
    pub(super) end_of_word_suffix: Option<String>,
    #[serde(default)]
    pub(super) dropout: Option<f32>,
    #[serde(default)]
    pub(super) fuse_unk: bool,
    #[serde(default)]
    pub(super) byte_fallback: bool,
    #[serde(default)]
    pub(super) ignore_merges: bool,
}

/// A vocabulary: ids by name, or what only other models have, a list.
#[derive(Debug)]
pub(super) enum Vocabulary {
    Ids(HashMap<String, u32>),
    List,
}

impl Default for Vocabulary {
    fn default() -> Self {
        Vocabulary::Ids(HashMap::new())
    }
}

impl<'de> Deserialize<'de> for Vocabulary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Vocabulary;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of tokens to ids, or a list")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vocabulary, A::Error> {
                let mut ids = HashMap::new();
                while let Some((name, id)) = map.next_entry()? {
                    ids.insert(name, id);
                }
                Ok(Vocabulary::Ids(ids))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vocabulary, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Vocabulary::List)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// A merge: in new files two tokens, in old ones a text with one space between.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum MergePair {
    Tokens(String, String),
    Text(String),
}

/// `tokenizer_config.json`, as far as it is needed.
#[derive(Debug, Default, Deserialize)]
pub(super) struct TokenizerConfig {
    #[serde(default)]
    pub(super) bos_token: Option<NamedToken>,
    #[serde(default)]
    pub(super) eos_token: Option<NamedToken>,
    #[serde(default)]
    pub(super) pad_token: Option<NamedToken>,
}

/// A token by its name, alone or with its properties.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum NamedToken {
    Name(String),
    Token { content: String },
}

impl NamedToken {
    pub(super) fn name(&self) -> &str {
        match self {
            NamedToken::Name(name) | NamedToken::Token { content: name } => name,
        }
    }
}

/// `generation_config.json`, as far as it is needed.
#[derive(Debug, Default, Deserialize)]
pub(super) struct GenerationConfig {
    #[serde(default)]
    pub(super) eos_token_id: Option<Ids>,
}

/// An id or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Ids {
    One(u32),
    Several(Vec<u32>),
}
