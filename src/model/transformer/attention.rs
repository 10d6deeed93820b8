//! One head on one sequence: queries in groups, each against the keys that any of them sees, so that little of what is masked is computed.
//!
//! Queries and keys of all heads lie side by side, `[context, 2·attention]`, as do values and what is read, `[context, attention]`.

use super::Settings;
use crate::kernels::gemm::{Matrix, Part, multiply};
use crate::kernels::sequence::{causal_softmax, causal_softmax_again, causal_softmax_backward};
use std::ops::Range;

/// Queries of a group.
const GROUP: usize = 64;

/// The longest context whose probabilities are kept for the backward pass; those of a longer one are computed again, because they would
/// take more memory than all the rest, and reading them more time.
const KEPT: usize = 128;

/// One head of a block.
#[derive(Clone, Copy)]
pub struct Head {
    context: usize,
    /// Columns of all heads together.
    attention: usize,
    /// The first column, and the number of columns.
    first: usize,
    width: usize,
    scale: f32,
}

/// The buffers of a head on a sequence.
pub struct Kept<'a> {
    /// [`log_sums`] numbers.
    pub log_sums: &'a mut [f32],
    /// [`probabilities`] numbers.
    pub probabilities: &'a mut [f32],
    /// [`scratch`] numbers, which nobody needs afterwards.
    pub scratch: &'a mut [f32],
}

/// Numbers per head and sequence for ln Σ exp of the scores.
pub fn log_sums(context: usize) -> usize {
    if context > KEPT { context } else { 0 }
}

/// Numbers per head and sequence for probabilities.
pub fn probabilities(context: usize) -> usize {
    if context > KEPT { 0 } else { context * context }
}

/// Numbers for what is computed of a group at a time.
pub fn scratch(context: usize) -> usize {
    2 * GROUP.min(context) * context
}

impl Head {
    /// All heads of a block.
    pub fn all(s: &Settings) -> impl Iterator<Item = Self> + use<> {
        let (context, attention, width) = (s.context, s.attention(), s.head_width);
        (0..s.heads).map(move |h| Self {
            context,
            attention,
            first: h * width,
            width,
            scale: 1.0 / (width as f32).sqrt(),
        })
    }

    fn groups(self) -> impl DoubleEndedIterator<Item = Range<usize>> {
        let groups = (0..self.context).step_by(GROUP);
        let context = self.context;
        groups.map(move |first| first..context.min(first + GROUP))
    }

    /// The queries of some positions.
    fn queries<'a>(&self, query_key: &'a [f32], at: &Range<usize>) -> Matrix<'a> {
        let stride = 2 * self.attention;
        let rows = Matrix::new(&query_key[at.start * stride..], at.len(), stride);
        rows.columns(self.columns())
    }

    /// The first keys.
    fn keys<'a>(&self, query_key: &'a [f32], count: usize) -> Matrix<'a> {
        let columns = self.columns();
        Matrix::new(query_key, count, 2 * self.attention)
            .columns(self.attention + columns.start..self.attention + columns.end)
    }

    /// Some rows of values, or of what is read.
    fn rows<'a>(&self, values: &'a [f32], at: &Range<usize>) -> Matrix<'a> {
        let rows = &values[at.start * self.attention..];
        Matrix::new(rows, at.len(), self.attention).columns(self.columns())
    }

    fn columns(&self) -> Range<usize> {
        self.first..self.first + self.width
    }

    /// What the head reads at every position, into its columns of `read`.
    pub fn forward(self, query_key: &[f32], values: &[f32], read: &mut [f32], kept: &mut Kept) {
        let stride = self.attention;
        for at in self.groups() {
            let (queries, keys) = (at.len(), at.end);
            let (p, log_sums) = match kept.probabilities.is_empty() {
                true => (&mut *kept.scratch, &mut kept.log_sums[at.clone()]),
                false => (
                    &mut kept.probabilities[at.start * self.context..],
                    &mut [][..],
                ),
            };
            let p = &mut p[..queries * keys];
            let (q, k) = (self.queries(query_key, &at), self.keys(query_key, keys));
            multiply(p, q, k.transposed(), false);
            causal_softmax(p, keys, at.start, self.scale, log_sums);
            let out = &mut read[at.start * stride..];
            Part::columns(out, queries, stride, self.columns()).multiply(
                Matrix::new(p, queries, keys),
                self.rows(values, &(0..keys)),
                false,
            );
        }
    }

    /// From the gradient with respect to what is read, those with respect to queries and keys, and to values, into the head's columns.
    pub fn backward(
        self,
        query_key: &[f32],
        values: &[f32],
        kept: &mut Kept,
        delta_read: &[f32],
        delta_query_key: &mut [f32],
        delta_values: &mut [f32],
    ) {
        let (stride, scale) = (self.attention, self.scale);
        let half = kept.scratch.len() / 2;
        let (again, deltas) = kept.scratch.split_at_mut(half);
        let own = self.columns();
        let key_columns = stride + own.start..stride + own.end;
        // From the last group, which sees all keys: it is the first to write what the others add to.
        for at in self.groups().rev() {
            let (queries, keys) = (at.len(), at.end);
            let add = at.end < self.context;
            let (q, k) = (self.queries(query_key, &at), self.keys(query_key, keys));
            let p = match kept.probabilities.is_empty() {
                true => {
                    let p = &mut again[..queries * keys];
                    multiply(p, q, k.transposed(), false);
                    causal_softmax_again(p, keys, at.start, scale, &kept.log_sums[at.clone()]);
                    &*p
                }
                false => &kept.probabilities[at.start * self.context..][..queries * keys],
            };
            let read = self.rows(delta_read, &at);
            let d = &mut deltas[..queries * keys];
            multiply(d, read, self.rows(values, &(0..keys)).transposed(), false);
            let pm = Matrix::new(p, queries, keys);
            Part::columns(delta_values, keys, stride, own.clone()).multiply(
                pm.transposed(),
                read,
                add,
            );
            causal_softmax_backward(p, d, keys, at.start, scale);
            let d = Matrix::new(d, queries, keys);
            Part::columns(
                &mut delta_query_key[at.start * 2 * stride..],
                queries,
                2 * stride,
                own.clone(),
            )
            .multiply(d, k, false);
            Part::columns(delta_query_key, keys, 2 * stride, key_columns.clone()).multiply(
                d.transposed(),
                q,
                add,
            );
        }
    }
}
