//! Colours. The hues are those of Okabe and Ito's colour-blind-safe set, lightened for the dark page.

use crate::scene::Ink;
use plotters::style::RGBColor;

/// Which page a picture is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    Light,
    Dark,
}

const fn rgb(hex: u32) -> RGBColor {
    RGBColor((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
}

/// (light, dark) by engine; later engines reuse the list from its second entry.
const ENGINES: [(u32, u32); 6] = [
    (0x0072B2, 0x56B4E9),
    (0xD55E00, 0xF2884B),
    (0x009E73, 0x2BC79A),
    (0xA8588C, 0xDE97C3),
    (0xB07800, 0xE6B33D),
    (0x5B6770, 0xA9B4BC),
];

const PAGE: (u32, u32) = (0xFFFFFF, 0x0D1117);

impl Theme {
    pub(crate) const ALL: [Theme; 2] = [Theme::Light, Theme::Dark];

    /// What the theme adds to a file's stem.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Theme::Light => "",
            Theme::Dark => "-dark",
        }
    }

    fn pick(self, (light, dark): (u32, u32)) -> RGBColor {
        match self {
            Theme::Light => rgb(light),
            Theme::Dark => rgb(dark),
        }
    }

    /// The colour of an ink on this page.
    pub(crate) fn color(self, ink: Ink) -> RGBColor {
        self.pick(match ink {
            Ink::Page => PAGE,
            Ink::Text => (0x1F2328, 0xE6EDF3),
            Ink::Muted => (0x59636E, 0x9AA4AF),
            Ink::Axis => (0x818B98, 0x6E7681),
            Ink::Grid => (0xE4E8EC, 0x252C35),
            Ink::Band => (0xE9EDF1, 0x222A34),
            Ink::Win => ENGINES[0],
            Ink::Loss => ENGINES[1],
            Ink::Even => (0x6E7781, 0x9198A1),
            Ink::Engine(0) => ENGINES[0],
            Ink::Engine(n) => ENGINES[1 + (n - 1) % (ENGINES.len() - 1)],
        })
    }
}
