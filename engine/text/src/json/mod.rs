//! A tokenizer from Hugging Face's `tokenizer.json`.

mod decode;
mod model;
mod pretokenize;
mod schema;

use crate::normalize::{Found, Normalizer, normalize};
use crate::pattern::Pattern;
use crate::special::{Finder, MAX_NAME, Order, Special};
use crate::split::{MAX_STEPS, Step};
use crate::tokenizer::Parts;
use crate::vocab::{Kind, Vocab, is_end_name};
use crate::{TokenizerError, TokenizerFiles};
use schema::{Document, GenerationConfig, Ids, Piece, PostProcessor, Text, TokenizerConfig};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Builds what the files describe.
pub(crate) fn build(files: &TokenizerFiles<'_>) -> Result<Parts, TokenizerError> {
    let document: Document = parse("tokenizer.json", files.tokenizer)?;
    let config = optional::<TokenizerConfig>("tokenizer_config.json", files.tokenizer_config)?;
    let generation = optional::<GenerationConfig>("generation_config.json", files.generation_config)?;
    let normalizers = normalizers(document.normalizer)?;
    let steps = pretokenize::steps(document.pre_tokenizer)?;
    if normalizers.len().max(steps.len()) > MAX_STEPS {
        let what = format!("more than {MAX_STEPS} normalizers or pre-tokenizers");
        return Err(TokenizerError::Unsupported { what });
    }
    let (prefix, suffix) = around(document.post_processor)?;
    let tokens = model::tokens(&document.model, &document.added_tokens)?;
    let (specials, normalized_specials) = specials(&document.added_tokens, &tokens, &normalizers)?;
    let by_bytes = matches!(steps.last(), Some(Step::Alphabet));
    let (bpe, by_bytes) = model::bpe(document.model, &tokens, by_bytes)?;
    let steps = if by_bytes { steps[..steps.len() - 1].to_vec() } else { steps };
    let id = |name: Option<&schema::NamedToken>| name.and_then(|token| tokens.ids.get(token.name()).copied());
    let bos = id(config.bos_token.as_ref()).or(prefix.first().copied());
    let (eos, pad) = (id(config.eos_token.as_ref()), id(config.pad_token.as_ref()));
    let mut ends: Vec<u32> = match generation.eos_token_id {
        Some(Ids::One(id)) => vec![id],
        Some(Ids::Several(ids)) => ids,
        None => Vec::new(),
    };
    for &id in prefix.iter().chain(&suffix).chain(&ends) {
        tokens.check(id)?;
    }
    let decode = decode::of(document.decoder)?;
    let lead = decode.lead();
    let model::Tokens { mut names, kinds, ids } = tokens;
    for token in document.added_tokens.iter().filter(|token| token.normalized) {
        // Such a token is text as it is looked for.
        names[ids[&token.content] as usize] = normalize(&normalizers, &token.content).into_owned();
    }
    let vocab = Vocab::new(names, kinds, lead, |name, kind, out| decode.write(name, kind, out));
    ends.extend(vocab.ends().chain(eos));
    Ok(Parts {
        vocab: Arc::new(vocab),
        specials,
        normalizers,
        normalized_specials,
        steps,
        bpe,
        prefix,
        suffix,
        bos,
        eos,
        pad,
        ends,
    })
}

fn parse<T: DeserializeOwned>(file: &'static str, bytes: &[u8]) -> Result<T, TokenizerError> {
    serde_json::from_slice(bytes).map_err(|error| TokenizerError::Json { file, problem: error.to_string() })
}

fn optional<T: DeserializeOwned + Default>(
    file: &'static str,
    bytes: Option<&[u8]>,
) -> Result<T, TokenizerError> {
    bytes.map_or_else(|| Ok(T::default()), |bytes| parse(file, bytes))
}

/// A pattern for what is looked for.
fn pattern(text: &Text) -> Result<Pattern, TokenizerError> {
    let (text, compiled) = match text {
        Text::Regex(text) => (text, Pattern::new(text)),
        Text::String(text) => {
            (text, Pattern::literal(text).ok_or_else(|| "it is empty or too long".to_owned()))
        }
    };
    compiled.map_err(|problem| TokenizerError::Pattern { pattern: text.clone(), problem })
}

