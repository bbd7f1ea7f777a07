//! The board in Markdown: the page beside the pictures, and the region of the project's README.

use crate::{
    board::{Board, Comparison, Device, Facts, Side},
    rows::{MEMRA, Standing, clipped, day, flags, rate, short_id, without_folders},
    tuned::Tuned,
};
use memra_harness::one_line;
use std::fmt::Write;

/// A picture that was drawn, by its file stem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Picture {
    pub(crate) stem: &'static str,
    /// What it shows, for those who cannot see it.
    pub(crate) alt: &'static str,
}

/// Engines and flags behind the cells, numbered as they are first mentioned.
#[derive(Default)]
struct Configurations(Vec<(String, String, String)>);

impl Configurations {
    fn number(&mut self, side: &Side) -> usize {
        let key = (side.name.clone(), side.arm.version.clone(), flags(&side.arm.flags));
        let at = self.0.iter().position(|known| *known == key).unwrap_or_else(|| {
            self.0.push(key);
            self.0.len() - 1
        });
        at + 1
    }
}

/// The line by which a page is known as ours.
pub(crate) const OURS: &str = "<!-- Written by `memra board`; edits are lost. -->";

/// The text of `boards/README.md`.
pub(crate) fn page(board: &Board, pictures: &[Picture]) -> String {
    let mut out = String::from("# Performance board\n\n");
    let _ = writeln!(out, "{OURS}\n");
    let _ = writeln!(out, "{}\n", escaped(&caption(board)));
    for picture in pictures {
        let _ = writeln!(out, "{}\n", html(picture, ""));
    }
    let mut configurations = Configurations::default();
    let mut walls_missing = false;
    for device in &board.devices {
        let _ = writeln!(out, "## {}\n", escaped(&device.name));
        performance(&mut out, device, &mut configurations);
        walls_missing |= rates(&mut out, device);
        if !device.checks.is_empty() {
            out.push_str("### Checks of the harness\n\n");
            out.push_str(
                "Planted faults, and binaries compared with themselves; these say nothing of speed.\n\n",
            );
            out.push_str(&comparisons(&device.checks, device, &mut configurations));
        }
    }
    if walls_missing {
        out.push_str("No share of the read wall is given where the bytes that a token reads, or the wall itself, were not known when it was measured; `memra probe` measures the wall.\n\n");
    }
    tuned(&mut out, &board.tuned);
    how_to_read(&mut out);
    listed_configurations(&mut out, &configurations);
    evidence(&mut out, board);
    out
}

/// What stands between the README's markers, without its first and last newline. `boards` is the path from the README's
/// folder to the boards.
pub(crate) fn region(board: &Board, pictures: &[Picture], boards: &str) -> String {
    let prefix = if boards.is_empty() { String::new() } else { format!("{boards}/") };
    let mut out = String::new();
    if let Some(picture) = pictures.first() {
        let _ = writeln!(out, "{}\n", html(picture, &prefix));
    }
    let header = [
        ("model", false),
        ("test", false),
        ("ours, tok/s", true),
        ("against", false),
        ("tok/s", true),
        ("ratio", false),
    ];
    for device in &board.devices {
        let rows = device.comparisons.iter().map(|c| {
            let ours = format!(
                "{}{}",
                tps(&c.ours),
                if c.ours.name == MEMRA { String::new() } else { format!(" ({})", c.ours.name) }
            );
            vec![
                c.cell.model.clone(),
                c.cell.test.clone(),
                ours,
                c.other.name.clone(),
                tps(&c.other),
                ratio(c),
            ]
        });
        let rows: Vec<Vec<String>> = rows.collect();
        if !rows.is_empty() {
            if board.devices.len() > 1 {
                let _ = writeln!(out, "**{}**\n", escaped(&device.name));
            }
            out.push_str(&table(&header, &rows));
        }
    }
    let _ = writeln!(out, "{}\n", escaped(&caption(board)));
    let _ = write!(
        out,
        "All cells, with flags, verdicts and the runs behind them: [{prefix}README.md]({prefix}README.md)."
    );
    out
}

