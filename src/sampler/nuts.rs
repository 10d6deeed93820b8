//! The No-U-Turn sampler: trajectories as long as they still go away from where they began.
//!
//! The recursion of the doubling tree is unrolled, so that chains side by side (as on an accelerator) walk through it together: leaf
//! n of a subtree compares itself with the first leaves of the subtrees that it completes, of which there is one per level (Phan,
//! Pradhan & Jankowiak 2019, appendix; Lao & Dillon 2020).

use super::adaptation::{
    self, ADAPT, ADAPT_MASS, Adaptation, DT, ENERGY, GRADIENT, LEVELS, MASSES, RANK, find_step,
};
use super::metric::MASS;
use super::{Accuracy, Before, ConfiguredSampler, OfTemperature, Sampler, levels};
use crate::engine::Vector::{self, Gradient, Params};
use crate::engine::report::{self, Report};
use crate::engine::{Chains, PerChain, few};
use crate::error::Result;
use crate::kernels::map::kernel;
use crate::kernels::update::{FILL, KICK, KICK_AND_DRIFT};
use crate::options::{Entry, Kind, Range, option, optional};
use crate::rng::Purpose;
use crate::target::Target;
use std::sync::Arc;

/// Samples exp(-U/T) exactly, with trajectories that end at a U-turn.
struct Nuts {
    depth: u32,
    dt: Option<f64>,
    adaptation: Adaptation,
}

/// `sampler::nuts`.
pub const ENTRY: Entry<Arc<ConfiguredSampler>> = Entry {
    name: "nuts",
    doc: "Samples exp(-U/T) exactly, by the No-U-Turn sampler.\n\n\
          Hoffman & Gelman (2014), with multinomial choice of the next state along the trajectory and the generalised U-turn criterion \
          (Betancourt 2017): a velocity-Verlet trajectory is doubled, forwards or backwards in time, until its ends come closer to each other. \
          Step size and masses adapt in burn-in as those of sampler::hmc do. One step is one trajectory; `leapfrog` in the sample statistics is \
          the number of its gradients, each over all examples. `reached_max_treedepth` is the share of trajectories that `max_depth` ended before they turned: \
          raise it where that is not rare. `diverging`, `hamiltonian` and `bfmi` are as in sampler::hmc.",
    arguments: &[],
    options: &[
        option(
            "max_depth",
            Kind::Int(Range::Between(1.0, 14.0)),
            "10",
            "Doublings at most: trajectories have up to 2^max_depth steps.",
        ),
        optional(
            "dt",
            Kind::Float(Range::Positive),
            "found at the start",
            "Step size (the first one, if adapted).",
        ),
        option(
            "acceptance",
            Kind::Float(Range::Open01),
            "0.8",
            "Mean acceptance along a trajectory that the step size is adapted to.",
        ),
        ADAPT,
        ADAPT_MASS,
        RANK,
        MASSES,
    ],
    example: "sampler::nuts(#{ max_depth: 8 })",
    build: |o| {
        let nuts = Nuts {
            depth: o.int("max_depth")? as u32,
            dt: o.opt_float("dt"),
            adaptation: Adaptation::from_options(o, (&[], &levels::SCALARS))?,
        };
        Ok(ConfiguredSampler::new(nuts, o))
    },
};

// Vectors of a step. Where the trajectory grows: parameters and gradient in their usual places, and the momentum.
const MOMENTUM: Vector = Vector::Scratch(0);
/// The ends of the trajectory: parameters, momentum, gradient; backwards in time, and forwards.
const ENDS: [[Vector; 3]; 2] = [
    [Vector::Scratch(1), Vector::Scratch(2), Vector::Scratch(3)],
    [Vector::Scratch(4), Vector::Scratch(5), Vector::Scratch(6)],
];
/// The state chosen from the trajectory so far, and from the subtree that is being added: parameters, gradient.
const CHOSEN: [Vector; 2] = [Vector::Scratch(7), Vector::Scratch(8)];
const CHOSEN_BELOW: [Vector; 2] = [Vector::Scratch(9), Vector::Scratch(10)];
/// Sums of the momenta, of the trajectory and of the subtree.
const RHO: Vector = Vector::Scratch(11);
const RHO_BELOW: Vector = Vector::Scratch(12);