fn normalizers(given: Option<schema::Normalizer>) -> Result<Vec<Normalizer>, TokenizerError> {
    use schema::Normalizer as Given;
    let one = match given {
        None => return Ok(Vec::new()),
        Some(Given::Sequence { normalizers: several }) => {
            let several = several.into_iter().map(|one| normalizers(Some(one)));
            return Ok(several.collect::<Result<Vec<_>, _>>()?.concat());
        }
        Some(Given::Nfc) => Normalizer::Nfc,
        Some(Given::Nfd) => Normalizer::Nfd,
        Some(Given::Nfkc) => Normalizer::Nfkc,
        Some(Given::Nfkd) => Normalizer::Nfkd,
        Some(Given::Lowercase) => Normalizer::Lowercase,
        Some(Given::StripAccents) => Normalizer::StripAccents,
        Some(Given::Strip { strip_left: left, strip_right: right }) => Normalizer::Strip { left, right },
        Some(Given::Prepend { prepend }) => Normalizer::Prepend(prepend),
        Some(Given::Replace { pattern: what, content: with }) => {
            Normalizer::Replace { what: found(what)?, with }
        }
        Some(Given::ByteLevel) => Normalizer::Alphabet,
    };
    Ok(vec![one])
}

fn found(text: Text) -> Result<Found, TokenizerError> {
    Ok(match text {
        Text::String(text) if !text.is_empty() => Found::Text(text),
        text => Found::Pattern(Box::new(pattern(&text)?)),
    })
}

/// Token ids in front of a text and behind it.
fn around(processor: Option<PostProcessor>) -> Result<(Vec<u32>, Vec<u32>), TokenizerError> {
    let (mut prefix, mut suffix) = (Vec::new(), Vec::new());
    match processor {
        None | Some(PostProcessor::ByteLevel) => {}
        Some(PostProcessor::RobertaProcessing { sep, cls } | PostProcessor::BertProcessing { sep, cls }) => {
            (prefix, suffix) = (vec![cls.1], vec![sep.1])
        }
        Some(PostProcessor::Sequence { processors }) => {
            for processor in processors {
                let (before, behind) = around(Some(processor))?;
                prefix.splice(0..0, before);
                suffix.extend(behind);
            }
        }
        Some(PostProcessor::TemplateProcessing { single, special_tokens }) => {
            let mut behind = false;
            for piece in single {
                match piece {
                    Piece::Sequence {} => behind = true,
                    Piece::SpecialToken { id } => {
                        let token = special_tokens.get(&id).ok_or_else(|| TokenizerError::Unsupported {
                            what: format!("template with the token `{id}`, which it does not define"),
                        })?;
                        if behind { &mut suffix } else { &mut prefix }.extend(&token.ids);
                    }
                }
            }
        }
    }
    Ok((prefix, suffix))
}

/// Added tokens to be found in text as it stands, and in changed text.
fn specials(
    added: &[schema::AddedToken],
    tokens: &model::Tokens,
    normalizers: &[Normalizer],
) -> Result<(Finder, Option<Finder>), TokenizerError> {
    let (mut raw, mut changed) = (Vec::new(), Vec::new());
    for token in added {
        let id = tokens.ids.get(&token.content).copied().unwrap_or(token.id);
        let normalized = normalize(normalizers, &token.content);
        let name = if token.normalized { &*normalized } else { &token.content };
        if name.len() > MAX_NAME {
            let shown = name.chars().take(20).collect();
            return Err(TokenizerError::LongToken { id, token: shown, bytes: name.len(), limit: MAX_NAME });
        }
        let special = Special {
            strip_left: token.lstrip,
            strip_right: token.rstrip,
            single_word: token.single_word,
            ..Special::new(name, id, is_control(token))
        };
        if token.normalized { &mut changed } else { &mut raw }.push(special);
    }
    let changed = Some(Finder::new(changed, Order::Leftmost)).filter(|finder| !finder.is_empty());
    Ok((Finder::new(raw, Order::Leftmost), changed))
}

/// Whether an added token is structure rather than text.
fn is_control(token: &schema::AddedToken) -> bool {
    token.special || is_end_name(&token.content)
}

/// What an added token is.
fn kind(token: &schema::AddedToken) -> Kind {
    if is_control(token) { Kind::Control } else { Kind::UserDefined }
}
