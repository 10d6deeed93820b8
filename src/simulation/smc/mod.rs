//! Tempered sequential Monte Carlo: populations that go from the prior to the posterior, resampled from one temperature to the next.
//!
//! Where replica exchange has all temperatures at once and lets parameters wander between them, a population has one at a time and finds the
//! next one itself: as far as its effective sample size allows. What moves between the members is parameters, not temperatures, and how many
//! stages there will be is not known beforehand; so it is a loop of its own, over runs in memory of a few steps each, with a checkpoint per stage.

mod report;
mod state;
mod tempering;

use super::job::{Job, Record, Standing, drive};
use super::resume;
use super::session::{self, Session};
use super::until::{OF_STAGES, Until};
use crate::diagnostic::evidence::Estimate;
use crate::diagnostic::evidence::annealing::{self, Families};
use crate::error::{Interrupted, Result};
use crate::memory;
use crate::options::{Kind, Options, Range, Spec, option, optional};
use crate::rng::MAX_CHAINS;
use crate::sampler::ConfiguredSampler;
use crate::store::archive::{Archive, Kept};
use crate::store::checkpoint::{self, Tensors};
use crate::target::Target;
use crate::target::prior::Parameters;
use crate::verb::{Call, RESUME, Verb};
use serde_json::{Map, Value, json};
use state::State;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tempering::Tempering;

/// Options of `smc(target, sampler, #{…})`.
pub(crate) const OPTIONS: &[Spec] = &[
    option(
        "particles",
        Kind::Int(Range::Between(2.0, 1e6)),
        "128",
        "Members of a population.",
    ),
    option(
        "populations",
        Kind::Int(Range::Between(1.0, 1e4)),
        "8",
        "Populations, each resampled on its own; the error bars come from their scatter.",
    ),
    option(
        "ess",
        Kind::Float(Range::Open01),
        "0.7",
        "Effective sample size, as a share of the particles, that is left at the next temperature: the larger, the more stages.",
    ),
    optional(
        "temperatures",
        Kind::Floats(Range::Positive),
        "found by `ess`",
        "The temperatures of all stages, falling; the last is where it ends, in the place of `temperature`. The choice of temperatures then adds no bias to Z.",
    ),
    option(
        "moves",
        Kind::Int(Range::Between(1.0, 1e6)),
        "10",
        "Steps of the sampler at each stage.",
    ),
    optional(
        "until",
        Kind::Map(OF_STAGES),
        "it goes on after `moves`",
        "Move on at a stage after `moves` until the populations agree about the energy, by R̂ with the particles as draws, and copies of one particle have come apart: so many \
         particles are effective, all populations together. `#{}` asks for R̂ ≤ 1.01 and 400.",
    ),
    option(
        "temperature",
        Kind::Float(Range::Positive),
        "1",
        "The temperature where it ends.",
    ),
    optional(
        "seed",
        Kind::Int(Range::NonNegative),
        "from --seed and the name",
        "Seed of the populations.",
    ),
    optional(
        "name",
        Kind::Text,
        "smc-1, …",
        "Name, and that of the folder of the result.",
    ),
    RESUME,
];

/// Bytes that a particle takes for each of its vectors, beside the numbers.
const CHAIN: usize = 100;

/// One temperature on the way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stage {
    /// T.
    pub temperature: f64,
    /// Effective sample size of the weights that lead there, as a share, in the mean over the populations.
    pub effective_share: f64,
    /// Mean acceptance of the moves there.
    pub acceptance: f64,
    /// The sampler's step size in the last of them.
    pub step_size: f64,
    /// How many there were.
    pub moves: u64,
}

