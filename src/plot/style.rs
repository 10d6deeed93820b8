//! How a figure is drawn: its size on paper, its letters, its colours, and where its legend is.

use super::shades;
use crate::error::Result;
use anyhow::{bail, ensure};
use plotters::style::RGBColor;

/// Okabe and Ito's colours, told apart with any colour vision; yellow, faint on white, is last.
const OKABE_ITO: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(240, 228, 66),
];

/// Matplotlib's viridis, without its faint end.
const VIRIDIS: [RGBColor; 6] = [
    RGBColor(68, 1, 84),
    RGBColor(65, 68, 135),
    RGBColor(42, 120, 142),
    RGBColor(34, 168, 132),
    RGBColor(94, 201, 98),
    RGBColor(187, 223, 39),
];

/// For print without colours.
const GREY: [RGBColor; 4] = [
    RGBColor(0, 0, 0),
    RGBColor(120, 120, 120),
    RGBColor(60, 60, 60),
    RGBColor(170, 170, 170),
];

/// Names of palettes.
pub const PALETTES: [&str; 3] = ["okabe_ito", "viridis", "grey"];

/// Where the legend of a panel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Legend {
    /// At the right of the frame.
    #[default]
    Beside,
    /// In rows under the frame.
    Below,
    /// Nowhere.
    None,
}

impl Legend {
    /// Names, as scripts have them.
    pub const NAMES: [&str; 3] = ["beside", "below", "none"];

    /// The place of this name, if it is one.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Beside, Self::Below, Self::None];
        let at = Self::NAMES.iter().position(|own| *own == name)?;
        Some(all[at])
    }
}

/// How a figure is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Style {
    /// Width and height of the whole figure, in millimetres. None: 700 by 450 pixels for each panel.
    pub size: Option<(f64, f64)>,
    /// Size of the names of axes, in points, of a figure that has a size; numbers at ticks are a seventh smaller.
    pub font_size: f64,
    /// Where legends are.
    pub legend: Legend,
    /// Colours of series, in turn, and from the first to the last where they are in an order. Empty: those of Okabe and Ito, and from blue to red.
    pub palette: Vec<[u8; 3]>,
    /// Light on dark.
    pub dark: bool,
    /// Dots per inch of a PNG.
    pub dpi: f64,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            size: None,
            font_size: 9.0,
            legend: Legend::Beside,
            palette: Vec::new(),
            dark: false,
            dpi: 300.0,
        }
    }
}

impl Style {
    /// Names of presets.
    pub const PRESETS: [&str; 3] = ["screen", "paper", "slide"];

    /// One column of a journal: 86 mm by 64 mm, letters of 8 points.
    pub fn paper() -> Self {
        Self {
            size: Some((86.0, 64.0)),
            font_size: 8.0,
            legend: Legend::Below,
            ..Self::default()
        }
    }

    /// Most of a slide: 254 mm by 143 mm, letters of 20 points.
    pub fn slide() -> Self {
        Self {
            size: Some((254.0, 143.0)),
            font_size: 20.0,
            ..Self::default()
        }
    }

