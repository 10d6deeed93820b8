//! Scores of the predictions that posterior draws make together, from the sums of [`PredictionSums`].
//!
//! Averages over draws are written E_w; n is the number of rows of the split. Log likelihoods are in nats.

use super::prediction::{PredictionSums, Row};

/// Number of bins of a reliability table.
const BINS: usize = 15;

/// The widely applicable information criterion and its parts.
///
/// Watanabe, "Asymptotic equivalence of Bayes cross validation and widely applicable information criterion in singular
/// learning theory", JMLR 11 (2010) 3571, for draws from the posterior at inverse temperature beta, that is from
/// prior(w) prod_i p(y_i|x_i, w)^beta. It estimates the loss on new data from the split that the posterior was
/// conditioned on; on any other split only the losses mean something.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Waic {
    /// T_n = -(1/n) sum_i ln E_w p(y_i|x_i, w), the Bayes loss, in nats per row.
    pub bayes_loss: f64,
    /// Standard error of `bayes_loss`, from the spread over rows: sd / sqrt(n). How far it is from that of other rows.
    pub bayes_loss_se: f64,
    /// -(1/n) sum_i E_w ln p(y_i|x_i, w), the Gibbs loss, in nats per row: the mean over draws of each one's own loss.
    pub gibbs_loss: f64,
    /// V = sum_i (E_w l_i^2 - (E_w l_i)^2), l_i = ln p(y_i|x_i, w): the functional variance, dimensionless.
    pub functional_variance: f64,
    /// T_n + beta V / n, in nats per row.
    pub waic: f64,
    /// beta V, the effective number of parameters; at beta = 1 ArviZ's `p_waic`.
    pub p_waic: f64,
    /// beta V / 2: the estimate of the singular fluctuation nu(beta), dimensionless.
    pub singular_fluctuation: f64,
    /// -n `waic` = sum_i (ln E_w p(y_i|x_i, w) - beta V_i), in nats; at beta = 1 ArviZ's `elpd_waic`.
    pub elpd_waic: f64,
    /// Standard error of `elpd_waic`, in nats: sqrt(n times the variance over i of its terms), n in the denominator.
    ///
    /// At beta = 1 that of ArviZ, which divides by n here and by the number of draws in V, without any "- 1".
    pub elpd_se: f64,
    /// The largest V_i; above 0.4 (ArviZ's bound at beta = 1) the criterion cannot be trusted.
    pub largest_variance: f64,
}

/// One bin of a reliability table.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct ReliabilityBin {
    /// Rows whose confidence falls into the bin.
    pub rows: usize,
    /// Their mean confidence, the largest predictive probability; NaN without rows.
    pub confidence: f64,
    /// The share of them that is classified rightly; NaN without rows.
    pub accuracy: f64,
}

/// Scores of a classification by the predictive probabilities averaged over draws, p = E_w p(.|x, w).
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ClassificationScores {
    /// Number of draws.
    pub draws: f64,
    /// Share of rows whose first most probable class is not the label.
    pub error: f64,
    /// Mean of sum_k (p_k - \[k = label\])^2, 0 to 2 (Brier 1950).
    pub brier: f64,
    /// Expected calibration error: sum over bins of share of rows times |accuracy - confidence|, 0 to 1.
    pub ece: f64,
    /// 15 bins of confidence of equal width, ((k - 1)/15, k/15\] (Guo, Pleiss, Sun and Weinberger, ICML 2017).
    pub reliability: Vec<ReliabilityBin>,
    /// Losses and the criterion; `bayes_loss` is that of the averaged prediction, the mean of -ln p_y.
    pub waic: Waic,
}

/// Scores of a regression by the outputs averaged over draws, f = E_w f(x, w).
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct RegressionScores {
    /// Number of draws.
    pub draws: f64,
    /// Mean over rows of |y - f|^2 summed over components (without a half), in squared units of the targets.
    pub squared_error: f64,
    /// (1/2n) sum_i |g(x_i) - f(x_i)|^2, g the noiseless truth; NaN when none was given.
    ///
    /// Equation 25 of Iwagaki and Watanabe, in squared units of the targets.
    pub generalisation_error: f64,
    /// Losses, with the Gaussian noise that the sums were taken with, and the criterion.
    pub waic: Waic,
}

