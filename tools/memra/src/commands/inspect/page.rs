//! What `memra inspect` says, for people: lines of at most 80 columns.

use super::report::Report;
use crate::output::stdout;
use memra_formats::PerLayer;
use std::io::Write;

/// Columns of the labels, and of a line.
const LABEL: usize = 14;
const WIDTH: usize = 80;

/// Longest text of a file's own that is shown.
const SHOWN_CHARS: usize = 200;

pub(super) fn print(report: &Report<'_>) -> anyhow::Result<()> {
    let mut out = stdout();
    for (label, text) in lines(report) {
        for (i, line) in wrap(&text, WIDTH - LABEL).iter().enumerate() {
            let label = if i == 0 { label } else { "" };
            writeln!(out, "{}", format!("{label:<LABEL$}{line}").trim_end())?;
        }
    }
    Ok(out.flush()?)
}

/// Labels and what stands beside them.
fn lines(report: &Report<'_>) -> Vec<(&'static str, String)> {
    let summary = &report.summary;
    let files = match summary.n_files {
        0 | 1 => String::new(),
        n => format!(", {n} files"),
    };
    let mut lines = vec![
        ("model", plain(&report.path)),
        ("", format!("{}{files}, {}", summary.format, bytes(summary.file_bytes))),
    ];
    lines.extend(summary.name.as_deref().map(|name| ("name", plain(name))));
    lines.push(("architecture", architecture(report)));
    lines.extend(attention(report).map(|text| ("attention", text)));
    lines.extend(
        report.shape.experts.map(|e| ("experts", format!("{} of {} a token", e.n_used, e.n_experts))),
    );
    lines.push(("parameters", parameters(report)));
    lines.extend(types(report));
    lines.push(("tokenizer", tokenizer(report)));
    lines.push(("chat template", if summary.chat_template { "yes" } else { "none" }.to_owned()));
    lines.extend((!summary.documents.is_empty()).then(|| ("documents", summary.documents.join(", "))));
    let context = summary.context_length.map(|n| format!("{n} tokens as trained"));
    lines.push(("context", context.unwrap_or_else(|| "unknown: the file does not say".to_owned())));
    lines.push(("decode reads", decode(report)));
    lines.push(("cache", cache(report)));
    lines.push(("memory", memory(report)));
    lines.push(("runs here", runs(report)));
    lines.extend(summary.problems.iter().map(|problem| ("damaged", plain(problem))));
    lines
}

