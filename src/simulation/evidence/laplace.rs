//! The Laplace approximation of the evidence, from the curvature at an optimum.

use super::gaussian::Gaussian;
use crate::diagnostic::curvature::{self, ln_det_exact, ln_det_lanczos};
use crate::diagnostic::evidence::Estimate;
use crate::error::Result;
use crate::kernels::update::dot;
use crate::options::{self, Kind, Options, Range, Spec, option, optional};
use crate::rng::{Purpose, Stream};
use crate::simulation::exchange::{RoughMinimisation, rough_minimise};
use crate::simulation::session::Session;
use crate::simulation::summary::with_error;
use crate::target::network::gauss_newton::Structure;
use crate::target::prior::Parameters;
use crate::target::{Target, Workspace};
use crate::verb::{Call, Verb};
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;

/// Options of `laplace(target, start, #{…})`.
pub const OPTIONS: &[Spec] = &[
    option(
        "temperature",
        Kind::Float(Range::Positive),
        "1",
        "T of the likelihood: 1 for the evidence.",
    ),
    option(
        "structure",
        Kind::Choice(&["hessian", "full", "kronecker", "diagonal", "last_layer"]),
        "hessian",
        "The curvature of E: its Hessian, for ln Z alone; or, for draws too, its Gauss-Newton matrix: all of it (N² numbers), a Kronecker product for each layer, the diagonal, or all of that of the last layer, the others staying \
         at the optimum, so that there is no ln Z. These need fully connected layers, and the loss \"cross_entropy\" or \"squared_error\".",
    ),
    option(
        "method",
        Kind::Choice(&["auto", "exact", "lanczos"]),
        "auto",
        "ln det of the Hessian from all its eigenvalues (N products with it, then N³), or by stochastic Lanczos quadrature; \"auto\" is exact up to N = 1000.",
    ),
    option(
        "probes",
        Kind::Int(Range::AtLeast(2.0)),
        "16",
        "Random vectors of the quadrature.",
    ),
    option(
        "steps",
        Kind::Int(Range::AtLeast(4.0)),
        "64",
        "Lanczos steps per vector.",
    ),
    option(
        "polish",
        Kind::Int(Range::NonNegative),
        "2000",
        "Steps of minimisation beforehand, from the start.",
    ),
    optional(
        "floor",
        Kind::Float(Range::Positive),
        "the prior's precision, if it is Gaussian",
        "Eigenvalues below this are raised to it: they are noise of single precision, or the point is not a minimum.",
    ),
];

/// Share of the size of weights by which they move in a difference of gradients.
const MOVE: f64 = 4e-3;

/// The Laplace approximation at one point.
#[derive(Debug, Clone)]
pub struct Laplace {
    /// ln Z and the error of the determinant's estimate; how far the posterior is from one Gaussian is not in it.
    pub ln_z: Estimate,
    /// E/T where the minimisation ended.
    pub likelihood_energy: f64,
    /// R there.
    pub prior_energy: f64,
    /// The largest component of ∇(E/T + R) there.
    pub largest_gradient: f64,
    /// ½|g|²/λ of that gradient and the smallest eigenvalue: how much deeper a minimum nearby is at most, were E/T + R quadratic.
    pub slack: f64,
    /// ln det of the Hessian of E/T + R.
    pub ln_det: Estimate,
    /// What stopping after so many Lanczos steps may have changed of ln det; 0 if exact.
    pub stopping: f64,
    /// Share of the eigenvalues that the floor replaces, or that are not positive where there is none.
    pub at_floor: f64,
    /// Smallest and largest eigenvalue, or what was seen of them.
    pub extremes: (f64, f64),
    /// N.
    pub parameters: usize,
    /// Whether the prior has walls, which the Gaussian goes through.
    pub walls: bool,
    /// How ln det was found.
    pub how: String,
    /// Where the minimisation ended.
    pub mode: Arc<Vec<f32>>,
    /// The Gaussian around it, unless the curvature is that of the Hessian.
    pub gaussian: Option<Gaussian>,
}

