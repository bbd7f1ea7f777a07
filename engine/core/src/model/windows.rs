//! Which layers see the whole context, and which a sliding window of it.

use super::source::Keys;
use crate::Error;

/// Keys that each layer's rows see at most. With a window, `config.json` may list the type of each layer; else in
/// architectures with a `pattern` of p every p-th layer sees everything, and in others those before `max_window_layers`
/// do.
///
/// # Errors
/// A list of another length than there are layers, or with types that are not attention.
pub(super) fn read(
    keys: &Keys<'_>,
    n_layers: usize,
    pattern: Option<usize>,
) -> Result<Vec<Option<usize>>, Error> {
    // Asked for in any case, since they are of no account without a window.
    let used = keys.json::<bool>("use_sliding_window")?.unwrap_or(true);
    let types = keys.json::<Vec<String>>("layer_types")?;
    let first = keys.json::<usize>("max_window_layers")?;
    let every = keys.optional("attention.sliding_window_pattern")?.or(pattern);
    let window = keys.optional("attention.sliding_window")?.filter(|&window| used && window > 0);
    if let Some(types) = &types {
        check(keys, types, n_layers)?;
    }
    let slides = |layer: usize| match (&types, every, first) {
        (Some(types), ..) => types[layer] == SLIDING,
        (None, Some(every), _) => every > 0 && !(layer + 1).is_multiple_of(every),
        (None, None, Some(first)) => layer >= first,
        (None, None, None) => true,
    };
    Ok((0..n_layers).map(|layer| window.filter(|_| slides(layer))).collect())
}

const SLIDING: &str = "sliding_attention";

fn check(keys: &Keys<'_>, types: &[String], n_layers: usize) -> Result<(), Error> {
    const FIELD: &str = "layer_types";
    if types.len() != n_layers {
        let problem = format!("lists {} layers, but the model has {n_layers}", types.len());
        return Err(keys.fail_at(FIELD, problem));
    }
    let own = keys.source().architecture().layer_types;
    let known = ["full_attention", SLIDING].into_iter().chain(own.iter().copied());
    match types.iter().find(|t| !known.clone().any(|known| known == *t)) {
        Some(other) => {
            let supported = known.collect::<Vec<_>>().join(", ");
            let problem = format!("`{other}` is not supported; supported: {supported}");
            Err(keys.fail_at(FIELD, problem))
        }
        None => Ok(()),
    }
}
