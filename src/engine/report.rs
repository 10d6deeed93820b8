//! What samplers report: numbers with names, averaged over the steps between two records.

use super::Vector;
use crate::error::Result;
use std::fmt;

/// A number that a sampler reports, by its name in traces and scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report(pub &'static str);

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// (1/N) Σ (w-c)_i g_i at the point where the gradient g was taken; estimates T. Every sampler reports it: a chain whose virial is not
/// finite has failed.
pub const VIRIAL: Report = Report("virial");
/// (1/N) Σ p_i²/M_i; estimates T.
pub const KINETIC: Report = Report("kinetic");
/// Mean loss of the minibatch.
pub const MINIBATCH_LOSS: Report = Report("minibatch_loss");
/// Δ²/N, Δ the error of the energy in a microcanonical step.
pub const ENERGY_VARIANCE: Report = Report("energy_variance");
/// ε, dt or σ.
pub const STEP_SIZE: Report = Report("step_size");
/// min(1, exp(-ΔH/T)).
pub const ACCEPTANCE_RATE: Report = Report("acceptance_rate");
/// ΔH/T, cut at ±1000.
pub const ENERGY_ERROR: Report = Report("energy_error");
/// exp(-ΔH/T).
pub const EXP_ENERGY_ERROR: Report = Report("exp_energy_error");
/// Gradients that a trajectory took.
pub const LEAPFROG: Report = Report("leapfrog");
/// Doublings of a trajectory.
pub const TREE_DEPTH: Report = Report("tree_depth");
/// Whether a trajectory was cut at the largest depth, 0 or 1.
pub const REACHED_MAX_TREEDEPTH: Report = Report("reached_max_treedepth");
/// Whether a trajectory diverged, 0 or 1.
pub const DIVERGING: Report = Report("diverging");
/// H at the start of a trajectory.
pub const HAMILTONIAN: Report = Report("hamiltonian");
/// Bayesian fraction of missing information so far (Betancourt 2016).
pub const BFMI: Report = Report("bfmi");
/// Variance of the minibatch gradient, averaged over the components.
pub const GRADIENT_VARIANCE: Report = Report("gradient_variance_mean");
/// Loss of the gradient that a step follows.
pub const GRADIENT_LOSS: Report = Report("gradient_loss");
/// (1/N) Σ (w-w0)_i g_i of that gradient.
pub const GRADIENT_VIRIAL: Report = Report("gradient_virial");
/// The loss at w0 on the same minibatch.
pub const GRADIENT_LOSS_AT_START: Report = Report("gradient_loss_at_start");
/// (1/N) Σ ∂f_i/∂w_i, which is 1 without walls; see `law`.
pub const VIRIAL_SCALE: Report = Report("virial_scale");
/// The virial of each tensor.
pub const VIRIAL_BY_TENSOR: Report = Report("virial_by_tensor");
/// The scale of each tensor.
pub const VIRIAL_SCALE_BY_TENSOR: Report = Report("virial_scale_by_tensor");
/// g1·g2/N, g1 and g2 independent estimates of ∇U.
pub const SQUARED_GRADIENT: Report = Report("squared_gradient");
/// zᵀHz/N, H the second derivative of U.
pub const LAPLACIAN: Report = Report("laplacian");
/// |w-c|² (w-c)·∇U/(N+2).
pub const CUBIC_VIRIAL: Report = Report("cubic_virial");
/// |w-c|².
pub const SQUARED_DISTANCE_TO_CENTRE: Report = Report("squared_distance_to_centre");

/// A number or a vector that is reported: its name, and the tensors that its components belong to.
pub type Column = (Report, Option<Vec<String>>);

/// Where each number that is reported is added up.
#[derive(Debug, Clone)]
pub struct Slots {
    owner: &'static str,
    /// Each with its first slot.
    first: Vec<(Report, usize)>,
    len: usize,
    /// c, which the virial is taken around; the origin if there is none.
    pub centre: Option<Vector>,
}

impl Slots {
    /// No sampler's: what is reported goes nowhere.
    pub const NONE: Self = Self {
        owner: "",
        first: Vec::new(),
        len: 0,
        centre: None,
    };

    /// One after the other, for the sampler `owner`.
    pub fn new(owner: &'static str, columns: &[Column], centre: Option<Vector>) -> Self {
        let mut len = 0;
        let mut place = |(report, tensors): &Column| {
            let first = len;
            len += tensors.as_ref().map_or(1, Vec::len);
            (*report, first)
        };
        Self {
            owner,
            first: columns.iter().map(&mut place).collect(),
            len,
            centre,
        }
    }

    /// How many numbers there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The slot of a number, or the first one of a vector; none if it is not reported.
    #[inline]
    pub fn find(&self, report: Report) -> Option<usize> {
        let same = |r: &Report| std::ptr::eq(r.0, report.0) || *r == report;
        let found = self.first.iter().find(|(r, _)| same(r));
        found.map(|(_, first)| *first)
    }

    /// The slot of a number that a sampler has promised.
    ///
    /// # Errors
    /// If it has not.
    #[inline]
    pub fn of(&self, report: Report) -> Result<Option<usize>> {
        let found = self.find(report);
        anyhow::ensure!(
            found.is_some() || self.first.is_empty(),
            "sampler::{}: its step reports '{report}', which its info() does not name",
            self.owner
        );
        Ok(found)
    }

    /// Fail if something was promised and is not among the slots that were reported.
    pub fn check(&self, reported: &[bool]) -> Result<()> {
        let missing = self.first.iter().find(|(_, slot)| !reported[*slot]);
        match missing {
            Some((report, _)) => anyhow::bail!(
                "sampler::{}: its info() names '{report}', but its first step does not report it",
                self.owner
            ),
            None => Ok(()),
        }
    }
}
