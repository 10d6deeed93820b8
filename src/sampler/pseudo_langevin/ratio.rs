//! The variance V of the minibatch gradient, the masses that follow from it, and the control of the temperature ratio 𝒯 (eq. 18).

use super::{
    BATCHES, FACTOR, INTERVAL, LAST, MASS, MOMENTUM, Masses, NEXT, PseudoLangevin, RAISED,
    RATIO_COLLECTIVE, RATIO_MAX, RATIO_MEAN, RESETS, SQUARES, STREAK, VARIANCE,
};
use crate::engine::Vector::{self, Gradient, Params};
use crate::engine::{Chains, Member, PerChain};
use crate::error::Result;
use crate::kernels::map::{kernel, reduction};
use crate::kernels::update::{DOT, FILL, TOTAL, TWICE_KINETIC};
use crate::rng::Purpose;
use crate::sampler::gradient_noise::{self, ESTIMATE};

kernel! {
    /// Masses for the ratio 𝒯 from the clamped V, where asked for.
    SET_MASS = pseudo_langevin_set_mass(mass; variance; ; floor, per_variance, lightest, on) {
        let wanted = max(max(variance, floor) * per_variance, lightest);
        mass = choose(on > 0.0, wanted, mass);
    }
}

kernel! {
    /// Masses below their least, for 𝒯_max, are raised and their momenta redrawn, where asked for.
    RAISE_MASS = pseudo_langevin_raise_mass(mass, p, raised; variance; eta; per_variance, temperature, on) {
        let least = variance * per_variance;
        raised = choose(mass < least, on, 0.0);
        mass = choose(raised > 0.0, least, mass);
        p = choose(raised > 0.0, root(temperature * mass) * eta, p);
    }
}

kernel! {
    /// Momenta drawn afresh lag by half a step of ∇U, as all do.
    LAG = pseudo_langevin_lag(p; g, fresh; ; half) {
        p = choose(fresh > 0.0, p + half * g, p);
    }
}

kernel! {
    /// Momenta p ~ N(0, MT), where asked for.
    REDRAW = pseudo_langevin_redraw(p, fresh; mass; eta; temperature, on) {
        p = choose(on > 0.0, root(temperature * mass) * eta, p);
        fresh = max(fresh, on);
    }
}

reduction! {
    /// Σ V/M.
    RATIO = sum pseudo_langevin_ratio(variance, mass) { variance / mass }
}

reduction! {
    /// The largest V/M.
    LARGEST_RATIO = largest pseudo_langevin_largest_ratio(variance, mass) { variance / mass }
}

reduction! {
    /// Σ a b/M.
    OVER_MASS = sum pseudo_langevin_over_mass(a, b, mass) { a * b / mass }
}

kernel! {
    /// `d ← a - b`.
    DIFFERENCE = pseudo_langevin_difference(d; a, b; ; ) {
        d = a - b;
    }
}

/// Which momenta were drawn afresh.
const FRESH: Vector = Vector::Scratch(0);

/// Steps that a chain is left alone after a refresh before it is refreshed for being hot.
pub(super) const COOLING: f64 = 10.0;

/// Differences of minibatch gradients, at most, from which correlations are measured.
const DIFFERENCES: usize = 40;

/// Sub-streams that measurements of V do not use.
const COLLECTIVE_SUB: u16 = 20_000;

/// Steps to the first refresh, and between refreshes while V changes by more than a factor of two.
pub(super) const FIRST: f64 = 10.0;

impl PseudoLangevin {
    /// 𝒯_i = V_i · this / M_i (eq. 18).
    fn ratio_per_variance(&self, t: f64) -> f64 {
        self.dt * self.dt / (4.0 * (1.0 - self.keep) * t)
    }