/// Populations that have come to the end.
#[derive(Debug)]
pub struct Smc {
    /// Name of the result and of its folder.
    pub name: String,
    /// The target, in words.
    pub target: String,
    /// Name of the sampler.
    pub sampler: String,
    /// N.
    pub parameters: usize,
    /// n.
    pub examples: usize,
    /// From hot to cold.
    pub stages: Vec<Stage>,
    /// ln Z by each population.
    pub ln_z: Vec<f64>,
    /// What each population descends from: families of draws from the prior.
    pub families: Vec<Families>,
    /// The particles, of the populations in turn, without those that failed in the last moves.
    pub params: Arc<Parameters>,
    /// Particles per population.
    pub particles: usize,
    /// Particles that failed on the way; the others have taken their place.
    pub failed: u64,
    /// What is to be said of its course, as that it went on from an older checkpoint.
    pub notes: Vec<String>,
    /// Seconds of computing, over all sessions.
    pub seconds: f64,
}

impl Smc {
    /// ln of the mean of Z over the populations.
    pub fn estimate(&self) -> Estimate {
        annealing::ln_mean(&self.ln_z)
    }
}

/// Bring populations from the prior to a temperature.
pub(crate) fn smc(
    target: &Target,
    sampler: &Arc<ConfiguredSampler>,
    o: &Options,
    session: &Session,
) -> Result<Arc<Smc>> {
    if let Some(why) = target.prior().improper() {
        anyhow::bail!("smc: {why}");
    }
    target.refuse_reference("smc")?;
    anyhow::ensure!(
        sampler.energy_scalar().is_some(),
        "smc: sampler::{} never rejects, and its error would enter ln Z; use hmc, nuts, mala, mams or metropolis",
        sampler.name()
    );
    sampler.check_exchanging(target, None)?;
    session.computes_here("smc: the weights of the particles");
    let name = session.name_run("smc", o.opt_text("name"))?;
    let (populations, share) = (o.size("populations")?, o.float("ess")?);
    let (mut particles, mut moves) = (o.size("particles")?, o.int("moves")?);
    if session.quick {
        let least = (2.0 / share).ceil() as usize;
        (particles, moves) = (particles.min(least.max(32)), moves.min(5));
    }
    anyhow::ensure!(
        share * particles as f64 >= 2.0,
        "smc: option 'ess' is {share}, which leaves less than two of {particles} particles; take more particles or a larger ess"
    );
    let until = Until::with_entries(o, OF_STAGES, ("moves", moves))?;
    let until = until.filter(|_| !session.quick);
    let count = particles * populations;
    anyhow::ensure!(
        until.is_none_or(|u| u.ess <= count as f64),
        "smc: option 'until' asks for more effective particles than the {count} that there are"
    );
    anyhow::ensure!(
        count < MAX_CHAINS,
        "smc: {count} particles are more than {MAX_CHAINS}"
    );
    let vectors = 3 + sampler.vectors.len() + sampler.scratch();
    memory::check(
        (count * vectors * (target.dim() * 4 + CHAIN)) as u128,
        &format!(
            "'{name}' ({count} particles of {} parameters)",
            target.dim()
        ),
    )?;
    let seed = o
        .opt_int("seed")
        .unwrap_or_else(|| session::seed_of(session.seed, &name));
    let schedule = o.floats("temperatures");
    anyhow::ensure!(
        schedule
            .iter()
            .all(|t| !t.is_empty() && t.windows(2).all(|t| t[0] > t[1])),
        "smc: option 'temperatures' must fall from each stage to the next, and have one at least"
    );
    let coldest = match schedule.as_ref().and_then(|t| t.last()) {
        Some(last) => *last,
        None => o.float("temperature")?,
    };
    let tempering = Tempering {
        target,
        sampler: sampler.clone(),
        adapts: sampler.adapted_step(),
        populations,
        moves,
        until,
        share,
        coldest,
        schedule,
        seed,
        session,
    };
    let what = json!({
        "fingerprint": target.hashed().finalize(), "target": target.describe(), "sampler": sampler.name(), "options": sampler.options, "seed": seed,
        "particles": particles, "populations": populations, "moves": moves, "until": until, "ess": share, "temperature": tempering.coldest, "temperatures": tempering.schedule,
    });
    let job = Populations {
        name,
        what,
        sampler: sampler.name(),
        particles,
        tempering,
        state: State::default(),
    };
    drive(job, session)
}

