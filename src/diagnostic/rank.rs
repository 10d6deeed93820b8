//! Rank normalisation: draws replaced by the normal scores of their ranks, so that no moment has to exist.

use super::moments::median_of_sorted;

/// The draws of all chains in ascending order, each with its place in the chains one after the other: sorting is most of the work of a diagnostic, and
/// several need it.
pub(super) struct Order {
    sorted: Vec<(f64, u32)>,
    /// Draws of each chain.
    lengths: Vec<usize>,
}

impl Order {
    /// Of at most 2^32 draws; NaN anywhere makes all scores NaN.
    pub fn of<C: AsRef<[f64]>>(rows: &[C]) -> Self {
        let all = rows.iter().flat_map(|row| row.as_ref().iter().copied());
        let mut sorted: Vec<_> = all.zip(0..).collect();
        sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let lengths = rows.iter().map(|row| row.as_ref().len()).collect();
        Self { sorted, lengths }
    }

    /// The draws alone.
    pub fn values(&self) -> Vec<f64> {
        self.sorted.iter().map(|(x, _)| *x).collect()
    }

    /// Normal scores of the ranks over all draws of all chains: shape of the rows, dimensionless.
    ///
    /// Ties share their average rank r; the score is the normal quantile of (r - 3/8) / (n + 1/4) (Blom 1958; Vehtari et
    /// al. 2021).
    pub fn scores(&self) -> Vec<Vec<f64>> {
        let n = self.sorted.len();
        let mut scores = vec![0.0; n];
        if self.sorted.iter().any(|(x, _)| x.is_nan()) {
            scores.fill(f64::NAN);
        } else {
            let mut smaller = 0;
            for tied in self.sorted.chunk_by(|a, b| a.0 == b.0) {
                let rank = smaller as f64 + (tied.len() + 1) as f64 / 2.0;
                let score = normal_quantile((rank - 0.375) / (n as f64 + 0.25));
                for (_, place) in tied {
                    scores[*place as usize] = score;
                }
                smaller += tied.len();
            }
        }
        let mut rest = scores.as_slice();
        let row = |length: &usize| {
            let (own, others) = rest.split_at(*length);
            rest = others;
            own.to_vec()
        };
        self.lengths.iter().map(row).collect()
    }

    /// The order of the distances of the draws from their median, in their unit.
    ///
    /// R-hat of the folded draws sees chains that differ in spread and not in location (Vehtari et al. 2021).
    pub fn folded(&self) -> Self {
        let median = median_of_sorted(&self.values());
        let distance = |(x, place): &(f64, u32)| ((x - median).abs(), *place);
        let (below, above) = self
            .sorted
            .split_at(self.sorted.partition_point(|(x, _)| *x < median));
        // Distances ascend on both sides of the median.
        let mut below = below.iter().rev().map(distance).peekable();
        let mut above = above.iter().map(distance).peekable();
        let mut sorted = Vec::with_capacity(self.sorted.len());
        while let (Some(a), Some(b)) = (below.peek(), above.peek()) {
            let next = if a.0 < b.0 {
                below.next()
            } else {
                above.next()
            };
            sorted.extend(next);
        }
        sorted.extend(below.chain(above));
        let lengths = self.lengths.clone();
        Self { sorted, lengths }
    }
}

/// Normal scores of the ranks: see [`Order::scores`].
pub(super) fn normal_scores<C: AsRef<[f64]>>(rows: &[C]) -> Vec<Vec<f64>> {
    Order::of(rows).scores()
}

/// The x below which a standard normal variable falls with probability `p`; infinite at 0 and 1, NaN outside of them.
///
/// Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics 37 (1988) 477,
/// routine PPND16: relative accuracy 1e-16.
pub(super) fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180625 - q * q;
        return q * polynomial(&CENTRE.0, r) / polynomial(&CENTRE.1, r);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    if tail == 0.0 {
        return f64::INFINITY.copysign(q);
    }
    // Outside of 0 to 1 the logarithm makes this NaN, and a NaN stays one.
    let r = (-tail.ln()).sqrt();
    let x = if r <= 5.0 {
        polynomial(&SHOULDER.0, r - 1.6) / polynomial(&SHOULDER.1, r - 1.6)
    } else {
        polynomial(&FAR.0, r - 5.0) / polynomial(&FAR.1, r - 5.0)
    };
    x.copysign(q)
}

/// Numerator and denominator coefficients, constant term first.
type Rational = ([f64; 8], [f64; 8]);

