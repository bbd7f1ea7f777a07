//! Names of tensors in Hugging Face checkpoints, and what they are in GGUF files.

/// What is done to the values of a vector (norms, biases and such, which are decoded to f32) when it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) enum Change {
    /// Nothing.
    None,
    /// One is added, in f32: norms stored as the distance of their weight from one.
    AddOne,
    /// `-exp(x)`: rates of decay stored as logarithms.
    NegativeExp,
}

/// A tensor's name and its GGUF name. A `*` stands for a number: the layer, and a second one for the matrix of a stack
/// (an expert). Names are written without `.weight` and `.bias`, which are kept, or else in full.
#[derive(Clone, Copy, Debug)]
pub(in crate::model) struct Rule {
    /// As transformers writes it.
    from: &'static str,
    /// As GGUF has it; several when the tensor holds as many, one below the other; none when it is not a weight.
    to: &'static [&'static str],
    change: Change,
}

/// A tensor that goes by another name, or by several.
pub(in crate::model) const fn renamed(from: &'static str, to: &'static [&'static str]) -> Rule {
    Rule { from, to, change: Change::None }
}

/// A norm whose weight is stored less one.
pub(in crate::model) const fn norm_less_one(from: &'static str, to: &'static [&'static str]) -> Rule {
    Rule { from, to, change: Change::AddOne }
}

/// Rates of decay stored as the logarithm of their negative.
pub(in crate::model) const fn negative_exp(from: &'static str, to: &'static [&'static str]) -> Rule {
    Rule { from, to, change: Change::NegativeExp }
}

impl Rule {
    /// Rules that hold for every architecture, unless its own come before them.
    const COMMON: [Rule; 15] = [
        renamed("model.embed_tokens", &["token_embd"]),
        renamed("model.norm", &["output_norm"]),
        renamed("lm_head", &["output"]),
        renamed("model.layers.*.input_layernorm", &["blk.*.attn_norm"]),
        renamed("model.layers.*.self_attn.q_proj", &["blk.*.attn_q"]),
        renamed("model.layers.*.self_attn.k_proj", &["blk.*.attn_k"]),
        renamed("model.layers.*.self_attn.v_proj", &["blk.*.attn_v"]),
        renamed("model.layers.*.self_attn.o_proj", &["blk.*.attn_output"]),
        renamed("model.layers.*.self_attn.q_norm", &["blk.*.attn_q_norm"]),
        renamed("model.layers.*.self_attn.k_norm", &["blk.*.attn_k_norm"]),
        renamed("model.layers.*.post_attention_layernorm", &["blk.*.ffn_norm"]),
        renamed("model.layers.*.mlp.gate_proj", &["blk.*.ffn_gate"]),
        renamed("model.layers.*.mlp.up_proj", &["blk.*.ffn_up"]),
        renamed("model.layers.*.mlp.down_proj", &["blk.*.ffn_down"]),
        // Frequencies that early checkpoints of llama store; they follow from the configuration.
        renamed("model.layers.*.self_attn.rotary_emb.inv_freq", &[]),
    ];
}

/// What a rule says of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// GGUF names, of equal parts of its rows.
    pub(super) names: Vec<String>,
    /// Which matrix of these it is, when each is a tensor of its own.
    pub(super) index: Option<usize>,
    pub(super) change: Change,
}

/// The GGUF names of a tensor, by an architecture's own rules or the common ones. The layers of a head that predicts
/// further tokens have the names of others, with `mtp` for `blk`, since GGUF's numbers for them depend on the model.
pub(super) fn translate(rules: &[Rule], name: &str) -> Option<Found> {
    if let Some(rest) = name.strip_prefix("mtp.layers.") {
        let mut found = translate(rules, &format!("model.layers.{rest}"))?;
        found.names.iter_mut().for_each(|name| *name = name.replacen("blk.", "mtp.", 1));
        return Some(found);
    }
    rules.iter().chain(&Rule::COMMON).find_map(|rule| {
        let whole = numbers(rule.from, name).map(|numbers| (numbers, ""));
        let (numbers, suffix) = whole.or_else(|| {
            let (stem, suffix) = split_suffix(name)?;
            Some((numbers(rule.from, stem)?, suffix))
        })?;
        let names = rule.to.iter().map(|to| fill(to, &numbers) + suffix).collect();
        let used = rule.to.first().map_or(0, |to| to.matches('*').count());
        Some(Found { names, index: numbers.get(used).copied(), change: rule.change })
    })
}

/// A tensor that no rule knows, under its own name.
pub(super) fn unknown(name: &str) -> Found {
    Found { names: vec![name.to_owned()], index: None, change: Change::None }
}

/// The name of a GGUF tensor in a checkpoint, where a rule knows it; the matrices of a stack are all meant by one `*`.
pub(super) fn original(rules: &[Rule], name: &str) -> Option<String> {
    if let Some(rest) = name.strip_prefix("mtp.").filter(|rest| !rest.contains("nextn")) {
        let name = original(rules, &format!("blk.{rest}"))?;
        return Some(name.replacen("model.layers.", "mtp.layers.", 1));
    }
    rules.iter().chain(&Rule::COMMON).find_map(|rule| {
        rule.to.iter().find_map(|to| {
            let whole = numbers(to, name).map(|numbers| (numbers, ""));
            let (numbers, suffix) = whole.or_else(|| {
                let (stem, suffix) = split_suffix(name)?;
                Some((numbers(to, stem)?, suffix))
            })?;
            Some(fill(rule.from, &numbers) + suffix)
        })
    })
}

fn split_suffix(name: &str) -> Option<(&str, &str)> {
    let at = name.rfind('.')?;
    matches!(&name[at..], ".weight" | ".bias").then(|| name.split_at(at))
}

/// The numbers that the stars of a pattern stand for in a name, if it fits.
fn numbers(pattern: &str, name: &str) -> Option<Vec<usize>> {
    let (mut pattern, mut name) = (pattern.split('.'), name.split('.'));
    let mut found = Vec::new();
    loop {
        match (pattern.next(), name.next()) {
            (None, None) => return Some(found),
            (Some("*"), Some(part)) => found.push(number(part)?),
            (Some(a), Some(b)) if a == b => {}
            _ => return None,
        }
    }
}

/// A number as names write it: digits, without zeros in front.
fn number(text: &str) -> Option<usize> {
    text.parse().ok().filter(|number: &usize| number.to_string() == text)
}

/// A pattern with its stars replaced in order; those beyond the numbers stay.
fn fill(pattern: &str, numbers: &[usize]) -> String {
    let mut numbers = numbers.iter();
    let part = |part: &str| match part {
        "*" => numbers.next().map_or_else(|| part.to_owned(), ToString::to_string),
        _ => part.to_owned(),
    };
    pattern.split('.').map(part).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &[Rule] = &[
        renamed("model.layers.*.mlp.experts.*.up_proj", &["blk.*.ffn_up_exps"]),
        renamed(
            "model.layers.*.mlp.experts.gate_up_proj",
            &["blk.*.ffn_gate_exps.weight", "blk.*.ffn_up_exps.weight"],
        ),
        norm_less_one("model.norm", &["output_norm"]),
    ];

    fn names(name: &str) -> Option<(Vec<String>, Option<usize>)> {
        translate(RULES, name).map(|found| (found.names, found.index))
    }

    #[test]
    fn names_are_translated_by_the_first_rule_that_fits() {
        let one = |name: &str| (vec![name.to_owned()], None);
        assert_eq!(names("lm_head.weight"), Some(one("output.weight")));
        assert_eq!(names("model.layers.12.self_attn.q_proj.bias"), Some(one("blk.12.attn_q.bias")));
        assert_eq!(
            names("model.layers.3.mlp.experts.7.up_proj.weight"),
            Some((vec!["blk.3.ffn_up_exps.weight".to_owned()], Some(7)))
        );
        let two = ["blk.3.ffn_gate_exps.weight", "blk.3.ffn_up_exps.weight"].map(str::to_owned).to_vec();
        assert_eq!(names("model.layers.3.mlp.experts.gate_up_proj"), Some((two, None)));
        assert_eq!(names("model.layers.0.self_attn.rotary_emb.inv_freq").unwrap().0, [""; 0]);
        assert_eq!(translate(RULES, "model.norm.weight").map(|found| found.change), Some(Change::AddOne));
        for other in [
            "model.layers.x.self_attn.q_proj.weight",
            "model.layers.01.self_attn.q_proj.weight",
            "model.layers.0.self_attn.q_proj.scale",
            "lm_head",
            "model.norm.weight.more",
        ] {
            // A whole name without its suffix is a rule's own spelling.
            let found = names(other);
            assert!(found.is_none() || other == "lm_head", "{other}: {found:?}");
        }
    }

    #[test]
    fn originals_are_found_for_errors() {
        let original = |name| original(RULES, name);
        assert_eq!(original("blk.2.ffn_down.weight").as_deref(), Some("model.layers.2.mlp.down_proj.weight"));
        assert_eq!(
            original("blk.2.ffn_up_exps.weight").as_deref(),
            Some("model.layers.2.mlp.experts.*.up_proj.weight")
        );
        assert_eq!(original("mtp.0.ffn_down.weight").as_deref(), Some("mtp.layers.0.mlp.down_proj.weight"));
        assert_eq!(original("blk.2.unheard_of.weight"), None);
    }
}