impl PredictionSums {
    /// Scores of the averaged classification of `labels`; `beta` is the inverse temperature of the draws.
    ///
    /// NaN without draws, and where slices do not fit. `beta` enters nothing but the criterion's correction.
    pub fn classification(self, sums: &[f64], labels: &[u32], beta: f64) -> ClassificationScores {
        let mut scores = ClassificationScores {
            draws: sums.first().copied().unwrap_or(f64::NAN),
            error: f64::NAN,
            brier: f64::NAN,
            ece: f64::NAN,
            reliability: Vec::new(),
            waic: self.waic(sums, beta),
        };
        let Some((draws, rows)) = self.read(sums).filter(|_| labels.len() == self.rows()) else {
            return scores;
        };
        let (mut wrong, mut brier, mut bad) = (0usize, 0.0, false);
        // Rows, sum of confidences, rows classified rightly.
        let mut bins = [(0usize, 0.0, 0usize); BINS];
        for (row, label) in rows.zip(labels) {
            let label = *label as usize;
            let (mut best, mut most) = (0, 0.0);
            for (k, sum) in row.sums.iter().enumerate() {
                let p = sum / draws;
                let miss = p - f64::from(u8::from(k == label));
                brier += miss * miss;
                if p > most {
                    (best, most) = (k, p);
                }
            }
            bad |= label >= self.outputs();
            wrong += usize::from(best != label);
            // A NaN lands in the first bin; the Brier score is then NaN and takes the others along.
            let bin = ((most * BINS as f64).ceil() as usize).clamp(1, BINS) - 1;
            bins[bin].0 += 1;
            bins[bin].1 += most;
            bins[bin].2 += usize::from(best == label);
        }
        if bad || brier.is_nan() {
            return scores;
        }
        let n = self.rows() as f64;
        scores.error = wrong as f64 / n;
        scores.brier = brier / n;
        scores.ece = bins.iter().map(|b| (b.2 as f64 - b.1).abs()).sum::<f64>() / n;
        let table = bins
            .iter()
            .map(|&(rows, confidence, right)| ReliabilityBin {
                rows,
                confidence: confidence / rows as f64,
                accuracy: right as f64 / rows as f64,
            });
        scores.reliability = table.collect();
        scores
    }

    /// Scores of the averaged outputs against the `targets`, and against the noiseless `truth` where it is known.
    ///
    /// Both are row-major `[rows, outputs]`; `beta` is the inverse temperature of the draws. NaN without draws, and
    /// where slices do not fit.
    pub fn regression(
        self,
        sums: &[f64],
        targets: &[f32],
        truth: Option<&[f32]>,
        beta: f64,
    ) -> RegressionScores {
        let squares = |y: &[f32]| self.squared_distance(sums, y) / self.rows() as f64;
        RegressionScores {
            draws: sums.first().copied().unwrap_or(f64::NAN),
            squared_error: squares(targets),
            generalisation_error: truth.map_or(f64::NAN, |g| 0.5 * squares(g)),
            waic: self.waic(sums, beta),
        }
    }

    /// Sum over rows of |y - f|^2, f the outputs averaged over draws.
    fn squared_distance(self, sums: &[f64], y: &[f32]) -> f64 {
        let fits = |_: &_| self.rows().checked_mul(self.outputs()) == Some(y.len());
        let Some((draws, rows)) = self.read(sums).filter(fits) else {
            return f64::NAN;
        };
        let each = rows.flat_map(|row| row.sums).zip(y);
        each.map(|(sum, y)| (sum / draws - f64::from(*y)).powi(2))
            .sum()
    }

    /// Losses and the criterion of draws at inverse temperature `beta`; NaN without draws.
    pub fn waic(self, sums: &[f64], beta: f64) -> Waic {
        let n = self.rows() as f64;
        let Some((_, rows)) = self.read(sums) else {
            return summed([f64::NAN; 5], f64::NAN, n, beta);
        };
        let term = |row: &Row| row.log_mean - beta * row.variance;
        let (mut totals, mut largest) = ([0.0; 5], 0.0);
        for row in rows {
            totals[0] += row.log_mean;
            totals[1] += row.mean_log;
            totals[2] += row.variance;
            if row.variance > largest || row.variance.is_nan() {
                largest = row.variance;
            }
        }
        let centre = (totals[0] - beta * totals[2]) / n;
        let mean = totals[0] / n;
        for row in self.read(sums).into_iter().flat_map(|(_, rows)| rows) {
            totals[3] += (term(&row) - centre).powi(2);
            totals[4] += (row.log_mean - mean).powi(2);
        }
        summed(totals, largest, n, beta)
    }
}

