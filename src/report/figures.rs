//! Figures of runs: what scripts draw with `plot::`, `ergodic plot` writes and a report shows.

use crate::diagnostic::{Heat, Verdict};
use crate::error::{Result, did_you_mean};
use crate::plot::learning::{self, Contender};
use crate::plot::{self, Axis, Figure, Kind, Panel, Scale, Series, ladder};
use crate::simulation::evidence::Transition;
use crate::simulation::exchange::{LadderReport, betas_of};
use crate::simulation::llc::table::{Benchmark, Line};
use crate::simulation::run::{Run, TEMPERED_ENERGY};
use crate::simulation::smc::Smc;
use crate::simulation::summary::Summary;
use std::sync::Arc;

/// Which axis suits temperatures: logarithmic as soon as they span a factor of three.
fn wide(x: &[f64]) -> bool {
    let finite = x.iter().filter(|x| x.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, 0.0f64), |(l, h), x| (l.min(*x), h.max(*x)));
    high > 3.0 * low
}

/// A label per temperature.
fn labels(run: &Run) -> Vec<String> {
    plot::labels(&run.info.temperatures)
}

/// A name in its other form: `error.test` is the same as `error_test`, and `error.train` is `error`.
fn canonical(name: &str) -> String {
    name.replace(".train", "").replace('.', "_")
}

/// The trace of a run that a name means, in either form.
fn meant(run: &Run, name: &str) -> String {
    match run.info.records(name) {
        true => name.into(),
        false => canonical(name),
    }
}

/// Observables of whole runs against temperature; see [`sweep`].
///
/// # Errors
/// If a run cannot be summarised, or has no observable of such a name.
pub fn sweep_of(runs: &[Arc<Run>], names: &[impl AsRef<str>]) -> Result<Figure> {
    let summaries = runs.iter().map(|r| Summary::new(r));
    let summaries = summaries.collect::<Result<Vec<_>>>()?;
    let both: Vec<_> = runs.iter().map(Arc::as_ref).zip(&summaries).collect();
    sweep(&both, names)
}

/// Observables of sweeps against temperature, with error bars; a panel for each, and in it all runs.
pub fn sweep(runs: &[(&Run, &Summary)], names: &[impl AsRef<str>]) -> Result<Figure> {
    let mut panels = Vec::new();
    for name in names.iter().map(AsRef::as_ref) {
        let mut figure: Option<Figure> = None;
        for (run, summary) in runs {
            let all = || summary.rows.iter().chain(&summary.stats);
            let named = |name: &str| all().find(|r| r.name == name);
            let row = named(name).or_else(|| named(&canonical(name)));
            let row = row.ok_or_else(|| {
                let known = all().map(|r| r.name.as_str());
                anyhow::anyhow!(
                    "run '{}' has no trace '{name}'{}",
                    run.info.name,
                    did_you_mean(name, known)
                )
            })?;
            let x = &summary.temperatures;
            let y: Vec<_> = row.numbers.iter().map(|n| n.mean).collect();
            let error: Vec<_> = row.numbers.iter().map(|n| n.mcse_mean).collect();
            let label = if runs.len() > 1 {
                run.info.name.clone()
            } else {
                plot::average(&row.name)
            };
            let curve = vec![(label, y, Some(error))];
            let mut one = plot::sweep("temperature T", x, curve, wide(x), false);
            // From the lowest temperature to the highest, as they are drawn.
            let mut order: Vec<usize> = (0..x.len()).collect();
            order.sort_by(|a, b| x[*a].total_cmp(&x[*b]));
            let unsure = |t: &usize| {
                matches!(
                    summary.judgements[*t].verdict,
                    Verdict::NotYet | Verdict::Wrong
                )
            };
            let unsure: Vec<_> = order.iter().map(unsure).collect();
            for panel in &mut one.panels {
                if unsure.contains(&true) {
                    panel.annotations = vec!["hollow: not converged".into()];
                }
                for series in &mut panel.series {
                    series.hollow = unsure.clone();
                }
            }
            if x.len() < 3 {
                // A line through two temperatures would claim what lies between.
                let series = one.panels.iter_mut().flat_map(|p| &mut p.series);
                series.for_each(|s| s.kind = Kind::Points);
            }
            match &mut figure {
                Some(f) => f
                    .panels
                    .iter_mut()
                    .zip(one.panels)
                    .for_each(|(p, q)| p.series.extend(q.series)),
                None => {
                    let panels = one.panels.iter_mut();
                    panels.for_each(|p| p.y.label = plot::average(&row.name));
                    figure = Some(one);
                }
            }
        }
        panels.extend(figure);
    }
    Ok(if panels.len() == 1 {
        panels.remove(0)
    } else {
        Figure::stack(panels)
    })
}