/// The Laplace approximation of ln ∫ exp(-E/T) p(w) dw around the minimum below the first vector of `start`.
pub fn laplace(
    target: &Target,
    start: &Parameters,
    o: &Options,
    session: &Session,
) -> Result<Laplace> {
    session.computes_here("laplace");
    target.refuse_reference("laplace")?;
    let n = target.dim();
    let w = start.vectors.first().filter(|w| w.len() == n);
    let w = w.ok_or_else(|| {
        anyhow::anyhow!("laplace: the start must have {n} parameters, like the model")
    })?;
    let normaliser = target.prior().ln_normaliser(n);
    let structure = structure(o.text("structure")?);
    let improper = target.prior().improper();
    if let (Some(why), None) = (&improper, structure) {
        anyhow::bail!("laplace: {why}, so there is no evidence");
    }
    let temperature = o.float("temperature")?;
    let tempered = target.tempered(temperature);
    let mut work = Workspace::new(session.threads);
    let mut w = w.to_vec();
    let settings = RoughMinimisation {
        steps: o.int("polish")?,
        dt: 1e-3,
        gradient: 0.0,
    };
    let end = rough_minimise(&mut w, &settings, |w, g| {
        Ok(tempered.energies_and_gradient(w, g, &mut work)?.total)
    })?;
    let energies = target.energies(&w, &mut work)?;
    let mut gradient = vec![0.0; n];
    tempered.energies_and_gradient(&w, &mut gradient, &mut work)?;
    let squared = dot(&gradient, &gradient) / temperature.powi(2);
    let (precision, _) = target.prior().pull();
    let floor = o
        .opt_float("floor")
        .or(Some(precision).filter(|p| *p > 0.0));
    let method = o.text("method")?;
    let exact = method == "exact" || method != "lanczos" && n <= 1000;
    let gaussian = structure
        .map(|s| Gaussian::around(target, &w, temperature, s, floor))
        .transpose()?;
    let found = match &gaussian {
        Some(gaussian) => of_gaussian(gaussian),
        None => {
            let product = products(&tempered, &w, temperature, &mut work);
            match exact {
                true => from_eigenvalues(n, floor, product)?,
                false => by_quadrature(n, floor, product, o, session.seed)?,
            }
        }
    };
    let has_evidence = improper.is_none() && structure != Some(Structure::LastLayer);
    let likelihood_energy = (energies.total - energies.prior) / temperature;
    let prior_energy = energies.prior;
    Ok(Laplace {
        ln_z: match has_evidence {
            true => {
                curvature::laplace(likelihood_energy, prior_energy, normaliser, n, found.ln_det)
            }
            false => unknown(),
        },
        likelihood_energy,
        prior_energy,
        largest_gradient: end.largest_gradient / temperature,
        slack: 0.5 * squared / found.extremes.0.max(floor.unwrap_or(0.0)),
        ln_det: found.ln_det,
        stopping: found.stopping,
        at_floor: found.at_floor,
        extremes: found.extremes,
        parameters: n,
        walls: target.prior().has_walls(),
        how: found.how,
        mode: Arc::new(w),
        gaussian,
    })
}

/// What is kept of the Gauss-Newton matrix; none for the Hessian.
fn structure(name: &str) -> Option<Structure> {
    match name {
        "full" => Some(Structure::Full),
        "kronecker" => Some(Structure::Kronecker),
        "diagonal" => Some(Structure::Diagonal),
        "last_layer" => Some(Structure::LastLayer),
        _ => None,
    }
}

/// ln det of the precision of a Gaussian.
fn of_gaussian(gaussian: &Gaussian) -> Determinant {
    Determinant {
        ln_det: Estimate {
            value: gaussian.ln_det(),
            standard_error: 0.0,
        },
        stopping: 0.0,
        at_floor: gaussian.at_floor(),
        extremes: gaussian.extremes(),
        how: gaussian.how(),
    }
}

/// ln det of a Hessian, with the fields of [`Laplace`].
struct Determinant {
    ln_det: Estimate,
    stopping: f64,
    at_floor: f64,
    extremes: (f64, f64),
    how: String,
}

/// ln det from all eigenvalues.
fn from_eigenvalues(
    n: usize,
    floor: Option<f64>,
    product: impl FnMut(&[f64], &mut [f64]) -> Result<()>,
) -> Result<Determinant> {
    let s = ln_det_exact(n, product)?;
    let (ln_det, at_floor) = match floor {
        Some(f) => s.ln_det_with_floor(f)?,
        None if s.not_positive > 0 => (unknown(), s.not_positive),
        None => (s.ln_det, 0),
    };
    Ok(Determinant {
        ln_det,
        stopping: 0.0,
        at_floor: at_floor as f64 / n as f64,
        extremes: (s.smallest(), s.largest()),
        how: "all eigenvalues".to_string(),
    })
}