    /// Set every mass of the chains in `which` for the ratio 𝒯, from the clamped V.
    pub(super) fn set_masses(&self, chains: &mut Chains, which: &[bool]) -> Result<()> {
        if self.masses == Masses::Uniform {
            return chains.map(&FILL, &[MASS], |_, _| [1.0]);
        }
        let n = chains.dim() as f64;
        // The least mass whatever V is. V is measured where the chain is, and says nothing about where light weights would run: they
        // must resolve the prior's oscillation (ωδt ≤ 1/5) and move by no more than 5 % of the weights' size per step.
        let precisions = chains.engine.prior_precisions();
        let squares = chains.scalar(SQUARES);
        let lightest = |c: usize, m: &Member| {
            let thermal = 400.0 * m.temperature * n / squares[c];
            let thermal = if thermal.is_finite() { thermal } else { 0.0 };
            self.dt * self.dt * thermal.max(25.0 * precisions[c])
        };
        let overall = chains.sum(&TOTAL, &[VARIANCE])?;
        for (c, variance) in overall.iter().enumerate() {
            if !variance.is_finite() {
                chains.fail(c, "the minibatch gradient is not finite");
            }
            anyhow::ensure!(
                *variance != 0.0,
                "sampler::pseudo_langevin: the minibatch gradient has no noise (is there only one example?); use a full-batch sampler"
            );
        }
        let factors = chains.scalar(FACTOR);
        let tensors = chains.engine.target().layout().tensors().to_vec();
        for range in tensors.into_iter().map(|t| t.range) {
            let own = chains.engine.sum(&TOTAL, &[VARIANCE], range.clone())?;
            let size = range.len() as f64;
            chains.map_range(
                &SET_MASS,
                &[MASS, VARIANCE],
                range,
                |c, m| {
                    // A tensor without any noise borrows from the others.
                    let mean = if own[c] > 0.0 {
                        own[c] / size
                    } else {
                        overall[c] / n
                    };
                    let floor = self
                        .floor
                        .unwrap_or(0.1 * mean)
                        .max(f32::MIN_POSITIVE as f64);
                    let per_variance =
                        factors[c] * self.ratio_per_variance(m.temperature) / self.ratio;
                    let on = f32::from(u8::from(which[c]));
                    [floor as f32, per_variance as f32, lightest(c, m) as f32, on]
                },
                &[],
            )?;
        }
        Ok(())
    }

    /// Set the masses of the chains in `which` by where they are.
    pub(super) fn start_masses(&self, chains: &mut Chains, which: &[bool]) -> Result<()> {
        for c in (0..chains.len()).filter(|c| which[*c]) {
            chains.scalars(c)[FACTOR] = 1.0;
        }
        self.note_squares(chains, which)?;
        self.set_masses(chains, which)?;
        self.measure_collective(chains, which)?;
        if self.masses != Masses::Collective {
            return Ok(());
        }
        for c in (0..chains.len()).filter(|c| which[*c]) {
            let s = chains.scalars(c);
            if s[RATIO_COLLECTIVE] > self.ratio_max {
                s[FACTOR] = s[RATIO_COLLECTIVE] / self.ratio;
                s[RATIO_COLLECTIVE] = self.ratio;
            }
        }
        self.set_masses(chains, which)
    }

    /// Note the size of the weights that masses are set by.
    fn note_squares(&self, chains: &mut Chains, which: &[bool]) -> Result<()> {
        let squares = chains.sum(&DOT, &[Params, Params])?;
        for c in (0..chains.len()).filter(|c| which[*c]) {
            chains.scalars(c)[SQUARES] = squares[c];
        }
        Ok(())
    }

    /// Measure V of the chains in `which`.
    pub(super) fn measure_variance(&self, chains: &mut Chains, which: &[bool]) -> Result<()> {
        let into = match which.iter().all(|w| *w) {
            true => VARIANCE,
            false => ESTIMATE,
        };
        let (gradient, precision) = (&self.gradient, self.precision);
        let batches = gradient_noise::estimate(chains, gradient, precision, 0, which, into)?;
        chains.engine.copy(into, VARIANCE, which)?;
        for c in (0..chains.len()).filter(|c| which[*c]) {
            chains.scalars(c)[BATCHES] += batches as f64;
        }
        Ok(())
    }

