//! Counter-based randomness: Philox4x32-10 (Salmon et al., SC 2011), keyed by the seed.
//!
//! No generator has state. A random number is a pure function of *(seed, purpose, chain, step, sub, element)*, so results do
//! not depend on the number of threads, on batching, or on where a run was interrupted; CPU and GPU draw the same bits.
//!
//! The 128-bit counter is laid out as
//!
//! | word | content |
//! |---|---|
//! | 0 | block of elements |
//! | 1 | purpose (8 bits) and chain (24 bits) |
//! | 2 | step, low 32 bits |
//! | 3 | sub-stream within the step (16 bits) and step, high 16 bits |

use rand::RngCore;

/// What a stream of random numbers is for. Every use of randomness in the program is listed here, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// Synthetic data and splits of data sets.
    Dataset = 1,
    /// Initial parameters of a model.
    Initialise = 2,
    /// Which examples are in a minibatch.
    Minibatch = 3,
    /// Noise of a sampler's step.
    Noise = 4,
    /// Fresh momenta.
    Momentum = 5,
    /// The uniform number of an accept/reject decision.
    Accept = 6,
    /// Jitter of a step size.
    Jitter = 7,
    /// Minibatches drawn to estimate the variance of the gradient.
    Variance = 8,
    /// Resets of fictitious masses.
    Reset = 9,
    /// Minibatches of an optimiser.
    Train = 10,
    /// Proposals of a random walk.
    Proposal = 11,
    /// Swaps of replicas.
    Swap = 12,
    /// Minibatches that tell how noisy the gradient is.
    Probe = 13,
    /// Directions and choices of a trajectory that grows by doubling.
    Tree = 14,
    /// Draws from the prior.
    Prior = 15,
    /// Blocks of draws that a bootstrap picks.
    Bootstrap = 16,
    /// Which members of a population survive.
    Resample = 17,
    /// Tensors of random numbers in scripts.
    Tensor = 18,
    /// Draws from a Gaussian that approximates a law.
    Approximation = 19,
}

/// A stream of random numbers: everything but the element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Stream {
    /// The two key words.
    pub key: [u32; 2],
    /// Counter words 1 to 3.
    pub high: [u32; 3],
}

/// Largest number of chains one seed distinguishes.
pub const MAX_CHAINS: usize = 1 << 24;

impl Stream {
    /// A stream for where none is used.
    pub const NONE: Stream = Stream {
        key: [0; 2],
        high: [0; 3],
    };

    /// The stream of `purpose` for one chain at one step.
    pub fn new(seed: u64, purpose: Purpose, chain: usize, step: u64) -> Self {
        debug_assert!(chain < MAX_CHAINS && step < 1 << 48);
        Self {
            key: [seed as u32, (seed >> 32) as u32],
            high: [
                (purpose as u32) << 24 | chain as u32,
                step as u32,
                (step >> 32) as u32 & 0xffff,
            ],
        }
    }

    /// The same stream's `sub`-th sub-stream (a leapfrog step, the k-th minibatch of an estimate).
    pub fn sub_stream(self, sub: u16) -> Self {
        let mut s = self;
        s.high[2] = (s.high[2] & 0xffff) | (sub as u32) << 16;
        s
    }

    /// The four random words of one block.
    #[inline(always)]
    pub fn block(&self, block: u32) -> [u32; 4] {
        philox4x32_10([block, self.high[0], self.high[1], self.high[2]], self.key)
    }

