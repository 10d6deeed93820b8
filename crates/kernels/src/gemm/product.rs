//! A product, cut into tiles: how far sums go at a time, and which factors are copied so that a tile finds its numbers side by side.

use super::tile::{Set, Tile};
use super::transpose::transpose;
use super::{Matrix, Part};
use std::cell::RefCell;
use std::ops::Range;

/// Terms that a tile adds at a time: so many rows of the right factor, as wide as a tile, stay in cache while tiles go down the left factor.
const TERMS: usize = 512;

/// Numbers of the left factor that tiles go down at a time, and which stay in cache until the next columns.
const AT_A_TIME: usize = 11 * STRETCH * TERMS;

/// Rows of the left factor for which it pays to copy the right one where its rows lie far apart.
const WORTH_COPYING: usize = 24;

/// Columns of the right factor for which it pays to copy the left one where the terms of a row lie far apart.
const WORTH_COPYING_LEFT: usize = 64;

/// Rows of a result that are finished at a time: few enough to be in the nearest cache when what follows reads them, many enough for the first of them
/// to have arrived there.
const STRETCH: usize = 48;

/// Numbers of a cache line.
const LINE: usize = 16;

/// Numbers between the rows of a factor from which on they lie far apart: each is on a page of its own.
const FAR: usize = 1024;

thread_local! {
    /// Copies of a part of the left and of the right factor.
    static ROOM: RefCell<[Vec<f32>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

/// So many numbers of a room, from the beginning of a cache line.
fn numbers(room: &mut Vec<f32>, count: usize) -> &mut [f32] {
    if room.len() < count + LINE {
        room.resize(count + LINE, 0.0);
    }
    let first = room.as_ptr().align_offset(4 * LINE).min(LINE);
    &mut room[first..first + count]
}

/// The parts of `0..length`, about equal and at most `most` long.
fn cut(length: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    let count = length.div_ceil(most);
    (0..count).map(move |i| i * length / count..(i + 1) * length / count)
}

/// The matrix, with the numbers of a row side by side; copied where they are not, or where its rows lie far apart and are wanted for many others.
fn side_by_side<'r>(b: Matrix<'r>, uses: usize, room: &'r mut Vec<f32>) -> Matrix<'r> {
    let [k, n] = b.shape();
    let is_near = b.row_stride < FAR || uses < WORTH_COPYING;
    if n == 1 || (b.column_stride == 1 && is_near) {
        return b;
    }
    let width = n.next_multiple_of(LINE);
    let copy = numbers(room, k * width);
    match b.column_stride {
        1 => {
            for (p, row) in copy.chunks_exact_mut(width).take(k).enumerate() {
                row[..n].copy_from_slice(&b.data[p * b.row_stride..][..n]);
            }
        }
        // One of the two strides is 1.
        stride => transpose(b.data, stride, n, k, copy, width),
    }
    Matrix::strided(copy, k, n, width)
}

/// `out = a·b`, or `out += a·b` when `add`, with these tiles; `then` sees every part of the result as soon as it is complete.
pub(super) fn product(
    set: &Set,
    out: &mut Part,
    a: Matrix,
    b: Matrix,
    add: bool,
    then: &mut dyn FnMut(&mut Part),
) {
    let ([m, k], n) = (a.shape(), b.columns);
    let [mut left, mut right] = ROOM.take();
    let stretches = AT_A_TIME / k.clamp(1, TERMS) / STRETCH;
    for rows in cut(m.div_ceil(STRETCH), stretches) {
        let rows = rows.start * STRETCH..m.min(rows.end * STRETCH);
        // A sum without terms is one, too.
        for terms in cut(k.max(1), TERMS).map(|t| t.start..t.end.min(k)) {
            let a = a.rows(rows.clone()).columns(terms.clone());
            let a = match a.column_stride >= FAR && n >= WORTH_COPYING_LEFT {
                true => side_by_side(a, n, &mut left),
                false => a,
            };
            for panel in cut(n.div_ceil(set.lanes), set.widest()) {
                let columns = panel.start * set.lanes..n.min(panel.end * set.lanes);
                let b = b.rows(terms.clone()).columns(columns.clone());
                let b = side_by_side(b, rows.len(), &mut right);
                for stretch in cut(rows.len(), STRETCH) {
                    let a = a.rows(stretch.clone());
                    let stretch = rows.start + stretch.start..rows.start + stretch.end;
                    let mut part = out.part(stretch, columns.clone());
                    down(set, &mut part, a, b, add || terms.start > 0);
                    if terms.end == k {
                        then(&mut part);
                    }
                }
            }
        }
    }
    ROOM.set([left, right]);
}

/// Tiles one below the other, as wide as the part.
fn down(set: &Set, out: &mut Part, a: Matrix, b: Matrix, add: bool) {
    let columns = b.columns;
    for group in cut(a.rows, set.highest(columns)) {
        let a = a.rows(group.clone());
        let part = out.part(group, 0..columns);
        let tile = Tile {
            terms: a.columns,
            a: a.data.as_ptr(),
            a_row: a.row_stride,
            a_column: a.column_stride,
            b: b.data.as_ptr(),
            b_row: b.row_stride,
            c: part.start,
            c_row: part.stride,
            columns,
            add,
        };
        // SAFETY: the factors hold what their shapes say, the part is exclusive and of this shape, and the set is one of this machine.
        unsafe { set.kernel(a.rows, columns)(&tile) };
    }
}
