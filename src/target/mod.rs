//! Targets: the distribution to be sampled, `p(w) ∝ exp(-U(w)/T)` with `U(w) = s·L(w) + R(w)`.
//!
//! This is the only place where n, m, nβ and T meet. `L` is the mean loss over the n examples of a [`Potential`], `s` the
//! [`EnergyScale`], `R` the [`Prior`]; m is the size of a minibatch and T belongs to the chain.

pub mod analytic;
pub(crate) mod build;
mod extended;
pub(crate) mod grid;
pub mod network;
mod object;
pub mod prior;
pub(crate) mod restricted;
pub(crate) mod traced;
pub(crate) mod workspace;

use crate::error::Result;
use crate::kernels::gemm_baseline::Product;
use crate::kernels::thread_pool::Team;
use crate::kernels::update::scale_and_pull;
use crate::model::deep_linear::LearningCoefficient;
use crate::model::initialise::Role;
use crate::model::loss::Sums;
use crate::model::{Layout, Part};
use crate::options::{Kind, Options, Range, Spec, option, optional};
use crate::rng::Stream;
use prior::{Prior, PriorEnergy, Reference};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
pub use workspace::Workspace;

/// Which examples.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a> {
    /// All of them.
    All,
    /// These, possibly repeated.
    Indices(&'a [u32]),
}

/// How a device of candle is opened.
pub type OpenCandle<'a> = &'a dyn Fn() -> Result<candle_core::Device>;

/// A mean loss over examples, with its gradient.
pub trait Potential: Send + Sync {
    /// What it is, in a line or a few.
    fn describe(&self) -> String;

    /// The named tensors of the parameters.
    fn layout(&self) -> &Layout;

    /// n, the number of training examples (1 for a potential without data).
    fn examples(&self) -> usize;

    /// n of the likelihood: that of the data set whose second moments the examples have, where they are such a compressed form.
    fn likelihood_n(&self) -> usize {
        self.examples()
    }

    /// Sum of the losses over `rows`, and, added up in `grad` if given (overwritten), the sum of their gradients.
    fn sums(
        &self,
        w: &[f32],
        rows: Rows,
        grad: Option<&mut [f32]>,
        work: &mut Workspace,
    ) -> Result<Sums>;

    /// Sums over all rows at a point that is asked for again and again, as the anchor of control variates.
    fn sums_at_anchor(&self, w: &[f32], grad: &mut [f32], work: &mut Workspace) -> Result<Sums> {
        self.sums(w, Rows::All, Some(grad), work)
    }

