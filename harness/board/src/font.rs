//! The one font of the PNG pictures, which also measures the text of both formats.
//!
//! DejaVu Sans is among the widest of the usual sans-serif faces, so what fits in it fits in whatever face a browser takes
//! for the SVG's generic family.

use crate::Error;
use plotters::style::{FontDesc, FontFamily, FontStyle, register_font};
use std::sync::OnceLock;

const BYTES: &[u8] = include_bytes!("../assets/DejaVuSans.ttf");

/// Height of DejaVu's ascent and descent together, in em: the bitmap backend scales a font by this height.
pub(crate) const LINE_PER_EM: f64 = 1.164;

/// Characters that no line of a page has room for.
pub(crate) const LONGEST: usize = 500;

/// Makes the font known to plotters under the generic name that the figures use.
///
/// # Errors
/// When plotters cannot read the font, which would be a fault of the build.
pub(crate) fn register() -> Result<(), Error> {
    static DONE: OnceLock<bool> = OnceLock::new();
    let done =
        *DONE.get_or_init(|| register_font(FontFamily::SansSerif.as_str(), FontStyle::Normal, BYTES).is_ok());
    if done { Ok(()) } else { Err(Error::Draw("the built-in font DejaVuSans.ttf cannot be read".to_owned())) }
}

/// Width of `text` in pixels at `size` pixels an em; that of more than [`LONGEST`] characters is not measured: infinite.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    // Measured large, since the backend cuts the width to whole pixels.
    const SCALE: f64 = 16.0;
    if text.chars().nth(LONGEST).is_some() {
        return f64::INFINITY;
    }
    if register().is_err() {
        return text.chars().count() as f64 * size;
    }
    let font = FontDesc::new(FontFamily::SansSerif, size * LINE_PER_EM * SCALE, FontStyle::Normal);
    font.box_size(text).map_or(text.chars().count() as f64 * size, |(w, _)| f64::from(w + 1) / SCALE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_follow_the_font() {
        assert!(register().is_ok());
        // DejaVu Sans: every digit advances 1303 of 2048 units.
        let expected = 4.0 * 1303.0 / 2048.0 * 12.0;
        assert!((width("1234", 12.0) - expected).abs() < 0.3, "{} against {expected}", width("1234", 12.0));
        assert!(width("WWWW", 12.0) > width("iiii", 12.0));
    }
}
