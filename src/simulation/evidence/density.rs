//! The density of states of a ladder: how many states there are at each energy.

use super::Energies;
use crate::diagnostic::evidence::{Estimate, Mbar, Replicas};
use crate::error::Result;
use crate::options::{Kind, Options, Range, Spec, Value, option, optional};
use crate::simulation::run::Run;
use crate::verb::{Call, Either, Verb};
use anyhow::{Context, anyhow, ensure};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// Options of `density_of_states(run, #{…})`.
const OPTIONS: &[Spec] = &[
    option(
        "bins",
        Kind::Int(Range::Between(1.0, 1000.0)),
        "30",
        "Bins of the energy, of equal width, from the lowest to the highest draw.",
    ),
    optional(
        "edges",
        Kind::Floats(Range::Any),
        "by `bins`",
        "Edges of the bins, increasing.",
    ),
];

/// A run, or inverse temperatures and draws of the energy at each.
type Of = Either<(Arc<Run>,), (Vec<Value>, Vec<Value>)>;

/// The verb `density_of_states`.
pub static DENSITY_OF_STATES: Verb<(), Of, Json> = Verb {
    name: "density_of_states",
    arguments: &["run"],
    options: OPTIONS,
    doc: "The density of states g(E) and the microcanonical entropy ln g, from all draws of a ladder by MBAR, with errors.\n\n\
         Z(β) = ∫ g(E) exp(-βE) dE, with Z = 1 at the first rung, the hottest: g is the share of the prior at each energy where that is the prior. E is what the run tempers: U in a `sweep` or an `exchange` with \
         `temper: \"energy\"` (a sweep must observe energy), s·L with \"likelihood\" (a sweep must observe cost), R in an exchange with \"prior\". Neighbouring temperatures must overlap in E.\n\n\
         `#{ energy, edges, ln_g, ln_g_error, beta, beta_error, effective_draws, betas, ln_z, ln_z_error }`: `energy` has the middles of the bins, `ln_g` the logarithm of the mean of g over each; `beta` is d ln g/dE, the microcanonical 1/T, from each middle to the next \
         (where it rises with E, a canonical ensemble has two phases); `ln_z` is ln Z at each inverse temperature of `betas`, relative to the first. Bins without draws are NaN; errors of those with fewer than ten `effective_draws` are not to be believed.\n\n\
         `density_of_states(betas, draws, #{…})` takes draws from elsewhere: increasing inverse temperatures, and for each an array of chains, as `run.draws(name, t)` has them, of a quantity E in laws ∝ exp(-βE)·p(w).",
    example: "let run = exchange(target(potential::gaussian(#{ dim: 8 })), sampler::hmc(), #{ temperatures: [1, 1.5, 2.2], temper: \"energy\", steps: 1000 });\n\
              let s = density_of_states(run, #{ bins: 10 });\n\
              plot::curve(s.energy, s.ln_g, #{ error: s.ln_g_error, x_label: \"E\", y_label: \"ln g\" })",
    call: Call::Checked(|of, o, ()| {
        let energies = match of {
            Either::First((run,)) => {
                Energies::at_rungs(&run).with_context(|| format!("run '{}'", run.info.name))?
            }
            Either::Second((betas, draws)) => given(&betas, &draws)?,
        };
        density_of_states(&energies, o)
    }),
};

/// Energies as a script has them.
fn given(betas: &[Value], draws: &[Value]) -> Result<Energies> {
    let wrong = |what: &str, x: &Value| anyhow!("density_of_states: {what}, not {}", x.describe());
    let numbers = |list: &[Value], what: &str| -> Result<Vec<f64>> {
        let one = |x: &Value| x.number().ok_or_else(|| wrong(what, x));
        list.iter().map(one).collect()
    };
    let list = |x: &Value, what: &str| match x {
        Value::List(list) => Ok(list.clone()),
        other => Err(wrong(what, other)),
    };
    let chains = |rung: &Value| -> Result<Vec<Vec<f64>>> {
        let rung = list(
            rung,
            "the draws of each inverse temperature must be an array of chains",
        )?;
        let chain = |c| {
            numbers(
                &list(c, "a chain must be an array of numbers")?,
                "draws must be numbers",
            )
        };
        rung.iter().map(chain).collect()
    };
    Ok(Energies {
        betas: numbers(betas, "inverse temperatures must be numbers")?,
        draws: draws.iter().map(chains).collect::<Result<_>>()?,
        replicas: Replicas::Independent,
    })
}

fn density_of_states(energies: &Energies, o: &Options) -> Result<Json> {
    let ladder = energies.ladder()?;
    let edges = match o.floats("edges") {
        Some(edges) => edges,
        None => edges(energies.draws.iter().flatten().flatten(), o.size("bins")?),
    };
    ensure!(
        edges.len() > 1 && edges.windows(2).all(|e| e[0] < e[1]),
        "density_of_states: option 'edges' must have two numbers at least, and they must increase"
    );
    let mbar = Mbar::solve(&ladder)?;
    let found = mbar.density_of_states(&edges, energies.replicas)?;
    let first = energies.betas[0];
    let ln_z = energies
        .betas
        .iter()
        .map(|b| mbar.difference(first, *b, energies.replicas))
        .collect::<Result<Vec<_>>>()?;
    let middles: Vec<f64> = edges.windows(2).map(|e| 0.5 * (e[0] + e[1])).collect();
    let values = |all: &[Estimate]| -> Vec<f64> { all.iter().map(|e| e.value).collect() };
    let errors = |all: &[Estimate]| -> Vec<f64> { all.iter().map(|e| e.standard_error).collect() };
    Ok(json!({
        "energy": middles,
        "edges": edges,
        "ln_g": values(&found.ln_g),
        "ln_g_error": errors(&found.ln_g),
        "beta": values(&found.beta),
        "beta_error": errors(&found.beta),
        "effective_draws": found.effective_draws,
        "betas": energies.betas,
        "ln_z": values(&ln_z),
        "ln_z_error": errors(&ln_z),
    }))
}

/// Bins of equal width that hold every draw.
fn edges<'a>(energies: impl Iterator<Item = &'a f64>, bins: usize) -> Vec<f64> {
    let (low, high) = energies.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), e| {
        (a.min(*e), b.max(*e))
    });
    // The last edge is not in its bin.
    let width = (high - low).max(1e-9 * high.abs()).max(1e-300) * (1.0 + 1e-9) / bins as f64;
    (0..=bins).map(|k| low + width * k as f64).collect()
}