    /// Names of the splits other than the training one.
    fn splits(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Loss and errors on another split, as sums, and its number of rows; an error if there is none of that name.
    fn split_sums(&self, w: &[f32], split: &str, work: &mut Workspace) -> Result<(Sums, usize)>;

    /// The loss of each of these rows of a split ("train", …), one number for each position of a row: `[rows, positions]`.
    ///
    /// # Errors
    /// If examples have no losses of their own, or the split or a row does not exist.
    fn example_losses(&self, _w: &[f32], _split: &str, _rows: &[u32]) -> Result<Vec<f64>> {
        anyhow::bail!(
            "losses of single examples need a network with data, which this target is not"
        )
    }

    /// Rows of a split, and positions of a row that have a loss of their own.
    ///
    /// # Errors
    /// See [`Potential::example_losses`].
    fn rows_and_positions(&self, _split: &str) -> Result<(usize, usize)> {
        anyhow::bail!(
            "losses of single examples need a network with data, which this target is not"
        )
    }

    /// The network, if it is one.
    fn network(&self) -> Option<&network::Network> {
        None
    }

    /// Program, data and loss, for an accelerator.
    ///
    /// # Errors
    /// If no accelerator computes it.
    fn accelerated(&self) -> Result<network::Accelerated> {
        anyhow::bail!(
            "no device computes {}; take --device cpu",
            self.describe().lines().next().unwrap_or("this potential")
        )
    }

    /// The same mean loss with a model that candle computes on one of its devices, which `device` opens; none unless it has a model without a program.
    ///
    /// # Errors
    /// If there is no such device.
    fn by_candle(&self, _device: OpenCandle) -> Result<Option<Arc<dyn Potential>>> {
        Ok(None)
    }

    /// A part of the parameters by its name; see [`Layout::part`].
    fn part(&self, name: &str) -> Result<Vec<Part>> {
        self.layout().part(name)
    }

    /// The matrix products of one gradient, for benchmarks; empty if there are none.
    fn products(&self) -> Vec<Product> {
        Vec::new()
    }

    /// Numbers per example of inputs and activations, and bytes of data.
    fn sizes(&self) -> (usize, usize) {
        (0, 0)
    }

    /// Whether examples can be classified wrongly.
    fn classifies(&self) -> bool {
        false
    }

    /// What each tensor of the layout is in its layer; those behind the last belong to none.
    fn roles(&self) -> Vec<Role> {
        crate::model::initialise::roles(self.layout())
    }

    /// Initial parameters; standard normal unless the target says otherwise.
    fn initialise(&self, stream: Stream) -> Vec<f32> {
        let mut w = vec![0.0; self.layout().len()];
        crate::kernels::normal::fill_normal(&stream, &mut w);
        w
    }

    /// The learning coefficient of its true parameters, where it is known in closed form.
    fn learning_coefficient(&self) -> Option<LearningCoefficient> {
        None
    }

    /// Enter its data into a checksum, to tell whether a run may be resumed on it.
    fn fingerprint(&self, hash: &mut crc32fast::Hasher);
}

impl fmt::Debug for dyn Potential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

/// The likelihood scale `s` in `U = s·L + R`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EnergyScale {
    /// s = 1 (Zambon 2026).
    Mean,
    /// s = n (Baldock & Marzari 2019, Iwagaki & Watanabe, Ohzeki 2015).
    Sum,
    /// s = nβ with β = β0/ln n (Hitchcock & Hoogland 2025).
    Tempered {
        /// β0.
        beta0: f64,
    },
    /// s = nβ, this number.
    Given(f64),
}

/// Energies at one point, in double precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Energies {
    /// L, the mean loss over all examples.
    pub loss: f64,
    /// R, the prior energy.
    pub prior: f64,
    /// s·L.
    pub likelihood: f64,
    /// U = s·L + R.
    pub total: f64,
    /// Fraction of examples classified wrongly.
    pub error: f64,
}

/// The distribution to be sampled, but for its temperature.
#[derive(Clone)]
pub struct Target {
    potential: Arc<dyn Potential>,
    scale: EnergyScale,
    s: f64,
    prior: PriorEnergy,
    by_candle: bool,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

/// Options of `target(model, dataset, #{…})`.
pub(crate) const OPTIONS: &[Spec] = &[
    optional(
        "loss",
        Kind::Anything("a name, a loss::… or a closure |out, y| …"),
        "\"cross_entropy\" for classes, \"squared_error\" for real targets",
        "Loss per example: \"cross_entropy\" -ln softmax(output)[label] · \"squared_error\" |target - output|² summed over components (without ½) · one of the namespace `loss` · a closure |out, y| … of the outputs and the target (of classes y[0] is the label).",
    ),
    option(
        "energy",
        Kind::Choice(&["mean", "sum", "tempered"]),
        "mean",
        "The likelihood scale s in U = s·L + R: \"mean\" 1 (Zambon) · \"sum\" n (Baldock, Iwagaki, Ohzeki) · \"tempered\" nβ with \
         β = beta0/ln n (learning coefficient).",
    ),
    option(
        "beta0",
        Kind::Float(Range::Positive),
        "1",
        "β0 of \"tempered\".",
    ),
    optional(
        "prior",
        Kind::Anything("a prior, or a map of priors by name"),
        "prior::none()",
        "The prior energy R; see the namespace `prior`. A map has a prior for each part of the parameters, \"*\" for all others: `#{ w1: prior::normal(0, \"tau\"), \"*\": prior::normal(0, 1), tau: prior::half_cauchy(1) }`. A name that only other priors have is a parameter of its own, sampled with the weights.",
    ),
];

impl EnergyScale {
    /// From the options `energy` and `beta0`.
    pub fn from_options(o: &Options) -> Result<Self> {
        Ok(match o.text("energy")? {
            "sum" => Self::Sum,
            "tempered" => Self::Tempered {
                beta0: o.float("beta0")?,
            },
            _ => Self::Mean,
        })
    }