/// The sum of the momenta of a stretch.
const BETWEEN: Vector = Vector::Scratch(13);

/// The first leaf of the subtree of a level: its momentum, and the sum of momenta up to it.
fn first_leaf(level: u32) -> [Vector; 2] {
    let at = 14 + 2 * level as usize;
    [Vector::Scratch(at), Vector::Scratch(at + 1)]
}

// Sub-streams of `Purpose::Tree`.
const LEAF: u16 = 0;
const DIRECTION: u16 = 1;
const MERGE: u16 = 2;

/// ΔH/T beyond which a trajectory has diverged.
const DIVERGED: f64 = 1000.0;

kernel! {
    /// Add to a sum of momenta, where asked for.
    ADD_MOMENTUM = nuts_add_momentum(rho; p; ; on) {
        rho = choose(on > 0.0, rho + p, rho);
    }
}

kernel! {
    /// The sum of the momenta from one end to the other, the ends counting half, from running sums up to the last and up to the first leaf, which is in both.
    STRETCH = nuts_stretch(rho; first, last, now, then; ; ) {
        rho = now - then + 0.5 * (first - last);
    }
}

/// ln(e^a + e^b).
fn ln_add(a: f64, b: f64) -> f64 {
    let high = a.max(b);
    if high == f64::NEG_INFINITY {
        return high;
    }
    high + (-(a - b).abs()).exp().ln_1p()
}

/// What is known of a chain's trajectory while it grows.
#[derive(Clone)]
struct Tree {
    /// Whether it still grows.
    grows: bool,
    /// ln Σ exp(-ΔH/T) over its states; energy of the state chosen.
    weight: f64,
    energy: f64,
    /// The same of the subtree that is being added, and whether that is sound so far.
    below: (f64, f64),
    sound: bool,
    /// +1 forwards in time, -1 backwards.
    direction: f64,
    /// Σ min(1, exp(-ΔH/T)) over all states visited, and their number.
    accept: f64,
    leaves: f64,
    depth: u32,
    diverged: bool,
}

impl Nuts {
    /// One velocity-Verlet step of the chains, each by its own dt; those of dt 0 stay. Returns U and H.
    fn leapfrog(&self, chains: &mut Chains, dt: &[f64]) -> Result<[PerChain<f64>; 2]> {
        let vectors = [Params, MOMENTUM, Gradient, MASS];
        chains.map(&KICK_AND_DRIFT, &vectors, |c, _| {
            [(0.5 * dt[c]) as f32, dt[c] as f32]
        })?;
        let metric = self.adaptation.metric;
        metric.drift(chains, MOMENTUM, |c| dt[c])?;
        // As in sampler::hmc; a step back in time undoes it, which is all that the tree asks for.
        chains.engine.reflect(Some(MOMENTUM))?;
        chains.engine.gradient()?;
        chains.map(&KICK, &[MOMENTUM, Gradient], |c, _| [(0.5 * dt[c]) as f32])?;
        let potential = chains.engine.energies()?;
        let kinetic = metric.product(chains, MOMENTUM, MOMENTUM)?;
        let energies = Self::add_kinetic(&potential, &kinetic);
        Ok([potential, energies])
    }

    fn add_kinetic(energies: &[f64], twice_kinetic: &[f64]) -> PerChain<f64> {
        let both = energies.iter().zip(twice_kinetic);
        few(both.map(|(u, k)| u + 0.5 * k))
    }

