//! Diagnostics of Markov chains: effective sample sizes, R-hat, Monte Carlo errors, autocorrelation times.
//!
//! The definitions are those of Vehtari, Gelman, Simpson, Carpenter and Bürkner, "Rank-normalization, folding, and
//! localization: an improved R-hat for assessing convergence of MCMC", Bayesian Analysis 16 (2021) 667, as ArviZ
//! (arviz-stats 1.3) implements them; `tests/suite/diagnostics.rs` holds this module to ArviZ's own numbers.
//!
//! **Shapes.** Every function of chains takes `chains`: one slice of draws per chain, in the order they were drawn, all
//! of one scalar quantity. Chains of unequal length are cut to the shortest. Means, standard deviations and Monte Carlo
//! errors carry the unit of the quantity, effective sample sizes are counts of draws, autocorrelation times are in
//! draws.
//!
//! **Degenerate input.** Nothing here panics. A NaN anywhere, or fewer than 4 draws per chain, makes every estimate NaN
//! (so does fewer than 2 chains for R-hat). A constant trace keeps ArviZ's answers: its effective sample size is the
//! number of draws, its Monte Carlo error of the mean is 0, and R-hat, the error of the standard deviation, the
//! autocorrelation and its time are NaN. Look at R-hat before trusting the effective sample size of a stuck chain.
//! ArviZ calls a trace constant when its range is below 1e-15, whatever its unit; so does this module.
//!
//! Besides: what is tested against an exact answer ([`kolmogorov_smirnov`], [`Grid`]), the spectrum of correlations
//! ([`eigenvalues`]), the scores of the predictions that draws make together ([`PredictionSums`]) and of those of each
//! example by the others ([`psis`]).

mod autocovariance;
pub(crate) mod curvature;
mod energy;
mod equilibration;
mod ess;
pub mod evidence;
mod grid;
mod kolmogorov;
mod line;
mod mcse;
mod moments;
mod prediction;
pub mod psis;
mod rank;
mod replicas;
mod rhat;
mod scores;
mod spectrum;
mod student;
mod thermometer;
pub mod verdict;

pub use autocovariance::autocorrelation;
pub use energy::bfmi;
pub use equilibration::{Equilibration, drift, equilibration, geweke};
pub use ess::{
    autocorrelations, ess_bulk, ess_mean, ess_sd, ess_tail, ess_tail_between,
    integrated_autocorrelation_time,
};
pub use grid::{Grid, expected_total_variation, total_variation};
pub use kolmogorov::{
    KolmogorovSmirnov, kolmogorov_smirnov, kolmogorov_smirnov_normal, kolmogorov_survival,
    normal_cdf,
};
pub use line::{Line, line};
pub use mcse::{mcse_mean, mcse_sd, variance};
pub use moments::{mean, median, sd};
pub use prediction::{PredictionSums, Truth};
pub use replicas::{Distribution, mean_over_pairs, mean_over_replicas};
pub use rhat::rhat_rank;
pub use scores::{ClassificationScores, RegressionScores, ReliabilityBin, Waic};
pub use spectrum::{correlation_matrix, eigenvalues, eigenvectors, marchenko_pastur_edges};
pub use thermometer::{Heat, Reading, thermometer};
pub use verdict::Verdict;

/// What a table of results says about one scalar quantity.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Summary {
    /// Mean over all draws of all chains, in the quantity's unit.
    pub mean: f64,
    /// Standard deviation over all draws of all chains (n - 1 in the denominator), in the quantity's unit.
    pub sd: f64,
    /// Monte Carlo standard error of `mean`, in the quantity's unit.
    pub mcse_mean: f64,
    /// Monte Carlo standard error of `sd`, in the quantity's unit.
    pub mcse_sd: f64,
    /// Effective number of draws for the bulk of the distribution.
    pub ess_bulk: f64,
    /// Effective number of draws for the 5 % and the 95 % quantile, whichever is smaller.
    pub ess_tail: f64,
    /// Rank-normalised split R-hat; 1 at convergence, worth a look above 1.01.
    pub r_hat: f64,
    /// Integrated autocorrelation time, in draws.
    pub autocorrelation_time: f64,
}