    fn value(self, n: usize) -> Result<f64> {
        Ok(match self {
            Self::Mean => 1.0,
            Self::Sum => n as f64,
            Self::Given(s) => s,
            Self::Tempered { beta0 } => {
                anyhow::ensure!(
                    n >= 2,
                    "energy: \"tempered\" needs at least two examples (β = β0/ln n), but n = {n}"
                );
                n as f64 * beta0 / (n as f64).ln()
            }
        })
    }
}

impl Target {
    /// Put potential, scale and prior together.
    pub fn new(potential: Arc<dyn Potential>, scale: EnergyScale, prior: &Prior) -> Result<Self> {
        let s = scale.value(potential.likelihood_n())?;
        let potential = extended::with(potential, prior)?;
        let prior = prior.resolve(potential.layout(), &potential.roles())?;
        Ok(Self {
            potential,
            scale,
            s,
            prior,
            by_candle: false,
        })
    }

    /// The target with a model that candle computes on a device; none unless it has a model without a program.
    ///
    /// # Errors
    /// See [`Potential::by_candle`].
    pub(crate) fn by_candle(&self, device: OpenCandle) -> Result<Option<Self>> {
        let potential = self.potential.by_candle(device)?;
        Ok(potential.map(|potential| Self {
            potential,
            by_candle: true,
            ..self.clone()
        }))
    }

    /// Whether it came from [`Target::by_candle`].
    pub(crate) fn is_by_candle(&self) -> bool {
        self.by_candle
    }

    /// The mean loss and its data.
    pub fn potential(&self) -> &dyn Potential {
        &*self.potential
    }

    /// The target of a learning coefficient at w0: exp(-nβ L(w) - ½γ|w-w0|²) (Lau et al. 2024; Hitchcock & Hoogland 2025, eq. 4). The loss
    /// is that of this target, its own scale and prior are left out. With `free`, only these ranges of the parameters move.
    ///
    /// # Errors
    /// If w0 has another length than the parameters.
    pub fn localised(
        &self,
        w0: &Arc<Vec<f32>>,
        nbeta: f64,
        gamma: f64,
        free: Option<Vec<Part>>,
    ) -> Result<Self> {
        let (mut potential, mut centre) = (self.potential.clone(), w0.clone());
        if let Some(free) = free {
            let restricted = restricted::Restricted::new(potential, free, w0.clone())?;
            centre = Arc::new(restricted.free(w0));
            potential = Arc::new(restricted);
        }
        Self::new(
            potential,
            EnergyScale::Given(nbeta),
            &Prior::Localised { gamma, centre },
        )
    }

    /// The target whose law at temperature T is exp(-s·L/T - R): the likelihood is tempered, the prior is not. It is this one where R is flat.
    pub fn tempered(&self, temperature: f64) -> Cow<'_, Self> {
        if self.prior.is_flat() {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self {
            prior: self.prior.strengthened(temperature),
            ..self.clone()
        })
    }

    /// The target with s times a factor: the likelihood of exp(-U/T) at T = `factor` is then that of this one at T = 1.
    pub fn with_likelihood_times(&self, factor: f64) -> Self {
        Self {
            s: self.s * factor,
            ..self.clone()
        }
    }

