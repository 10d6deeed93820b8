//! Ohzeki–Ichiki: SGLD with a flow that leaves the law as it is and mixes faster.

use super::gradient::{self, Estimator};
use super::preconditioned_sgld::{Form, MOMENT, PRECONDITIONER, Preconditioner, SCALE};
use super::{Accuracy, Before, Bias, ConfiguredSampler, Sampler};
use crate::engine::Chains;
use crate::engine::Vector::{self, Gradient, Params};
use crate::engine::report::{self, Report};
use crate::error::Result;
use crate::kernels::map::{kernel, single};
use crate::options::{Entry, Kind, Range, option};
use crate::rng::Purpose;
use crate::schedule::Schedule;
use crate::target::Target;
use std::sync::Arc;

/// Samples exp(-U/T) as ε → 0, out of detailed balance (Ohzeki 2015; Ohzeki & Ichiki 2015).
struct OhzekiIchiki {
    step: Schedule,
    gamma: f64,
    between: Between,
    preconditioner: Preconditioner,
    gradient: Estimator,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Between {
    Parameters,
    Replicas,
}

/// `sampler::ohzeki_ichiki`.
pub const ENTRY: Entry<Arc<ConfiguredSampler>> = Entry {
    name: "ohzeki_ichiki",
    doc: "Samples exp(-U/T) as ε → 0, by SGLD with a divergence-free flow: `w ← w - (ε/2)(I + γJ)g + sqrt(εT) η`, J antisymmetric.\n\n\
          Ohzeki (2015); Ohzeki & Ichiki (2015). The flow breaks detailed balance but not the law, and mixes faster where it lets the chain \
          circulate. `between: \"parameters\"`: (Jg)_k = g_{k+1} - g_{k-1}, cyclic over the parameters (eq. 19). `between: \"replicas\"`: the same \
          between the chains of a temperature, each with a minibatch of its own (\"data flow\", eq. 26). For two parameters, or two replicas, the cyclic \
          form vanishes; J = [[0, 1], [-1, 0]] replaces it (eqs. 20, 21). The sign of γ is that of eq. 19; eq. 26 has the opposite one, which reverses \
          the ring. A single replica is SGLD. The larger γ, the smaller the step must be. In a box with hard walls the flow would cross them: there γ must be 0.\n\n\
          With `form` \"rmsprop\" or \"adam\" the step sizes D of sampler::rmsprop_sgld or sampler::adam_sgld enter as D^½(I + γJ)D^½, \
          frozen at the end of burn-in unless the `preconditioner` is \"running\"; with \"adam\" the step without the flow is a running mean, of gradient and noise.",
    arguments: &[],
    options: &[
        option(
            "step",
            Kind::Schedule(Range::Positive),
            "1e-4",
            "Step size ε, in parameter² per energy; Ohzeki's dt is ε/2.",
        ),
        option(
            "gamma",
            Kind::Float(Range::Any),
            "1.0",
            "γ, strength of the flow; 0 is SGLD.",
        ),
        option(
            "between",
            Kind::Choice(&["parameters", "replicas"]),
            "parameters",
            "What flows: gradient components between parameters, or gradients between chains of a temperature.",
        ),
        option(
            "form",
            Kind::Choice(&["sgld", "rmsprop", "adam"]),
            "sgld",
            "The form of SGLD to which the flow is added.",
        ),
        PRECONDITIONER,
        option(
            "decay",
            Kind::Float(Range::Open01),
            "0.99",
            "b of the forms \"rmsprop\" and \"adam\".",
        ),
        option(
            "moment_decay",
            Kind::Float(Range::Open01),
            "0.9",
            "b1 of the form \"adam\".",
        ),
        option(
            "stability",
            Kind::Float(Range::Positive),
            "0.1",
            "a of the forms \"rmsprop\" and \"adam\".",
        ),
        gradient::BATCH,
        gradient::GRADIENT,
    ],
    example: "sampler::ohzeki_ichiki(#{ step: 1e-5, gamma: 2.0, between: \"replicas\", batch: 50 })",
    build: |o| {
        let form = match o.text("form")? {
            "rmsprop" => Form::Rmsprop,
            "adam" => Form::Adam,
            _ => Form::Sgld,
        };
        let sampler = OhzekiIchiki {
            step: o.schedule("step")?,
            gamma: o.float("gamma")?,
            between: match o.text("between")? {
                "replicas" => Between::Replicas,
                _ => Between::Parameters,
            },
            preconditioner: Preconditioner::from_options(o, form)?,
            gradient: Estimator::from_options(o)?,
        };
        Ok(ConfiguredSampler::new(sampler, o))
    },
};

/// D^½g, and J D^½g.
const SCALED: Vector = Vector::Scratch(2);
const FLOW: Vector = Vector::Scratch(3);

kernel! {
    /// `h ← scale·g`.
    PREPARE = ohzeki_prepare(h; g, scale; ; ) {
        h = scale * g;
    }
}

kernel! {
    /// `w ← w - scale·(half·h + curl·flow) + sigma·scale·η`.
    STEP = ohzeki_step(w; h, flow, scale; eta; half, curl, sigma) {
        w = w - scale * (half * h + curl * flow) + sigma * scale * eta;
    }
}

/// For each chain the two whose difference flows into it: the next and the previous of its group that have not failed.
fn ring(chains: &Chains) -> Vec<[Option<usize>; 2]> {
    let mut out = vec![[None, None]; chains.len()];
    let going = |c: &usize| chains.members[*c].failure.is_none();
    let healthy: Vec<usize> = (0..chains.len()).filter(going).collect();
    for group in healthy.chunk_by(|a, b| chains.members[*a].group == chains.members[*b].group) {
        let size = group.len();
        for (i, c) in group.iter().enumerate() {
            let (next, previous) = (group[(i + 1) % size], group[(i + size - 1) % size]);
            out[*c] = match (size, i) {
                (1, _) => [None, None],
                (2, 0) => [Some(next), None],
                (2, _) => [None, Some(previous)],
                _ => [Some(next), Some(previous)],
            };
        }
    }
    out
}

kernel! {
    /// The same by steps that are running means, without the flow: `u ← keep·u + (1-keep)(sigma·η - half·h)`, `w ← w + scale·(u - curl·flow)`.
    MEAN_STEP = ohzeki_mean_step(w, u; h, flow, scale; eta; half, curl, sigma, keep) {
        u = keep * u + (1.0 - keep) * (sigma * eta - half * h);
        w += scale * (u - curl * flow);
    }
}

impl OhzekiIchiki {
    /// Report the virial; replicas that met a number that is not finite leave the ring before they spoil the others.
    fn report_virial(&self, chains: &mut Chains) -> Result<()> {
        if self.between == Between::Parameters {
            return chains.report_virial(Gradient);
        }
        let virials = chains.virials(Gradient)?;
        for c in 0..chains.len() {
            if virials.iter().any(|tensor| !tensor[c][0].is_finite()) {
                chains.fail(c, "met a number that is not finite");
            }
        }
        chains.report_virials(&virials)
    }
}

impl Sampler for OhzekiIchiki {
    fn name(&self) -> &'static str {
        "ohzeki_ichiki"
    }

