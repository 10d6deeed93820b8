//! Figures of learning coefficients: the loss along the steps with the estimate so far, and the benchmark of estimators.

use super::{Axis, Figure, Panel, Series};

/// What is drawn of an estimate.
pub struct Online<'a> {
    /// Steps of the records.
    pub steps: &'a [f64],
    /// nβ(L - L(w0)) of every chain at the records; a failed chain has fewer.
    pub traces: &'a [Vec<f64>],
    /// Steps of burn-in.
    pub burn_in: f64,
    /// Steps and estimates so far, after burn-in.
    pub online: (Vec<f64>, Vec<f64>),
    /// The estimate and its standard error.
    pub estimate: (f64, f64),
    /// The exact value, where it is known.
    pub truth: Option<f64>,
}

/// Above the loss of every chain, below the estimate from the steps so far.
pub fn online(o: Online) -> Figure {
    let last = o.steps.last().copied().unwrap_or(1.0);
    let x = || Axis::linear("step").with_range(0.0, last);
    let burn_in = |label: &str| Series::shade(label, 0.0, o.burn_in);
    let mut losses = vec![burn_in("burn-in")];
    losses.extend(
        o.traces
            .iter()
            .enumerate()
            .map(|(c, t)| Series::line(format!("chain {}", c + 1), o.steps.to_vec(), t.clone())),
    );
    let (at, mean) = o.online;
    let (value, error) = o.estimate;
    let mut below = vec![burn_in("")];
    if error.is_finite() {
        let edge = |sign: f64| vec![value + sign * 1.96 * error; at.len()];
        below.push(Series::band("", at.clone(), edge(-1.0), edge(1.0)));
    }
    below.push(Series::line("estimate so far", at, mean));
    below.extend(o.truth.map(|t| Series::hline("exact", t)));
    Figure::stack(vec![
        Figure::of(Panel::new(x(), Axis::linear("nβ(L - L(w0))"), losses)),
        Figure::of(Panel::new(x(), Axis::linear("learning coefficient"), below)),
    ])
}

/// A sampler of the benchmark, at its step sizes.
pub struct Contender {
    /// Its name.
    pub name: String,
    /// Step sizes.
    pub steps: Vec<f64>,
    /// Mean relative error at each, and its standard deviation over problems.
    pub errors: Vec<f64>,
    /// See `errors`.
    pub sds: Vec<f64>,
    /// Share of failed problems.
    pub failed: Vec<f64>,
    /// Share of pairs in the right order.
    pub order: Vec<f64>,
}

/// Relative error against step size with bars, share of failures, standard deviation against mean, and order preservation
/// (Hitchcock & Hoogland 2025, figs. 3, 5 to 8).
pub fn benchmark(contenders: &[Contender]) -> Figure {
    let step = || Axis::log("step size");
    let each = |of: &dyn Fn(&Contender) -> Series| contenders.iter().map(of).collect::<Vec<_>>();
    // Estimates that ran away would hide the others.
    let shown = |x: &f64| if x.abs() <= 3.0 { *x } else { f64::NAN };
    let list = |x: &[f64]| x.iter().map(shown).collect::<Vec<_>>();
    let mut errors = vec![Series::hline("", 0.0)];
    errors.extend(each(&|c| {
        Series::line_points(c.name.as_str(), c.steps.clone(), list(&c.errors))
            .with_error(c.sds.clone())
    }));
    let failed = each(&|c| Series::line_points("", c.steps.clone(), c.failed.clone()));
    // As in the paper: only where fewer than a tenth failed.
    let mut spread = vec![Series::vline("", 0.0)];
    spread.extend(each(&|c| {
        let kept = |x: &[f64]| -> Vec<f64> {
            let pairs = x.iter().zip(&c.failed);
            pairs
                .map(|(x, f)| if *f < 0.1 { *x } else { f64::NAN })
                .collect()
        };
        Series::points("", list(&kept(&c.errors)), list(&kept(&c.sds)))
    }));
    let order = each(&|c| Series::line_points("", c.steps.clone(), c.order.clone()));
    let figure = |x: Axis, y: Axis, series| Figure::of(Panel::new(x, y, series));
    Figure::beside(
        vec![
            figure(
                step(),
                Axis::linear("mean relative error").with_range(-1.2, 2.0),
                errors,
            ),
            figure(
                Axis::linear("mean relative error"),
                Axis::linear("standard deviation"),
                spread,
            ),
            figure(
                step(),
                Axis::linear("share failed").with_range(0.0, 1.0),
                failed,
            ),
            figure(
                step(),
                Axis::linear("pairs in order").with_range(0.0, 1.0),
                order,
            ),
        ],
        2,
    )
}