    /// The target of U + ½k|w - reference|², up to a constant in U (the potential of Franz and Parisi 1995).
    ///
    /// # Errors
    /// If k is negative or not finite, or the reference has another length than the parameters.
    pub fn coupled(&self, k: f64, reference: &[f32]) -> Result<Self> {
        anyhow::ensure!(
            k.is_finite() && k >= 0.0,
            "target.coupled: the coupling is {k}, but must be finite and not negative"
        );
        self.check_point(reference, "target.coupled: the reference")?;
        Ok(Self {
            prior: self.prior.coupled(k, reference),
            ..self.clone()
        })
    }

    /// The target of U - h·w, h the field.
    ///
    /// # Errors
    /// If the field has another length than the parameters.
    pub fn in_field(&self, field: &[f32]) -> Result<Self> {
        self.check_point(field, "target.in_field: the field")?;
        Ok(Self {
            prior: self.prior.in_field(field),
            ..self.clone()
        })
    }

    /// The target with a reference: a Gaussian q of independent parameters, by N means and N standard deviations. A ladder that tempers the likelihood samples
    /// exp(-U/T)·q^(1-1/T) at temperature T, and q itself at infinite T (the variational reference of Surjanovic et al. 2022).
    ///
    /// # Errors
    /// If q does not fit the parameters, or the prior has walls.
    pub fn with_reference(&self, mean: &[f32], deviation: &[f32]) -> Result<Self> {
        let (length, dim) = (mean.len(), self.dim());
        anyhow::ensure!(
            length == dim,
            "target.with_reference: the reference has {length} means, the model {dim} parameters"
        );
        let reference = Reference::new(mean.to_vec(), deviation.to_vec())?;
        Ok(Self {
            prior: self.prior.with_reference(reference)?,
            ..self.clone()
        })
    }

    /// Fail if it has a reference; `what` is for other laws.
    ///
    /// # Errors
    /// If it has one.
    pub(crate) fn refuse_reference(&self, what: &str) -> Result<()> {
        anyhow::ensure!(
            !self.prior.has_reference(),
            "{what}: the reference of target.with_reference is of ladders that temper the likelihood: use exchange(…)"
        );
        Ok(())
    }

    fn check_point(&self, point: &[f32], what: &str) -> Result<()> {
        let (length, dim) = (point.len(), self.dim());
        anyhow::ensure!(
            length == dim,
            "{what} has {length} numbers, the model {dim} parameters"
        );
        anyhow::ensure!(
            point.iter().all(|x| x.is_finite()),
            "{what} has numbers that are not finite"
        );
        Ok(())
    }

    /// n of the likelihood; see [`Potential::likelihood_n`].
    pub fn likelihood_n(&self) -> usize {
        self.potential.likelihood_n()
    }

    /// Its network with data; `what` needs one.
    ///
    /// # Errors
    /// If it has none.
    pub(crate) fn network(&self, what: &str) -> Result<&network::Network> {
        let network = self.potential.network();
        network.ok_or_else(|| {
            anyhow::anyhow!("{what} needs a network with data, which this target does not have")
        })
    }

    /// The named tensors of the parameters.
    #[inline]
    pub fn layout(&self) -> &Layout {
        self.potential.layout()
    }

    /// N, the number of parameters.
    #[inline]
    pub fn dim(&self) -> usize {
        self.layout().len()
    }

    /// n, the number of examples.
    #[inline]
    pub fn examples(&self) -> usize {
        self.potential.examples()
    }

    /// s, the likelihood scale: nβ of the tempered form.
    pub fn scale(&self) -> f64 {
        self.s
    }

    /// The prior.
    #[inline]
    pub fn prior(&self) -> &PriorEnergy {
        &self.prior
    }

    /// All energies at `w`, over all examples.
    pub fn energies(&self, w: &[f32], work: &mut Workspace) -> Result<Energies> {
        let sums = self.potential.sums(w, Rows::All, None, work)?;
        Ok(self.energies_from(sums, self.prior.energy(w)))
    }

