//! Scaled dot-product attention of the heads of a row: queries in groups, each against the keys that any of them sees.
//!
//! No probability is kept: of every query ln Σ exp of its scores is, from which the backward pass has the probabilities again
//! (Dao et al. 2022), in a buffer of one group.

use super::shape::Shape;
use super::view::View;
use crate::Result;
use crate::gemm::{Matrix, Part, multiply};
use crate::sequence::{causal_softmax, causal_softmax_again, causal_softmax_backward};
use anyhow::ensure;
use std::cell::RefCell;
use std::ops::Range;

/// Queries of a group.
const GROUP: usize = 64;

thread_local! {
    /// Scores of a group, and the gradient with respect to them.
    static SCORES: RefCell<[Vec<f32>; 2]> = RefCell::default();
}

/// Where the vectors of a head lie among the numbers of a row: that of position p of head h begins at `start + h·head + p·step`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The first vector.
    pub start: usize,
    /// From one head to the next.
    pub head: usize,
    /// From one position to the next.
    pub step: usize,
}

/// `softmax(scale · q kᵀ) v` of every head of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Attention {
    /// Heads of the queries.
    pub heads: usize,
    /// Heads of keys and values; each serves `heads / groups` of the queries', one after the other.
    pub groups: usize,
    /// Positions of queries, and of keys.
    pub positions: [usize; 2],
    /// Lengths of a query or key, and of a value.
    pub widths: [usize; 2],
    /// What scores are multiplied by.
    pub scale: f32,
    /// Whether a query sees the keys up to its own position alone; the last query is at the last key.
    pub causal: bool,
    /// Where queries, keys, values and results lie.
    pub places: [Place; 4],
}

/// What takes the gradient with respect to an operand of a row: the number of the operand, the row, and what adds to its numbers.
pub type Sink<'a> = dyn FnMut(usize, usize, &mut dyn FnMut(&mut [f32])) + 'a;

impl Attention {
    /// Of queries, keys and values `[…, heads, positions, width]`, each row-major.
    ///
    /// # Errors
    /// If the shapes do not fit.
    pub fn new(q: &Shape, k: &Shape, v: &Shape, scale: f64, causal: bool) -> Result<Self> {
        let wrong = || {
            anyhow::anyhow!(
                "attention: queries {q}, keys {k} and values {v} do not fit; they must be […, heads, positions, width], with as many heads of keys as of values, which divide those of the queries"
            )
        };
        let split = |s: &Shape| match s.dims[..] {
            [ref lead @ .., p, w] => Ok((lead.to_vec(), p, w)),
            _ => Err(wrong()),
        };
        let ((a, t, d), (b, s, inner), (c, last, e)) = (split(q)?, split(k)?, split(v)?);
        let (heads, groups) = (a.last().unwrap_or(&1), b.last().unwrap_or(&1));
        let lead = |x: &[usize]| x[..x.len().saturating_sub(1)].to_vec();
        ensure!(
            b == c && inner == d && last == s && a.len() == b.len() && lead(&a) == lead(&b),
            wrong()
        );
        ensure!(*groups > 0 && heads % groups == 0, wrong());
        ensure!(
            !causal || t <= s,
            "attention: {t} queries, but only {s} keys come up to them"
        );
        let place = |positions: usize, width: usize| Place {
            start: 0,
            head: positions * width,
            step: width,
        };
        Ok(Self {
            heads: a.iter().product(),
            groups: b.iter().product(),
            positions: [t, s],
            widths: [d, e],
            scale: scale as f32,
            causal,
            places: [place(t, d), place(s, d), place(s, e), place(t, e)],
        })
    }

    /// Numbers per row that the backward pass needs beside operands: ln Σ exp of every query's scores.
    pub fn log_sums(&self) -> usize {
        self.heads * self.positions[0]
    }

    /// Positions of one of queries, keys, values, results, and the length of a vector.
    pub(super) fn size(&self, which: usize) -> (usize, usize) {
        let ([t, s], [d, e]) = (self.positions, self.widths);
        [(t, d), (s, d), (s, e), (t, e)][which]
    }

    fn head_of(&self, which: usize, head: usize) -> usize {
        match which {
            1 | 2 => head / (self.heads / self.groups),
            _ => head,
        }
    }