/// One line: where, when, how much, by which builds, from which log.
pub(crate) fn caption(board: &Board) -> String {
    let Facts { days, runs, builds, log_hash } = &board.facts;
    let mut parts: Vec<String> =
        vec![board.devices.iter().map(|d| d.name.as_str()).collect::<Vec<_>>().join("; ")];
    if let Some((first, last)) = days {
        parts.push(if first == last {
            format!("measured {first}")
        } else {
            format!("measured {first} to {last}")
        });
    }
    let pairs: u64 =
        all(board).filter_map(|c| c.evidence.as_ref()).map(|e| u64::from(e.verdict.n_pairs)).sum();
    if pairs > 0 {
        parts.push(format!("N = {pairs} pairs"));
    }
    if runs.0 > 0 {
        let invalid = if runs.1 == 0 { "none".to_owned() } else { format!("{} of them", runs.1) };
        parts.push(format!("{} runs, {invalid} invalid", runs.0));
    }
    if !builds.is_empty() {
        parts.push(format!("memra {}", builds.join(", ")));
    }
    parts.push(format!("log {log_hash}"));
    parts.retain(|part| !part.is_empty());
    parts.join(" · ")
}

fn all(board: &Board) -> impl Iterator<Item = &Comparison> {
    board.devices.iter().flat_map(|device| device.comparisons.iter().chain(&device.checks))
}

/// A picture in its light or dark variant, as the reader's page is.
fn html(picture: &Picture, prefix: &str) -> String {
    let Picture { stem, alt } = picture;
    format!(
        "<picture>\n<source media=\"(prefers-color-scheme: dark)\" srcset=\"{prefix}{stem}-dark.svg\">\n\
         <img src=\"{prefix}{stem}.svg\" width=\"900\" alt=\"{alt}\">\n</picture>"
    )
}

fn performance(out: &mut String, device: &Device, configurations: &mut Configurations) {
    for cells in device.comparisons.chunk_by(|a, b| a.cell.model == b.cell.model) {
        let _ = writeln!(out, "### {}\n", escaped(&cells[0].cell.model));
        out.push_str(&comparisons(cells, device, configurations));
    }
}

/// The table of some comparisons.
fn comparisons(cells: &[Comparison], device: &Device, configurations: &mut Configurations) -> String {
    let header = [
        ("test", false),
        ("ours", false),
        ("tok/s", true),
        ("against", false),
        ("tok/s", true),
        ("ratio", false),
        ("N", true),
        ("invalid", true),
        ("verdict", false),
        ("% of wall", true),
        ("date", false),
        ("evidence", false),
    ];
    let rows = cells.iter().map(|c| {
        let mut named = |side: &Side| {
            if c.evidence.is_none() {
                side.name.clone()
            } else {
                format!("{} [{}]", side.name, configurations.number(side))
            }
        };
        let (ours, other) = (named(&c.ours), named(&c.other));
        let evidence = c.evidence.as_ref();
        let of_verdict = |text: fn(&crate::board::Evidence) -> String| evidence.map_or("–".to_owned(), text);
        vec![
            c.cell.test.clone(),
            ours,
            tps(&c.ours),
            other,
            tps(&c.other),
            ratio(c),
            of_verdict(|e| e.verdict.n_pairs.to_string()),
            of_verdict(|e| e.verdict.n_invalid.to_string()),
            c.judgement.clone(),
            walls(c, device),
            of_verdict(|e| day(&e.at).to_owned()),
            of_verdict(|e| format!("[{0}](#{1})", short_id(&e.id), anchor(&e.id))),
        ]
    });
    table(&header, &rows.collect::<Vec<_>>())
}

