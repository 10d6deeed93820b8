//! Sums over posterior draws from which predictions are scored, without keeping a draw: one flat list of numbers.
//!
//! The list can be written into a checkpoint as it is. Element 0 counts the draws; every row of the split (every
//! example) then has its own stretch of `outputs` + 4 numbers: the sums over draws of its predictive probabilities
//! (classes) or outputs (regression), and what [`Waic`](super::Waic) needs of its log likelihood l = ln p(y|x, w): the
//! largest l so far, the sum of exp(l - largest), the mean of l and the sum of squared distances from that mean
//! (Welford 1962).
//!
//! The same draws in the same order give the same bits; chains are to be merged in a fixed order.

/// Numbers per row besides those per output.
const EXTRA: usize = 4;

/// What the outputs of a model are compared with, as they are in a split.
#[derive(Debug, Clone, Copy)]
pub enum Truth<'a> {
    /// A class per row: the outputs are logits, p(y|x, w) = softmax(outputs)\[y\].
    Classes(&'a [u32]),
    /// Row-major `[rows, outputs]` values y of p(y|x, w) = N(y; outputs, `noise_variance`), independent components.
    Values {
        /// The values.
        values: &'a [f32],
        /// Variance of one component, in squared units of the values.
        noise_variance: f64,
    },
    /// Real targets of which the draw says how likely they are: ln p(y|x, w) per example.
    LnLikelihoods(&'a [f64]),
}

/// The shape of the sums: what every function of them needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PredictionSums {
    rows: usize,
    outputs: usize,
}

impl PredictionSums {
    /// Sums over `rows` examples of a model with `outputs` outputs (classes, or components of a regression).
    pub fn new(rows: usize, outputs: usize) -> Self {
        Self { rows, outputs }
    }

    /// Length of the list of sums.
    pub fn width(rows: usize, outputs: usize) -> usize {
        1 + rows * (outputs + EXTRA)
    }

    /// The sums over no draws: all zeros.
    pub fn start(self) -> Vec<f64> {
        vec![0.0; Self::width(self.rows, self.outputs)]
    }

    /// Number of examples.
    pub fn rows(self) -> usize {
        self.rows
    }

    /// Number of outputs per example.
    pub fn outputs(self) -> usize {
        self.outputs
    }

    /// Takes in one draw of the weights: `outputs` are the model's, row-major `[rows, outputs]`.
    ///
    /// Slices of the wrong length make every score NaN; outputs that are not finite, or a label that is no class, those
    /// scores that their row enters.
    pub fn update(self, sums: &mut [f64], outputs: &[f32], truth: Truth) {
        if outputs.len() != self.rows * self.outputs {
            spoil(sums);
        }
        self.update_rows(sums, 0, outputs, truth);
        self.end_draw(sums);
    }

