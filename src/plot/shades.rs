//! Colours that say how much: of a density, and of a place in an order.

use plotters::style::RGBColor;

/// How many colours a density has; cells of one colour side by side are one mark in the file.
pub(super) const SHADES: usize = 24;

/// From nearly white to dark blue, each step as far from the last to the eye.
pub(super) const BLUES: [RGBColor; 8] = [
    RGBColor(228, 238, 248),
    RGBColor(204, 223, 241),
    RGBColor(163, 205, 229),
    RGBColor(111, 176, 215),
    RGBColor(68, 147, 199),
    RGBColor(34, 113, 181),
    RGBColor(8, 78, 152),
    RGBColor(8, 45, 100),
];

/// From blue through white to red, dark at both ends.
pub(super) const DIVERGING: [RGBColor; 9] = [
    RGBColor(8, 60, 140),
    RGBColor(50, 120, 190),
    RGBColor(122, 178, 218),
    RGBColor(194, 220, 238),
    RGBColor(250, 250, 250),
    RGBColor(248, 212, 196),
    RGBColor(236, 154, 128),
    RGBColor(204, 84, 72),
    RGBColor(150, 20, 40),
];

/// From blue through violet to red; none of them faint on white.
pub(super) const ORDER: [RGBColor; 5] = [
    RGBColor(24, 90, 188),
    RGBColor(84, 70, 178),
    RGBColor(138, 48, 148),
    RGBColor(182, 30, 96),
    RGBColor(208, 28, 28),
];

/// The shade, from 1 to [`SHADES`], of a part of the greatest density; 0 where nothing is drawn.
pub(super) fn shade(part: f64) -> usize {
    match part > 0.0 {
        true => ((part * SHADES as f64).ceil() as usize).clamp(1, SHADES),
        false => 0,
    }
}

/// The colour of a shade.
pub(super) fn blue(shade: usize) -> RGBColor {
    between(&BLUES, shade.saturating_sub(1) as f64 / (SHADES - 1) as f64)
}

/// The colour of the `i`-th of `of` things in an order that goes through these colours.
pub(super) fn ordered(colours: &[RGBColor], i: usize, of: usize) -> RGBColor {
    between(colours, i as f64 / of.saturating_sub(1).max(1) as f64)
}

/// The colour of a part of a range, which is white in the middle.
pub(super) fn diverging(part: f64) -> RGBColor {
    between(&DIVERGING, part)
}

/// The colour at a part of the way from the first of these to the last.
pub(super) fn between(colours: &[RGBColor], part: f64) -> RGBColor {
    let place = part.clamp(0.0, 1.0) * (colours.len() - 1) as f64;
    let below = (place.floor() as usize).min(colours.len().saturating_sub(2));
    let (a, b) = (colours[below], colours[(below + 1).min(colours.len() - 1)]);
    let mix = |a: u8, b: u8| {
        (f64::from(a) + (f64::from(b) - f64::from(a)) * (place - below as f64)).round() as u8
    };
    RGBColor(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_darken_and_orders_redden() {
        let light = |c: RGBColor| u32::from(c.0) + u32::from(c.1) + u32::from(c.2);
        for i in 1..SHADES {
            assert!(light(blue(i)) > light(blue(i + 1)));
        }
        assert_eq!((shade(0.0), shade(f64::NAN), shade(-1.0)), (0, 0, 0));
        assert_eq!((shade(1e-9), shade(1.0), shade(9.0)), (1, SHADES, SHADES));
        let ordered = |i, of| super::ordered(&ORDER, i, of);
        assert_eq!((ordered(0, 5), ordered(4, 5)), (ORDER[0], ORDER[4]));
        assert_eq!(ordered(0, 1), ORDER[0]);
        assert_eq!(ordered(0, 0), ORDER[0]);
        assert_eq!(super::ordered(&ORDER[..1], 3, 5), ORDER[0]);
    }
}
