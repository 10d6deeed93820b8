//! Functions of each element over rows, with operands that are repeated.

use super::element::{Element, slopes, values};
use super::view::View;
use crate::update::add;

/// How many elements are done at a time.
const CHUNK: usize = 2048;

/// How the numbers of an operand are repeated to be as many as the result has.
#[derive(Debug, Clone, PartialEq)]
pub enum Spread {
    /// They are as many.
    Same,
    /// There is one.
    One,
    /// All of them, again and again.
    Again,
    /// As this list says.
    Listed(Vec<u32>),
}

impl Spread {
    /// Where an element comes from, of so many.
    pub fn at(&self, element: usize, width: usize) -> usize {
        match self {
            Spread::Same => element,
            Spread::One => 0,
            Spread::Again => element % width,
            Spread::Listed(at) => at[element] as usize,
        }
    }

    fn fill(&self, from: &[f32], out: &mut [f32]) {
        match self {
            Spread::Same => out.copy_from_slice(from),
            Spread::One => out.fill(from[0]),
            Spread::Again => out
                .chunks_exact_mut(from.len())
                .for_each(|o| o.copy_from_slice(from)),
            Spread::Listed(at) => out
                .iter_mut()
                .zip(at)
                .for_each(|(o, i)| *o = from[*i as usize]),
        }
    }

    /// Add up what was repeated.
    fn gather(&self, from: &[f32], out: &mut [f32]) {
        match self {
            Spread::Same => add(out, from),
            Spread::One => out[0] += from.iter().sum::<f32>(),
            Spread::Again => from.chunks_exact(out.len()).for_each(|f| add(out, f)),
            Spread::Listed(at) => from
                .iter()
                .zip(at)
                .for_each(|(f, i)| out[*i as usize] += *f),
        }
    }
}

/// Whether all rows can be taken as one.
fn as_one(spreads: &[Spread], of: &[View]) -> bool {
    spreads.iter().zip(of).all(|(s, v)| match s {
        Spread::Same => v.stride > 0,
        Spread::One => v.stride == 0,
        _ => false,
    })
}

/// The elements of operands that belong to one row, or to a piece of all rows taken as one.
struct Elements<'a> {
    spreads: &'a [Spread],
    of: &'a [View<'a>],
    /// Those that are repeated.
    room: Vec<Vec<f32>>,
}

impl<'a> Elements<'a> {
    fn new(spreads: &'a [Spread], of: &'a [View<'a>], width: usize) -> Self {
        let mut room: Vec<_> = spreads
            .iter()
            .map(|s| match s {
                Spread::Same => Vec::new(),
                _ => vec![0.0; width],
            })
            .collect();
        // What all rows share is repeated once.
        for ((s, v), out) in spreads.iter().zip(of).zip(&mut room) {
            if v.stride == 0 && *s != Spread::Same {
                s.fill(&v.data[..v.width], out);
            }
        }
        Self { spreads, of, room }
    }

    /// Those of a row.
    fn row(&mut self, r: usize) -> [&[f32]; 3] {
        for ((s, v), out) in self.spreads.iter().zip(self.of).zip(&mut self.room) {
            if v.stride > 0 && *s != Spread::Same {
                s.fill(v.row(r), out);
            }
        }
        let mut out = [&[][..]; 3];
        for (i, (s, v)) in self.spreads.iter().zip(self.of).enumerate() {
            out[i] = match s {
                Spread::Same => v.row(r),
                _ => &self.room[i],
            };
        }
        out
    }

    /// Those of a piece of all rows taken as one.
    fn piece(&self, start: usize, count: usize) -> [&[f32]; 3] {
        let mut out = [&[][..]; 3];
        for (i, (s, v)) in self.spreads.iter().zip(self.of).enumerate() {
            out[i] = match s {
                Spread::Same => &v.data[start..start + count],
                _ => &self.room[i][..count],
            };
        }
        out
    }
}

/// Compute the function of all elements.
pub fn forward_elements(f: Element, spreads: &[Spread], rows: usize, of: &[View], out: &mut [f32]) {
    if rows == 0 {
        return;
    }
    let width = out.len() / rows;
    if as_one(spreads, of) {
        let all = Elements::new(spreads, of, CHUNK.min(out.len()));
        for (k, out) in out.chunks_mut(CHUNK).enumerate() {
            values(f, all.piece(k * CHUNK, out.len()), out);
        }
        return;
    }
    let mut all = Elements::new(spreads, of, width);
    for (r, out) in out.chunks_exact_mut(width).enumerate() {
        values(f, all.row(r), out);
    }
}

/// Put the gradient with respect to an operand in `target`, if that has as many numbers as the result and all rows can be taken as one; whether it did.
#[allow(clippy::too_many_arguments)]
pub fn first_elements(
    f: Element,
    spreads: &[Spread],
    which: usize,
    rows: usize,
    of: &[View],
    y: &[f32],
    delta: &[f32],
    target: &mut [f32],
) -> bool {
    if rows == 0 || spreads[which] != Spread::Same || !as_one(spreads, of) {
        return false;
    }
    let all = Elements::new(spreads, of, CHUNK.min(delta.len()));
    for (k, delta) in delta.chunks(CHUNK).enumerate() {
        let at = k * CHUNK..k * CHUNK + delta.len();
        let of = all.piece(at.start, delta.len());
        slopes(f, which, of, &y[at.clone()], delta, &mut target[at]);
    }
    true
}

/// Add the gradient with respect to an operand to `target`, whose rows are `stride` apart.
#[allow(clippy::too_many_arguments)]
pub fn backward_elements(
    f: Element,
    spreads: &[Spread],
    which: usize,
    rows: usize,
    of: &[View],
    y: &[f32],
    delta: &[f32],
    target: &mut [f32],
    stride: usize,
) {
    if rows == 0 {
        return;
    }
    let width = delta.len() / rows;
    let own = of[which].width;
    if as_one(spreads, of) {
        let all = Elements::new(spreads, of, CHUNK.min(delta.len()));
        let mut found = vec![0.0; CHUNK.min(delta.len())];
        for (k, delta) in delta.chunks(CHUNK).enumerate() {
            let start = k * CHUNK;
            let found = &mut found[..delta.len()];
            let y = &y[start..start + delta.len()];
            slopes(f, which, all.piece(start, delta.len()), y, delta, found);
            match spreads[which] {
                Spread::Same => add(&mut target[start..start + delta.len()], found),
                _ => target[0] += found.iter().sum::<f32>(),
            }
        }
        return;
    }
    let mut all = Elements::new(spreads, of, width);
    let mut found = vec![0.0; width];
    for (r, delta) in delta.chunks_exact(width).enumerate() {
        let y = &y[r * width..][..width];
        slopes(f, which, all.row(r), y, delta, &mut found);
        spreads[which].gather(&found, &mut target[r * stride..][..own]);
    }
}