    /// Some positions of a head of queries, keys, values or results.
    fn matrix<'a>(
        &self,
        which: usize,
        data: &'a [f32],
        head: usize,
        at: &Range<usize>,
    ) -> Matrix<'a> {
        let (place, width) = (self.places[which], self.size(which).1);
        let first = place.start + self.head_of(which, head) * place.head + at.start * place.step;
        Matrix::strided(&data[first..], at.len(), width, place.step)
    }

    fn part<'a>(
        &self,
        which: usize,
        data: &'a mut [f32],
        head: usize,
        at: &Range<usize>,
    ) -> Part<'a> {
        let (place, width) = (self.places[which], self.size(which).1);
        let first = place.start + self.head_of(which, head) * place.head + at.start * place.step;
        Part::strided(&mut data[first..], at.len(), width, place.step)
    }

    /// Groups of queries, each with the number of keys that it sees.
    fn blocks(&self) -> impl Iterator<Item = (Range<usize>, usize)> + use<> {
        let [t, s] = self.positions;
        let causal = self.causal;
        (0..t).step_by(GROUP).map(move |first| {
            let at = first..t.min(first + GROUP);
            let keys = if causal { s - t + at.end } else { s };
            (at, keys)
        })
    }

    /// Do something with every query's scores and the position up to which it sees: lines of `keys` columns, and the first one's position.
    fn lines(&self, at: &Range<usize>, keys: usize, mut each: impl FnMut(Range<usize>, usize)) {
        let [t, s] = self.positions;
        match self.causal {
            true => each(0..at.len(), s - t + at.start),
            // All of them see the last key.
            false => (0..at.len()).for_each(|i| each(i..i + 1, keys - 1)),
        }
    }

    /// Compute some heads of a row: their columns of `out`, and of `log_sums`, which may be empty.
    pub fn forward(
        &self,
        heads: Range<usize>,
        of: [&[f32]; 3],
        out: &mut [f32],
        log_sums: &mut [f32],
    ) {
        let [q, k, v] = of;
        let t = self.positions[0];
        SCORES.with_borrow_mut(|[scores, _]| {
            for head in heads {
                for (at, keys) in self.blocks() {
                    scores.resize(scores.len().max(at.len() * keys), 0.0);
                    let p = &mut scores[..at.len() * keys];
                    let key = self.matrix(1, k, head, &(0..keys));
                    multiply(p, self.matrix(0, q, head, &at), key.transposed(), false);
                    self.lines(&at, keys, |lines, first| {
                        let log_sums = match log_sums.is_empty() {
                            true => &mut [][..],
                            false => {
                                &mut log_sums[head * t + at.start + lines.start..][..lines.len()]
                            }
                        };
                        let p = &mut p[lines.start * keys..lines.end * keys];
                        causal_softmax(p, keys, first, self.scale, log_sums);
                    });
                    let value = self.matrix(2, v, head, &(0..keys));
                    let p = Matrix::new(p, at.len(), keys);
                    self.part(3, out, head, &at).multiply(p, value, false);
                }
            }
        });
    }

    /// From the gradient with respect to the results of a row, add those with respect to the operands that are wanted; `log_sums` are those of
    /// [`Attention::forward`], or empty.
    pub fn backward(
        &self,
        row: usize,
        of: [&[f32]; 3],
        log_sums: &[f32],
        delta: &[f32],
        wanted: [bool; 3],
        to: &mut Sink,
    ) {
        let [q, k, v] = of;
        let t = self.positions[0];
        SCORES.with_borrow_mut(|[scores, slopes]| {
            for head in 0..self.heads {
                for (at, keys) in self.blocks() {
                    let seen = 0..keys;
                    let count = at.len() * keys;
                    scores.resize(scores.len().max(count), 0.0);
                    slopes.resize(slopes.len().max(count), 0.0);
                    let (p, d) = (&mut scores[..count], &mut slopes[..count]);
                    let query = self.matrix(0, q, head, &at);
                    let key = self.matrix(1, k, head, &seen);
                    multiply(p, query, key.transposed(), false);
                    self.lines(&at, keys, |lines, first| {
                        let known = log_sums.get(head * t + at.start + lines.start..);
                        let p = &mut p[lines.start * keys..lines.end * keys];
                        match known {
                            Some(l) if !log_sums.is_empty() => {
                                causal_softmax_again(p, keys, first, self.scale, l);
                            }
                            _ => causal_softmax(p, keys, first, self.scale, &mut []),
                        }
                    });
                    let read = self.matrix(3, delta, head, &at);
                    let probabilities = Matrix::new(p, at.len(), keys);
                    if wanted[2] {
                        to(2, row, &mut |out| {
                            let mut out = self.part(2, out, head, &seen);
                            out.multiply(probabilities.transposed(), read, true);
                        });
                    }
                    if !wanted[0] && !wanted[1] {
                        continue;
                    }
                    let value = self.matrix(2, v, head, &seen);
                    multiply(d, read, value.transposed(), false);
                    self.lines(&at, keys, |lines, first| {
                        let lines = lines.start * keys..lines.end * keys;
                        let d = &mut d[lines.clone()];
                        causal_softmax_backward(&p[lines], d, keys, first, self.scale);
                    });
                    let d = Matrix::new(d, at.len(), keys);
                    if wanted[0] {
                        to(0, row, &mut |out| {
                            self.part(0, out, head, &at).multiply(d, key, true);
                        });
                    }
                    if wanted[1] {
                        to(1, row, &mut |out| {
                            let mut out = self.part(1, out, head, &seen);
                            out.multiply(d.transposed(), query, true);
                        });
                    }
                }
            }
        });
    }

    /// The same over several rows.
    pub fn backward_rows(
        &self,
        rows: usize,
        of: &[View],
        log_sums: &[f32],
        delta: &[f32],
        wanted: [bool; 3],
        to: &mut Sink,
    ) {
        let (sums, width) = (self.log_sums(), delta.len() / rows.max(1));
        for (r, delta) in delta.chunks_exact(width.max(1)).take(rows).enumerate() {
            let known = log_sums.get(r * sums..(r + 1) * sums).unwrap_or(&[]);
            let of = [0, 1, 2].map(|i: usize| of[i].row(r));
            self.backward(r, of, known, delta, wanted, to);
        }
    }
}
