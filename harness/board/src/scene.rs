//! A figure as a list of shapes, drawn by every backend alike.
//!
//! Figures are laid out once, in CSS pixels with the origin at the top left; [`crate::paint`] replays the list to SVG and
//! PNG in either theme. Keeping the list also lets a test ask whether any two labels overlap or leave the page.

use crate::font;
use memra_harness::one_line;

/// Width of every figure, in CSS pixels: the width of a README column.
pub(crate) const WIDTH: f64 = 900.0;

/// What a shape stands for; the theme decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// The page's own colour, to clear what lies behind.
    Page,
    /// Titles and values.
    Text,
    /// Secondary text.
    Muted,
    /// Axis lines.
    Axis,
    /// Grid lines.
    Grid,
    /// Shaded regions such as the noise floor.
    Band,
    /// Faster than the rival, beyond the floor.
    Win,
    /// Slower than the rival, beyond the floor.
    Loss,
    /// Not distinguishable from the floor.
    Even,
    /// The n-th engine: 0 is memra.
    Engine(usize),
}

/// Horizontal anchor of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// One thing to draw. Coordinates and lengths are CSS pixels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Line {
        from: (f64, f64),
        to: (f64, f64),
        width: f64,
        ink: Ink,
    },
    Path {
        points: Vec<(f64, f64)>,
        width: f64,
        ink: Ink,
    },
    Rect {
        from: (f64, f64),
        to: (f64, f64),
        ink: Ink,
        alpha: f64,
    },
    /// A disc, or a ring in the page's colour inside when `hollow`.
    Dot {
        at: (f64, f64),
        radius: f64,
        ink: Ink,
        alpha: f64,
        hollow: bool,
    },
    /// A square standing on its corner.
    Diamond {
        at: (f64, f64),
        radius: f64,
        ink: Ink,
    },
    /// `at` is the anchor horizontally and the middle of the line vertically; `size` is the em.
    Text {
        at: (f64, f64),
        text: String,
        size: f64,
        anchor: Anchor,
        ink: Ink,
    },
}

/// A whole figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Scene {
    /// Height in CSS pixels.
    pub(crate) height: f64,
    /// Shapes, back to front.
    pub(crate) shapes: Vec<Shape>,
}

impl Scene {
    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), width: f64, ink: Ink) {
        self.shapes.push(Shape::Line { from, to, width, ink });
    }

    pub(crate) fn rect(&mut self, from: (f64, f64), to: (f64, f64), ink: Ink, alpha: f64) {
        self.shapes.push(Shape::Rect { from, to, ink, alpha });
    }

    pub(crate) fn dot(&mut self, at: (f64, f64), radius: f64, ink: Ink) {
        self.shapes.push(Shape::Dot { at, radius, ink, alpha: 1.0, hollow: false });
    }

    pub(crate) fn text(
        &mut self,
        at: (f64, f64),
        text: impl Into<String>,
        size: f64,
        anchor: Anchor,
        ink: Ink,
    ) {
        let text = one_line(&text.into(), font::LONGEST);
        self.shapes.push(Shape::Text { at, text, size, anchor, ink });
    }
}

/// `text` shortened with an ellipsis in its middle until it is at most `width` pixels wide: the ends of a model's name
/// (family, quantisation) tell more than its middle.
pub(crate) fn fit(text: &str, size: f64, width: f64) -> String {
    let chars: Vec<char> = text.chars().collect();
    if font::width(text, size) <= width {
        return text.to_owned();
    }
    let short = |keep: usize| -> String {
        let head = keep.div_ceil(2);
        chars[..head].iter().chain(&['…']).chain(&chars[chars.len() - (keep - head)..]).collect()
    };
    // Halving finds the most characters that fit: what is shorter is narrower.
    let (mut fits, mut too_many) = (0, chars.len().min(font::LONGEST));
    while fits + 1 < too_many {
        let keep = usize::midpoint(fits, too_many);
        if font::width(&short(keep), size) <= width { fits = keep } else { too_many = keep }
    }
    if fits < 2 { "…".to_owned() } else { short(fits) }
}