    /// The preset of this name, if there is one.
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "screen" => Some(Self::default()),
            "paper" => Some(Self::paper()),
            "slide" => Some(Self::slide()),
            _ => None,
        }
    }

    /// The colours of a palette.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn colours(name: &str) -> Result<Vec<[u8; 3]>> {
        let of = |all: &[RGBColor]| all.iter().map(|c| [c.0, c.1, c.2]).collect();
        Ok(match name {
            "okabe_ito" => of(&OKABE_ITO),
            "viridis" => of(&VIRIDIS),
            "grey" => of(&GREY),
            _ => bail!(
                "there is no palette '{name}'; take one of {}, or an array of colours such as [\"#1f77b4\", \"#d62728\"]",
                PALETTES.join(", ")
            ),
        })
    }

    /// The colour that `#rrggbb` stands for.
    ///
    /// # Errors
    /// If it stands for none.
    pub fn colour(text: &str) -> Result<[u8; 3]> {
        let digits = text
            .strip_prefix('#')
            .filter(|d| d.len() == 6 && d.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(digits) = digits else {
            bail!(
                "'{text}' is no colour; write it as \"#1f77b4\": red, green and blue, two hexadecimal digits each"
            );
        };
        let part = |k: usize| u8::from_str_radix(&digits[2 * k..2 * k + 2], 16);
        Ok([part(0)?, part(1)?, part(2)?])
    }

    /// Fail if nothing can be drawn in it.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some((width, height)) = self.size {
            ensure!(
                [width, height].iter().all(|x| (10.0..=2000.0).contains(x)),
                "a figure of {width} mm by {height} mm: width and height must be from 10 to 2000"
            );
        }
        ensure!(
            (2.0..=200.0).contains(&self.font_size),
            "font_size is {}, but must be from 2 to 200 (points)",
            self.font_size
        );
        ensure!(
            (20.0..=2400.0).contains(&self.dpi),
            "dpi is {}, but must be from 20 to 2400",
            self.dpi
        );
        Ok(())
    }

    /// The colours of series that are told apart by them.
    pub(super) fn in_turn(&self) -> Vec<RGBColor> {
        match self.palette.is_empty() {
            true => OKABE_ITO.to_vec(),
            false => self.own(),
        }
    }

    /// Those of series in an order, from the first to the last.
    pub(super) fn in_order(&self) -> Vec<RGBColor> {
        match self.palette.is_empty() {
            true => shades::ORDER.to_vec(),
            false => self.own(),
        }
    }

    fn own(&self) -> Vec<RGBColor> {
        self.palette
            .iter()
            .map(|[r, g, b]| RGBColor(*r, *g, *b))
            .collect()
    }
}

/// The drawing in light on dark: lightness is turned over, hues stay. What `filter: invert(.93) hue-rotate(180deg)` does in a browser.
pub(super) fn darkened(svg: &str) -> String {
    let mut parts = svg.split("\"#");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        out.push_str("\"#");
        match part
            .get(..6)
            .and_then(|hex| u32::from_str_radix(hex, 16).ok())
        {
            Some(colour) if part[6..].starts_with('"') => {
                let [r, g, b] = [16, 8, 0].map(|shift| f64::from((colour >> shift) & 255) / 255.0);
                let [r, g, b] = turned([r, g, b].map(|x| 0.93 - 0.86 * x));
                let byte = |x: f64| (x.clamp(0.0, 1.0) * 255.0).round() as u8;
                out.push_str(&format!(
                    "{:02X}{:02X}{:02X}{}",
                    byte(r),
                    byte(g),
                    byte(b),
                    &part[6..]
                ));
            }
            _ => out.push_str(part),
        }
    }
    out
}

/// The opposite hue, as CSS's hue-rotate(180deg) has it (Filter Effects Module, hueRotate).
fn turned([r, g, b]: [f64; 3]) -> [f64; 3] {
    let luminance = 0.213 * r + 0.715 * g + 0.072 * b;
    [r, g, b].map(|x| 2.0 * luminance - x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dark_is_light_turned_over() {
        let drawn = darkened("<a fill=\"#FFFFFF\" b=\"#1E1E1E\" c=\"#0072B2\" d=\"#nothing\"/>");
        let colours: Vec<_> = drawn.split("\"#").skip(1).map(|p| &p[..6]).collect();
        assert_eq!(colours[0], "121212");
        // Text is light, and blue stays blue: more of it than of red.
        assert!(
            colours[1] > "D0" && colours[2][4..] > colours[2][..2],
            "{colours:?}"
        );
        assert_eq!(colours[3], "nothin");
    }

    #[test]
    fn colours_and_palettes_have_names() {
        assert_eq!(Style::colour("#1f77B4").unwrap(), [31, 119, 180]);
        for odd in ["1f77b4", "#1f77b", "#1f77b4a", "#+f77b4", "red", "#ü2345"] {
            assert!(
                Style::colour(odd)
                    .unwrap_err()
                    .to_string()
                    .contains("is no colour"),
                "{odd}"
            );
        }
        for name in PALETTES {
            assert!(Style::colours(name).unwrap().len() >= 4);
        }
        for name in Style::PRESETS {
            Style::preset(name).unwrap().check().unwrap();
        }
        assert!(Style::preset("poster").is_none());
    }
}
