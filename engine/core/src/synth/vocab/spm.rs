//! A SentencePiece vocabulary: Gemma 3's.
//!
//! Pieces are joined as long as the result is a piece too, the best score first; scores fall in the order of the list.

use super::grow::Growth;
use super::words::words;
use super::{BYTE, CONTROL, NORMAL, USER_DEFINED, Vocabulary};

/// Size of Gemma 3's vocabulary.
const GEMMA3: usize = 262_144;
/// Runs of newlines and of spaces that are tokens of their own: lengths up to this.
const LONGEST_RUN: usize = 31;
/// The score of tokens that no merge leads to.
const NO_MERGE: f32 = -1000.0;

const GEMMA3_TEMPLATE: &str = "{{ bos_token }}{% for m in messages %}\
{{ '<start_of_turn>' + ('model' if m['role'] == 'assistant' else 'user') + '\\n' + m['content'] + '<end_of_turn>\\n' }}\
{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}";

/// 262,144 tokens.
pub(in super::super) fn gemma3() -> Vocabulary {
    let mut vocabulary = Vocabulary {
        model: "llama",
        pre: "default",
        bos: 2,
        eos: 1,
        unk: Some(3),
        pad: Some(0),
        add_bos: true,
        add_space_prefix: Some(false),
        chat_template: GEMMA3_TEMPLATE,
        ..Vocabulary::default()
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    vocabulary.push(names(&["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]), CONTROL);
    vocabulary.push(names(&["[multimodal]"]), USER_DEFINED);
    vocabulary.push((0..99).map(|n| format!("<unused{n}>")), CONTROL);
    vocabulary.push(names(&["<start_of_turn>", "<end_of_turn>"]), CONTROL);
    vocabulary.push((1..=LONGEST_RUN).map(|n| "\n".repeat(n)), USER_DEFINED);
    vocabulary.push((2..=LONGEST_RUN).map(|n| " ".repeat(n)), USER_DEFINED);
    vocabulary.push((0..=255).map(|byte| format!("<0x{byte:02X}>")), BYTE);
    vocabulary.scores = vec![NO_MERGE; vocabulary.tokens.len()];

    // A space is written U+2581; the other letters are printable ASCII. Everything else falls back to bytes.
    let letters = std::iter::once('▁').chain('!'..='~');
    let pieces = Growth::new(letters, GEMMA3 - vocabulary.tokens.len()).fill(words('▁')).tokens;
    vocabulary.scores.extend((0..pieces.len()).map(|rank| -(rank as f32)));
    vocabulary.push(pieces, NORMAL);
    vocabulary
}