    /// Fresh momenta at the chains' parameters, with the gradient there. Returns H.
    fn begin(&self, chains: &mut Chains, sub: u16) -> Result<PerChain<f64>> {
        let metric = self.adaptation.metric;
        metric.draw(chains, MOMENTUM, (Purpose::Momentum, sub), |t| t)?;
        chains.copy(GRADIENT, Gradient)?;
        let kinetic = metric.product(chains, MOMENTUM, MOMENTUM)?;
        Ok(Self::add_kinetic(&chains.scalar(ENERGY), &kinetic))
    }

    /// (H - H0)/T; infinite where it is not a number.
    fn errors(chains: &Chains, now: &[f64], before: &[f64]) -> PerChain<f64> {
        let error =
            |c: usize| adaptation::relative(now[c] - before[c], chains.members[c].temperature);
        few((0..chains.len()).map(error))
    }

    fn find_dt(&self, chains: &mut Chains, first: f64) -> Result<Vec<f64>> {
        const HOME: Vector = CHOSEN[0];
        chains.copy(Params, HOME)?;
        find_step(chains, first, |chains, dt, trial| {
            let before = self.begin(chains, trial)?;
            let [_, now] = self.leapfrog(chains, dt)?;
            chains.copy(HOME, Params)?;
            Ok(Self::errors(chains, &now, &before).into_vec())
        })
    }

    /// Whether the stretch between two leaves bends back on itself, per chain: against the velocity at one of its ends.
    fn turns(
        &self,
        chains: &mut Chains,
        [first, last]: [Vector; 2],
        [then, now]: [Vector; 2],
    ) -> Result<Vec<bool>> {
        let ends = [BETWEEN, first, last, now, then];
        chains.map(&STRETCH, &ends, |_, _| -> [f32; 0] { [] })?;
        let metric = self.adaptation.metric;
        let at_first = metric.product(chains, first, BETWEEN)?;
        let at_last = metric.product(chains, last, BETWEEN)?;
        let both = at_first.into_iter().zip(at_last);
        Ok(both.map(|(a, b)| a <= 0.0 || b <= 0.0).collect())
    }

    /// Add a subtree of 2^depth leaves to the trajectories that grow, from where the chains are.
    fn subtree(
        &self,
        chains: &mut Chains,
        trees: &mut [Tree],
        depth: u32,
        start: &[f64],
    ) -> Result<()> {
        let dt = chains.scalar(DT);
        let leaf_streams = chains.streams(Purpose::Tree, LEAF);
        chains.map(&FILL, &[RHO_BELOW], |_, _| [0.0])?;
        for t in trees.iter_mut() {
            (t.below, t.sound) = ((f64::NEG_INFINITY, f64::NAN), t.grows);
        }
        for leaf in 0..1u32 << depth {
            if !trees.iter().any(|t| t.sound) {
                return Ok(());
            }
            let step = |c: usize, t: &Tree| if t.sound { t.direction * dt[c] } else { 0.0 };
            let dt: Vec<_> = trees.iter().enumerate().map(|(c, t)| step(c, t)).collect();
            let [potential, energies] = self.leapfrog(chains, &dt)?;
            let errors = Self::errors(chains, &energies, start);
            chains.map(&ADD_MOMENTUM, &[RHO_BELOW, MOMENTUM], |c, _| {
                [f32::from(u8::from(trees[c].sound))]
            })?;
            let mut taken = vec![false; trees.len()];
            for (c, t) in trees.iter_mut().enumerate().filter(|(_, t)| t.sound) {
                t.accept += (-errors[c]).exp().min(1.0);
                t.leaves += 1.0;
                if errors[c] > DIVERGED {
                    (t.diverged, t.sound) = (true, false);
                    continue;
                }
                let weight = ln_add(t.below.0, -errors[c]);
                // Element numbers of different depths do not meet.
                let u = leaf_streams[c].uniform((1 << depth) + leaf);
                taken[c] = u < (-errors[c] - weight).exp();
                t.below = (weight, if taken[c] { potential[c] } else { t.below.1 });
            }
            chains.engine.copy(Params, CHOSEN_BELOW[0], &taken)?;
            chains.engine.copy(Gradient, CHOSEN_BELOW[1], &taken)?;
            self.compare(chains, trees, leaf)?;
        }
        Ok(())
    }