    /// Measure the collective ratio of the chains in `which`: tr Q²/tr Q, Q the covariance of the minibatch gradient in units of the heat bath,
    /// δt²/(4(1-c1²)T)·M^{-1/2} C M^{-1/2}. Its diagonal is the 𝒯_i; this is the ratio along the direction of the noise itself, the mean of the
    /// eigenvalues with themselves for weights. Without correlations it is about the mean of 𝒯_i.
    fn measure_collective(&self, chains: &mut Chains, which: &[bool]) -> Result<()> {
        let [first, last, now] = [0, 1, 2].map(Vector::Scratch);
        // x, differences of two minibatch gradients at one point, have the covariance 2C: ⟨x·x'/M⟩² is that of trQ², ⟨x·x/M⟩ that of trQ.
        let mut squares = vec![0.0; chains.len()];
        let mut products = vec![0.0; chains.len()];
        let differences = (self.precision.most / 2).clamp(2, DIFFERENCES);
        for k in 0..differences {
            let sub = COLLECTIVE_SUB + 2 * k as u16;
            self.gradient.estimate(chains, Purpose::Variance, sub)?;
            chains.copy(Gradient, first)?;
            self.gradient.estimate(chains, Purpose::Variance, sub + 1)?;
            chains.map(&DIFFERENCE, &[now, first, Gradient], |_, _| -> [f32; 0] {
                []
            })?;
            let own = chains.sum(&OVER_MASS, &[now, now, MASS])?;
            squares.iter_mut().zip(own).for_each(|(s, x)| *s += x);
            if k > 0 {
                let with_last = chains.sum(&OVER_MASS, &[now, last, MASS])?;
                products
                    .iter_mut()
                    .zip(with_last)
                    .for_each(|(p, x)| *p += x * x);
            }
            chains.copy(now, last)?;
        }
        let pairs = (differences - 1) as f64;
        let ratios = chains.each(|m| self.ratio_per_variance(m.temperature));
        for c in (0..chains.len()).filter(|c| which[*c]) {
            let of = ratios[c] * (products[c] / pairs) / (2.0 * squares[c] / differences as f64);
            chains.scalars(c)[RATIO_COLLECTIVE] = of;
        }
        Ok(())
    }

    /// Raise the masses whose ratio is above the maximum and redraw their momenta; returns how many, per chain.
    fn raise_masses(&self, chains: &mut Chains, which: &[bool]) -> Result<PerChain<f64>> {
        if self.masses == Masses::Uniform {
            chains.map(&FILL, &[FRESH], |_, _| [0.0])?;
            return Ok(chains.each(|_| 0.0));
        }
        let vectors = [MASS, MOMENTUM, FRESH, VARIANCE];
        chains.map_with_noise(&RAISE_MASS, &vectors, (Purpose::Momentum, 0), |c, m| {
            let per_variance = self.ratio_per_variance(m.temperature) / self.ratio_max;
            let on = f32::from(u8::from(which[c]));
            [per_variance as f32, m.temperature as f32, on]
        })?;
        chains.sum(&TOTAL, &[FRESH])
    }

    /// Draw the momenta of the chains in `which` for their masses.
    pub(super) fn redraw(&self, chains: &mut Chains, which: &[bool], sub: u16) -> Result<()> {
        let draw = (Purpose::Momentum, sub);
        chains.map_with_noise(&REDRAW, &[MOMENTUM, FRESH, MASS], draw, |c, m| {
            [m.temperature as f32, f32::from(u8::from(which[c]))]
        })
    }

    /// Let what was drawn afresh lag by half a step: p = p_0 + ½δt ∇U, as in [`Lagging`](crate::sampler::Lagging).
    pub(super) fn lag(&self, chains: &mut Chains, sub: u16) -> Result<()> {
        self.gradient.estimate(chains, Purpose::Minibatch, sub)?;
        let half = (self.dt / 2.0) as f32;
        chains.map(&LAG, &[MOMENTUM, Gradient, FRESH], |_, _| [half])
    }

    /// Fresh momenta for the chains in `which` alone.
    pub(super) fn start_momenta(
        &self,
        chains: &mut Chains,
        which: &[bool],
        sub: u16,
    ) -> Result<()> {
        chains.map(&FILL, &[FRESH], |_, _| [0.0])?;
        self.redraw(chains, which, sub)?;
        self.lag(chains, sub)
    }

    pub(super) fn note_ratios(&self, chains: &mut Chains) -> Result<()> {
        let sums = chains.sum(&RATIO, &[VARIANCE, MASS])?;
        let largest = chains.sum(&LARGEST_RATIO, &[VARIANCE, MASS])?;
        let n = chains.dim() as f64;
        let per_variance = chains.each(|m| self.ratio_per_variance(m.temperature));
        for c in 0..chains.len() {
            let s = chains.scalars(c);
            s[RATIO_MEAN] = per_variance[c] * sums[c] / n;
            s[RATIO_MAX] = per_variance[c] * largest[c];
        }
        Ok(())
    }