    /// Takes in the rows from `first_row` on of one draw, as many as `outputs` holds; `truth` is that of these rows.
    ///
    /// For a model that works in tiles: when every row was taken in once, [`Self::end_draw`] counts the draw.
    pub fn update_rows(self, sums: &mut [f64], first_row: usize, outputs: &[f32], truth: Truth) {
        let stride = self.outputs + EXTRA;
        let rows = outputs.len().checked_div(self.outputs).unwrap_or(0);
        let targets = match truth {
            Truth::Classes(labels) => labels.len(),
            Truth::Values { values, .. } => values.len().checked_div(self.outputs).unwrap_or(0),
            Truth::LnLikelihoods(each) => each.len(),
        };
        let fits = sums.len() == Self::width(self.rows, self.outputs)
            && outputs.len() == rows * self.outputs
            && targets == rows
            && first_row
                .checked_add(rows)
                .is_some_and(|end| end <= self.rows);
        if !fits || self.outputs == 0 {
            return spoil(sums);
        }
        let draws = sums[0];
        let own = &mut sums[1 + first_row * stride..][..rows * stride];
        let each = own
            .chunks_exact_mut(stride)
            .zip(outputs.chunks_exact(self.outputs));
        match truth {
            Truth::Classes(labels) => {
                let mut exponentials = vec![0.0; self.outputs];
                for ((row, z), label) in each.zip(labels) {
                    let (sums, extra) = row.split_at_mut(self.outputs);
                    let l = add_softmax(sums, z, *label as usize, &mut exponentials);
                    add_log_likelihood(extra, l, draws);
                }
            }
            Truth::LnLikelihoods(ln) => {
                for ((row, f), l) in each.zip(ln) {
                    let (sums, extra) = row.split_at_mut(self.outputs);
                    sums.iter_mut()
                        .zip(f)
                        .for_each(|(sum, f)| *sum += f64::from(*f));
                    add_log_likelihood(extra, *l, draws);
                }
            }
            Truth::Values {
                values,
                noise_variance,
            } => {
                let precision = 0.5 / noise_variance;
                let norm =
                    0.5 * self.outputs as f64 * (std::f64::consts::TAU * noise_variance).ln();
                for ((row, f), y) in each.zip(values.chunks_exact(self.outputs)) {
                    let (sums, extra) = row.split_at_mut(self.outputs);
                    let mut squared = 0.0;
                    for ((sum, f), y) in sums.iter_mut().zip(f).zip(y) {
                        let (f, y) = (f64::from(*f), f64::from(*y));
                        *sum += f;
                        squared += (f - y) * (f - y);
                    }
                    add_log_likelihood(extra, -precision * squared - norm, draws);
                }
            }
        }
    }

    /// Counts a draw of which [`Self::update_rows`] has taken in every row once.
    pub fn end_draw(self, sums: &mut [f64]) {
        if let Some(draws) = sums.first_mut() {
            *draws += 1.0;
        }
    }

    /// Adds the sums of another chain, as if `into` had taken in its draws (squares: Chan, Golub and LeVeque 1979).
    ///
    /// Equal to one long accumulation up to rounding; the same order of merging gives the same bits.
    pub fn merge(self, into: &mut [f64], from: &[f64]) {
        let width = Self::width(self.rows, self.outputs);
        if into.len() != width || from.len() != width {
            return spoil(into);
        }
        let (a, b) = (into[0], from[0]);
        if b == 0.0 {
            return;
        }
        if a == 0.0 {
            return into.copy_from_slice(from);
        }
        into[0] = a + b;
        let stride = self.outputs + EXTRA;
        let rows = into[1..].chunks_exact_mut(stride);
        for (row, other) in rows.zip(from[1..].chunks_exact(stride)) {
            let (sums, extra) = row.split_at_mut(self.outputs);
            let (other_sums, other) = other.split_at(self.outputs);
            for (x, y) in sums.iter_mut().zip(other_sums) {
                *x += y;
            }
            if let ([most, sum, mean, squares], [most_b, sum_b, mean_b, squares_b]) = (extra, other)
            {
                // Not f64::max, which would drop a NaN.
                let top = if *most_b > *most { *most_b } else { *most };
                *sum = *sum * (*most - top).exp() + sum_b * (most_b - top).exp();
                *most = top;
                let apart = mean_b - *mean;
                *squares += squares_b + apart * apart * (a * b / (a + b));
                *mean += apart * (b / (a + b));
            }
        }
    }

    /// The number of draws and what is known of every row; `None` without any of them, or for a wrong length.
    pub(super) fn read(self, sums: &[f64]) -> Option<(f64, impl Iterator<Item = Row<'_>>)> {
        let width = Self::width(self.rows, self.outputs);
        let draws = sums.first().copied().filter(|n| *n > 0.0)?;
        if sums.len() != width || self.rows == 0 || self.outputs == 0 {
            return None;
        }
        let rows = sums[1..]
            .chunks_exact(self.outputs + EXTRA)
            .map(move |row| {
                let (sums, extra) = row.split_at(self.outputs);
                Row {
                    sums,
                    log_mean: extra[0] + (extra[1] / draws).ln(),
                    mean_log: extra[2],
                    variance: extra[3] / draws,
                }
            });
        Some((draws, rows))
    }
}

