//! Which pictures a board has, and the rows that each is drawn from.

use crate::{
    board::{Board, Comparison, Device},
    fig,
    layout::Frame,
    markdown::{Picture, caption},
    rows::{MEMRA, test_title},
    scene::Scene,
};

/// Stems of all pictures that there can be: a board without one of them has no such file.
pub(crate) const STEMS: [&str; 4] = ["ratio", "throughput", "wall", "sweep"];

/// The pictures of `board`, in the order of [`STEMS`]; those with nothing to show are left out.
pub(crate) fn all(board: &Board) -> Vec<(Picture, Scene)> {
    let caption = caption(board);
    let frame = |title, subtitle| Frame { title, subtitle, caption: &caption };
    let several = board.devices.len() > 1;
    let under = |text: &str, device: &Device| {
        if several { format!("{text}, {}", device.name) } else { text.to_owned() }
    };
    let engines = board.engines();
    let color = |identity: &str| engines.iter().position(|e| *e == identity).unwrap_or_default();
    let mut pictures = Vec::new();

    let mut ratios = Vec::new();
    let (mut rates, mut walls) = (Vec::new(), Vec::new());
    for device in &board.devices {
        ratios.extend(device.comparisons.iter().map(|c| ratio(c, under(&c.cell.model, device))));
        for rate in &device.rates {
            let (engine, color) = (rate.name.clone(), color(&rate.identity));
            rates.push(fig::throughput::Row {
                panel: under(&test_title(&rate.cell.test), device),
                model: rate.cell.model.clone(),
                engine: engine.clone(),
                color,
                median: rate.tps,
                samples: rate.samples.clone(),
            });
            if let Some(wall) = rate.wall {
                let group = under(&format!("{}, {}", rate.cell.model, rate.cell.test), device);
                walls.push(fig::wall::Row { group, engine, color, gbps: wall.gbps, percent: wall.percent });
            }
        }
    }
    if !ratios.is_empty() {
        let frame = frame(
            "Throughput, ours over theirs",
            "Above 1, ours is faster. The whisker is the exact interval over interleaved pairs of fresh processes.",
        );
        let alt = "Ratio of our throughput to each rival's, with intervals";
        pictures.push((Picture { stem: STEMS[0], alt }, fig::ratio::scene(&ratios, &frame)));
    }
    if !rates.is_empty() {
        let frame =
            frame("Throughput", "Bar and line: median over runs. Dots: every repetition of every run.");
        let alt = "Tokens per second of each engine in each test";
        pictures.push((Picture { stem: STEMS[1], alt }, fig::throughput::scene(&rates, &frame)));
    }
    if !walls.is_empty() {
        let frame = frame(
            "Decode against the read wall",
            "Bytes that a token must read × tokens per second, as a share of the read bandwidth measured on this machine.",
        );
        let alt = "Share of the machine's read bandwidth that each engine's decode uses";
        pictures.push((Picture { stem: STEMS[2], alt }, fig::wall::scene(&walls, &frame)));
    }
    if !board.tuned.is_empty() {
        pictures.push(sweep(board, &caption));
    }
    pictures
}

fn ratio(comparison: &Comparison, group: String) -> fig::ratio::Row {
    let ours =
        if comparison.ours.name == MEMRA { String::new() } else { format!(", {}", comparison.ours.name) };
    fig::ratio::Row {
        group,
        label: format!("{}{ours} vs {}", comparison.cell.test, comparison.other.name),
        ratio: comparison.ratio.clone(),
        floor: comparison.floor(),
        n_pairs: comparison.evidence.as_ref().map_or(0, |e| e.verdict.n_pairs),
    }
}

fn sweep(board: &Board, caption: &str) -> (Picture, Scene) {
    let several = board.tuned.iter().any(|kernel| kernel.device_class != board.tuned[0].device_class);
    let row = |kernel: &crate::tuned::Tuned| fig::sweep::Row {
        group: if several {
            format!("{}, {}", kernel.family, kernel.device_class)
        } else {
            kernel.family.clone()
        },
        key: kernel.shape.clone(),
        winner: kernel.winner.clone(),
        speedup: kernel.speedup,
        best_so_far: kernel.best_so_far.clone(),
    };
    let rows: Vec<fig::sweep::Row> = board.tuned.iter().map(row).collect();
    let frame = Frame {
        title: "What the sweep found",
        subtitle: "Time of the default configuration over that of the winner, head to head: above 1, the winner is faster.",
        caption,
    };
    let alt = "Speed-up of each tuned kernel over its default configuration";
    (Picture { stem: STEMS[3], alt }, fig::sweep::scene(&rows, &frame))
}