/// `72 / 65`: ours and the other's share of the read wall.
fn walls(comparison: &Comparison, device: &Device) -> String {
    let share = |side: &Side| {
        let same = |r: &&crate::board::Rate| r.cell == comparison.cell && r.identity == side.identity;
        let rate = device.rates.iter().find(same).filter(|_| side.tps.is_some())?;
        Some(format!("{:.0}", rate.wall?.percent))
    };
    match (share(&comparison.ours), share(&comparison.other)) {
        (None, None) => "–".to_owned(),
        (ours, other) => {
            let dash = || "–".to_owned();
            format!("{} / {}", ours.unwrap_or_else(dash), other.unwrap_or_else(dash))
        }
    }
}

/// Rates of cells that no comparison holds; whether a decode cell lacks its share of the wall.
fn rates(out: &mut String, device: &Device) -> bool {
    let compared =
        |r: &&crate::board::Rate| device.comparisons.iter().any(|c| c.cell == r.cell && c.evidence.is_some());
    let alone: Vec<Vec<String>> = device
        .rates
        .iter()
        .filter(|r| !compared(r))
        .map(|r| {
            let runs: Vec<&str> = r.run_ids.iter().map(|id| short_id(id)).collect();
            let wall = r.wall.map_or("–".to_owned(), |w| format!("{:.0}", w.percent));
            vec![r.cell.model.clone(), r.cell.test.clone(), r.name.clone(), rate(r.tps), wall, runs.join(" ")]
        })
        .collect();
    if !alone.is_empty() {
        out.push_str("### Measured, not compared\n\n");
        let header = [
            ("model", false),
            ("test", false),
            ("engine", false),
            ("tok/s", true),
            ("% of wall", true),
            ("runs", false),
        ];
        out.push_str(&table(&header, &alone));
    }
    device.rates.iter().any(|r| crate::rows::is_decode(&r.cell.test) && r.wall.is_none())
}

fn tuned(out: &mut String, kernels: &[Tuned]) {
    if kernels.is_empty() {
        return;
    }
    out.push_str("## Tuned kernels\n\nThe dispatch table's winners; the speed-up is that of the last comparison head to head with the default.\n\n");
    let header = [
        ("device class", false),
        ("kernel", false),
        ("winner", false),
        ("speed-up", true),
        ("date", false),
        ("trials", false),
    ];
    let rows = kernels.iter().map(|kernel| {
        let trials: Vec<&str> = kernel.evidence.iter().map(|id| short_id(id)).collect();
        let speedup =
            if kernel.is_default() { "default kept".to_owned() } else { format!("{:.2}x", kernel.speedup) };
        let (class, key, winner) = (kernel.device_class.clone(), kernel.key.clone(), kernel.winner.clone());
        vec![class, key, winner, speedup, kernel.date.clone(), trials.join(" ")]
    });
    out.push_str(&table(&header, &rows.collect::<Vec<_>>()));
}

fn how_to_read(out: &mut String) {
    out.push_str(
        "## How to read it\n\n\
         - A ratio is our throughput over the other's (above 1, ours is faster): Hodges–Lehmann over interleaved pairs of \
         fresh processes, with its exact signed-rank interval. It is bold where the whole interval lies beyond the noise floor.\n\
         - Rates are medians of the first five runs of each side. N counts pairs; invalid counts runs that failed or were \
         refused.\n\
         - `n/m`: not measured. `inv`: measured and refused, with the reason.\n\
         - % of wall: bytes that a token must read × tokens per second, as a share of the read bandwidth measured on \
         this machine; ours / the other's.\n\
         - Each picture is also there as PNG, and with `-dark` for dark pages.\n\n",
    );
}

fn listed_configurations(out: &mut String, configurations: &Configurations) {
    if configurations.0.is_empty() {
        return;
    }
    out.push_str("## Configurations\n\n");
    for (i, (name, version, flags)) in configurations.0.iter().enumerate() {
        let flags = if flags.is_empty() { "no flags reported".to_owned() } else { code(flags) };
        let _ = writeln!(out, "{}. {} ({}): {flags}", i + 1, escaped(name), escaped(version));
    }
    out.push('\n');
}