/// The chains whose traces are shown: all of the only temperature, or the first of each.
fn shown(run: &Run) -> (Vec<usize>, Vec<String>) {
    let (count, chains) = (run.info.temperatures.len(), run.info.chains);
    if count > 1 {
        let first = (0..count).map(|t| t * chains).collect();
        (first, labels(run))
    } else {
        let name = |c: usize| format!("chain {c}");
        ((0..chains).collect(), (0..chains).map(name).collect())
    }
}

/// The trace of an observable, a line per chain; of several temperatures the first chain of each.
pub fn traces(run: &Run, name: &str) -> Result<Figure> {
    let (chains, labels) = shown(run);
    let name = &meant(run, name);
    let values = chains.into_iter().map(|c| run.trace(name, 0, c));
    let values = values.collect::<Result<Vec<_>>>()?;
    let figure = plot::traces(&plot::name(name), &values, &labels, run.info.warm_draws);
    Ok(match run.info.temperatures.as_slice() {
        [_] => figure,
        several => figure.by_temperature(several),
    })
}

/// The distribution of an observable after burn-in, an outline per temperature.
pub fn histogram(run: &Run, name: &str) -> Result<Figure> {
    let name = &meant(run, name);
    let all = |t| Ok(run.draws(name, 0, t, true)?.concat());
    let values = (0..run.info.temperatures.len()).map(all);
    let values = values.collect::<Result<Vec<_>>>()?;
    let figure = plot::histogram(&plot::name(name), &values, &labels(run));
    Ok(figure.by_temperature(&run.info.temperatures))
}

/// Rows that a bin of a reliability diagram has at least.
const FEWEST: f64 = 5.0;

/// How often predictions are right against how sure they are, over the bins of their confidence, a line per temperature (reliability diagram).
/// Bins with fewer than five rows are not drawn. Bars are the standard deviation about the confidence that predictions as sure as right have.
///
/// # Errors
/// If the run kept no predictions of this split, or none of classes.
pub fn calibration(run: &Run, split: &str) -> Result<Figure> {
    let mut series = vec![Series::dashed(
        "as sure as right",
        vec![0.0, 1.0],
        vec![0.0, 1.0],
    )];
    for (t, label) in labels(run).into_iter().enumerate() {
        let scores = run.prediction(split, t)?;
        let column = |name: &str| -> Vec<f64> {
            let all = scores
                .get("reliability")
                .and_then(|r| r.get(name))
                .and_then(|c| c.as_array());
            all.into_iter()
                .flatten()
                .map(|x| x.as_f64().unwrap_or(f64::NAN))
                .collect()
        };
        let (rows, confidence, accuracy) =
            (column("rows"), column("confidence"), column("accuracy"));
        anyhow::ensure!(
            !rows.is_empty(),
            "plot::calibration: '{}' predicts no classes",
            run.info.name
        );
        let most = rows.iter().copied().fold(1.0, f64::max);
        let used: Vec<_> = (0..rows.len())
            .filter(|k| rows[*k] >= FEWEST.min(most))
            .collect();
        let of = |all: &[f64]| used.iter().map(|k| all[*k]).collect::<Vec<_>>();
        // How far the fraction is from the confidence if rows are right as often as that says (Bröcker & Smith 2007).
        let error = |k: &usize| (confidence[*k] * (1.0 - confidence[*k]) / rows[*k]).sqrt();
        let error = used.iter().map(error).collect();
        series.push(Series::line_points(label, of(&confidence), of(&accuracy)).with_error(error));
    }
    let axis = |label: &str| Axis::linear(label).with_range(0.0, 1.0);
    let panel = Panel::new(axis("confidence"), axis("fraction right"), series);
    let figure = Figure::of(panel).titled(format!("calibration on {split}"));
    Ok(figure.by_temperature(&run.info.temperatures))
}