/// `text` broken at spaces into lines of at most `width` pixels; a single word that is wider is shortened.
pub(crate) fn wrap(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let joined = lines.last().map(|line| format!("{line} {word}"));
        match joined.filter(|line| font::width(line, size) <= width) {
            Some(line) => {
                lines.pop();
                lines.push(line);
            }
            None => lines.push(fit(word, size, width)),
        }
    }
    lines
}

#[cfg(test)]
pub(crate) mod check {
    use super::*;

    /// Every text's box: (left, top, right, bottom, text).
    fn boxes(scene: &Scene) -> Vec<(f64, f64, f64, f64, &str)> {
        scene
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                Shape::Text { at, text, size, anchor, .. } => {
                    let w = font::width(text, *size);
                    let left = match anchor {
                        Anchor::Start => at.0,
                        Anchor::Middle => at.0 - w / 2.0,
                        Anchor::End => at.0 - w,
                    };
                    Some((left, at.1 - size / 2.0, left + w, at.1 + size / 2.0, text.as_str()))
                }
                _ => None,
            })
            .collect()
    }

    /// Asserts that no label leaves the page, that no two labels overlap, and that every other mark lies on the page.
    pub(crate) fn legible(scene: &Scene) {
        let all = boxes(scene);
        for (i, a) in all.iter().enumerate() {
            let on_page = a.0 >= 0.0 && a.1 >= 0.0 && a.2 <= WIDTH && a.3 <= scene.height;
            assert!(on_page, "`{}` leaves the page: {a:?}, height {}", a.4, scene.height);
            for b in &all[i + 1..] {
                let apart = a.2 <= b.0 || b.2 <= a.0 || a.3 <= b.1 || b.3 <= a.1;
                assert!(apart, "`{}` overlaps `{}`: {a:?} {b:?}", a.4, b.4);
            }
        }
        for shape in &scene.shapes {
            let points = match shape {
                Shape::Line { from, to, .. } | Shape::Rect { from, to, .. } => vec![*from, *to],
                Shape::Path { points, .. } => points.clone(),
                Shape::Dot { at, .. } | Shape::Diamond { at, .. } => vec![*at],
                Shape::Text { .. } => continue,
            };
            for (x, y) in points {
                let on_page = (0.0..=WIDTH).contains(&x) && (0.0..=scene.height).contains(&y);
                assert!(on_page, "{shape:?} leaves the page of height {}", scene.height);
            }
        }
    }

    #[test]
    #[should_panic(expected = "overlaps")]
    fn overlapping_labels_are_seen() {
        let mut scene = Scene { height: 100.0, ..Scene::default() };
        scene.text((10.0, 20.0), "one", 12.0, Anchor::Start, Ink::Text);
        scene.text((40.0, 25.0), "two", 12.0, Anchor::End, Ink::Text);
        legible(&scene);
    }

    #[test]
    #[should_panic(expected = "leaves the page")]
    fn clipped_labels_are_seen() {
        let mut scene = Scene { height: 100.0, ..Scene::default() };
        scene.text((WIDTH - 10.0, 20.0), "clipped", 12.0, Anchor::Start, Ink::Text);
        legible(&scene);
    }

    #[test]
    fn long_text_keeps_both_ends_and_fits() {
        let name = "Qwen3-Coder-480B-A35B-Instruct-UD-Q4_K_XL";
        let short = fit(name, 12.0, 120.0);
        assert!(short.starts_with("Qwen3") && short.ends_with("K_XL") && short.contains('…'), "{short}");
        assert!(font::width(&short, 12.0) <= 120.0);
        assert_eq!(fit("tg128", 12.0, 120.0), "tg128");
        assert_eq!(fit("tg128", 12.0, 1.0), "…");
        let longest = fit(&"v".repeat(60_000), 12.0, 120.0);
        assert!(font::width(&longest, 12.0) <= 120.0 && font::width(&longest, 12.0) > 105.0, "{longest}");
    }

    #[test]
    fn wrapped_lines_fit_and_lose_no_word() {
        let text = "one two three four five six seven";
        let lines = wrap(text, 12.0, 90.0);
        assert!(lines.len() > 1 && lines.iter().all(|l| font::width(l, 12.0) <= 90.0), "{lines:?}");
        assert_eq!(lines.join(" "), text);
    }
}