/// Populations on their way.
struct Populations<'a> {
    name: String,
    what: Value,
    /// As it was asked for.
    sampler: &'static str,
    /// Per population.
    particles: usize,
    tempering: Tempering<'a>,
    state: State,
}

impl Kept for Populations<'_> {
    fn keep<'a>(&'a mut self, archive: &mut Archive<'a>) -> Result<()> {
        self.state.keep(archive)
    }
}

impl Job for Populations<'_> {
    type Output = Arc<Smc>;

    fn name(&self) -> &str {
        &self.name
    }

    fn whose(&self) -> &'static str {
        "these populations were"
    }

    fn fingerprint(&self) -> Value {
        self.what.clone()
    }

    fn describe(&self, _: bool) -> Result<Map<String, Value>> {
        let what = ("what".to_string(), self.fingerprint());
        let examples = self.tempering.target.examples().into();
        Ok(Map::from_iter([what, ("examples".into(), examples)]))
    }

    fn size(&self) -> (&'static str, u64) {
        ("‰ of ln β", 1000)
    }

    fn standing(&self) -> Standing {
        let end = self.tempering.end();
        let way = self.state.stages.first().map_or(0.0, |s| {
            let first = 1.0 / s.temperature;
            ((self.state.beta / first).ln() / (end / first).ln()).clamp(0.0, 1.0)
        });
        Standing {
            done: (1000.0 * way) as u64,
            more: self.state.beta < end,
            ..Standing::default()
        }
    }

    fn place(&self) -> String {
        self.state.place()
    }

    fn begin(&mut self, _: &Path, _: &mut Record, _: &Session) -> Result<()> {
        let count = self.particles * self.tempering.populations;
        self.state = self.tempering.prior(count)?;
        Ok(())
    }

    fn restore(&mut self, tensors: Tensors, _: &Value, _: &Path) -> Result<()> {
        Archive::restore(&mut self.state, tensors)?;
        let dim = self.tempering.target.dim();
        let fits = self.state.w.len() == self.particles * self.tempering.populations
            && self.state.w.iter().all(|w| w.len() == dim);
        anyhow::ensure!(fits, "the checkpoint has other particles than the model");
        Ok(())
    }

    /// A stage.
    fn advance(&mut self, _: Instant) -> Result<()> {
        match self.tempering.stage(&mut self.state) {
            // A stage that is interrupted leaves everything as it was.
            Err(e) if Interrupted::is(&e) => Ok(()),
            other => other,
        }
    }

    fn finish(self, folder: &Path, record: Record, session: &Session) -> Result<Arc<Smc>> {
        let target = self.tempering.target;
        let about = About {
            name: self.name,
            target: target.describe(),
            sampler: self.sampler.into(),
            examples: target.examples(),
            particles: self.particles,
            record,
        };
        let out = about.of(self.state);
        resume::saving(out.write(folder), folder, session)?;
        Ok(Arc::new(out))
    }
}

/// What a checkpoint does not hold in numbers.
struct About {
    name: String,
    target: String,
    sampler: String,
    examples: usize,
    particles: usize,
    record: Record,
}

impl About {
    /// With the populations where they are.
    fn of(self, state: State) -> Smc {
        let (count, particles) = (state.w.len(), self.particles);
        let populations = count / particles;
        // One of each population in turn, so that the first few are of different ones.
        let turn = (0..count).map(|i| i % populations * particles + i / populations);
        let healthy = |i: &usize| state.energies[*i].is_finite();
        let kept = turn.filter(healthy).map(|i| state.w[i].clone());
        let families = state.roots.chunks_exact(particles).map(annealing::families);
        Smc {
            name: self.name,
            target: self.target,
            sampler: self.sampler,
            parameters: state.w.first().map_or(0, |w| w.len()),
            examples: self.examples,
            particles,
            failed: state.failed,
            families: families.collect(),
            params: Arc::new(Parameters {
                vectors: kept.collect(),
            }),
            ln_z: state.ln_z,
            stages: state.stages,
            notes: self.record.notes,
            seconds: self.record.seconds,
        }
    }
}

