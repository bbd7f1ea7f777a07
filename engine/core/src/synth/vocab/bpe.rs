//! Byte-level BPE vocabularies: Qwen3's and Llama 3's.

use super::grow::Growth;
use super::words::words;
use super::{CONTROL, UNUSED, USER_DEFINED, Vocabulary, byte_letters};

/// Tokens of Qwen3's tokenizer that are bytes or come from merges.
const QWEN3_BASE: usize = 151_643;
/// Rows of its embedding.
const QWEN3_ROWS: usize = 151_936;
/// The tokens after those: names, and whether each is a control token.
const QWEN3_ADDED: [(&str, bool); 26] = [
    ("<|endoftext|>", true),
    ("<|im_start|>", true),
    ("<|im_end|>", true),
    ("<|object_ref_start|>", true),
    ("<|object_ref_end|>", true),
    ("<|box_start|>", true),
    ("<|box_end|>", true),
    ("<|quad_start|>", true),
    ("<|quad_end|>", true),
    ("<|vision_start|>", true),
    ("<|vision_end|>", true),
    ("<|vision_pad|>", true),
    ("<|image_pad|>", true),
    ("<|video_pad|>", true),
    ("<tool_call>", false),
    ("</tool_call>", false),
    ("<|fim_prefix|>", true),
    ("<|fim_middle|>", true),
    ("<|fim_suffix|>", true),
    ("<|fim_pad|>", true),
    ("<|repo_name|>", true),
    ("<|file_sep|>", true),
    ("<tool_response>", false),
    ("</tool_response>", false),
    ("<think>", false),
    ("</think>", false),
];

/// Tokens of Llama 3's tokenizer that are bytes or come from merges; 256 control tokens follow.
const LLAMA3_BASE: usize = 128_000;

/// ChatML.
const QWEN3_TEMPLATE: &str = "{% for m in messages %}\
{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}\
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

const LLAMA3_TEMPLATE: &str = "{{ bos_token }}{% for m in messages %}\
{{ '<|start_header_id|>' + m['role'] + '<|end_header_id|>\\n\\n' + m['content'] + '<|eot_id|>' }}{% endfor %}\
{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}";

/// The 256 bytes in GPT-2's order (those that stand for themselves first), and tokens merged from them.
fn merged(count: usize) -> Growth {
    let (same, moved): (Vec<char>, Vec<char>) = byte_letters().partition(|&c| (c as u32) < 0x100);
    Growth::new(same.into_iter().chain(moved), count).fill(words('Ġ'))
}

fn vocabulary(pre: &'static str, base: usize) -> Vocabulary {
    let Growth { tokens, merges, .. } = merged(base);
    let mut vocabulary = Vocabulary { model: "gpt2", pre, merges, ..Vocabulary::default() };
    vocabulary.push(tokens, super::NORMAL);
    vocabulary
}

/// 151,936 tokens.
pub(in super::super) fn qwen3() -> Vocabulary {
    let mut vocabulary = vocabulary("qwen2", QWEN3_BASE);
    for (name, is_control) in QWEN3_ADDED {
        vocabulary.push([name.to_owned()], if is_control { CONTROL } else { USER_DEFINED });
    }
    vocabulary.push((vocabulary.tokens.len()..QWEN3_ROWS).map(|id| format!("[PAD{id}]")), UNUSED);
    let base = QWEN3_BASE as u32;
    Vocabulary { bos: base, eos: base + 2, pad: Some(base), chat_template: QWEN3_TEMPLATE, ..vocabulary }
}

/// 128,256 tokens.
pub(in super::super) fn llama3() -> Vocabulary {
    let mut vocabulary = vocabulary("llama-bpe", LLAMA3_BASE);
    let mut reserved = (0..).map(|n| format!("<|reserved_special_token_{n}|>"));
    let added = (0..256).filter_map(|n| match n {
        0 => Some("<|begin_of_text|>".to_owned()),
        1 => Some("<|end_of_text|>".to_owned()),
        6 => Some("<|start_header_id|>".to_owned()),
        7 => Some("<|end_header_id|>".to_owned()),
        9 => Some("<|eot_id|>".to_owned()),
        _ => reserved.next(),
    });
    vocabulary.push(added, CONTROL);
    let base = LLAMA3_BASE as u32;
    Vocabulary { bos: base, eos: base + 9, add_bos: true, chat_template: LLAMA3_TEMPLATE, ..vocabulary }
}
