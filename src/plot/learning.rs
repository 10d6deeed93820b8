//! Figures of learning coefficients: the loss along the steps with the estimate so far, estimates along a training, and the benchmark of estimators.

use super::{Axis, Figure, Panel, Scale, Series, edges, heat};

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
            .map(|(c, t)| Series::line(format!("chain {c}"), o.steps.to_vec(), t.clone())),
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

/// Estimates along a training.
pub struct Curve<'a> {
    /// What the places count.
    pub axis: &'a str,
    /// The places.
    pub at: &'a [f64],
    /// λ̂ at each, and its standard error.
    pub estimates: &'a [f64],
    /// See `estimates`.
    pub errors: &'a [f64],
    /// Whether it has converged.
    pub usable: &'a [bool],
    /// L(w0) at each.
    pub losses: &'a [f64],
}

/// From this ratio of the largest to the smallest positive place on, the axis is logarithmic.
const DECADES: f64 = 100.0;

/// Above λ̂ with its error bars, below the loss. Places that span decades are on a logarithmic axis, without one at zero.
pub fn curve(c: Curve) -> Figure {
    let positive = || c.at.iter().copied().filter(|x| *x > 0.0);
    let (least, most) = (
        positive().fold(f64::INFINITY, f64::min),
        positive().fold(0.0, f64::max),
    );
    let log = most >= DECADES * least;
    let x = || match log {
        true => Axis::log(c.axis),
        false => Axis::linear(c.axis),
    };
    let all = Series::line_points("converged", c.at.to_vec(), c.estimates.to_vec());
    let mut above = vec![all.with_error(c.errors.to_vec())];
    let open = |k: &usize| !c.usable[*k] && c.estimates[*k].is_finite();
    let open: Vec<usize> = (0..c.at.len()).filter(open).collect();
    if !open.is_empty() {
        let of = |x: &[f64]| open.iter().map(|k| x[*k]).collect::<Vec<_>>();
        above.push(Series::points("not converged", of(c.at), of(c.estimates)));
    }
    let mut upper = Panel::new(x(), Axis::linear("learning coefficient"), above);
    if log && c.at.iter().any(|x| *x <= 0.0) {
        let note = format!("{} 0 has no place on a logarithmic axis", c.axis);
        upper.annotations.push(note);
    }
    let losses = vec![Series::line_points("", c.at.to_vec(), c.losses.to_vec())];
    Figure::stack(vec![
        Figure::of(upper),
        Figure::of(Panel::new(x(), Axis::linear("loss L(w0)"), losses)),
    ])
}

/// The trials of a calibration at one nβ.
pub struct Cells {
    /// Heading.
    pub title: String,
    /// λ̂ for each γ and step size, NaN where every chain failed.
    pub values: Vec<f64>,
    /// Step sizes and γ of trials without objection, and of the recommended one.
    pub good: (Vec<f64>, Vec<f64>),
    /// See `good`.
    pub recommended: (Vec<f64>, Vec<f64>),
}

/// λ̂ over step size and γ as heat maps, in which this estimate is white.
pub fn calibration(
    option: &str,
    (steps, gammas): (&[f64], &[f64]),
    panels: Vec<Cells>,
    white: f64,
) -> Figure {
    let range = match white > 0.0 {
        true => (0.5 * white, 1.5 * white),
        false => (white - 1.0, white + 1.0),
    };
    // γ = 0 has no place on a logarithmic axis.
    let log = gammas.iter().all(|g| *g > 0.0);
    let scale = if log { Scale::Log } else { Scale::Linear };
    let y = || match log {
        true => Axis::log("γ"),
        false => Axis::linear("γ"),
    };
    let edges = (edges(steps, Scale::Log), edges(gammas, scale));
    let count = panels.len();
    let panel = |cells: Cells| {
        let axes = (Axis::log(option), y());
        let mut panel = heat(axes, edges.clone(), cells.values, range);
        for (label, (x, y)) in [
            ("no objection", cells.good),
            ("recommended", cells.recommended),
        ] {
            if !x.is_empty() {
                panel
                    .series
                    .push(Series::points(label, x, lowered(&y, gammas, scale)));
            }
        }
        panel.title = cells.title;
        panel
            .annotations
            .push("learning coefficient; crossed where every chain failed, marked where there is no objection".into());
        Figure::of(panel)
    };
    Figure::beside(panels.into_iter().map(panel).collect(), count.min(3))
}

/// These γ, each a third of a cell lower, so that a marker does not cover the number in the middle.
fn lowered(these: &[f64], gammas: &[f64], scale: Scale) -> Vec<f64> {
    let all = edges(gammas, scale);
    let place = |g: &f64| {
        let k = gammas.iter().position(|x| x == g).unwrap_or(0);
        match scale {
            Scale::Log => all[k].powf(0.7) * g.powf(0.3),
            Scale::Linear => 0.7 * all[k] + 0.3 * g,
        }
    };
    these.iter().map(place).collect()
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