    /// A uniform number in (0, 1), 53 bits, never 0 or 1.
    pub fn uniform(&self, element: u32) -> f64 {
        let w = self.block(element);
        let bits = (w[0] as u64) << 32 | w[1] as u64;
        ((bits >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)
    }

    /// A standard normal number in double precision (Box–Muller). For few numbers; arrays use `kernels::normal`.
    pub fn normal(&self, element: u32) -> f64 {
        let w = self.block(element);
        let u = ((w[0] as u64) << 20 | w[1] as u64 >> 12) as f64 + 0.5;
        let v = (w[2] as u64) << 20 | w[3] as u64 >> 12;
        let scale = 1.0 / (1u64 << 52) as f64;
        (-2.0 * (u * scale).ln()).sqrt() * (std::f64::consts::TAU * v as f64 * scale).cos()
    }

    /// Fill `out` with indices drawn uniformly from 0..n, independently (with replacement).
    pub fn indices(&self, n: usize, out: &mut [u32]) {
        for (b, four) in out.chunks_mut(4).enumerate() {
            let w = self.block(b as u32);
            for (o, x) in four.iter_mut().zip(w) {
                // Multiply–shift: bias below n / 2^32, far under anything a chain can resolve.
                *o = ((x as u64 * n as u64) >> 32) as u32;
            }
        }
    }

    /// Fill `out` with different indices drawn uniformly from 0..n (without replacement); `out` has at most n.
    ///
    /// Index j is where a random permutation of 0..n sends j: eight Feistel rounds on just enough bits, walked until the result is
    /// below n. No index depends on another, so that a GPU draws them side by side (`draw_subset` in `network.cu`).
    pub fn subset(&self, n: usize, out: &mut [u32]) {
        let permutation = Permutation::new(self, n as u32);
        for (j, o) in (0..).zip(out) {
            *o = permutation.of(j);
        }
    }

    /// This stream as a `rand` generator, for shuffles and distributions where speed does not matter.
    pub fn rng(self) -> StreamRng {
        StreamRng {
            stream: self,
            block: 0,
            word: 4,
            buffer: [0; 4],
        }
    }
}

/// A random permutation of 0..n, one element at a time.
struct Permutation {
    keys: [u32; 8],
    n: u32,
    /// Bits of the lower part of a number, and of the upper.
    bits: [u32; 2],
}

impl Permutation {
    fn new(stream: &Stream, n: u32) -> Self {
        let (a, b) = (stream.block(0), stream.block(1));
        let bits = (32 - n.saturating_sub(1).leading_zeros()).max(2);
        Self {
            keys: [a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]],
            n,
            bits: [bits / 2, bits - bits / 2],
        }
    }

    fn of(&self, j: u32) -> u32 {
        let mut x = j;
        loop {
            for (round, key) in self.keys.iter().enumerate() {
                // The parts change places every round, and with them their widths.
                let (low, high) = (self.bits[round % 2], self.bits[1 - round % 2]);
                let (right, left) = (x & ((1 << low) - 1), x >> low);
                let mixed = left ^ (scramble(right ^ key) & ((1 << high) - 1));
                x = right << high | mixed;
            }
            if x < self.n {
                return x;
            }
        }
    }
}

/// A good hash of a word (the finaliser of MurmurHash3, public domain).
fn scramble(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x85eb_ca6b);
    x ^= x >> 13;
    x = x.wrapping_mul(0xc2b2_ae35);
    x ^ x >> 16
}

/// A [`Stream`] read from its first block onwards, as `rand` generators are.
#[derive(Debug, Clone)]
pub struct StreamRng {
    stream: Stream,
    block: u32,
    word: usize,
    buffer: [u32; 4],
}

impl RngCore for StreamRng {
    fn next_u32(&mut self) -> u32 {
        if self.word == 4 {
            self.buffer = self.stream.block(self.block);
            self.block = self.block.wrapping_add(1);
            self.word = 0;
        }
        self.word += 1;
        self.buffer[self.word - 1]
    }

    fn next_u64(&mut self) -> u64 {
        self.next_u32() as u64 | (self.next_u32() as u64) << 32
    }