impl Smc {
    /// Populations from their folder: as they were at the newest checkpoint, and whether they had come to the end; none if the folder is
    /// that of something else.
    pub fn load(folder: &Path) -> Result<Option<(Self, bool)>> {
        let Some((saved, generation)) = checkpoint::load(&folder.join("checkpoint"))? else {
            return Ok(None);
        };
        let what = saved.meta["what"].clone();
        let number = |key: &str| what[key].as_u64().map(|n| n as usize);
        let (Some(particles), Some(populations)) = (number("particles"), number("populations"))
        else {
            return Ok(None);
        };
        let text = |key: &str| what[key].as_str().unwrap_or_default().to_string();
        let name = folder.file_name().unwrap_or_default();
        let mut about = About {
            name: name.to_string_lossy().into_owned(),
            target: text("target"),
            sampler: text("sampler"),
            examples: saved.meta["examples"].as_u64().unwrap_or(0) as usize,
            particles,
            record: Record::of(&saved.meta),
        };
        let mut state = State::default();
        Archive::restore(&mut state, saved.tensors)?;
        anyhow::ensure!(
            particles > 0
                && populations > 0
                && state.w.len() == particles * populations
                && state.ln_z.len() == populations,
            "{}: the checkpoint has other populations than it says",
            folder.display()
        );
        let notes = &mut about.record.notes;
        notes.extend(generation.shown(&state.place()));
        let end = what["temperature"].as_f64().map_or(f64::NAN, |t| 1.0 / t);
        let done = state.beta >= end;
        Ok(Some((about.of(state), done)))
    }
}

/// The verb `smc`.
pub static SMC: Verb<Session, (Arc<Target>, Arc<ConfiguredSampler>), Arc<Smc>> = Verb {
    name: "smc",
    arguments: &["target", "sampler"],
    options: OPTIONS,
    doc: "Tempered sequential Monte Carlo: populations that go from draws of the prior to exp(-s·L/T - R), and ln Z on the way.\n\n\
         A stage weighs the particles by exp(-(β' - β)E), with β' = 1/T' chosen so that the effective sample size falls to `ess`, resamples them systematically and moves each by `moves` \
         steps of the sampler (Del Moral, Doucet & Jasra 2006; Jasra et al. 2011). An alternative to `exchange` with a prior rung where no ladder is known: it finds one. \
         The step size follows the acceptance of the particles, and masses are the inverse variances of all of them where the sampler adapts its own (`adapt_mass`); its `rank` and `masses` do not count then. With hmc, nuts, mala, mams and metropolis (and snaper, whose length is not learnt here), on the CPU.\n\n\
         This is population annealing (Hukushima & Iba 2003; Machta 2010) with populations of constant size: `temperatures` takes its schedule, and the families that are left say whether populations were large enough. With ν the share of a family in R particles, ρ_t = R Σν² is the mean square and ρ_s = R exp(Σ ν ln ν) the entropic family size; R/ρ_s families are left in effect, and Wang, Machta & Katzgraber (2015) ask for 100.\n\n\
         Each population is resampled on its own, and they share only temperatures, step sizes and masses; ln Z is that of their mean Z, and its error bar comes from their scatter alone, so it holds whatever the \
         particles of one population have in common. Where they scatter by more than 1, the scatter is the error bar, and ln Z most likely too small. A mode that no draw from the prior has found is lost, and no error bar shows it: compare with `exchange`.\n\n\
         `evidence(smc)` is for `compare`, `smc.params()` a start for `sample` or `exchange`, `smc[\"temperatures\"]` a ladder. Fields: ln_z, error, ln_z_populations, temperatures, effective_share, acceptance, step_size, moves (per stage), \
         families (draws of the prior that each population descends from), family_mean_square (ρ_t) and family_entropic (ρ_s) of each, scatter (standard deviation of ln Z over the populations), particles, populations, failed, parameters, seconds.",
    example: "smc(target(potential::gaussian_mixture(), #{ prior: prior::gaussian(0.25) }), sampler::hmc(#{ leapfrog: 3 }), #{ particles: 64, populations: 4 })",
    call: Call::Checked(|(target, sampler), o, session| smc(&target, &sampler, o, session)),
};
