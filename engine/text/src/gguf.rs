//! A tokenizer from the values of a GGUF file, with the meaning that llama.cpp gives them.

use crate::bpe::{Bpe, Chars, Units};
use crate::merge::{Merge, Merges, NONE};
use crate::normalize::{Found, Normalizer};
use crate::pattern::Pattern;
use crate::presets::{self, AddBos, Preset};
use crate::special::{Finder, MAX_NAME, Order, Special};
use crate::split::{Behaviour, Step};
use crate::tokenizer::Parts;
use crate::vocab::{Kind, Lead, Vocab, is_end_name};
use crate::{TokenizerError, TokenizerSpec, alphabet, scores};
use std::collections::HashMap;
use std::sync::Arc;

const SPACE: char = '▁';
const FAMILIES: &str = "gpt2 (byte-level BPE), llama (SentencePiece by scores), gemma4 (BPE over characters)";

/// A tokenizer family.
#[derive(Clone, Copy, Debug)]
enum Family {
    /// Merges by a list of ranks.
    Ranked(&'static Preset),
    /// Merges by the scores of their results.
    Scored,
}

/// Builds what `spec` describes.
pub(crate) fn build(spec: TokenizerSpec) -> Result<Parts, TokenizerError> {
    let family = family(&spec)?;
    check(&spec)?;
    let ids = index(&spec.tokens)?;
    let kinds = kinds(&spec)?;
    let (bpe, normalizers, steps) = match family {
        Family::Ranked(preset) => ranked(&spec, &ids, &kinds, preset)?,
        Family::Scored => scored(&spec, &ids, &kinds)?,
    };
    let unsaid = match family {
        Family::Ranked(preset) => preset.add_bos,
        Family::Scored => AddBos::Yes,
    };
    let add_bos =
        unsaid == AddBos::Always || spec.add_bos.unwrap_or(unsaid == AddBos::Yes && spec.bos.is_some());
    let add_eos = spec.add_eos.unwrap_or(false);
    let around = |add: bool, which, id: Option<u32>| match id {
        Some(id) if add => Ok(vec![id]),
        None if add => Err(TokenizerError::NoSpecial { which }),
        _ => Ok(Vec::new()),
    };
    let (prefix, suffix) = (around(add_bos, "bos", spec.bos)?, around(add_eos, "eos", spec.eos)?);
    let specials = Finder::new(specials(&spec, &kinds)?, Order::Longest);
    let vocab = vocab(spec.tokens, kinds, family, spec.add_space_prefix);
    let ends = vocab.ends().chain(spec.eos).chain(spec.ends).collect();
    Ok(Parts {
        vocab: Arc::new(vocab),
        specials,
        normalizers,
        normalized_specials: None,
        steps,
        bpe,
        prefix,
        suffix,
        bos: spec.bos,
        eos: spec.eos,
        pad: spec.pad,
        ends,
    })
}

fn family(spec: &TokenizerSpec) -> Result<Family, TokenizerError> {
    let pre = match spec.model.as_str() {
        "llama" => return Ok(Family::Scored),
        "gpt2" => spec.pre.as_str(),
        "gemma4" => "gemma4",
        _ => return Err(TokenizerError::Model { found: spec.model.clone(), supported: FAMILIES }),
    };
    Preset::find(pre).map(Family::Ranked).ok_or_else(|| TokenizerError::Pre {
        found: spec.pre.clone(),
        supported: Preset::names().collect::<Vec<_>>().join(", "),
    })
}

/// Checks numbers and lengths.
fn check(spec: &TokenizerSpec) -> Result<(), TokenizerError> {
    let count = spec.tokens.len();
    // The upper half of the numbers is kept free, for marks.
    let tokens = u32::try_from(count).ok().filter(|&n| n != 0 && n <= u32::MAX / 2);
    let tokens = tokens.ok_or(TokenizerError::VocabularySize { tokens: count })?;
    let scored = spec.model == "llama";
    for (what, found, needed) in
        [("token types", spec.token_types.len(), false), ("scores", spec.scores.len(), scored)]
    {
        if found != count && (found != 0 || needed) {
            return Err(TokenizerError::Length { what, found, tokens: count });
        }
    }
    let named = [("bos", spec.bos), ("eos", spec.eos), ("unk", spec.unk), ("pad", spec.pad)];
    let ends = spec.ends.iter().map(|&id| ("end-of-generation", Some(id)));
    for (which, id) in named.into_iter().chain(ends) {
        if let Some(id) = id.filter(|&id| id >= tokens) {
            return Err(TokenizerError::SpecialId { which, id, tokens });
        }
    }
    Ok(())
}

/// Ids of tokens by name; tokens without a name have none.
fn index(tokens: &[String]) -> Result<HashMap<&str, u32>, TokenizerError> {
    let mut ids = HashMap::with_capacity(tokens.len());
    for (token, second) in tokens.iter().zip(0..).filter(|(token, _)| !token.is_empty()) {
        if let Some(first) = ids.insert(token.as_str(), second) {
            return Err(TokenizerError::DuplicateToken { token: token.clone(), first, second });
        }
    }
    Ok(ids)
}

fn kinds(spec: &TokenizerSpec) -> Result<Vec<Kind>, TokenizerError> {
    // Where a format has this token, `</s>` is for strike-through.
    let strike = spec.tokens.iter().any(|token| token == "<|tool_response>");
    let types = spec.token_types.iter().copied().chain(std::iter::repeat(1));
    let kind = |((id, token), found): ((u32, &String), i32)| {
        Ok(match found {
            _ if is_end_name(token) => {
                if strike && token == "</s>" {
                    Kind::Normal
                } else {
                    Kind::Control
                }
            }
            0 | 5 => Kind::Unused,
            1 => Kind::Normal,
            2 => Kind::Unknown,
            3 => Kind::Control,
            4 => Kind::UserDefined,
            6 => byte_of(token)
                .map(Kind::Byte)
                .ok_or_else(|| TokenizerError::ByteToken { id, token: token.clone() })?,
            _ => return Err(TokenizerError::TokenType { id, token: token.clone(), found }),
        })
    };
    (0..).zip(&spec.tokens).zip(types).map(kind).collect()
}

/// The byte of a token such as `<0x0A>`.
pub(crate) fn byte_of(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    let valid = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    valid.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

/// Tokens of bytes, such as `<0x0A>`; `NONE` where one is missing.
pub(crate) fn byte_tokens(find: impl Fn(&str) -> Option<u32>) -> Box<[u32; 256]> {
    Box::new(std::array::from_fn(|byte| find(&format!("<0x{byte:02X}>")).unwrap_or(NONE)))
}

/// Tokens that text is found to have before it is cut.
fn specials(spec: &TokenizerSpec, kinds: &[Kind]) -> Result<Vec<Special>, TokenizerError> {
    let name = spec.name.to_lowercase();
    let strips = name.contains("phi-3") || name.contains("phi3");
    let mut found = Vec::new();
    for ((id, token), kind) in (0..).zip(&spec.tokens).zip(kinds) {
        let control = match kind {
            Kind::Control | Kind::Unknown => true,
            Kind::UserDefined => false,
            Kind::Normal | Kind::Unused | Kind::Byte(_) => continue,
        };
        if token.len() > MAX_NAME {
            let shown = token.chars().take(20).collect();
            return Err(TokenizerError::LongToken { id, token: shown, bytes: token.len(), limit: MAX_NAME });
        }
        let strip_right = strips && !["<unk>", "<s>", "<|endoftext|>"].contains(&token.as_str());
        found.push(Special { strip_right, ..Special::new(token, id, control) });
    }
    Ok(found)
}

fn vocab(tokens: Vec<String>, kinds: Vec<Kind>, family: Family, space_prefix: Option<bool>) -> Vocab {
    let spaces = !matches!(family, Family::Ranked(Preset { units: presets::Units::Bytes, .. }));
    let prefixed = matches!(family, Family::Scored) && space_prefix.unwrap_or(true);
    let lead = if prefixed { Lead::Spaces(1) } else { Lead::Nothing };
    Vocab::new(tokens, kinds, lead, |name, kind, out| match kind {
        Kind::Normal if spaces => out.extend_from_slice(name.replace(SPACE, " ").as_bytes()),
        Kind::Normal => alphabet::push_bytes(name, out),
        Kind::Unknown | Kind::Control | Kind::UserDefined => out.extend_from_slice(name.as_bytes()),
        Kind::Byte(byte) => out.push(byte),
        Kind::Unused => {}
    })
}

type Model = (Bpe, Vec<Normalizer>, Vec<Step>);

/// `escape_whitespaces` of llama.cpp.
fn spaces_replaced() -> Normalizer {
    Normalizer::Replace { what: Found::Text(" ".into()), with: SPACE.into() }
}

/// BPE with a list of merges.
fn ranked(
    spec: &TokenizerSpec,
    ids: &HashMap<&str, u32>,
    kinds: &[Kind],
    preset: &Preset,
) -> Result<Model, TokenizerError> {
    let mut merges = merges(&spec.merges, ids)?;
    // Text must not become a control token, not even where the file's merges say so.
    merges.retain(|(_, merge)| !matches!(kinds[merge.merged as usize], Kind::Control | Kind::Unknown));
    let merges = Merges::new(spec.tokens.len(), merges);
    let is_text = |kind: Kind| matches!(kind, Kind::Normal | Kind::UserDefined | Kind::Unused);
    let texts =
        || (0..).zip(&spec.tokens).zip(kinds).filter(|(_, kind)| is_text(**kind)).map(|(token, _)| token);
    let mut whole = HashMap::new();
    let (units, normalizers) = match preset.units {
        presets::Units::Bytes => {
            if preset.ignore_merges {
                whole.extend(texts().map(|(id, token)| {
                    let mut bytes = Vec::with_capacity(token.len());
                    alphabet::push_bytes(token, &mut bytes);
                    (bytes.into_boxed_slice(), id)
                }));
            }
            let token = |byte: usize| {
                let mut utf8 = [0; 4];
                ids.get(&*alphabet::char_of(byte as u8).encode_utf8(&mut utf8)).copied().unwrap_or(NONE)
            };
            (Units::Bytes(Box::new(std::array::from_fn(token))), Vec::new())
        }
        presets::Units::Chars { whole_newlines } => {
            if whole_newlines {
                let newlines = texts().filter(|(_, token)| token.bytes().all(|b| b == b'\n'));
                whole.extend(newlines.map(|(id, token)| (token.as_bytes().into(), id)));
            }
            (Units::Chars(chars(spec, ids, kinds, None)), vec![spaces_replaced()])
        }
    };
    let steps = preset.splits.iter().map(|split| cut(split)).collect::<Result<_, _>>()?;
    Ok((Bpe { units, merges, whole }, normalizers, steps))
}

/// A step that sets the matches of a pattern apart.
fn cut(pattern: &str) -> Result<Step, TokenizerError> {
    let compiled = Pattern::new(pattern)
        .map_err(|problem| TokenizerError::Pattern { pattern: pattern.to_owned(), problem })?;
    Ok(Step::Cut { pattern: Box::new(compiled), behaviour: Behaviour::Isolated, inverted: false })
}

/// Characters that are tokens of text, with bytes for the others.
fn chars(spec: &TokenizerSpec, ids: &HashMap<&str, u32>, kinds: &[Kind], unknown: Option<u32>) -> Chars {
    let single = |(id, token): (u32, &String)| {
        let mut chars = token.chars();
        let text = !matches!(kinds[id as usize], Kind::Control | Kind::Unknown | Kind::Byte(_));
        chars.next().filter(|_| chars.next().is_none() && text).map(|c| (c, id))
    };
    Chars {
        ids: (0..).zip(&spec.tokens).filter_map(single).collect(),
        tokens: spec.tokens.len() as u32,
        bytes: Some(byte_tokens(|name| ids.get(name).copied())),
        unknown,
        fuse_unknown: false,
    }
}

/// Looks merges up.
fn merges(list: &[String], ids: &HashMap<&str, u32>) -> Result<Vec<(u32, Merge)>, TokenizerError> {
    let mut joined = String::new();
    let resolve = |(index, merge): (usize, &String)| {
        let id = |token: &str| {
            ids.get(token).copied().ok_or_else(|| TokenizerError::MergeToken {
                index,
                merge: merge.clone(),
                token: token.to_owned(),
            })
        };
        let (left, right) = merge
            .split_once(' ')
            .filter(|(left, right)| !left.is_empty() && !right.is_empty() && !right.contains(' '))
            .ok_or_else(|| TokenizerError::MergeForm { index, merge: merge.clone() })?;
        joined.clear();
        joined.extend([left, right]);
        Ok((id(left)?, Merge { right: id(right)?, rank: index as u32, merged: id(&joined)? }))
    };
    list.iter().enumerate().map(resolve).collect()
}

/// SentencePiece: every token is the result of merging any two parts of it, in order of score.
fn scored(spec: &TokenizerSpec, ids: &HashMap<&str, u32>, kinds: &[Kind]) -> Result<Model, TokenizerError> {
    if let Some(id) = spec.scores.iter().position(|score| score.is_nan()) {
        return Err(TokenizerError::Score { id: id as u32, token: spec.tokens[id].clone() });
    }
    // Text must not become a control token: those are no results of merging.
    let is_text = |id: usize| !matches!(kinds[id], Kind::Control | Kind::Unknown | Kind::Byte(_));
    let texts: Vec<(u32, &str)> = (0..)
        .zip(&spec.tokens)
        .filter(|(id, token)| is_text(*id as usize) && !token.is_empty())
        .map(|(id, token)| (id, token.as_str()))
        .collect();
    let mut chars = chars(spec, ids, kinds, spec.unk);
    let found = scores::merges(&texts, &spec.scores, &mut chars);
    let steps = match found.word_pattern() {
        Some(pattern) => vec![cut(&pattern)?],
        None => Vec::new(),
    };
    let mut normalizers = vec![spaces_replaced()];
    if spec.add_space_prefix.unwrap_or(true) {
        normalizers.insert(0, Normalizer::Prepend(" ".into()));
    }
    let merges = Merges::new(found.units as usize, found.merges);
    Ok((Bpe { units: Units::Chars(chars), merges, whole: HashMap::new() }, normalizers, steps))
}
