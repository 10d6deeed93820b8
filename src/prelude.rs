//! What a Rust program or a Rust notebook needs: `use ergodic::prelude::*;`.
//!
//! ```no_run
//! use ergodic::prelude::*;
//!
//! # fn main() -> Result<()> {
//! let data = dataset::Digits::new().build()?;
//! let net = model::Mlp::new([64, 16, 10]).build()?;
//! let prior = prior::L2::new(10.0).build()?;
//! let target = Target::of(&net, &data).prior(&prior).run()?;
//! let sgld = sampler::Sgld::new().step(1e-5).batch(100).build()?;
//! let run = sweep(&target, &sgld).temperatures(logspace(1e-5, 1e-3, 4)).steps(2000).run()?;
//! println!("{}", run.summary()?);
//! # Ok(())
//! # }
//! ```

pub use crate::builders::functions::*;
pub use crate::builders::{
    choices, dataset, gradient, linspace, logspace, model, observable, open, optimizer, potential,
    prior, sampler, verbs,
};
pub use crate::dataset::{Dataset, Inputs, Split, Targets};
pub use crate::engine::report::{self, Report};
pub use crate::engine::{Chains, Member, Vector};
pub use crate::error::{BadFile, BadOption, EveryChainFailed, Interrupted, Result};
pub use crate::front::display::{Display as _, Table, clear_output, display};
pub use crate::front::notebook::{Session, prepare};
pub use crate::front::report::report as write_report;
pub use crate::kernels::map::Kernel;
pub use crate::kernels::map::{kernel, reduction};
pub use crate::kernels::update::{DOT, LANGEVIN, SCALED_NOISE};
pub use crate::model::Model;
pub use crate::model::from_candle::from_candle;
pub use crate::observable::{Observable, View};
pub use crate::options;
pub use crate::options::{Entry, OptionMap, Options};
pub use crate::plot::{Axis, Figure, Panel, Series};
pub use crate::report::figures as plots;
pub use crate::rng::Purpose;
pub use crate::sampler::gradient::Estimator;
pub use crate::sampler::{Before, ConfiguredSampler, Sampler};
pub use crate::schedule::Schedule;
pub use crate::simulation::optimizer::Optimizer;
pub use crate::simulation::origin::Origin;
pub use crate::simulation::plan::Plan;
pub use crate::simulation::run::Run;
pub use crate::simulation::session::Session as Settings;
pub use crate::simulation::summary::{Summary, with_error};
pub use crate::simulation::trained::Trained;
pub use crate::simulation::until::Until;
pub use crate::simulation::verify::Verification;
pub use crate::target::prior::{Parameters, Prior};
pub use crate::target::{Energies, Potential, Target};
pub use crate::trigger::Trigger;
pub use candle_core::Tensor;
pub use std::sync::Arc;
