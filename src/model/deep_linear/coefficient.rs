//! The learning coefficient of a deep linear network, in closed form (Aoyagi 2024; Hitchcock & Hoogland 2025, theorem 1).
//!
//! The loss |W x - W_M … W_1 x|² has the zero set {W_M … W_1 = W}; its real log canonical threshold λ and its multiplicity m depend
//! only on the widths and the rank of W. That is the *global* coefficient: the least over all weights that give W. The local one at
//! some of them can be larger, see `regular_coefficient`.

use crate::error::Result;

/// λ and its multiplicity: the free energy is nL(w0) + λ ln n - (m-1) ln ln n + O(1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LearningCoefficient {
    /// λ, the real log canonical threshold.
    pub lambda: f64,
    /// m, the order of the pole.
    pub multiplicity: u64,
}

/// λ and m for widths H_0 … H_M and a product of rank r.
///
/// With Δ_i = H_i - r and Σ the set of indices with max Δ_Σ < min Δ_Σᶜ, ΣΔ ≥ ℓ max Δ_Σ and ΣΔ < ℓ min Δ_Σᶜ, ℓ = |Σ|-1 (the paper prints
/// "max" in the last condition, which leaves Σ undetermined), s = ΣΔ and a = s - ℓ(⌈s/ℓ⌉ - 1):
/// λ = ½(r(H_0+H_M) - r²) + a(ℓ-a)/4ℓ - (ℓ-1)s²/4ℓ + ½Σ_{σ<σ'} Δ_σ Δ_σ', m = a(ℓ-a) + 1.
///
/// # Errors
/// If there are fewer than two widths, one of them is 0, or the rank is larger than the smallest.
pub fn learning_coefficient(widths: &[usize], rank: usize) -> Result<LearningCoefficient> {
    let least = widths.iter().min().copied().unwrap_or(0);
    anyhow::ensure!(
        widths.len() >= 2 && least > 0,
        "learning_coefficient: at least two widths are needed, all > 0, but they are {widths:?}"
    );
    anyhow::ensure!(
        rank <= least,
        "learning_coefficient: rank {rank} is larger than the smallest width, {least}"
    );
    let mut deltas: Vec<_> = widths.iter().map(|h| (h - rank) as u64).collect();
    deltas.sort_unstable();
    // Equal Δ always fall on the same side, so Σ is some first part of the sorted ones.
    let found = (2..=deltas.len()).find(|k| satisfies(&deltas, *k));
    let chosen = &deltas[..found.unwrap_or(deltas.len())];
    let (l, s) = (chosen.len() as u64 - 1, chosen.iter().sum::<u64>());
    let a = s + l - l * s.div_ceil(l);
    let square: u64 = chosen.iter().map(|d| d * d).sum();
    let pairs = (s * s - square) as f64 / 2.0;
    let (r, ends) = (rank as f64, (widths[0] + widths[widths.len() - 1]) as f64);
    let (lf, sf, corner) = (l as f64, s as f64, (a * (l - a)) as f64);
    Ok(LearningCoefficient {
        lambda: 0.5 * (r * ends - r * r)
            + (corner - (lf - 1.0) * sf * sf) / (4.0 * lf)
            + 0.5 * pairs,
        multiplicity: a * (l - a) + 1,
    })
}

/// Whether the first `k` of the sorted Δ are the set Σ.
fn satisfies(sorted: &[u64], k: usize) -> bool {
    let (inside, outside) = sorted.split_at(k);
    let (l, s) = (k as u64 - 1, inside.iter().sum::<u64>());
    let largest = inside[k - 1];
    let beyond = outside
        .first()
        .is_none_or(|least| largest < *least && s < l * least);
    beyond && s >= l * largest
}