    fn fill_bytes(&mut self, dest: &mut [u8]) {
        for chunk in dest.chunks_mut(4) {
            let bytes = self.next_u32().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}

/// What a round of Philox multiplies by.
pub const MULTIPLIER: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// What the keys grow by from round to round.
pub const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// Ten rounds of Philox4x32.
#[inline(always)]
pub fn philox4x32_10(mut c: [u32; 4], mut k: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let p0 = MULTIPLIER[0] as u64 * c[0] as u64;
        let p1 = MULTIPLIER[1] as u64 * c[2] as u64;
        c = [
            (p1 >> 32) as u32 ^ c[1] ^ k[0],
            p1 as u32,
            (p0 >> 32) as u32 ^ c[3] ^ k[1],
            p0 as u32,
        ];
        k = [k[0].wrapping_add(WEYL[0]), k[1].wrapping_add(WEYL[1])];
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subset_has_no_index_twice_and_every_index_and_pair_equally_often() {
        for n in [1, 2, 3, 7, 64, 65, 1000] {
            let mut all = vec![0; n];
            Stream::new(5, Purpose::Minibatch, 0, n as u64).subset(n, &mut all);
            all.sort_unstable();
            assert!(all.iter().enumerate().all(|(i, x)| i == *x as usize), "{n}");
        }
        // Null: uniform pairs of different indices; chi-squared with 10·9 - 1 degrees of freedom, within four standard deviations.
        let (n, draws) = (10, 90_000);
        let mut counts = vec![0.0; n * n];
        for step in 0..draws {
            let mut pair = [0; 2];
            Stream::new(6, Purpose::Minibatch, 0, step).subset(n, &mut pair);
            counts[pair[0] as usize * n + pair[1] as usize] += 1.0;
        }
        let expected = draws as f64 / (n * (n - 1)) as f64;
        let chi2: f64 = (0..n * n)
            .filter(|i| i / n != i % n)
            .map(|i| (counts[i] - expected).powi(2) / expected)
            .sum();
        assert!((chi2 - 89.0).abs() < 4.0 * (2.0 * 89.0f64).sqrt(), "{chi2}");
    }

    /// Known-answer vectors of the Random123 distribution (`kat_vectors`, philox4x32 10).
    #[test]
    fn philox_gives_the_published_test_vectors() {
        let ones = u32::MAX;
        let cases = [
            (
                [0; 4],
                [0; 2],
                [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
            ),
            (
                [ones; 4],
                [ones; 2],
                [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
            ),
            (
                [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
                [0xa4093822, 0x299f31d0],
                [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
            ),
        ];
        for (counter, key, expected) in cases {
            assert_eq!(philox4x32_10(counter, key), expected);
        }
    }

    #[test]
    fn streams_of_different_purpose_chain_step_and_sub_differ() {
        let base = Stream::new(7, Purpose::Noise, 3, 11);
        let others = [
            Stream::new(8, Purpose::Noise, 3, 11),
            Stream::new(7 + (1 << 32), Purpose::Noise, 3, 11),
            Stream::new(7, Purpose::Momentum, 3, 11),
            Stream::new(7, Purpose::Noise, 4, 11),
            Stream::new(7, Purpose::Noise, 3, 12),
            Stream::new(7, Purpose::Noise, 3, 11 + (1 << 32)),
            base.sub_stream(1),
        ];
        for s in others {
            assert_ne!(s.block(0), base.block(0));
        }
    }

    /// Null: indices are uniform. Chi-squared over 10 cells has mean 9 and standard deviation sqrt(18); 4 sigma above is 26.
    #[test]
    fn indices_are_uniform() {
        let mut out = vec![0u32; 100_000];
        Stream::new(1, Purpose::Minibatch, 0, 0).indices(10, &mut out);
        let mut count = [0f64; 10];
        out.iter().for_each(|&i| count[i as usize] += 1.0);
        let chi2: f64 = count.iter().map(|c| (c - 1e4).powi(2) / 1e4).sum();
        assert!(chi2 < 9.0 + 4.0 * 18f64.sqrt(), "chi2 = {chi2}");
    }
}
