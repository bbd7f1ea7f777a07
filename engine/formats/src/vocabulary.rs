//! Whether a GGUF file's token tables fit each other.

use crate::{Array, GgufError, Metadata, ValueType};

/// A table with an item for each token.
struct Table {
    name: &'static str,
    expected: &'static str,
    fits: fn(ValueType) -> bool,
}

const TABLES: [Table; 2] = [
    Table {
        name: "token_type",
        expected: "integers",
        fits: |items| {
            items.fixed_bytes().is_some()
                && !matches!(items, ValueType::Bool | ValueType::F32 | ValueType::F64)
        },
    },
    Table {
        name: "scores",
        expected: "floating-point numbers",
        fits: |items| matches!(items, ValueType::F32 | ValueType::F64),
    },
];

/// Keys that hold a token.
const TOKENS: [&str; 7] = [
    "bos_token_id",
    "eos_token_id",
    "eot_token_id",
    "eom_token_id",
    "unknown_token_id",
    "seperator_token_id",
    "padding_token_id",
];

/// What is wrong with the token tables. No item of them is decoded.
pub(crate) fn problems(meta: &Metadata) -> Vec<String> {
    let mut problems = Vec::new();
    let key = |name: &str| format!("tokenizer.ggml.{name}");
    let mut note = |problem: Result<Option<String>, GgufError>| match problem {
        Ok(problem) => problems.extend(problem),
        Err(error) => problems.push(error.to_string()),
    };
    let tokens = meta.find::<Array<'_>>(&key("tokens"));
    let n_tokens = match &tokens {
        Ok(Some(tokens)) => Some(tokens.len()),
        _ => None,
    };
    note(
        tokens.map(|tokens| wrong_items(&key("tokens"), tokens, "strings", |items| items == ValueType::Str)),
    );
    note(
        meta.find::<Array<'_>>(&key("merges"))
            .map(|merges| wrong_items(&key("merges"), merges, "strings", |items| items == ValueType::Str)),
    );
    for Table { name, expected, fits } in TABLES {
        let key = key(name);
        note(meta.find::<Array<'_>>(&key).map(|table| {
            let short = |n| format!("`{key}` has {} items for {n} tokens", table.map_or(0, |t| t.len()));
            let differs = n_tokens.filter(|&n| table.is_some_and(|table| table.len() != n));
            wrong_items(&key, table, expected, fits).or_else(|| differs.map(short))
        }));
    }
    for name in TOKENS {
        let key = key(name);
        note(meta.find::<u32>(&key).map(|token| {
            let (token, n) = token.zip(n_tokens)?;
            (token as usize >= n).then(|| format!("`{key}` is {token}; the vocabulary has {n} tokens"))
        }));
    }
    problems
}

/// A complaint about an array whose items are of another type.
fn wrong_items(
    key: &str,
    array: Option<Array<'_>>,
    expected: &str,
    fits: impl Fn(ValueType) -> bool,
) -> Option<String> {
    let items = array.filter(|array| !array.is_empty())?.item_type();
    (!fits(items)).then(|| format!("`{key}` must be an array of {expected} but is one of {items}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gguf, GgufWriter};

    fn problems_of(write: impl Fn(&mut GgufWriter)) -> Vec<String> {
        let mut writer = GgufWriter::new();
        writer.metadata("tokenizer.ggml.tokens", &["a", "b", "c"][..]).unwrap();
        write(&mut writer);
        problems(Gguf::parse(writer.begin(Vec::new()).unwrap().finish().unwrap()).unwrap().metadata())
    }

    #[test]
    fn tables_that_fit() {
        assert!(problems_of(|_| {}).is_empty());
        assert!(
            problems_of(|writer| {
                writer.metadata("tokenizer.ggml.scores", &vec![0f32; 3]).unwrap();
                writer.metadata("tokenizer.ggml.token_type", &vec![1i32; 3]).unwrap();
                writer.metadata("tokenizer.ggml.merges", &["a b"][..]).unwrap();
                writer.metadata("tokenizer.ggml.eos_token_id", &2u32).unwrap();
            })
            .is_empty()
        );
    }

    #[test]
    fn tables_that_do_not() {
        let found = problems_of(|writer| {
            writer.metadata("tokenizer.ggml.scores", &vec![0u8; 3]).unwrap();
            writer.metadata("tokenizer.ggml.token_type", &vec![1i32; 2]).unwrap();
            writer.metadata("tokenizer.ggml.merges", "a b").unwrap();
            writer.metadata("tokenizer.ggml.eos_token_id", &3u32).unwrap();
            writer.metadata("tokenizer.ggml.bos_token_id", &-1i32).unwrap();
        });
        let expected = [
            "metadata key `tokenizer.ggml.merges` must be an array but is string \"a b\"",
            "`tokenizer.ggml.token_type` has 2 items for 3 tokens",
            "`tokenizer.ggml.scores` must be an array of floating-point numbers but is one of u8",
            "metadata key `tokenizer.ggml.bos_token_id` must be an integer from 0 to 4294967295 but is i32 -1",
            "`tokenizer.ggml.eos_token_id` is 3; the vocabulary has 3 tokens",
        ];
        assert_eq!(found, expected);
    }
}
