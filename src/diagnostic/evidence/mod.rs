//! Free energies and evidence from draws at a ladder of temperatures.
//!
//! At the inverse temperature beta = 1/T (1/energy) the law is p_beta(w) ∝ pi(w) exp(-beta E(w)): E is the tempered
//! energy, s·L(w), and pi the prior, which is not tempered. Its normalisation is Z(beta) = ∫ pi(w) exp(-beta E(w)) dw,
//! with a normalised pi, so that ln Z(0) = 0 and ln Z(1) is the log evidence. Every estimate here is a difference
//! ln Z(beta_R) - ln Z(beta_1) between the ends of a [`Ladder`], dimensionless: absolute where the ladder starts with
//! draws of the prior ([`Ladder::starts_at_prior`]), relative to its first rung where it does not.
//!
//! | estimator | needs | off by, besides noise |
//! |---|---|---|
//! | [`thermodynamic_integration`] | means, variances and third cumulants of E | a quadrature error, which it estimates |
//! | [`stepping_stone`] | overlap of neighbours | half the squared error bar, in opposite directions forward and backward |
//! | [`Mbar`] | overlap of neighbours | the least of the three |
//!
//! **Error bars.** Each estimate is a smooth function of averages over rungs, and to first order its error is a sum
//! over rungs of the mean of one number per draw, its influence (Hampel, J. Amer. Statist. Assoc. 69 (1974) 383; for
//! estimators like these, Geyer, "Estimating normalizing constants and reweighting mixtures", Minnesota technical report
//! 568 (1994)). The Monte Carlo error of that mean, with the autocorrelation of the influence itself, is what
//! [`mcse_mean`](super::mcse_mean) gives; a rung used twice, by two neighbouring steps, has one influence. [`Replicas`]
//! says how rungs combine. [`block_bootstrap`] is the check that assumes no linearity.

pub(crate) mod annealing;
mod bootstrap;
mod density_of_states;
mod heat_capacity;
mod ladder;
mod linear;
mod mbar;
mod models;
mod newton;
mod reweight;
mod stepping_stone;
mod thermodynamic;

pub use bootstrap::{Blocks, Bootstrap, BootstrapOptions, block_bootstrap, block_length};
pub use density_of_states::DensityOfStates;
pub use heat_capacity::{HeatCapacityPeak, heat_capacity_peak};
pub(super) use ladder::ln_sum_exp;
pub use ladder::{Estimate, Ladder, Replicas};
pub use mbar::Mbar;
pub use models::{PosteriorWeight, ln_bayes_factor, posterior_weights};
pub use newton::Convergence;
pub use reweight::{EnergyMoments, Reweighted};
pub use stepping_stone::{SteppingStone, stepping_stone};
pub use thermodynamic::{Quadrature, ThermodynamicIntegration, thermodynamic_integration};