fn architecture(report: &Report<'_>) -> String {
    let name = report
        .summary
        .architecture
        .as_deref()
        .map_or_else(|| "unknown: the file does not name it".to_owned(), plain);
    let shape = &report.shape;
    let parts = [
        shape.n_layers.map(|n| format!("{n} layers")),
        shape.n_embd.map(|n| format!("width {n}")),
        shape.n_ff.as_ref().and_then(range).map(|n| format!("feed-forward {n}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { name } else { format!("{name}: {}", parts.join(", ")) }
}

fn attention(report: &Report<'_>) -> Option<String> {
    let shape = &report.shape;
    let heads = shape.n_heads.as_ref().and_then(range)?;
    let mut parts = vec![match shape.head_dim {
        Some(size) => format!("{heads} heads of {size}"),
        None => format!("{heads} heads"),
    }];
    parts.extend(shape.n_kv_heads.as_ref().and_then(range).map(|n| format!("{n} for keys and values")));
    let n = report.layers.len();
    let windowed: Vec<u64> = report.layers.iter().filter_map(|layer| layer.window).collect();
    parts.extend(
        windowed
            .iter()
            .max()
            .map(|window| format!("a window of {window} tokens in {} of {n} layers", windowed.len())),
    );
    let shared = report.layers.iter().filter(|layer| layer.is_shared).count();
    parts.extend((shared > 0).then(|| format!("{shared} layers use an earlier layer's cache")));
    let recurrent = report.layers.iter().filter(|layer| layer.state_values > 0).count();
    parts.extend((recurrent > 0).then(|| format!("a recurrent state in {recurrent} of {n} layers")));
    Some(parts.join(", "))
}

fn parameters(report: &Report<'_>) -> String {
    let summary = &report.summary;
    let active = report.n_params_active.filter(|&n| report.shape.experts.is_some() && n < summary.n_params);
    let active = active.map(|n| format!(", {} of them used by a token", count(n))).unwrap_or_default();
    format!("{}{active}; {:.2} bits each", count(summary.n_params), summary.bits_per_param())
}

/// A line a type.
fn types(report: &Report<'_>) -> Vec<(&'static str, String)> {
    let all = report.summary.tensor_bytes.max(1) as f64;
    let line = |(i, share): (usize, &memra_formats::TypeShare)| {
        let percent = share.bytes as f64 * 100.0 / all;
        let label = if i == 0 { "types" } else { "" };
        let size = bytes(share.bytes);
        let tensors = if share.n_tensors == 1 { "tensor " } else { "tensors" };
        (label, format!("{:<8}{:>6} {tensors}{size:>12}{percent:>7.1} %", share.dtype, share.n_tensors))
    };
    report.summary.types.iter().enumerate().map(line).collect()
}

fn tokenizer(report: &Report<'_>) -> String {
    let kind = report.summary.tokenizer.as_deref().map_or_else(|| "none".to_owned(), plain);
    let n = report.n_vocab.map(|n| format!(", {n} tokens")).unwrap_or_default();
    let tied = match report.tied_embeddings {
        Some(true) => ", embeddings tied to the output",
        _ => "",
    };
    format!("{kind}{n}{tied}")
}

fn decode(report: &Report<'_>) -> String {
    let Some(weights) = report.decode_weight_bytes else {
        return unknown(report, "decode_weight_bytes");
    };
    let cache = match (report.decode_kv_bytes, report.state_bytes) {
        (Some(kv), Some(state)) => format!(" and {} of cache", bytes(kv.saturating_add(state))),
        _ => String::new(),
    };
    format!("{} of weights{cache} a token, at context {}", bytes(weights), report.context)
}

fn cache(report: &Report<'_>) -> String {
    let (Some(token), Some(kept)) = (report.kv_bytes_per_token, report.kv_bytes) else {
        return unknown(report, "kv_bytes");
    };
    let [k, v] = report.kv_types;
    let dtype = if k == v { k.to_string() } else { format!("{k} and {v}") };
    let state = report.state_bytes.filter(|&state| state > 0);
    let state = state.map(|state| format!("; {} of state", bytes(state))).unwrap_or_default();
    format!("{} a token in {dtype}, {} at context {}{state}", bytes(token), bytes(kept), report.context)
}

fn memory(report: &Report<'_>) -> String {
    let Some(all) = report.memory_bytes else { return "unknown, as the cache is".to_owned() };
    let kept = report.kv_bytes_here.or(report.kv_bytes).unwrap_or_default();
    let cache = kept.saturating_add(report.state_bytes.unwrap_or_default());
    let mut buffers = match report.buffer_bytes {
        Some(size) => format!(", buffers {}", bytes(size)),
        None => "; buffers are not counted".to_owned(),
    };
    if report.kv_bytes_here.is_some() {
        buffers.push_str("; this build keeps tokens beyond windows too");
    }
    let weights = bytes(report.summary.tensor_bytes);
    format!(
        "{} at context {}: weights {weights}, cache {}{buffers}",
        bytes(all),
        report.context,
        bytes(cache)
    )
}

fn runs(report: &Report<'_>) -> String {
    match (&report.not_runnable, &report.no_tokenizer) {
        (Some(why), _) => format!("no: {}", plain(why)),
        (None, Some(why)) => format!("yes, but not from text: {}", plain(why)),
        (None, None) => "yes".to_owned(),
    }
}

fn unknown(report: &Report<'_>, figure: &str) -> String {
    let reason = report.unknown.get(figure).map_or("it overflows", String::as_str);
    format!("unknown: {}", plain(reason))
}

/// One number, or the smallest and largest.
fn range(numbers: &PerLayer) -> Option<String> {
    match numbers {
        PerLayer::Same(n) => Some(n.to_string()),
        PerLayer::Each(each) => match (each.iter().min()?, each.iter().max()?) {
            (min, max) if min == max => Some(min.to_string()),
            (min, max) => Some(format!("{min} to {max}")),
        },
    }
}

/// Bytes in the unit that fits.
fn bytes(n: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut size = n as f64 / 1024.0;
    let mut unit = 0;
    while size >= 999.95 && unit + 1 < units.len() {
        size /= 1024.0;
        unit += 1;
    }
    if n < 1024 { format!("{n} B") } else { format!("{size:.1} {}", units[unit]) }
}

/// Parameters in the unit that fits.
fn count(n: u64) -> String {
    match n as f64 {
        n if n < 1e6 => format!("{:.1} K", n / 1e3),
        n if n < 1e9 => format!("{:.1} M", n / 1e6),
        n if n < 1e12 => format!("{:.2} B", n / 1e9),
        n => format!("{:.2} T", n / 1e12),
    }
}

/// A text of the file's own: cut short, and without what could drive a terminal.
fn plain(text: &str) -> String {
    let mut shown: String =
        text.chars().take(SHOWN_CHARS).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// The text in lines of at most `width` columns where its words allow it.
fn wrap(text: &str, width: usize) -> Vec<String> {
    // Columns that were lined up fit as they are.
    if text.chars().count() <= width {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut();
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts_read_well() {
        let sizes = [0, 1023, 1024, 1_048_525, 1_048_576, u64::MAX].map(bytes);
        assert_eq!(sizes, ["0 B", "1023 B", "1.0 KiB", "1.0 MiB", "1.0 MiB", "16.0 EiB"]);
        let counts = [0, 134_515_008, 30_532_122_624, 1_000_000_000_000].map(count);
        assert_eq!(counts, ["0.0 K", "134.5 M", "30.53 B", "1.00 T"]);
    }

    #[test]
    fn texts_are_wrapped_and_made_harmless() {
        assert_eq!(wrap("a bb ccc", 4), ["a bb", "ccc"]);
        assert_eq!(wrap("longword x", 4), ["longword", "x"]);
        assert_eq!(wrap("a  b", 4), ["a  b"]);
        assert_eq!(plain("\u{1b}[2Jx"), "\u{fffd}[2Jx");
        assert_eq!(plain(&"é".repeat(300)).chars().count(), SHOWN_CHARS + 1);
    }

    #[test]
    fn numbers_that_differ_by_layer_are_a_range() {
        assert_eq!(range(&PerLayer::Same(8)).as_deref(), Some("8"));
        assert_eq!(range(&PerLayer::Each(vec![4, 0, 4])).as_deref(), Some("0 to 4"));
        assert_eq!(range(&PerLayer::Each(vec![4, 4])).as_deref(), Some("4"));
        assert_eq!(range(&PerLayer::Each(vec![])), None);
    }
}
