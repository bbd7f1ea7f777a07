//! Replays a [`Scene`] through plotters' backends, as SVG text or PNG bytes.

use crate::{
    Error, font,
    scene::{Anchor, Ink, Scene, Shape, WIDTH},
    theme::Theme,
};
use memra_harness::one_line;
use plotters::{
    backend::{BitMapBackend, DrawingBackend, SVGBackend},
    style::{
        Color, FontDesc, FontFamily, FontStyle, RGBAColor, ShapeStyle, TextStyle,
        text_anchor::{HPos, Pos, VPos},
    },
};

/// Backend units a CSS pixel: the SVG is drawn on a finer grid than its page because backends round to whole units, the
/// bitmap on a finer one still, which is then averaged down to [`PNG_SCALE`] for smooth edges.
const SVG_SCALE: u32 = 4;
const PNG_SCALE: u32 = 2;
const OVERSAMPLE: u32 = 2;

/// How a backend places text: it takes `size = em × size_per_em` and draws the baseline off the given point; `lift` moves
/// the point, in em, so that digits stand centred on it.
struct TextMetrics {
    size_per_em: f64,
    lift: f64,
}

/// plotters writes font-size = size / 1.24, and centres by half the x-height where digits want half their own height.
const SVG_TEXT: TextMetrics = TextMetrics { size_per_em: 1.24, lift: 0.09 };
/// The ab_glyph renderer puts the baseline 0.097 size below the point.
const PNG_TEXT: TextMetrics = TextMetrics { size_per_em: font::LINE_PER_EM, lift: 0.25 };

/// The SVG text of a scene. `title` is what a screen reader says.
///
/// # Errors
/// When the backend refuses a shape.
pub(crate) fn svg(scene: &Scene, theme: Theme, title: &str) -> Result<String, Error> {
    let mut drawn = String::new();
    let mut backend = SVGBackend::with_string(&mut drawn, pixels(scene, SVG_SCALE));
    replay(scene, theme, SVG_SCALE, &SVG_TEXT, &mut backend)?;
    drop(backend);
    // The backend's own root element gives the fine grid as the picture's size; ours gives the page's.
    let (_, shapes) = drawn.split_once('\n').unwrap_or_default();
    let (w, h) = pixels(scene, SVG_SCALE);
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{}\" viewBox=\"0 0 {w} {h}\" \
         role=\"img\">\n<title>{}</title>\n{shapes}",
        scene.height.ceil(),
        one_line(title, 500).replace('&', "&amp;").replace('<', "&lt;"),
    ))
}

/// The PNG of a scene, at [`PNG_SCALE`] pixels a CSS pixel.
///
/// # Errors
/// When the backend refuses a shape.
pub(crate) fn png(scene: &Scene, theme: Theme) -> Result<Vec<u8>, Error> {
    let fine = pixels(scene, PNG_SCALE * OVERSAMPLE);
    let mut canvas = vec![0u8; fine.0 as usize * fine.1 as usize * 3];
    let mut backend = BitMapBackend::with_buffer(&mut canvas, fine);
    replay(scene, theme, PNG_SCALE * OVERSAMPLE, &PNG_TEXT, &mut backend)?;
    drop(backend);
    let (width, height) = pixels(scene, PNG_SCALE);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    // Flat colours: filters only make them larger.
    encoder.set_filter(png::Filter::NoFilter);
    let mut writer = encoder.write_header().map_err(fail)?;
    writer.write_image_data(&averaged(&canvas, fine.0 as usize)).map_err(fail)?;
    writer.finish().map_err(fail)?;
    Ok(bytes)
}

fn fail(error: impl std::fmt::Display) -> Error {
    Error::Draw(error.to_string())
}

fn pixels(scene: &Scene, scale: u32) -> (u32, u32) {
    (WIDTH as u32 * scale, scene.height.ceil() as u32 * scale)
}

/// An RGB picture of `width` pixels a row, each square of [`OVERSAMPLE`]² pixels averaged into one.
fn averaged(rgb: &[u8], width: usize) -> Vec<u8> {
    const N: usize = OVERSAMPLE as usize;
    let mut out = Vec::with_capacity(rgb.len() / (N * N));
    for rows in rgb.chunks_exact(width * 3 * N) {
        for x in (0..width).step_by(N) {
            for channel in 0..3 {
                let square = (0..N * N).map(|i| rows[((i / N) * width + x + i % N) * 3 + channel]);
                let sum: usize = square.map(usize::from).sum();
                out.push(((sum + N * N / 2) / (N * N)) as u8);
            }
        }
    }
    out
}

fn replay<B: DrawingBackend>(
    scene: &Scene,
    theme: Theme,
    scale: u32,
    metrics: &TextMetrics,
    backend: &mut B,
) -> Result<(), Error> {
    font::register()?;
    let scale = f64::from(scale);
    let at = |(x, y): (f64, f64)| ((x * scale).round() as i32, (y * scale).round() as i32);
    let length = |v: f64| (v * scale).round().max(1.0) as u32;
    let (w, h) = backend.get_size();
    backend.draw_rect((0, 0), (w as i32, h as i32), &theme.color(Ink::Page).filled(), true).map_err(fail)?;
    let stroke = |ink, width| ShapeStyle::from(theme.color(ink)).stroke_width(length(width));
    for shape in &scene.shapes {
        match shape {
            Shape::Line { from, to, width, ink } => {
                backend.draw_line(at(*from), at(*to), &stroke(*ink, *width)).map_err(fail)?;
            }
            Shape::Path { points, width, ink } => {
                backend.draw_path(points.iter().map(|p| at(*p)), &stroke(*ink, *width)).map_err(fail)?;
            }
            Shape::Rect { from, to, ink, alpha } => {
                backend
                    .draw_rect(at(*from), at(*to), &theme.color(*ink).mix(*alpha).filled(), true)
                    .map_err(fail)?;
            }
            Shape::Dot { at: centre, radius, ink, alpha, hollow } => {
                let fill: RGBAColor = theme.color(*ink).mix(*alpha);
                backend.draw_circle(at(*centre), length(*radius), &fill.filled(), true).map_err(fail)?;
                if *hollow {
                    let inner = length(radius - 1.5);
                    backend
                        .draw_circle(at(*centre), inner, &theme.color(Ink::Page).filled(), true)
                        .map_err(fail)?;
                }
            }
            Shape::Diamond { at: (x, y), radius: r, ink } => {
                let corners = [(*x, y - r), (x + r, *y), (*x, y + r), (x - r, *y)];
                backend.fill_polygon(corners.map(at), &theme.color(*ink).filled()).map_err(fail)?;
            }
            Shape::Text { at: (x, y), text, size, anchor, ink } => {
                let font = FontDesc::new(
                    FontFamily::SansSerif,
                    size * metrics.size_per_em * scale,
                    FontStyle::Normal,
                );
                let h = match anchor {
                    Anchor::Start => HPos::Left,
                    Anchor::Middle => HPos::Center,
                    Anchor::End => HPos::Right,
                };
                let color = theme.color(*ink);
                let style = TextStyle::from(font).color(&color).pos(Pos::new(h, VPos::Center));
                backend.draw_text(text, &style, at((*x, y + metrics.lift * size))).map_err(fail)?;
            }
        }
    }
    backend.present().map_err(fail)
}