    /// Note a leaf, or compare it with the first leaves of the subtrees that it completes.
    fn compare(&self, chains: &mut Chains, trees: &mut [Tree], leaf: u32) -> Result<()> {
        let level = (leaf >> 1).count_ones();
        if leaf.is_multiple_of(2) {
            let [momentum, rho] = first_leaf(level);
            chains.copy(MOMENTUM, momentum)?;
            return chains.copy(RHO_BELOW, rho);
        }
        let completed = leaf.trailing_ones();
        for level in (level + 1 - completed..=level).rev() {
            let [momentum, rho] = first_leaf(level);
            let turns = self.turns(chains, [momentum, MOMENTUM], [rho, RHO_BELOW])?;
            for (t, turns) in trees.iter_mut().zip(turns) {
                t.sound &= !turns;
            }
        }
        Ok(())
    }

    /// Make sound subtrees part of their trajectories; those that bend back on themselves grow no more.
    fn merge(&self, chains: &mut Chains, trees: &mut [Tree], depth: u32) -> Result<()> {
        let merge_streams = chains.streams(Purpose::Tree, MERGE);
        let mut taken = vec![false; trees.len()];
        for (c, t) in trees.iter_mut().enumerate() {
            t.grows &= t.sound;
            if !t.grows {
                continue;
            }
            t.depth = depth + 1;
            // Biased towards the new half (Betancourt 2017, A.3.2).
            taken[c] = merge_streams[c].uniform(depth) < (t.below.0 - t.weight).exp();
            t.weight = ln_add(t.weight, t.below.0);
            if taken[c] {
                t.energy = t.below.1;
            }
        }
        for (from, to) in CHOSEN_BELOW.into_iter().zip(CHOSEN) {
            chains.engine.copy(from, to, &taken)?;
        }
        chains.map(&ADD_MOMENTUM, &[RHO, RHO_BELOW], |c, _| {
            [f32::from(u8::from(trees[c].grows))]
        })?;
        for (end, sign) in ENDS.iter().zip([-1.0, 1.0]) {
            let which: Vec<_> = trees
                .iter()
                .map(|t| t.grows && t.direction == sign)
                .collect();
            for (from, to) in [Params, MOMENTUM, Gradient].into_iter().zip(*end) {
                chains.engine.copy(from, to, &which)?;
            }
        }
        let [backwards, forwards] = [ENDS[0][1], ENDS[1][1]];
        // The whole sum: what is subtracted and the first end cancel.
        let turns = self.turns(chains, [backwards, forwards], [backwards, RHO])?;
        for (t, turns) in trees.iter_mut().zip(turns) {
            t.grows &= !turns;
        }
        Ok(())
    }
}