    /// All energies and ∇U at `w`, over all examples.
    pub fn energies_and_gradient(
        &self,
        w: &[f32],
        grad: &mut [f32],
        work: &mut Workspace,
    ) -> Result<Energies> {
        let sums = self.potential.sums(w, Rows::All, Some(grad), work)?;
        let rest = self.finish_gradient(w, grad, self.examples(), &work.team);
        Ok(self.energies_from(sums, self.prior.energy_given(rest, w)))
    }

    /// The same, at the anchor of control variates, which chains and estimates have in common: the potential may remember it.
    pub fn energies_and_gradient_at_anchor(
        &self,
        w: &[f32],
        grad: &mut [f32],
        work: &mut Workspace,
    ) -> Result<Energies> {
        let sums = self.potential.sums_at_anchor(w, grad, work)?;
        let rest = self.finish_gradient(w, grad, self.examples(), &work.team);
        Ok(self.energies_from(sums, self.prior.energy_given(rest, w)))
    }

    /// The unbiased estimate `s·∇L_B + ∇R` of ∇U from the minibatch `indices`; returns L_B.
    pub fn minibatch_gradient(
        &self,
        w: &[f32],
        indices: &[u32],
        grad: &mut [f32],
        work: &mut Workspace,
    ) -> Result<f64> {
        let sums = self
            .potential
            .sums(w, Rows::Indices(indices), Some(grad), work)?;
        self.finish_gradient(w, grad, indices.len(), &work.team);
        Ok(sums.loss / indices.len() as f64)
    }

    /// L_B, the mean loss over the minibatch `indices`.
    pub fn minibatch_loss(&self, w: &[f32], indices: &[u32], work: &mut Workspace) -> Result<f64> {
        let sums = self.potential.sums(w, Rows::Indices(indices), None, work)?;
        Ok(sums.loss / indices.len() as f64)
    }

    /// From the summed loss gradient over `rows` examples to the gradient of U; the part of R that is not quadratic.
    fn finish_gradient(&self, w: &[f32], grad: &mut [f32], rows: usize, team: &Team) -> f64 {
        let (precision, centre) = self.prior.pull();
        let scale = (self.s / rows as f64) as f32;
        team.chunks(grad, 1 << 11, |at, grad| {
            let here = at..at + grad.len();
            let centre = if centre.is_empty() {
                centre
            } else {
                &centre[here.clone()]
            };
            scale_and_pull(grad, scale, &w[here], precision as f32, centre);
        });
        self.prior.add_rest(w, grad)
    }

    /// The energies, from sums over all examples and R.
    pub fn energies_from(&self, sums: Sums, prior: f64) -> Energies {
        let n = self.examples() as f64;
        let loss = sums.loss / n;
        Energies {
            loss,
            prior,
            likelihood: self.s * loss,
            total: self.s * loss + prior,
            error: sums.errors / n,
        }
    }

    /// Enter everything that defines it into a checksum.
    pub fn fingerprint(&self, hash: &mut crc32fast::Hasher) {
        hash.update(self.describe().as_bytes());
        self.potential.fingerprint(hash);
        self.prior.fingerprint(hash);
    }

    /// A checksum of everything that defines it.
    pub fn hashed(&self) -> crc32fast::Hasher {
        let mut hash = crc32fast::Hasher::new();
        self.fingerprint(&mut hash);
        hash
    }

    /// What it is: potential, n, N, s and prior, each on its line.
    pub fn describe(&self) -> String {
        format!(
            "{}\nn = {} examples, N = {} parameters\nenergy U = s·L + R, {}\nprior R: {}",
            self.potential.describe(),
            self.examples(),
            self.dim(),
            self.scale_in_words(),
            self.prior.describe()
        )
    }

    fn scale_in_words(&self) -> String {
        match self.scale {
            EnergyScale::Mean => "mean: s = 1".to_string(),
            EnergyScale::Sum => format!("sum: s = n = {}", self.s),
            EnergyScale::Given(s) => format!("s = nβ = {s:.6}"),
            EnergyScale::Tempered { beta0 } => {
                format!("tempered: s = nβ = {:.6}, β = {beta0}/ln n", self.s)
            }
        }
    }
}
