//! Writing a figure to a file, as SVG, PDF or PNG: complete or not at all.

use super::Figure;
use crate::error::Result;
use crate::memory;
use crate::store::write_atomic;
use anyhow::{Context, anyhow, bail, ensure};
use resvg::tiny_skia::{Pixmap, Transform};
use std::path::Path;
use std::sync::{Arc, LazyLock};
use svg2pdf::usvg::{self, fontdb};

/// DejaVu Sans, so that a figure has the same letters on every machine.
const FONT: &[u8] = include_bytes!("font.ttf");

/// Pixels per inch of an SVG (CSS).
const INCH: f64 = 96.0;

/// Pixels of a PNG along its longer side at most.
const MOST_PIXELS: f64 = 20_000.0;

static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(FONT.to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    Arc::new(fonts)
});

/// Draws `figure` and moves it to `path`, making missing folders.
pub(super) fn save(figure: &Figure, path: &Path) -> Result<()> {
    let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    let drawn = match ending.as_deref() {
        Some("svg") => figure.to_svg().map(String::into_bytes),
        Some("pdf") => figure.to_pdf(),
        Some("png") => figure.to_png(),
        Some(other) => bail!(
            "cannot save the figure '{}': the ending '.{other}' is not supported; supported: .svg, .pdf, .png",
            path.display(),
        ),
        None => bail!(
            "cannot save the figure '{}': the name has no ending; supported: .svg, .pdf, .png",
            path.display()
        ),
    };
    let drawn = drawn.with_context(|| format!("cannot draw the figure '{}'", path.display()))?;
    write_atomic(path, &drawn)
        .with_context(|| format!("cannot write the figure '{}'", path.display()))
}

fn parsed(svg: &str) -> Result<usvg::Tree> {
    let options = usvg::Options {
        fontdb: FONTS.clone(),
        font_family: "DejaVu Sans".into(),
        ..usvg::Options::default()
    };
    Ok(usvg::Tree::from_str(svg, &options)?)
}

/// An SVG document as PDF, of its size.
pub(super) fn pdf(svg: &str) -> Result<Vec<u8>> {
    let page = svg2pdf::PageOptions { dpi: INCH as f32 };
    svg2pdf::to_pdf(&parsed(svg)?, svg2pdf::ConversionOptions::default(), page)
        .map_err(|error| anyhow!("{error}"))
}

/// An SVG document as PNG.
pub(super) fn png(svg: &str, dpi: f64) -> Result<Vec<u8>> {
    let tree = parsed(svg)?;
    let scale = dpi / INCH;
    let [width, height] = [tree.size().width(), tree.size().height()]
        .map(|x| (f64::from(x) * scale).round().max(1.0));
    ensure!(
        width.max(height) <= MOST_PIXELS,
        "{width} by {height} pixels at {dpi} dpi; at most {MOST_PIXELS} along a side"
    );
    memory::check_elements::<[u8; 4]>(
        &[width as usize, height as usize],
        "a figure of so many pixels",
    )?;
    let mut page = Pixmap::new(width as u32, height as u32)
        .ok_or_else(|| anyhow!("there is no memory for {width} by {height} pixels"))?;
    resvg::render(
        &tree,
        Transform::from_scale(scale as f32, scale as f32),
        &mut page.as_mut(),
    );
    Ok(page.encode_png()?)
}

#[cfg(test)]
mod tests {
    use super::FONT;

    #[test]
    fn the_font_has_every_character_of_our_labels() {
        let font = ttf_parser::Face::parse(FONT, 0).unwrap();
        let labels =
            "⟨|w|²⟩ 10⁻⁵ 3.2×10⁺⁰¹²³⁴⁵⁶⁷⁸⁹ λ̂ R̂ τ χ² ∇U Δ ± ≤ ≥ … – − → ∞ q₀ μ σ π β γ θ Λ äöüßéçñ";
        for c in labels.chars().chain(' '..='~') {
            assert!(font.glyph_index(c).is_some(), "{c}");
        }
        assert!(font.glyph_index('漢').is_none());
    }
}
