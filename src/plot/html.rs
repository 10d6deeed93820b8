//! A drawing as an image in HTML, as notebooks take it.
//!
//! JupyterLab shows SVG as an image of its own width, which is cut off where the cell is narrower. An image in HTML fits, and stays where a notebook
//! is not trusted and loses its styles: then a figure is the white card that it is drawn on.

use crate::table::escape;
use std::fmt::Write;

/// Dark notebooks turn light to dark and dark to light, with the same hues, as reports do.
const STYLE: &str = "<style>body[data-jp-theme-light=\"false\"] .ergodic-figure img,body.vscode-dark .ergodic-figure img\
    {filter:invert(.93) hue-rotate(180deg)}</style>";

/// An SVG document as an image, with a text for those who cannot see it.
pub(super) fn image(svg: &str, text: &str) -> String {
    let text = if text.is_empty() { "figure" } else { text };
    format!(
        "{STYLE}<div class=\"ergodic-figure\"><img alt=\"{}\" style=\"max-width:100%;height:auto\" src=\"{}\"/></div>",
        escape(text),
        address(svg)
    )
}

/// An SVG document as the address of an image, to stand in quotes.
pub fn address(svg: &str) -> String {
    let mut out = String::with_capacity(svg.len() + svg.len() / 4);
    out.push_str("data:image/svg+xml;charset=utf-8,");
    for c in svg.chars() {
        match c {
            '%' | '#' | '"' | '<' | '>' | '&' | '\'' | '\n' | '\r' | '\t' => {
                let _ = write!(out, "%{:02X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}
