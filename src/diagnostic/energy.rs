//! The Bayesian fraction of missing information: how well a sampler moves between levels of energy.

use super::moments::{mean_of, rectangle, variance_of};

/// Bayesian fraction of missing information of each chain, dimensionless, from its energies (any one unit).
///
/// The mean squared step of the energy over its variance: about 2 for independent energies, small when the energy
/// diffuses. Defined by Betancourt (arXiv:1604.00695); ArviZ warns below 0.3. NaN for a chain that is constant, has a
/// NaN or has fewer than two draws.
pub fn bfmi<C: AsRef<[f64]>>(energies: &[C]) -> Vec<f64> {
    let of_chain = |row: &&[f64]| {
        let steps = row.windows(2).map(|w| (w[1] - w[0]) * (w[1] - w[0]));
        mean_of(steps) / variance_of(row.iter().copied())
    };
    rectangle(energies).iter().map(of_chain).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rank::normal_draws;
    use super::*;

    #[test]
    fn known_answers() {
        let got = bfmi(&[[0.0, 1.0, 2.0], [0.0, 2.0, 0.0]]);
        assert!((got[0] - 1.0).abs() < 1e-15 && (got[1] - 3.0).abs() < 1e-14);
        let independent = bfmi(&[normal_draws(1, 20_000)])[0];
        assert!((independent - 2.0).abs() < 0.1);
    }

    #[test]
    fn the_edges() {
        assert!(bfmi(&[[0.1; 10]])[0].is_nan());
        assert!(bfmi(&[[1.0]])[0].is_nan());
        assert!(bfmi(&[[1.0, f64::NAN, 2.0]])[0].is_nan());
        assert!(bfmi::<Vec<f64>>(&[]).is_empty());
    }
}