fn polynomial(coefficients: &[f64; 8], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

// The digits are those printed in the paper, more than an f64 holds.
#[allow(clippy::excessive_precision)]
const CENTRE: Rational = (
    [
        3.387_132_872_796_366_608_0,
        1.331_416_678_917_843_774_5e2,
        1.971_590_950_306_551_442_7e3,
        1.373_169_376_550_946_112_5e4,
        4.592_195_393_154_987_145_7e4,
        6.726_577_092_700_870_085_3e4,
        3.343_057_558_358_812_810_5e4,
        2.509_080_928_730_122_672_7e3,
    ],
    [
        1.0,
        4.231_333_070_160_091_125_2e1,
        6.871_870_074_920_579_083_0e2,
        5.394_196_021_424_751_107_7e3,
        2.121_379_430_158_659_586_7e4,
        3.930_789_580_009_271_061_0e4,
        2.872_908_573_572_194_267_4e4,
        5.226_495_278_852_854_561_0e3,
    ],
);

#[allow(clippy::excessive_precision)]
const SHOULDER: Rational = (
    [
        1.423_437_110_749_683_577_34,
        4.630_337_846_156_545_295_90,
        5.769_497_221_460_691_405_50,
        3.647_848_324_763_204_605_04,
        1.270_458_252_452_368_382_58,
        2.417_807_251_774_506_117_70e-1,
        2.272_384_498_926_918_458_33e-2,
        7.745_450_142_783_414_076_40e-4,
    ],
    [
        1.0,
        2.053_191_626_637_758_821_87,
        1.676_384_830_183_803_849_40,
        6.897_673_349_851_000_045_50e-1,
        1.481_039_764_274_800_745_90e-1,
        1.519_866_656_361_645_719_66e-2,
        5.475_938_084_995_344_946_00e-4,
        1.050_750_071_644_416_843_24e-9,
    ],
);

#[allow(clippy::excessive_precision)]
const FAR: Rational = (
    [
        6.657_904_643_501_103_777_20,
        5.463_784_911_164_114_369_90,
        1.784_826_539_917_291_335_80,
        2.965_605_718_285_048_912_30e-1,
        2.653_218_952_657_612_309_30e-2,
        1.242_660_947_388_078_438_60e-3,
        2.711_555_568_743_487_578_15e-5,
        2.010_334_399_292_288_132_65e-7,
    ],
    [
        1.0,
        5.998_322_065_558_879_376_90e-1,
        1.369_298_809_227_358_053_10e-1,
        1.487_536_129_085_061_485_25e-2,
        7.868_691_311_456_132_591_00e-4,
        1.846_318_317_510_054_681_80e-5,
        1.421_511_758_316_445_888_70e-7,
        2.044_263_103_389_939_785_64e-15,
    ],
);

/// Independent standard normal draws for the tests of this module: splitmix64 through the normal quantile.
#[cfg(test)]
pub(super) fn normal_draws(seed: u64, n: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0xD134_2543_DE82_EF95);
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    (0..n)
        .map(|_| normal_quantile(((next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_quantile_is_full_double_precision() {
        // scipy.stats.norm.ppf, SciPy 1.18.1.
        let known = [
            (1e-300, -37.0470962993612),
            (1e-20, -9.262340089798409),
            (1e-10, -6.361340902404056),
            (0.001, -3.090232306167813),
            (0.025, -1.9599639845400545),
            (0.05, -1.6448536269514729),
            (0.075, -1.4395314709384563),
            (0.2, -0.8416212335729142),
            (0.4, -0.2533471031357997),
            (0.6, 0.2533471031357997),
            (0.925, 1.4395314709384563),
            (0.975, 1.959963984540054),
            (0.9999, 3.719016485455709),
        ];
        for (p, x) in known {
            let got = normal_quantile(p);
            assert!((got - x).abs() <= 1e-15 * x.abs(), "{p}: {got} and not {x}");
        }
        assert_eq!(normal_quantile(0.5), 0.0);
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
        for p in [-0.1, 1.1, f64::NAN] {
            assert!(normal_quantile(p).is_nan());
        }
    }

    #[test]
    fn ties_share_their_average_rank() {
        let scores = normal_scores(&[[3.0, 1.0], [3.0, 7.0]]);
        let of_rank = |r: f64| normal_quantile((r - 0.375) / 4.25);
        assert_eq!(scores[0], [of_rank(2.5), of_rank(1.0)]);
        assert_eq!(scores[1], [of_rank(2.5), of_rank(4.0)]);
    }

    #[test]
    fn folding_measures_from_the_common_median() {
        // Far apart, tied on both sides, infinite, and an odd number of them.
        let tied: Vec<f64> = (0..101).map(|i| f64::from(i * i % 17)).collect();
        for draws in [
            &[1.0, 2.0, 4.0, 10.0][..],
            &[f64::INFINITY, 1.0, -3.0, 1.0],
            &tied,
        ] {
            let rows = [draws];
            let median = median_of_sorted(&Order::of(&rows).values());
            let distances: Vec<f64> = draws.iter().map(|x| (x - median).abs()).collect();
            assert_eq!(
                Order::of(&rows).folded().scores(),
                normal_scores(&[distances])
            );
        }
        let folded = Order::of(&[[1.0, 2.0], [4.0, 10.0]]).folded();
        assert_eq!(folded.values(), [1.0, 1.0, 2.0, 7.0]);
        let stuck = Order::of(&[[f64::INFINITY; 5]]).folded().scores();
        assert!(stuck[0].iter().all(|x| x.is_nan()));
    }
}