fn evidence(out: &mut String, board: &Board) {
    if all(board).all(|c| c.evidence.is_none()) {
        return;
    }
    out.push_str("## Evidence\n\n");
    for c in all(board) {
        let Some(e) = &c.evidence else { continue };
        let v = &e.verdict;
        let (model, test) = (&c.cell.model, &c.cell.test);
        let _ = writeln!(
            out,
            "- <a id=\"{}\"></a>{}/{}, {} against {}: verdict `{}` of {}, session `{}`",
            anchor(&e.id),
            escaped(model),
            escaped(test),
            escaped(&c.ours.name),
            escaped(&c.other.name),
            e.id,
            code(&format!("memra {}", e.command)),
            e.session_id
        );
        if v.n_pairs > 0 {
            let (a, b) = (without_folders(&v.a.subject), without_folders(&v.b.subject));
            let _ = writeln!(
                out,
                "  - reproduce: {}",
                code(&format!("memra ab {model}.gguf --a {a} --b {b} --tests {test}"))
            );
        }
        for side in [&c.ours, &c.other].into_iter().filter(|side| !side.launch.is_empty()) {
            let _ = writeln!(out, "  - launched: {}", code(&side.launch));
        }
        if let Some(conf) = v.conf {
            let [conf, floor, margin] = [conf, v.floor_ratio, v.margin].map(|ratio| ratio * 100.0);
            let _ = writeln!(
                out,
                "  - confidence {conf:.1} %, floor {floor:.2} %, margin {margin:.2} %, {} of {} pairs agree, look {}",
                v.pairs_agree, v.n_pairs, v.look
            );
        }
        for reason in &v.reasons {
            let _ = writeln!(out, "  - {}", escaped(&clipped(reason, 400)));
        }
        let runs: Vec<&str> = v.run_ids.iter().map(|id| short_id(id)).collect();
        let _ =
            writeln!(out, "  - runs: {}", if runs.is_empty() { "none".to_owned() } else { runs.join(" ") });
    }
}

fn anchor(id: &str) -> String {
    id.to_lowercase()
}

fn tps(side: &Side) -> String {
    side.tps.map_or("–".to_owned(), rate)
}

fn ratio(comparison: &Comparison) -> String {
    match &comparison.ratio {
        Ok(interval) if interval.standing(comparison.floor()) != Standing::Even => format!("**{interval}**"),
        Ok(interval) => interval.to_string(),
        Err(why) => why.clone(),
    }
}

/// A GitHub table; `true` aligns a column to the right.
fn table(header: &[(&str, bool)], rows: &[Vec<String>]) -> String {
    let mut out = String::new();
    let names: Vec<&str> = header.iter().map(|(name, _)| *name).collect();
    let rules: Vec<&str> = header.iter().map(|(_, right)| if *right { "--:" } else { "---" }).collect();
    let _ = writeln!(out, "| {} |\n| {} |", names.join(" | "), rules.join(" | "));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out.push('\n');
    out
}

/// Characters of a text, flags or a command line, that are shown.
const LONGEST: usize = 2000;

/// Text that neither ends a table's cell nor starts a tag.
fn escaped(text: &str) -> String {
    spaced(text).replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;").replace('`', "\\`")
}

/// Text as code; a backtick in it becomes an apostrophe.
fn code(text: &str) -> String {
    format!("`{}`", spaced(text).replace('`', "'"))
}

/// Text on one line, with single spaces.
fn spaced(text: &str) -> String {
    one_line(text, LONGEST).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_cannot_break_the_table() {
        let text = table(&[("a", false), ("b", true)], &[vec!["x|y\n<b>\u{1b}`z\0".into(), "1".into()]]);
        assert_eq!(text, "| a | b |\n| --- | --: |\n| x\\|y &lt;b>\\`z | 1 |\n\n");
    }
}