/// What the draws say about one row.
pub(super) struct Row<'a> {
    /// Sums over draws of the probabilities or the outputs.
    pub sums: &'a [f64],
    /// ln of the mean over draws of p(y|x, w).
    pub log_mean: f64,
    /// Mean over draws of ln p(y|x, w).
    pub mean_log: f64,
    /// Variance over draws of ln p(y|x, w), the number of draws in the denominator.
    pub variance: f64,
}

/// Makes the number of draws, and with it every score, NaN.
fn spoil(sums: &mut [f64]) {
    if let Some(draws) = sums.first_mut() {
        *draws = f64::NAN;
    }
}

/// Adds softmax(`z`) to `sums`; its logarithm at `label`, NaN for a label that is no class.
fn add_softmax(sums: &mut [f64], z: &[f32], label: usize, exponentials: &mut [f64]) -> f64 {
    let max = z
        .iter()
        .copied()
        .fold(f32::NEG_INFINITY, |a, b| if b > a { b } else { a });
    let max = f64::from(max);
    let mut total = 0.0;
    for (e, z) in exponentials.iter_mut().zip(z) {
        *e = (f64::from(*z) - max).exp();
        total += *e;
    }
    let inverse = 1.0 / total;
    for (sum, e) in sums.iter_mut().zip(exponentials) {
        *sum += *e * inverse;
    }
    z.get(label)
        .map_or(f64::NAN, |z| f64::from(*z) - max - total.ln())
}

/// Takes the log likelihood `l` of a row in, after `draws` others.
fn add_log_likelihood(extra: &mut [f64], l: f64, draws: f64) {
    if let [most, sum, mean, squares] = extra {
        if draws == 0.0 {
            (*most, *sum, *mean, *squares) = (l, 1.0, l, 0.0);
            return;
        }
        let above = l - *most;
        let e = (-above.abs()).exp();
        if above > 0.0 {
            *sum = *sum * e + 1.0;
            *most = l;
        } else {
            *sum += e;
        }
        let apart = l - *mean;
        *mean += apart / (draws + 1.0);
        *squares += apart * (l - *mean);
    }
}

#[cfg(test)]
mod tests {
    use super::super::rank::normal_draws;
    use super::*;

    const ROWS: usize = 7;
    const OUTPUTS: usize = 3;
    const LABELS: [u32; ROWS] = [0, 1, 2, 2, 1, 0, 0];

    /// The outputs of one draw.
    fn outputs(seed: u64) -> Vec<f32> {
        let draws = normal_draws(seed, ROWS * OUTPUTS);
        draws.iter().map(|x| 3.0 * *x as f32).collect()
    }

    fn truths(values: &[f32]) -> [Truth<'_>; 2] {
        [
            Truth::Classes(&LABELS),
            Truth::Values {
                values,
                noise_variance: 0.7,
            },
        ]
    }

    #[test]
    fn a_merge_is_one_long_accumulation() {
        let layout = PredictionSums::new(ROWS, OUTPUTS);
        for truth in truths(&outputs(99)) {
            let over = |seeds: std::ops::Range<u64>| {
                let mut sums = layout.start();
                seeds.for_each(|seed| layout.update(&mut sums, &outputs(seed), truth));
                sums
            };
            let whole = over(0..50);
            let mut merged = over(0..0);
            for part in [over(0..1), over(1..30), over(30..30), over(30..50)] {
                layout.merge(&mut merged, &part);
            }
            assert_eq!(merged.len(), PredictionSums::width(ROWS, OUTPUTS));
            for (a, b) in merged.iter().zip(&whole) {
                assert!((a - b).abs() <= 1e-13 * b.abs().max(1.0), "{a} {b}");
            }
            assert_eq!(whole[0], 50.0);
        }
    }