/// Every diagnostic of `chains` that a table shows.
pub fn summarise<C: AsRef<[f64]>>(chains: &[C]) -> Summary {
    let rows = moments::rectangle(chains);
    // The costly transforms that more than one column needs are done once.
    let ess_mean = ess_mean(&rows);
    let [mut ess_bulk, mut ess_tail, mut r_hat] = [f64::NAN; 3];
    if moments::usable(&rows, 1) {
        let order = rank::Order::of(&moments::halves(&rows));
        let scores = order.scores();
        ess_bulk = ess::effective_size(&scores);
        let (low, high) = ess::TAILS;
        // Half chains leave out the middle of an odd number of draws.
        let sorted = match rows[0].len().is_multiple_of(2) {
            true => order.values(),
            false => moments::sorted(&rows),
        };
        ess_tail = ess::ess_tail_of(&rows, &sorted, low, high);
        if rows.len() > 1 {
            r_hat = rhat::rhat_of(&scores, &order);
        }
    }
    Summary {
        mean: mean(&rows),
        sd: sd(&rows),
        mcse_mean: mcse::mcse_mean_from(&rows, ess_mean),
        mcse_sd: mcse_sd(&rows),
        ess_bulk,
        ess_tail,
        r_hat,
        autocorrelation_time: ess::autocorrelation_time_from(&rows, ess_mean),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_the_functions_it_is_made_of() {
        let chains = [
            rank::normal_draws(1, 100),
            rank::normal_draws(2, 100),
            rank::normal_draws(3, 90),
        ];
        let cut: Vec<&[f64]> = chains.iter().map(|c| &c[..90]).collect();
        let all = summarise(&chains);
        assert_eq!(all.mean, mean(&cut));
        assert_eq!(all.sd, sd(&cut));
        assert_eq!(all.mcse_mean, mcse_mean(&cut));
        assert_eq!(all.mcse_sd, mcse_sd(&cut));
        assert_eq!(all.ess_bulk, ess_bulk(&cut));
        assert_eq!(all.ess_tail, ess_tail(&cut));
        assert_eq!(all.r_hat, rhat_rank(&cut));
        assert_eq!(
            all.autocorrelation_time,
            integrated_autocorrelation_time(&cut)
        );
    }

    #[test]
    fn no_input_panics_and_what_cannot_be_known_is_nan() {
        let nan = f64::NAN;
        let inf = f64::INFINITY;
        let unusable: [&[Vec<f64>]; 6] = [
            &[],
            &[vec![]],
            &[vec![], vec![1.0, 2.0]],
            &[vec![1.0]],
            &[vec![1.0, 2.0, 3.0], vec![3.0, 1.0, 2.0]],
            &[vec![1.0, 2.0, nan, 4.0, 5.0], vec![1.0, 3.0, 2.0, 4.0, 5.0]],
        ];
        for chains in unusable {
            let s = summarise(chains);
            for x in [s.mcse_mean, s.mcse_sd, s.ess_bulk, s.ess_tail, s.r_hat] {
                assert!(x.is_nan(), "{chains:?}: {s:?}");
            }
            assert!(s.autocorrelation_time.is_nan());
        }
        for odd in [[inf; 9], [nan; 9], [f64::MAX; 9], [-0.0; 9]] {
            let mut mixed = odd;
            mixed[4] = 1.0;
            mixed[7] = -inf;
            for chains in [[odd, odd], [odd, mixed], [mixed, mixed]] {
                summarise(&chains);
                bfmi(&chains);
                autocorrelation(&chains[0]);
                thermometer(&chains, 1.0);
            }
        }
    }
}