/// ln det by stochastic Lanczos quadrature.
fn by_quadrature(
    n: usize,
    floor: Option<f64>,
    product: impl FnMut(&[f64], &mut [f64]) -> Result<()>,
    o: &Options,
    seed: u64,
) -> Result<Determinant> {
    let (probes, steps) = (o.size("probes")?, o.size("steps")?.min(n));
    let uniform =
        |probe: u64, element: u32| Stream::new(seed, Purpose::Probe, 0, probe).uniform(element);
    let l = ln_det_lanczos(n, probes, steps, floor, uniform, product)?;
    Ok(Determinant {
        ln_det: l.ln_det,
        stopping: l.stopping,
        at_floor: floor.map_or(l.not_positive, |_| l.at_floor),
        extremes: (l.smallest, l.largest),
        how: format!("{probes} probes of {steps} Lanczos steps"),
    })
}

fn unknown() -> Estimate {
    Estimate {
        value: f64::NAN,
        standard_error: f64::NAN,
    }
}

/// Products of the Hessian of E/T + R at `w` with vectors, by symmetric differences of gradients.
fn products<'a>(
    tempered: &'a Target,
    w: &'a [f32],
    temperature: f64,
    work: &'a mut Workspace,
) -> impl FnMut(&[f64], &mut [f64]) -> Result<()> + 'a {
    let size = (dot(w, w) / w.len() as f64).sqrt().max(0.1);
    let mut moved = w.to_vec();
    let mut gradients = [vec![0.0; w.len()], vec![0.0; w.len()]];
    move |v, out| {
        crate::error::go_on("laplace")?;
        let largest = v.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        // So small that third derivatives do not count, and a power of two, which costs no digit.
        let step = 2f64.powi((MOVE * size / largest).log2().floor() as i32);
        for (sign, gradient) in [1.0, -1.0].into_iter().zip(&mut gradients) {
            for ((m, w), v) in moved.iter_mut().zip(w).zip(v) {
                *m = (f64::from(*w) + sign * step * v) as f32;
            }
            tempered.energies_and_gradient(&moved, gradient, work)?;
        }
        let [up, down] = &gradients;
        for ((o, up), down) in out.iter_mut().zip(up).zip(down) {
            *o = (f64::from(*up) - f64::from(*down)) / (2.0 * step * temperature);
        }
        Ok(())
    }
}

impl Laplace {
    /// As a map.
    pub fn to_map(&self) -> Map<String, Value> {
        let entries = [
            ("ln_z", self.ln_z.value),
            ("error", self.ln_z.standard_error),
            ("ln_det", self.ln_det.value),
            ("ln_det_error", self.ln_det.standard_error),
            ("stopping", self.stopping),
            ("at_floor", self.at_floor),
            ("smallest", self.extremes.0),
            ("largest", self.extremes.1),
            ("likelihood_energy", self.likelihood_energy),
            ("prior_energy", self.prior_energy),
            ("largest_gradient", self.largest_gradient),
            ("slack", self.slack),
        ];
        entries
            .map(|(k, v)| (k.to_string(), json!(v)))
            .into_iter()
            .collect()
    }
}

/// Most draws of one call.
const DRAWS: i64 = 1_000_000;

impl Laplace {
    /// So many parameter vectors from the Gaussian.
    ///
    /// # Errors
    /// If there is no Gaussian, or no room for them.
    pub fn draws(&self, count: i64, seed: i64) -> Result<Parameters> {
        let gaussian = self.gaussian.as_ref().ok_or_else(|| {
            anyhow::anyhow!(
                "laplace.draws: the Hessian gives no draws; take a structure, as laplace(target, start, #{{ structure: \"kronecker\" }})"
            )
        })?;
        anyhow::ensure!(
            (1..=DRAWS).contains(&count) && seed >= 0,
            "laplace.draws: {count} draws by the seed {seed}, but there must be 1 to {DRAWS}, and a seed of at least 0"
        );
        let numbers = count as u128 * self.parameters as u128;
        crate::memory::check(4 * numbers, &format!("laplace.draws: {count} draws"))?;
        Ok(gaussian.draws(count as usize, seed as u64))
    }
}