    /// Σ V over each tensor, per chain.
    fn variance_by_tensor(chains: &mut Chains) -> Result<Vec<PerChain<f64>>> {
        let tensors = chains.engine.target().layout().tensors().to_vec();
        let sum = |t: crate::model::TensorSpec| chains.engine.sum(&TOTAL, &[VARIANCE], t.range);
        tensors.into_iter().map(sum).collect()
    }

    /// Measure V of the chains in `which` again, control the ratios, and choose when to do so next.
    pub(super) fn refresh(&self, chains: &mut Chains, which: &[bool]) -> Result<()> {
        let before = Self::variance_by_tensor(chains)?;
        self.measure_variance(chains, which)?;
        let after = Self::variance_by_tensor(chains)?;
        self.measure_collective(chains, which)?;
        let uniform = chains.uniform(Purpose::Reset);
        let adapts = self.masses == Masses::Collective && chains.step < chains.burn_in;
        let reset: Vec<_> = (0..chains.len())
            .map(|c| {
                let s = chains.scalars(c);
                let ratio = s[RATIO_COLLECTIVE];
                // Up and down, in burn-in alone: were masses raised for every fluctuation of the ratio, chains would slow down for ever.
                let off = ratio > self.ratio_max || ratio < 0.5 * self.ratio && s[FACTOR] > 1.0;
                which[c] && (uniform[c] < self.reset || adapts && off)
            })
            .collect();
        if reset.contains(&true) {
            self.start_masses(chains, &reset)?;
        }
        let raised = self.raise_masses(chains, which)?;
        if reset.contains(&true) {
            self.redraw(chains, &reset, 1)?;
        }
        if reset.contains(&true) || raised.iter().any(|r| *r > 0.0) {
            // Sub-stream 4: no step, no start and no change of temperature draws this minibatch.
            self.lag(chains, 4)?;
        }
        self.note_ratios(chains)?;
        let (n, step) = (chains.dim() as f64, chains.step as f64);
        for c in (0..chains.len()).filter(|c| which[*c]) {
            let pairs = before.iter().zip(&after).map(|(b, a)| (b[c], a[c]));
            let change = pairs
                .map(|(old, new)| (new / old).max(old / new))
                .fold(1.0, f64::max);
            if after.iter().any(|v| !v[c].is_finite()) {
                chains.fail(c, "the minibatch gradient is not finite");
            }
            let s = chains.scalars(c);
            s[RAISED] = raised[c] / n;
            s[RESETS] += f64::from(u8::from(reset[c]));
            // Within 10 % the interval grows with the streak; past a factor of two it shrinks; in between it is the usual one at most.
            let (interval, refresh) = (s[INTERVAL], self.refresh as f64);
            let first = FIRST.min(refresh);
            (s[STREAK], s[INTERVAL]) = if change <= 1.1 {
                let streak = s[STREAK] + 1.0;
                (streak, (interval * streak).min(self.refresh_max as f64))
            } else if change <= 2.0 {
                (1.0, (2.0 * interval).min(refresh))
            } else {
                (1.0, (interval / 2.0).clamp(first, refresh))
            };
            s[LAST] = step;
            s[NEXT] = step + s[INTERVAL];
        }
        Ok(())
    }

    /// Let chains that are hotter than V explains be refreshed at the next step.
    pub(super) fn watch_heat(&self, chains: &mut Chains) -> Result<()> {
        let n = chains.dim() as f64;
        let limit = 1.0 + 0.5f64.max(5.0 * (2.0 / n).sqrt());
        let kinetic = chains.sum(&TWICE_KINETIC, &[MOMENTUM, MASS])?;
        let (step, temperatures) = (chains.step as f64, chains.each(|m| m.temperature));
        for c in 0..chains.len() {
            let s = chains.scalars(c);
            if kinetic[c] / n > limit * temperatures[c] && step >= s[LAST] + COOLING {
                s[NEXT] = step + 1.0;
            }
        }
        Ok(())
    }
}
