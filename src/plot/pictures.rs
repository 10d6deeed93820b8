//! Small pictures side by side, as an image in HTML.

use flate2::{Compression, write::ZlibEncoder};
use std::io::Write;

/// How high a picture is shown, in pixels.
const HEIGHT: usize = 56;

/// Pictures of this width and height, three numbers a pixel (red, green, blue), row by row: the least number of all is black, the greatest white.
pub fn pictures(all: &[Vec<f64>], (width, height): (usize, usize)) -> String {
    let finite = || all.iter().flatten().filter(|x| x.is_finite());
    let low = finite().copied().fold(f64::INFINITY, f64::min);
    let high = finite().copied().fold(f64::NEG_INFINITY, f64::max);
    let scale = if high > low {
        255.0 / (high - low)
    } else {
        0.0
    };
    // A column of grey between two pictures.
    let wide = (all.len() * (width + 1)).saturating_sub(1);
    let mut rows = Vec::with_capacity(height * (3 * wide + 1));
    for y in 0..height {
        // No filter.
        rows.push(0);
        for (k, one) in all.iter().enumerate() {
            if k > 0 {
                rows.extend([127; 3]);
            }
            // The cast saturates and takes NaN to zero.
            let pixels = one[3 * width * y..][..3 * width].iter();
            rows.extend(pixels.map(|x| ((x - low) * scale).round() as u8));
        }
    }
    let shown = (HEIGHT / height).max(1);
    format!(
        "<img class=\"ergodic-pictures\" alt=\"the first {} inputs\" width=\"{}\" style=\"max-width:100%;height:auto;image-rendering:pixelated\" src=\"data:image/png;base64,{}\"/>",
        all.len(),
        wide * shown,
        base64(&png(wide, height, &rows))
    )
}

/// A PNG file of eight bits a colour.
fn png(width: usize, height: usize, rows: &[u8]) -> Vec<u8> {
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut part = |name: &[u8; 4], content: &[u8]| {
        let named = [&name[..], content].concat();
        out.extend((content.len() as u32).to_be_bytes());
        out.extend(&named);
        out.extend(crc32fast::hash(&named).to_be_bytes());
    };
    let sides = [width as u32, height as u32].map(u32::to_be_bytes).concat();
    part(b"IHDR", &[&sides[..], &[8, 2, 0, 0, 0]].concat());
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing to a vector does not fail.
    let _ = packed.write_all(rows);
    part(b"IDAT", &packed.finish().unwrap_or_default());
    part(b"IEND", &[]);
    out
}

/// Bytes as RFC 4648 writes them.
pub fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits = (0..3).fold(0, |b, k| b << 8 | usize::from(*three.get(k).unwrap_or(&0)));
        for k in 0..4 {
            out.push(match k <= three.len() {
                true => LETTERS[bits >> (18 - 6 * k) & 63] as char,
                false => '=',
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        for (text, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }

    #[test]
    fn pictures_stand_side_by_side() {
        let html = pictures(&[vec![0.0; 48], vec![1.0; 48]], (4, 4));
        assert!(
            html.contains("width=\"126\"") && html.contains("base64,iVBORw0KGgo"),
            "{html}"
        );
        let file = png(9, 4, &[0; 4 * 28]);
        assert_eq!(file[16..24], [0, 0, 0, 9, 0, 0, 0, 4]);
        assert!(file.ends_with(b"IEND\xaeB`\x82"));
    }
}