impl Run {
    /// How often predictions are right against how sure they are.
    ///
    /// # Errors
    /// If the run kept no predictions of this split, or none of classes.
    pub fn plot_calibration(&self, split: &str) -> Result<Figure> {
        calibration(self, split)
    }

    /// Observables against temperature, a panel each, with error bars.
    ///
    /// # Errors
    /// If there is no such observable; the message proposes the nearest one.
    pub fn plot_sweep(&self, names: &[&str]) -> Result<Figure> {
        sweep(&[(self, &Summary::new(self)?)], names)
    }

    /// The trace of an observable, a line per chain.
    ///
    /// # Errors
    /// If there is no such observable; the message proposes the nearest one.
    pub fn plot_traces(&self, name: &str) -> Result<Figure> {
        traces(self, name)
    }

    /// The distribution of an observable after burn-in, an outline per temperature.
    ///
    /// # Errors
    /// If there is no such observable; the message proposes the nearest one.
    pub fn plot_histogram(&self, name: &str) -> Result<Figure> {
        histogram(self, name)
    }
}

/// How the draws of each healthy chain at a temperature rank among those of all.
pub fn ranks(run: &Run, name: &str, temperature: usize) -> Result<Figure> {
    let name = &meant(run, name);
    let draws = run.draws(name, 0, temperature, true)?;
    let first = temperature * run.info.chains;
    let healthy = (0..run.info.chains).filter(|c| {
        let failure = run.failures.get(first + c);
        failure.is_some_and(Option::is_none)
    });
    let labels: Vec<_> = healthy.map(|c| format!("chain {c}")).collect();
    Ok(plot::ranks::ranks(name, &draws, &labels))
}

/// T by the virial over the T that was set, with the 1 % within which it always agrees; none where it does not apply.
pub fn thermometer(summary: &Summary) -> Option<Figure> {
    let (mut x, mut y, mut error) = (Vec::new(), Vec::new(), Vec::new());
    for (t, r) in summary.temperatures.iter().zip(&summary.thermometers) {
        if r.verdict != Heat::NotApplicable {
            x.push(*t);
            y.push(1.0 + r.relative_deviation);
            error.push(r.mcse / t);
        }
    }
    if x.is_empty() {
        return None;
    }
    let mut axis = Axis::linear("temperature T");
    if wide(&x) {
        axis.scale = Scale::Log;
    }
    let (low, high) = ends(&x);
    let reach = if low < high {
        (low, high)
    } else {
        (0.9 * low, 1.1 * high)
    };
    let edge = |y: f64| vec![y; 2];
    let series = vec![
        Series::band("within 1 %", vec![reach.0, reach.1], edge(0.99), edge(1.01)),
        Series::hline("", 1.0),
        Series::points("T virial / T", x, y).with_error(error),
    ];
    let panel = Panel::new(axis, Axis::linear("T virial / T"), series);
    Some(Figure::of(panel))
}

fn ends(x: &[f64]) -> (f64, f64) {
    x.iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| {
            (l.min(*x), h.max(*x))
        })
}