/// Half the rank of the Jacobian of (W_1, …, W_M) → W_M … W_1: the local coefficient where the zero set is smooth, a lower bound elsewhere.
///
/// The tangent vectors (W_M … W_{l+1}) E (W_{l-1} … W_1) span Σ_l U_l ⊗ V_l with U_l growing and V_l shrinking in l, so the rank is
/// Σ_l (u_l - u_{l-1}) v_l. `above[l]` is u = rank(W_M … W_{l+2}) and `below[l]` is v = rank(W_l … W_1), both for layer l+1 of M, with
/// H_M and H_0 for the empty products.
pub(crate) fn regular_coefficient(above: &[usize], below: &[usize]) -> f64 {
    let mut before = 0;
    let mut rank = 0;
    for (u, v) in above.iter().zip(below) {
        rank += (u - before) * v;
        before = *u;
    }
    0.5 * rank as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    fn of(widths: &[usize], rank: usize) -> LearningCoefficient {
        learning_coefficient(widths, rank).unwrap()
    }

    /// Aoyagi & Watanabe (2005), reduced-rank regression: inputs m, hidden h, outputs n, rank r.
    fn reduced_rank(m: i64, h: i64, n: i64, r: i64) -> LearningCoefficient {
        let (lambda, multiplicity) = if m + h < n + r {
            ((h * m - h * r + n * r) as f64 / 2.0, 1)
        } else if n + h < m + r {
            ((h * n - h * r + m * r) as f64 / 2.0, 1)
        } else if m + n < h + r {
            ((m * n) as f64 / 2.0, 1)
        } else {
            let q = h + r;
            let sum = 2 * q * m + 2 * q * n + 2 * m * n - q * q - m * m - n * n;
            let odd = (m + h + n + r) % 2;
            ((sum + odd) as f64 / 8.0, 1 + odd as u64)
        };
        LearningCoefficient {
            lambda,
            multiplicity,
        }
    }

    #[test]
    fn two_layers_are_reduced_rank_regression_for_all_widths_up_to_8() {
        let mut cases = 0;
        for m in 1..=8 {
            for h in 1..=8 {
                for n in 1..=8 {
                    for r in 0..=m.min(h).min(n) {
                        let expected = reduced_rank(m as i64, h as i64, n as i64, r as i64);
                        assert_eq!(of(&[m, h, n], r), expected, "{m} {h} {n} rank {r}");
                        cases += 1;
                    }
                }
            }
        }
        assert_eq!(cases, 1808);
    }

    #[test]
    fn listed_values_hold() {
        assert_eq!(of(&[4, 7], 0).lambda, 14.0);
        assert_eq!(of(&[4, 7], 3).lambda, 14.0);
        assert_eq!(of(&[3, 5, 2], 1).lambda, 3.0);
        assert_eq!(of(&[5, 5, 9, 9, 9, 6], 2).lambda, 13.0);
        assert_eq!(of(&[5, 6, 9, 4], 1).lambda, 9.5);
        // The paper's printed condition would allow 6 as well.
        assert_eq!(of(&[5, 9, 3, 9, 4], 0).lambda, 5.5);
    }

    #[test]
    fn the_set_is_unique_on_random_deep_networks() {
        let stream = Stream::new(5, Purpose::Dataset, 0, 0);
        let mut draw = (0..).map(|i| stream.uniform(i));
        let mut whole = |from: usize, to: usize| {
            from + (draw.next().unwrap() * (to - from + 1) as f64) as usize
        };
        for _ in 0..10_000 {
            let count = whole(2, 41);
            let widths: Vec<_> = (0..count).map(|_| whole(1, 60)).collect();
            let rank = whole(0, *widths.iter().min().unwrap());
            let mut deltas: Vec<_> = widths.iter().map(|h| (h - rank) as u64).collect();
            deltas.sort_unstable();
            let sets = (1..=count).filter(|k| satisfies(&deltas, *k)).count();
            assert_eq!(sets, 1, "{widths:?}, rank {rank}");
            let all = of(&widths, rank);
            let dim: usize = widths.windows(2).map(|w| w[0] * w[1]).sum();
            let full = (widths[0] * widths[count - 1]) as f64 / 2.0;
            assert!(all.lambda >= 0.0 && all.lambda <= full.min(dim as f64 / 2.0));
        }
    }

    /// No subset but a first part of the sorted Δ can be Σ: all 2^k subsets are tried.
    #[test]
    fn no_other_subset_satisfies_the_conditions() {
        let stream = Stream::new(6, Purpose::Dataset, 0, 0);
        let mut draw = (0..).map(|i| stream.uniform(i));
        let mut whole = |to: usize| (draw.next().unwrap() * (to + 1) as f64) as u64;
        for _ in 0..200 {
            let deltas: Vec<u64> = (0..2 + whole(6)).map(|_| whole(9)).collect();
            let mut sets = 0;
            for bits in 1u32..1 << deltas.len() {
                let part = |inside: bool| -> Vec<u64> {
                    let of = |i: &usize| (bits >> i & 1 == 1) == inside;
                    (0..deltas.len()).filter(of).map(|i| deltas[i]).collect()
                };
                let (inside, outside) = (part(true), part(false));
                let (l, s) = (inside.len() as u64 - 1, inside.iter().sum::<u64>());
                let largest = inside.iter().max().copied().unwrap_or(0);
                let fits = |least: &u64| largest < *least && s < l * least;
                sets += usize::from(outside.iter().min().is_none_or(fits) && s >= l * largest);
            }
            assert_eq!(sets, 1, "{deltas:?}");
        }
    }

    #[test]
    fn the_jacobian_has_the_rank_that_the_ranks_of_the_products_say() {
        // [5,5,9,9,9,6], only the first layer cut to rank 2: 5·5 directions of W_1, and 2 of the others.
        assert_eq!(
            regular_coefficient(&[5, 6, 6, 6, 6], &[5, 2, 2, 2, 2]),
            13.5
        );
        // Everything of full rank: the product is a submersion.
        assert_eq!(regular_coefficient(&[4, 4], &[3, 3]), 6.0);
    }

    #[test]
    fn widths_and_ranks_that_make_no_sense_are_refused() {
        let message = |w: &[usize], r| learning_coefficient(w, r).unwrap_err().to_string();
        assert!(message(&[3], 0).contains("at least two widths"));
        assert!(message(&[3, 0], 0).contains("all > 0"));
        assert!(message(&[3, 2, 5], 3).contains("rank 3 is larger than the smallest width, 2"));
    }
}