impl fmt::Display for Laplace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ln_z = match self.ln_z.value.is_nan() {
            true => "without ln Z".into(),
            false => format!(
                "ln Z = {}",
                with_error(self.ln_z.value, self.ln_z.standard_error)
            ),
        };
        writeln!(
            f,
            "Laplace's approximation: {ln_z} (N = {}, {})",
            self.parameters, self.how
        )?;
        write!(
            f,
            "E/T = {:.4}, R = {:.4}, largest gradient {:.2e}; ln det H = {}, eigenvalues {:.3e} … {:.3e}",
            self.likelihood_energy,
            self.prior_energy,
            self.largest_gradient,
            with_error(self.ln_det.value, self.ln_det.standard_error),
            self.extremes.0,
            self.extremes.1
        )?;
        if self.extremes.0 < -1e-3 * self.extremes.1 {
            write!(
                f,
                "\nNOTE: the energy curves down in some direction: this is not a minimum; polish for longer"
            )?;
        }
        if self.slack > 0.1 {
            write!(
                f,
                "\nNOTE: the gradient is not zero: a minimum nearby may be deeper, by up to {:.1}; polish for longer",
                self.slack
            )?;
        }
        if self.walls {
            write!(
                f,
                "\nNOTE: walls are assumed to be far from the optimum: the part of the Gaussian beyond them is counted too"
            )?;
        }
        if self.stopping > 0.0 {
            write!(
                f,
                "\nstopping the quadrature after these steps may have changed ln det by {:.2}",
                self.stopping
            )?;
        }
        if self.at_floor > 0.0 && self.ln_det.value.is_nan() {
            write!(
                f,
                "\nNOTE: {:.1} % of the curvature is not positive: not a minimum, or flat directions; give a floor",
                100.0 * self.at_floor
            )?;
        } else if self.at_floor > 0.0 {
            write!(
                f,
                "\nthe floor replaces {:.1} % of the eigenvalues",
                100.0 * self.at_floor
            )?;
        }
        Ok(())
    }
}

crate::object::object! {
    Laplace: "Laplace",
    entries: to_map, "laplace.to_map() -> map", "All fields as a map.", "the Laplace approximation",
}

/// The verb `laplace`.
pub static LAPLACE: Verb<Session, (Arc<Target>, options::Value), Arc<Laplace>> = Verb {
    name: "laplace",
    arguments: &["target", "start"],
    options: OPTIONS,
    doc: "The Laplace approximation at the optimum reached from `start`: ln Z = -E/T - R - ln ∫ e^-R + (N/2) ln 2π - ½ ln det H, and draws.\n\n\
         MacKay (1992); Baldock (2019), eq. 16, which leaves out (N/2) ln 2π. H is the Hessian of E/T + R; products with it are symmetric differences of gradients; ln det H is exact for small N and by \
         stochastic Lanczos quadrature (Ubaru, Chen & Saad 2017) for large. `start` is a result of `train`, `run.params()` or `parameters([…])`, of which the first vector is taken. \
         It approximates one mode by a Gaussian; singular models, such as networks, have more: compare with `evidence`.\n\n\
         With `structure`, H is the Gauss-Newton matrix of E/T, or a part of it, and the curvature of R: `laplace.draws(n, seed)` are parameters from the Gaussian N(w*, H⁻¹) (MacKay 1992; Ritter, Botev & Barber 2018 for `\"kronecker\"`; \
         Daxberger et al. 2021), to be scored by `target.prediction`, and `laplace.params()` is w*. The precision of the prior is that of the target, nothing is tuned.\n\n\
         Fields: ln_z, error (of the quadrature only), ln_det, ln_det_error, stopping, at_floor, smallest, largest, likelihood_energy, prior_energy, largest_gradient, slack (½|g|²/λ: by how much a nearby minimum may be deeper).",
    example: "laplace(target(potential::gaussian(#{ dim: 4 }), #{ prior: prior::gaussian(0.1) }), parameters([1, 1, 1, 1]), #{ polish: 100 })",
    call: Call::Checked(|(target, start), o, session| {
        let start = start.as_object::<Parameters>().ok_or_else(|| {
            anyhow::anyhow!(
                "laplace: 'start' must be a result of train, run.params() or parameters([…])"
            )
        })?;
        laplace(&target, &start, o, session).map(Arc::new)
    }),
};