/// Where replicas are, how often neighbours swap, and how replicas get through the ladder.
pub fn index_process(l: LadderReport) -> Figure {
    ladder::index_process(&ladder::Climb {
        index: l.index,
        acceptance: l.pairs.iter().map(|p| (p.acceptance, p.error)).collect(),
        flow: l.flow,
    })
}

/// Histograms of the tempered energy on every rung.
pub fn energies(run: &Run) -> Result<Figure> {
    let rungs = 0..run.info.temperatures.len();
    let all = |rung| Ok(run.draws(TEMPERED_ENERGY, 0, rung, true)?.concat());
    let draws = rungs.map(all).collect::<Result<Vec<_>>>()?;
    Ok(ladder::energies(
        "tempered energy E",
        &run.info.temperatures,
        &draws,
    ))
}

/// The communication barrier from the hot end up to T, and its slope.
pub fn barrier(run: &Run) -> Result<Figure> {
    let ladders = run
        .ladders
        .as_ref()
        .ok_or_else(|| anyhow::anyhow!("run '{}' has no ladder", run.info.name))?;
    let curve = ladders.barrier_curve()?;
    let betas = betas_of(&ladders.temperatures)?;
    let finite: Vec<f64> = betas.into_iter().filter(|b| *b > 0.0).collect();
    let (cold, hot) = (finite[0], finite[finite.len() - 1]);
    let at = |k: usize| cold * (hot / cold).powf(k as f64 / 200.0);
    let fine: Vec<f64> = (0..=200).map(at).map(|b| b.clamp(hot, cold)).collect();
    let inverse = |b: &[f64]| b.iter().map(|b| 1.0 / b).collect::<Vec<_>>();
    let cumulative = |b: &[f64]| b.iter().map(|b| curve.cumulative(*b)).collect::<Vec<_>>();
    Ok(ladder::barrier(
        &inverse(&fine),
        &cumulative(&fine),
        (&inverse(&finite), &cumulative(&finite)),
    ))
}

/// The heat capacity along a ladder, and where it peaks.
pub fn heat_capacity(t: &Transition) -> Figure {
    let peak = t.peak.as_ref().ok();
    let peak = peak.map(|p| (p.temperature.value, p.interval));
    ladder::heat_capacity(&t.temperatures, &t.heat_capacity, peak)
}

/// A benchmark of learning coefficients, in four panels.
pub fn llc_benchmark(x: &Benchmark) -> Figure {
    let lines = x.lines();
    let of = |name: &String| {
        let own: Vec<_> = lines.iter().filter(|l| l.sampler == *name).collect();
        let each = |f: &dyn Fn(&Line) -> f64| own.iter().map(|l| f(l)).collect();
        Contender {
            name: name.clone(),
            steps: each(&|l| l.step),
            errors: each(&|l| l.error),
            sds: each(&|l| l.sd),
            failed: each(&|l| l.failed),
            order: each(&|l| l.order),
        }
    };
    learning::benchmark(&x.samplers.iter().map(of).collect::<Vec<_>>())
}

/// The way of populations from the prior: acceptance and effective share at each stage, and the temperature.
pub fn stages(s: &Smc) -> Figure {
    let stage: Vec<f64> = (1..=s.stages.len()).map(|k| k as f64).collect();
    let each = |of: fn(&crate::simulation::smc::Stage) -> f64| s.stages.iter().map(of).collect();
    let x = || Axis::linear("stage");
    let curve = |label: &str, y: Vec<f64>| Series::line_points(label, stage.clone(), y);
    let shares = vec![
        curve("acceptance", each(|s| s.acceptance)),
        curve("effective share", each(|s| s.effective_share)),
    ];
    let share = Axis::linear("share").with_range(0.0, 1.0);
    let temperatures = vec![curve("T", each(|s| s.temperature))];
    Figure::stack(vec![
        Figure::of(Panel::new(x(), share, shares)),
        Figure::of(Panel::new(x(), Axis::log("temperature T"), temperatures)),
    ])
}
