//! The model of `tokenizer.json`: vocabulary and merges.

use super::kind;
use super::schema::{AddedToken, MergePair, Model, Vocabulary};
use crate::bpe::{Bpe, Chars, Units};
use crate::gguf::byte_tokens;
use crate::merge::{Merge, Merges, NONE};
use crate::vocab::Kind;
use crate::{TokenizerError, alphabet};
use std::collections::HashMap;

/// Ids that a vocabulary may leave out for each that it uses, and in any case: a small file must not ask for much memory.
const HOLES: usize = 4;
const MIN_HOLES: usize = 1 << 16;

/// Tokens of the model and added ones.
#[derive(Debug)]
pub(super) struct Tokens {
    /// By id; empty where an id is not used.
    pub(super) names: Vec<String>,
    pub(super) kinds: Vec<Kind>,
    pub(super) ids: HashMap<String, u32>,
}

impl Tokens {
    /// Refuses an id outside the vocabulary.
    pub(super) fn check(&self, id: u32) -> Result<(), TokenizerError> {
        if (id as usize) < self.names.len() {
            return Ok(());
        }
        Err(TokenizerError::SpecialId {
            which: "added or end-of-generation",
            id,
            tokens: self.names.len() as u32,
        })
    }
}

/// All tokens, by id and by name.
pub(super) fn tokens(model: &Model, added: &[AddedToken]) -> Result<Tokens, TokenizerError> {
    let found = || model.kind.as_deref().unwrap_or("without type and merges").to_owned();
    let vocab = match (&model.vocab, &model.merges) {
        (Vocabulary::Ids(vocab), Some(_)) if model.kind.as_deref().is_none_or(|kind| kind == "BPE") => vocab,
        _ => return Err(TokenizerError::Model { found: found(), supported: "BPE" }),
    };
    for (what, text) in [
        ("continuing_subword_prefix", &model.continuing_subword_prefix),
        ("end_of_word_suffix", &model.end_of_word_suffix),
    ] {
        if let Some(text) = text.as_ref().filter(|text| !text.is_empty()) {
            return Err(TokenizerError::Unsupported { what: format!("BPE with {what} `{text}`") });
        }
    }
    if model.dropout.is_some_and(|dropout| dropout > 0.0) {
        return Err(TokenizerError::Unsupported { what: "BPE with dropout, which is for training".into() });
    }
    let mut ids = vocab.clone();
    for token in added {
        ids.entry(token.content.clone()).or_insert(token.id);
    }
    let size = ids.values().max().map_or(0, |&last| last as usize + 1);
    if size == 0 || size > ids.len().saturating_mul(HOLES).saturating_add(MIN_HOLES) {
        return Err(TokenizerError::VocabularySize { tokens: size });
    }
    let mut names = vec![String::new(); size];
    for (name, &id) in &ids {
        let slot = &mut names[id as usize];
        if !slot.is_empty() && !name.is_empty() {
            let (first, second) =
                if *slot < *name { (slot.clone(), name.clone()) } else { (name.clone(), slot.clone()) };
            return Err(TokenizerError::DuplicateId { id, first, second });
        }
        if slot.is_empty() {
            slot.clone_from(name);
        }
    }
    let mut kinds: Vec<Kind> =
        names.iter().map(|name| if name.is_empty() { Kind::Unused } else { Kind::Normal }).collect();
    for token in added {
        kinds[ids[&token.content] as usize] = kind(token);
    }
    Ok(Tokens { names, kinds, ids })
}

/// The model, and whether its units are bytes: so they are where words come in GPT-2's alphabet (`by_bytes`), and no byte
/// is missing.
pub(super) fn bpe(model: Model, tokens: &Tokens, by_bytes: bool) -> Result<(Bpe, bool), TokenizerError> {
    let id = |name: &str| tokens.ids.get(name).copied();
    let unknown = match &model.unk_token {
        Some(name) => Some(id(name).ok_or_else(|| TokenizerError::Unsupported {
            what: format!("unk_token `{name}`, which the vocabulary does not have"),
        })?),
        None => None,
    };
    let bytes: Box<[u32; 256]> = Box::new(std::array::from_fn(|byte| {
        id(alphabet::char_of(byte as u8).encode_utf8(&mut [0; 4])).unwrap_or(NONE)
    }));
    let by_bytes = by_bytes && (!bytes.contains(&NONE) || (unknown.is_none() && !model.byte_fallback));
    let mut whole = HashMap::new();
    if model.ignore_merges {
        let texts = tokens.ids.iter().filter(|(_, id)| tokens.kinds[**id as usize] != Kind::Control);
        whole.extend(texts.map(|(name, &id)| {
            let mut word = Vec::with_capacity(name.len());
            if by_bytes {
                alphabet::push_bytes(name, &mut word)
            } else {
                word.extend_from_slice(name.as_bytes())
            }
            (word.into_boxed_slice(), id)
        }));
    }
    let units = if by_bytes {
        Units::Bytes(bytes)
    } else {
        let single = |(name, &id): (&String, &u32)| {
            let mut chars = name.chars();
            chars.next().filter(|_| chars.next().is_none()).map(|c| (c, id))
        };
        Units::Chars(Chars {
            ids: tokens.ids.iter().filter_map(single).collect(),
            tokens: tokens.names.len() as u32,
            bytes: model.byte_fallback.then(|| byte_tokens(id)),
            unknown,
            fuse_unknown: model.fuse_unk,
        })
    };
    let mut merges = merges(model.merges.unwrap_or_default(), tokens)?;
    // Text must not become a control token, not even where the file's merges say so.
    merges.retain(|(_, merge)| tokens.kinds[merge.merged as usize] != Kind::Control);
    let merges = Merges::new(tokens.names.len(), merges);
    Ok((Bpe { units, merges, whole }, by_bytes))
}

/// Looks merges up. Of two of one pair the later counts.
fn merges(list: Vec<MergePair>, tokens: &Tokens) -> Result<Vec<(u32, Merge)>, TokenizerError> {
    let mut found = HashMap::with_capacity(list.len());
    for (index, pair) in list.into_iter().enumerate() {
        let (left, right) = match pair {
            MergePair::Tokens(left, right) => (left, right),
            MergePair::Text(text) => match text.split_once(' ') {
                Some((left, right)) if !right.contains(' ') => (left.to_owned(), right.to_owned()),
                _ => return Err(TokenizerError::MergeForm { index, merge: text }),
            },
        };
        let id = |token: &str| {
            tokens.ids.get(token).copied().ok_or_else(|| TokenizerError::MergeToken {
                index,
                merge: format!("{left} {right}"),
                token: token.to_owned(),
            })
        };
        let merged = id(&format!("{left}{right}"))?;
        found.insert((id(&left)?, id(&right)?), (index as u32, merged));
    }
    Ok(found
        .into_iter()
        .map(|((left, right), (rank, merged))| (left, Merge { right, rank, merged }))
        .collect())
}
