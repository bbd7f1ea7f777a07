//! Tokenizers and chat templates.

use super::Result;
use memra_formats::GgufWriter;
use serde_json::Value;
use std::{fs, path::Path};

/// Options, tokens, merges and a text.
pub(super) fn tokenizers() -> Vec<Vec<u8>> {
    let seed = |options: &[u8], tokens: &[&str], merges: &[&str], text: &str| {
        let list =
            |items: &[&str]| items.iter().flat_map(|item| [item.as_bytes(), &[0xFE]].concat()).collect();
        join(&[options.to_vec(), list(tokens), list(merges), text.into()])
    };
    let (tokens, merges) = (["he", "ll", "Ġt", "Ġth", "<|im_end|>"], ["h e", "l l", "Ġ t", "Ġt h"]);
    let pieces = ["▁", "t", "h", "e", "▁t", "▁th", "▁the", "<s>"];
    vec![
        seed(&[0, 0, 0], &tokens, &merges, "hello there, the 123 world's\n\n  end 日本"),
        seed(&[0, 0, 2], &tokens, &merges, "we'll <|im_end|> it\t"),
        seed(&[0, 3, 3, 0, 9, 3, 1, 1, 0, 2, 2], &tokens, &merges, "the <|im_end|> end"),
        seed(&[1, 0, 1, 0, 1, 3], &["a", "b", "ab", "abb"], &["a b", "ab b"], "abbab ab"),
        seed(&[2, 1, 0, 1, 1, 3, 1, 0, 0, 2], &pieces, &[], " the  then\n日本"),
        seed(&[4, 1, 0, 0, 1, 3, 1], &pieces, &["▁ t", "▁t h", "▁th e"], "the then  the"),
    ]
}

/// Parts that end in the byte FF.
fn join(parts: &[Vec<u8>]) -> Vec<u8> {
    parts.join(&0xFF)
}

/// Metadata of tokenizers.
pub(super) fn tokenizers_in_gguf() -> Result<Vec<Vec<u8>>> {
    let mut seeds = Vec::new();
    for (model, pre) in [("gpt2", "smollm"), ("llama", ""), ("gemma4", "")] {
        let mut writer = GgufWriter::new();
        writer.metadata("tokenizer.ggml.model", model)?.metadata("tokenizer.ggml.pre", pre)?;
        let tokens = ["▁", "t", "h", "th", "Ġt", "<s>", "<0x0A>"];
        writer.metadata("tokenizer.ggml.tokens", &tokens[..])?;
        writer.metadata("tokenizer.ggml.scores", &vec![0f32, -1., -2., -3., -4., 0., 0.])?;
        writer.metadata("tokenizer.ggml.token_type", &vec![1i32, 1, 1, 1, 4, 3, 6])?;
        writer.metadata("tokenizer.ggml.merges", &["t h"][..])?;
        writer.metadata("tokenizer.ggml.bos_token_id", &5u32)?;
        writer.metadata("tokenizer.ggml.add_bos_token", &true)?;
        seeds.push(writer.begin(Vec::new())?.finish()?);
    }
    Ok(seeds)
}

/// The documents of the text crate's fixtures, each with its vocabulary and a text.
pub(super) fn tokenizers_in_json() -> Result<Vec<Vec<u8>>> {
    let fixtures: Value =
        serde_json::from_str(include_str!("../../../../../engine/text/tests/fixtures/tokenizers.json"))?;
    let config = br#"{"bos_token":"<s>","eos_token":{"content":"</s>"},"add_bos_token":true}"#.to_vec();
    let generation = br#"{"eos_token_id":[1,2]}"#.to_vec();
    let mut seeds = Vec::new();
    for tokenizer in fixtures["tokenizers"].as_array().ok_or("fixtures without tokenizers")? {
        let mut document = tokenizer["document"].clone();
        let vocabulary = tokenizer["vocabulary"].as_str().unwrap_or_default();
        let tables = fixtures["vocabularies"][vocabulary].as_object().cloned().unwrap_or_default();
        document["model"].as_object_mut().ok_or("a document without model")?.extend(tables);
        let text = tokenizer["cases"][0]["text"].as_str().unwrap_or_default();
        seeds.push(join(&[document.to_string().into(), config.clone(), generation.clone(), text.into()]));
    }
    Ok(seeds)
}

/// The templates of the text crate's fixtures with chats.
pub(super) fn templates() -> Result<Vec<Vec<u8>>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../engine/text/tests/fixtures");
    let fixtures: Value = serde_json::from_str(&fs::read_to_string(folder.join("templates.json"))?)?;
    let chats: Vec<String> = fixtures["chats"]
        .as_object()
        .ok_or("fixtures without chats")?
        .values()
        .map(Value::to_string)
        .collect();
    let mut seeds = Vec::new();
    for (i, file) in fs::read_dir(folder.join("templates"))?.enumerate() {
        for at in [i, i + 5] {
            seeds.push(join(&[
                fs::read(file.as_ref().map_err(ToString::to_string)?.path())?,
                chats[at % chats.len()].clone().into(),
            ]));
        }
    }
    seeds.extend(SNIPPETS.iter().map(|snippet| join(&[(*snippet).into(), chats[0].clone().into()])));
    Ok(seeds)
}

const SNIPPETS: [&str; 6] = [
    "{% for m in messages %}{{ loop.index }}{{ m.role|upper }}: {{ m['content'][1:-1]|trim }}\n{% endfor %}",
    "{%- set ns = namespace(x=1) -%}{% if messages is defined and ns.x < 2 %}{{ messages|tojson(indent=2) }}{% endif %}",
    "{% macro f(a, b='c') %}{{ a ~ b }}{% endmacro %}{{ f('x') }}{{ f(1, b=2) }}{{ raise_exception('no') }}",
    "{{ '%s and %d' % ('a', 3) }}{{ [3,1,2]|sort|join(', ') }}{{ {'a': 1}.items()|list }}{{ 7 // 2 ** 2 }}",
    "{% generation %}{{ bos_token }}{% endgeneration %}{{ strftime_now('%Y-%m-%d') }}{# comment #}",
    "{{ messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|first|default('none', true) }}",
];