    #[test]
    fn tiles_of_rows_are_the_whole() {
        let layout = PredictionSums::new(ROWS, OUTPUTS);
        let values = outputs(99);
        let (mut whole, mut tiled) = (layout.start(), layout.start());
        for seed in 0..5 {
            let z = outputs(seed);
            layout.update(&mut whole, &z, Truth::Classes(&LABELS));
            for (first, end) in [(4, 7), (0, 4)] {
                let part = &z[first * OUTPUTS..end * OUTPUTS];
                let truth = Truth::Classes(&LABELS[first..end]);
                layout.update_rows(&mut tiled, first, part, truth);
            }
            layout.end_draw(&mut tiled);
        }
        assert_eq!(whole, tiled);
        assert_ne!(whole[1..], layout.start()[1..]);
        layout.update(&mut whole, &values, Truth::Classes(&LABELS));
        assert_ne!(whole, tiled);
    }

    #[test]
    fn the_numbers_of_a_row_are_what_they_are_called() {
        let layout = PredictionSums::new(1, 2);
        let mut sums = layout.start();
        // Logits whose probabilities are 1/4, 3/4 and e^-2000, 1.
        let three = 3f32.ln();
        layout.update(&mut sums, &[5.0, 5.0 + three], Truth::Classes(&[0]));
        layout.update(&mut sums, &[-2000.0, 0.0], Truth::Classes(&[0]));
        let (draws, mut rows) = layout.read(&sums).unwrap();
        let row = rows.next().unwrap();
        assert_eq!(draws, 2.0);
        assert!((row.sums[0] - 0.25).abs() < 1e-7 && (row.sums[1] - 1.75).abs() < 1e-7);
        assert!((row.log_mean - 0.125f64.ln()).abs() < 1e-7);
        assert!((row.mean_log - (0.25f64.ln() - 2000.0) / 2.0).abs() < 1e-6);
        let half = (2000.0 + 0.25f64.ln()) / 2.0;
        assert!((row.variance / (half * half) - 1.0).abs() < 1e-7);
        // Both far below what an f64 holds.
        let mut sums = layout.start();
        for z in [-1000.0, -1001.0] {
            layout.update(&mut sums, &[z, 0.0], Truth::Classes(&[0]));
        }
        let log_mean = layout.read(&sums).unwrap().1.next().unwrap().log_mean;
        assert!((log_mean - (-1000.0 + ((1.0 + (-1f64).exp()) / 2.0).ln())).abs() < 1e-12);
    }

    #[test]
    fn nothing_panics() {
        let layout = PredictionSums::new(ROWS, OUTPUTS);
        let z = outputs(1);
        let good = Truth::Classes(&LABELS);
        let spoilt = |z: &[f32], truth| {
            let mut sums = layout.start();
            layout.update(&mut sums, z, truth);
            layout.read(&sums).is_none()
        };
        assert!(!spoilt(&z, good));
        assert!(spoilt(&z[1..], good) && spoilt(&[], good));
        assert!(spoilt(&z[OUTPUTS..], Truth::Classes(&LABELS[1..])));
        assert!(spoilt(&z, Truth::Classes(&LABELS[1..])));
        assert!(spoilt(
            &z,
            Truth::Values {
                values: &z[1..],
                noise_variance: 1.0
            }
        ));
        let mut short = vec![0.0; 4];
        layout.update(&mut short, &z, good);
        layout.merge(&mut short, &layout.start());
        assert!(short[0].is_nan());
        layout.update(&mut [], &z, good);
        layout.update_rows(&mut layout.start(), usize::MAX, &z, good);
        for (rows, outputs) in [(0, 3), (3, 0), (0, 0)] {
            let empty = PredictionSums::new(rows, outputs);
            let mut sums = empty.start();
            empty.update(&mut sums, &[], Truth::Classes(&vec![0; rows]));
            empty.merge(&mut sums, &empty.start());
            assert!(empty.read(&sums).is_none());
        }
    }
}
