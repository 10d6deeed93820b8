//! Autocorrelation of an observable along a run.

use super::run::Run;
use crate::diagnostic;
use crate::error::Result;
use crate::options::{Kind, Range, option};
use crate::verb::{Call, Verb};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// The verb `autocorrelation`.
pub static AUTOCORRELATION: Verb<(), (Arc<Run>, String), Json> = Verb {
    name: "autocorrelation",
    arguments: &["run", "observable"],
    options: &[option(
        "lags",
        Kind::Int(Range::AtLeast(1.0)),
        "100",
        "Largest lag, in records; fewer where there are fewer draws.",
    )],
    doc: "The autocorrelation ρ of an observable of one number after burn-in, per temperature: `#{ temperatures, lags, rho, time }`.\n\n\
          Lags count records (see the option `every` of the run). `rho` has for each temperature ρ at these lags, `time` the integrated \
          autocorrelation time in records, 1 + 2 Σ ρ, as in the summary. Deviations are from the mean of all chains: where chains disagree, ρ \
          stays above 0. Chains that failed are left out. For a constant, all values are NaN.\n\n\
          Source: Vehtari et al. 2021, Rank-normalization, folding, and localization, eq. 10.",
    example: "let r = sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 200, chains: 2 });\n\
              autocorrelation(r, \"cost\", #{ lags: 20 }).time[0]",
    call: Call::Checked(|(run, name), o, ()| autocorrelation(&run, &name, o.size("lags")?)),
};

fn autocorrelation(run: &Run, name: &str, most: usize) -> Result<Json> {
    let column = run.info.column(name);
    anyhow::ensure!(
        !column.is_ok_and(|(_, c)| c.components.is_some()),
        "autocorrelation: '{name}' has several components; name one of them, as the summary does"
    );
    let (mut rho, mut time) = (Vec::new(), Vec::new());
    for temperature in 0..run.info.temperatures.len() {
        let chains = run.draws(name, 0, temperature, true)?;
        rho.push(diagnostic::autocorrelations(&chains, most));
        time.push(diagnostic::integrated_autocorrelation_time(&chains));
    }
    let lags = rho.iter().map(Vec::len).max().unwrap_or(0);
    Ok(json!({
        "temperatures": run.info.temperatures,
        "lags": (0..lags).collect::<Vec<_>>(),
        "rho": rho,
        "time": time,
    }))
}