    fn vectors(&self) -> &'static [&'static str] {
        self.preconditioner.vectors()
    }

    fn info(&self) -> &'static [Report] {
        &[report::VIRIAL, report::MINIBATCH_LOSS, report::STEP_SIZE]
    }

    fn gradient(&self) -> Option<&Estimator> {
        Some(&self.gradient)
    }

    fn accuracy(&self) -> Accuracy {
        self.preconditioner.accuracy()
    }

    fn follows_one_gradient(&self) -> bool {
        true
    }

    fn couples(&self) -> bool {
        self.between == Between::Replicas
    }

    fn bias(&self) -> Option<Bias> {
        self.preconditioner.bias()
    }

    fn note(&self, burn_in: u64) -> Option<&'static str> {
        self.preconditioner.note(burn_in)
    }

    fn check(&self, target: &Target) -> Result<()> {
        anyhow::ensure!(
            self.gamma == 0.0 || !target.prior().has_walls(),
            "sampler::ohzeki_ichiki: its flow crosses the walls of the prior ({}), and no reflection there preserves exp(-U/T); take gamma: 0, another sampler, or a prior without walls",
            target.prior().describe()
        );
        Ok(())
    }

    fn init(&self, chains: &mut Chains) -> Result<()> {
        self.preconditioner.init(chains)
    }

    fn change_temperature(&self, chains: &mut Chains, before: &[Before]) -> Result<()> {
        let epsilon = self.step.at(chains.step);
        self.preconditioner
            .change_temperature(&self.gradient, epsilon, chains, before)
    }

    fn step(&self, chains: &mut Chains) -> Result<()> {
        let epsilon = self.step.at(chains.step);
        self.gradient.estimate(chains, Purpose::Minibatch, 0)?;
        self.report_virial(chains)?;
        chains.report_loss(report::MINIBATCH_LOSS)?;
        chains.report(report::STEP_SIZE, |_| epsilon)?;
        self.preconditioner.update(chains)?;
        chains.map(&PREPARE, &[SCALED, Gradient, SCALE], |_, _| -> [f32; 0] {
            []
        })?;
        match self.between {
            Between::Parameters => chains.engine.rotate(SCALED, FLOW)?,
            Between::Replicas => {
                let ring = ring(chains);
                chains.engine.difference(SCALED, FLOW, &ring)?;
            }
        }
        let draw = (Purpose::Noise, 0);
        let scalars = |temperature: f64| {
            let half = epsilon / 2.0;
            let sigma = (epsilon * temperature).sqrt();
            single([half, half * self.gamma, sigma])
        };
        match self.preconditioner.keep() {
            None => {
                let vectors = [Params, SCALED, FLOW, SCALE];
                chains.map_with_noise(&STEP, &vectors, draw, |_, m| scalars(m.temperature))?;
                chains.engine.reflect(None)
            }
            Some(keep) => {
                let vectors = [Params, MOMENT, SCALED, FLOW, SCALE];
                chains.map_with_noise(&MEAN_STEP, &vectors, draw, |_, m| {
                    let [half, curl, sigma] = scalars(m.temperature);
                    [half, curl, sigma, keep]
                })?;
                chains.engine.reflect(Some(MOMENT))
            }
        }
    }
}