impl Sampler for Nuts {
    fn name(&self) -> &'static str {
        "nuts"
    }

    fn vectors(&self) -> &'static [&'static str] {
        self.adaptation.vectors
    }

    fn scalars(&self) -> &'static [&'static str] {
        self.adaptation.scalars
    }

    fn scratch(&self) -> usize {
        14 + 2 * self.depth as usize + self.adaptation.scratch()
    }

    fn check(&self, target: &Target) -> Result<()> {
        self.adaptation.check(self.name(), target, false)
    }

    fn info(&self) -> &'static [Report] {
        &[
            report::VIRIAL,
            report::ACCEPTANCE_RATE,
            report::STEP_SIZE,
            report::TREE_DEPTH,
            report::LEAPFROG,
            report::DIVERGING,
            report::REACHED_MAX_TREEDEPTH,
            report::HAMILTONIAN,
            report::BFMI,
        ]
    }

    fn init(&self, chains: &mut Chains) -> Result<()> {
        self.adaptation.init_masses(chains)?;
        chains.engine.gradient()?;
        chains.copy(Gradient, GRADIENT)?;
        Adaptation::note_energies(chains)?;
        let dt = match self.dt {
            Some(dt) => vec![dt; chains.len()],
            None => self.find_dt(chains, 0.1)?,
        };
        Adaptation::restart(chains, &dt);
        Ok(())
    }

    fn of_temperature(&self) -> OfTemperature {
        self.adaptation.of_temperature()
    }

    fn accuracy(&self) -> Accuracy {
        Accuracy::Exact
    }

    fn energy_scalar(&self) -> Option<usize> {
        Some(ENERGY)
    }

    fn change_temperature(&self, chains: &mut Chains, before: &[Before]) -> Result<()> {
        levels::change_temperature(chains, LEVELS, before);
        self.adaptation
            .change_temperature(chains, before, Some(GRADIENT))
    }

    fn step(&self, chains: &mut Chains) -> Result<()> {
        let start = self.begin(chains, 0)?;
        chains.report_virial(GRADIENT)?;
        for [w, p, g] in ENDS {
            chains.copy(Params, w)?;
            chains.copy(MOMENTUM, p)?;
            chains.copy(Gradient, g)?;
        }
        chains.copy(Params, CHOSEN[0])?;
        chains.copy(Gradient, CHOSEN[1])?;
        chains.copy(MOMENTUM, RHO)?;
        let tree = |energy| Tree {
            grows: true,
            weight: 0.0,
            energy,
            below: (f64::NEG_INFINITY, f64::NAN),
            sound: true,
            direction: 1.0,
            accept: 0.0,
            leaves: 0.0,
            depth: 0,
            diverged: false,
        };
        let mut trees: Vec<_> = chains.scalar(ENERGY).into_iter().map(tree).collect();
        let directions = chains.streams(Purpose::Tree, DIRECTION);
        for depth in 0..self.depth {
            if !trees.iter().any(|t| t.grows) {
                break;
            }
            for (t, stream) in trees.iter_mut().zip(&directions) {
                t.direction = if stream.uniform(depth) < 0.5 {
                    -1.0
                } else {
                    1.0
                };
            }
            for (end, sign) in ENDS.iter().zip([-1.0, 1.0]) {
                let which: Vec<_> = trees.iter().map(|t| t.direction == sign).collect();
                for (from, to) in end.iter().zip([Params, MOMENTUM, Gradient]) {
                    chains.engine.copy(*from, to, &which)?;
                }
            }
            self.subtree(chains, &mut trees, depth, &start)?;
            self.merge(chains, &mut trees, depth)?;
        }
        chains.copy(CHOSEN[0], Params)?;
        chains.copy(CHOSEN[1], GRADIENT)?;
        for (c, t) in trees.iter().enumerate() {
            chains.scalars(c)[ENERGY] = t.energy;
        }
        let accept: Vec<_> = trees.iter().map(|t| t.accept / t.leaves).collect();
        let dt = chains.scalar(DT);
        let fractions = levels::note(chains, LEVELS, &start);
        let mut report = |which, f: &dyn Fn(usize, &Tree) -> f64| {
            let values: Vec<_> = trees.iter().enumerate().map(|(c, t)| f(c, t)).collect();
            chains.report_values(which, &values)
        };
        report(report::ACCEPTANCE_RATE, &|c, _| accept[c])?;
        report(report::STEP_SIZE, &|c, _| dt[c])?;
        report(report::TREE_DEPTH, &|_, t| f64::from(t.depth))?;
        report(report::LEAPFROG, &|_, t| t.leaves)?;
        report(report::DIVERGING, &|_, t| f64::from(u8::from(t.diverged)))?;
        // It would have gone on, had it been allowed to.
        report(report::REACHED_MAX_TREEDEPTH, &|_, t| {
            f64::from(u8::from(t.grows))
        })?;
        report(report::HAMILTONIAN, &|c, _| start[c])?;
        report(report::BFMI, &|c, _| fractions[c])?;
        let find = |chains: &mut Chains, first| self.find_dt(chains, first);
        self.adaptation.after(chains, &accept, find)
    }
}