/// The criterion from sums over rows: of ln E_w p, of E_w ln p, of V_i, and of squared deviations of the terms and of
/// ln E_w p.
fn summed(totals: [f64; 5], largest_variance: f64, n: f64, beta: f64) -> Waic {
    let [log_mean, mean_log, variance, squares, squares_of_log_mean] = totals;
    let elpd_waic = log_mean - beta * variance;
    Waic {
        bayes_loss: -log_mean / n,
        bayes_loss_se: (squares_of_log_mean / (n - 1.0) / n).sqrt(),
        gibbs_loss: -mean_log / n,
        functional_variance: variance,
        waic: -elpd_waic / n,
        p_waic: beta * variance,
        singular_fluctuation: 0.5 * beta * variance,
        elpd_waic,
        elpd_se: squares.sqrt(),
        largest_variance,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Truth;
    use super::*;

    fn close(got: f64, want: f64) {
        assert!((got / want - 1.0).abs() < 1e-10, "{got} and not {want}");
    }

    /// Outputs that any language can make: 4 draws of 6 rows with 3 outputs, eighths from -4 to 4.
    fn outputs(draw: usize) -> Vec<f32> {
        let number = |i: usize| ((i + 18 * draw) * 37 + 11 * draw * i) % 65;
        (0..18).map(|i| number(i) as f32 / 8.0 - 4.0).collect()
    }

    const LABELS: [u32; 6] = [2, 0, 1, 1, 0, 2];

    /// Scores by NumPy and SciPy, the criterion by ArviZ 0.19.0 (beta = 1) and by its formulas in NumPy (other betas).
    #[test]
    fn classification_is_what_numpy_and_arviz_say() {
        let layout = PredictionSums::new(6, 3);
        let mut sums = layout.start();
        (0..4).for_each(|d| layout.update(&mut sums, &outputs(d), Truth::Classes(&LABELS)));
        let got = layout.classification(&sums, &LABELS, 1.0);
        assert_eq!((got.draws, got.error), (4.0, 0.5));
        close(got.brier, 0.6074767725311611);
        close(got.ece, 0.3374441408595294);
        close(got.waic.bayes_loss, 0.986896626881843);
        close(got.waic.gibbs_loss, 1.7492462494360144);
        let rows: Vec<usize> = got.reliability.iter().map(|b| b.rows).collect();
        assert_eq!(rows, [0, 0, 0, 0, 0, 1, 3, 0, 0, 1, 1, 0, 0, 0, 0]);
        close(got.reliability[6].confidence, 0.42815821691929096);
        close(got.reliability[6].accuracy, 2.0 / 3.0);
        assert!(got.reliability[0].accuracy.is_nan());
        close(got.waic.elpd_waic, -26.60408697993636);
        close(got.waic.elpd_se, 8.95620987439276);
        close(got.waic.p_waic, 20.6827072186453);
        close(got.waic.singular_fluctuation, 20.6827072186453 / 2.0);
        close(got.waic.largest_variance, 11.492266795293265);
        // Of six rows, in the mean over draws: ln E p by hand.
        let ln_p = |row: usize| {
            let p = |d: usize| {
                let z = &outputs(d)[3 * row..3 * row + 3];
                let all: f64 = z.iter().map(|z| f64::from(*z).exp()).sum();
                f64::from(z[LABELS[row] as usize]).exp() / all
            };
            ((0..4).map(p).sum::<f64>() / 4.0).ln()
        };
        let squares: f64 = (0..6)
            .map(|r| (ln_p(r) + got.waic.bayes_loss).powi(2))
            .sum();
        close(got.waic.bayes_loss_se, (squares / 30.0).sqrt());
        let half = layout.waic(&sums, 0.5);
        close(half.waic, 2.7104555617689514);
        close(half.elpd_waic, -16.26273337061371);
        close(half.elpd_se, 4.275145888172481);
    }

    #[test]
    fn regression_is_what_numpy_and_arviz_say() {
        let layout = PredictionSums::new(6, 3);
        let (mut sums, targets) = (layout.start(), outputs(7));
        let truth = Truth::Values {
            values: &targets,
            noise_variance: 0.7,
        };
        (0..4).for_each(|d| layout.update(&mut sums, &outputs(d), truth));
        let got = layout.regression(&sums, &targets, Some(&outputs(8)), 1.0);
        close(got.squared_error, 24.856119791666668);
        close(got.generalisation_error, 10.3974609375);
        close(got.waic.bayes_loss, 18.76903848307808);
        close(got.waic.gibbs_loss, 30.599779374182116);
        close(got.waic.elpd_waic, -819.5988637408634);
        close(got.waic.elpd_se, 237.3685952186113);
        close(got.waic.p_waic, 706.984632842395);
        let twice = layout.regression(&sums, &targets, None, 2.0);
        close(twice.waic.waic, 254.4305827638764);
        close(twice.waic.elpd_se, 480.1928855006243);
        close(twice.waic.largest_variance, 297.1375990887078);
        assert!(twice.generalisation_error.is_nan());
        assert_eq!(twice.squared_error, got.squared_error);
    }

    #[test]
    fn a_perfect_and_a_flat_prediction() {
        let layout = PredictionSums::new(2, 4);
        let mut sums = layout.start();
        let z = [900.0, 0.0, 0.0, 0.0, 0.0, 0.0, 900.0, 0.0];
        layout.update(&mut sums, &z, Truth::Classes(&[0, 2]));
        let perfect = layout.classification(&sums, &[0, 2], 1.0);
        assert_eq!((perfect.error, perfect.brier, perfect.ece), (0.0, 0.0, 0.0));
        assert_eq!(perfect.waic.bayes_loss, 0.0);
        assert_eq!(perfect.reliability[14].rows, 2);
        let mut sums = layout.start();
        layout.update(&mut sums, &[0.0; 8], Truth::Classes(&[0, 2]));
        let flat = layout.classification(&sums, &[0, 2], 1.0);
        // Ties go to class 0; confidence 1/4, accuracy 1/2.
        assert_eq!((flat.error, flat.brier, flat.ece), (0.5, 0.75, 0.25));
        close(flat.waic.bayes_loss, 4f64.ln());
        assert_eq!(flat.reliability[3].rows, 2);
        assert_eq!(flat.waic.functional_variance, 0.0);
    }

    #[test]
    fn nothing_known_is_nan() {
        let layout = PredictionSums::new(6, 3);
        let none = layout.start();
        let classes = layout.classification(&none, &LABELS, 1.0);
        assert!(classes.error.is_nan() && classes.brier.is_nan() && classes.ece.is_nan());
        assert!(classes.waic.waic.is_nan() && classes.waic.elpd_se.is_nan());
        let regression = layout.regression(&none, &[0.0; 18], None, 1.0);
        assert!(regression.squared_error.is_nan() && regression.generalisation_error.is_nan());
        let mut sums = layout.start();
        layout.update(&mut sums, &outputs(0), Truth::Classes(&LABELS));
        assert!(!layout.classification(&sums, &LABELS, 1.0).error.is_nan());
        assert!(
            layout
                .classification(&sums, &LABELS[1..], 1.0)
                .error
                .is_nan()
        );
        assert!(layout.classification(&sums, &[3; 6], 1.0).error.is_nan());
        assert!(
            layout
                .regression(&sums, &[0.0; 17], None, 1.0)
                .squared_error
                .is_nan()
        );
        let mut odd = outputs(1);
        odd[4] = f32::NAN;
        layout.update(&mut sums, &odd, Truth::Classes(&LABELS));
        let odd = layout.classification(&sums, &LABELS, 1.0);
        assert!(odd.error.is_nan() && odd.ece.is_nan() && odd.reliability.is_empty());
        assert!(odd.waic.waic.is_nan() && odd.waic.largest_variance.is_nan());
        assert!(layout.classification(&[], &[], 1.0).draws.is_nan());
        let label = [2, 0, 1, 1, 0, 9];
        let mut sums = layout.start();
        layout.update(&mut sums, &outputs(0), Truth::Classes(&label));
        assert!(layout.waic(&sums, 1.0).bayes_loss.is_nan());
    }
}
