//! The usual figures of a sampling run: traces, histograms, sweeps.

use super::{Axis, Colours, Figure, Panel, Series, histogram as binning, number};

/// The value of a quantity along the draws, one line per chain; the first `burn_in` draws are shaded. Chains beyond the
/// labels are numbered.
pub fn traces(name: &str, chains: &[Vec<f64>], labels: &[String], burn_in: usize) -> Figure {
    let mut series = Vec::new();
    if burn_in > 0 {
        series.push(Series::shade("burn-in", 0.0, burn_in as f64));
    }
    series.extend(chains.iter().enumerate().map(|(i, chain)| {
        let draws = (0..chain.len()).map(|draw| draw as f64).collect();
        Series::line(label_of(labels, i, "chain"), draws, chain.clone())
    }));
    let longest = chains.iter().map(Vec::len).max().unwrap_or(0);
    let mut x = Axis::linear("draw");
    if longest > 1 {
        x = x.with_range(0.0, longest.max(burn_in) as f64);
    }
    Figure::of(Panel::new(x, Axis::linear(name), series)).titled(format!("{name}: traces"))
}

/// Densities of several samples of a quantity, each over bins of its own. Samples beyond the labels are numbered.
pub fn histogram(name: &str, samples: &[Vec<f64>], labels: &[String]) -> Figure {
    let series = samples
        .iter()
        .enumerate()
        .map(|(i, sample)| {
            let edges = binning::edges(std::slice::from_ref(sample));
            let heights = binning::density(sample, &edges);
            Series::bars(label_of(labels, i, "sample"), edges, heights)
        })
        .collect();
    Figure::of(Panel::new(
        Axis::linear(name),
        Axis::linear("density"),
        series,
    ))
}

/// Curves `(label, y, y_error)` over a common abscissa, as markers with error bars joined from left to right. A single
/// curve's label goes to the y axis, those of several to the legend.
pub fn sweep(
    x_label: &str,
    x: &[f64],
    curves: Vec<(String, Vec<f64>, Option<Vec<f64>>)>,
    log_x: bool,
    log_y: bool,
) -> Figure {
    let axis = |label: &str, log: bool| match log {
        true => Axis::log(label),
        false => Axis::linear(label),
    };
    let y_label = match curves.as_slice() {
        [(label, _, _)] => label.clone(),
        _ => String::new(),
    };
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_by(|&a, &b| x[a].total_cmp(&x[b]));
    let sorted = |values: &[f64]| -> Vec<f64> {
        order
            .iter()
            .map(|&i| values.get(i).copied().unwrap_or(f64::NAN))
            .collect()
    };
    let series = curves
        .into_iter()
        .map(|(label, y, error)| {
            let series = Series::line_points(label, sorted(x), sorted(&y));
            match error {
                Some(error) => series.with_error(sorted(&error)),
                None => series,
            }
        })
        .collect();
    Figure::of(Panel::new(
        axis(x_label, log_x),
        axis(&y_label, log_y),
        series,
    ))
}

/// Densities `(label, density, error)` over common bins, as lines through their middles with strips of one standard error. Bins in which there is nothing, at the ends of
/// a density, are left out.
pub fn distributions(
    x_label: &str,
    edges: &[f64],
    each: Vec<(String, Vec<f64>, Vec<f64>)>,
) -> Figure {
    let middles = edges.windows(2).map(|e| 0.5 * (e[0] + e[1]));
    let middles: Vec<f64> = middles.collect();
    let series = each.into_iter().flat_map(|(label, density, error)| {
        let full = |d: &f64| *d > 0.0;
        let first = density
            .iter()
            .position(full)
            .map_or(0, |k| k.saturating_sub(1));
        let last = density
            .iter()
            .rposition(full)
            .map_or(0, |k| (k + 2).min(density.len()));
        let (x, y) = (&middles[first..last], &density[first..last]);
        let error: Vec<f64> = error[first..last]
            .iter()
            .map(|e| if e.is_finite() { *e } else { 0.0 })
            .collect();
        band(&label, x, y, &error)
    });
    let panel = Panel::new(
        Axis::linear(x_label),
        Axis::linear("density"),
        series.collect(),
    );
    Figure::of(panel)
}

/// What series of these temperatures are called.
pub(crate) fn labels(temperatures: &[f64]) -> Vec<String> {
    let label = |t: &f64| match t.is_finite() {
        true => format!("T = {}", number(*t)),
        false => "prior".into(),
    };
    temperatures.iter().map(label).collect()
}

impl Figure {
    /// The same figure with its series coloured by their temperatures, the first coloured series having the first of them. A bar stands for the legend
    /// where there are more than three.
    pub(crate) fn by_temperature(mut self, temperatures: &[f64]) -> Self {
        // The prior has none, and a bar no place for it; nor is there a bar for a temperature that all have.
        let differ = temperatures.iter().any(|t| *t != temperatures[0]);
        let known = temperatures.iter().all(|t| t.is_finite() && *t > 0.0);
        let bar = temperatures.len() > 3 && differ && known;
        for panel in &mut self.panels {
            panel.colours = match bar {
                true => Colours::By(Axis::log("temperature T"), temperatures.to_vec()),
                false => Colours::Order,
            };
        }
        self
    }
}

/// A line and the strip `mean ± half_width` around it, in one colour.
pub fn band(label: &str, x: &[f64], mean: &[f64], half_width: &[f64]) -> Vec<Series> {
    let edge = |sign: f64| -> Vec<f64> {
        let pairs = mean.iter().zip(half_width);
        pairs.map(|(m, half)| m + sign * half.abs()).collect()
    };
    // Unlabelled: it has the colour of the line that follows.
    vec![
        Series::band("", x.to_vec(), edge(-1.0), edge(1.0)),
        Series::line(label, x.to_vec(), mean.to_vec()),
    ]
}

fn label_of(labels: &[String], i: usize, noun: &str) -> String {
    labels
        .get(i)
        .cloned()
        .unwrap_or_else(|| format!("{noun} {}", i + 1))
}
