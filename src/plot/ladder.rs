//! Figures of ladders: where replicas go, how energies of neighbours overlap, the barrier between the ends, the heat capacity.

use super::{Axis, Figure, Panel, Series, histogram, labels};

/// What is drawn of a ladder.
pub struct Climb {
    /// Number of a record, and rung of each replica.
    pub index: Vec<(usize, Vec<u64>)>,
    /// Acceptance of each pair and its standard error.
    pub acceptance: Vec<(f64, f64)>,
    /// Share of replicas from the cold end, per rung.
    pub flow: Vec<f64>,
}

/// The rung of some replicas along the records, and beside it swap rates and flow.
pub fn index_process(c: &Climb) -> Figure {
    let records: Vec<f64> = c.index.iter().map(|(s, _)| *s as f64).collect();
    let replicas = c.index.first().map_or(0, |(_, r)| r.len());
    // Lines of all would cover each other: some, evenly spread over where they began.
    let shown = replicas.min(4);
    let lines = (0..shown).map(|k| {
        let replica = k * replicas.saturating_sub(1) / shown.saturating_sub(1).max(1);
        let rungs = c.index.iter().map(|(_, r)| r[replica] as f64);
        Series::line(
            format!("replica {replica}"),
            records.clone(),
            rungs.collect(),
        )
    });
    let top = replicas.saturating_sub(1) as f64;
    let rung = || Axis::linear("rung").with_range(-0.5, top + 0.5);
    let process = Panel::new(Axis::linear("record"), rung(), lines.collect());
    let pairs: Vec<f64> = (0..c.acceptance.len()).map(|k| k as f64 + 0.5).collect();
    let rungs: Vec<f64> = (0..c.flow.len()).map(|k| k as f64).collect();
    let (rate, error) = c.acceptance.iter().copied().unzip();
    let share = Axis::linear("share").with_range(0.0, 1.0);
    let ideal = rungs.iter().map(|k| 1.0 - k / top.max(1.0)).collect();
    let shares = Panel::new(
        rung(),
        share,
        vec![
            Series::line_points("swaps accepted", pairs, rate).with_error(error),
            Series::line_points("flow from the cold end", rungs.clone(), c.flow.clone()),
            Series::dashed("flow, equal rejections", rungs, ideal),
        ],
    );
    let mut process = Figure::of(process);
    process.panels[0].title = "replica positions".into();
    let mut shares = Figure::of(shares);
    shares.panels[0].title = "swap rates and flow".into();
    Figure::beside(vec![process, shares], 2)
}

/// Densities of the energy on every rung, cold to hot.
pub fn energies(label: &str, temperatures: &[f64], draws: &[Vec<f64>]) -> Figure {
    histogram(label, draws, &labels(temperatures)).by_temperature(temperatures)
}

/// Λ from the hot end and its slope dΛ/d ln T, against temperature.
pub fn barrier(temperatures: &[f64], cumulative: &[f64], rungs: (&[f64], &[f64])) -> Figure {
    let x = || Axis::log("T");
    let slope = |k: usize| {
        let (a, b) = (k.saturating_sub(1), (k + 1).min(temperatures.len() - 1));
        -(cumulative[b] - cumulative[a]) / (temperatures[b] / temperatures[a]).ln()
    };
    let local = (0..temperatures.len()).map(slope).collect();
    let curve = Series::line("", temperatures.to_vec(), cumulative.to_vec());
    let at = Series::points("rungs", rungs.0.to_vec(), rungs.1.to_vec());
    Figure::stack(vec![
        Figure::of(Panel::new(
            x(),
            Axis::linear("Λ(T), from the hot end"),
            vec![curve, at],
        )),
        Figure::of(Panel::new(
            x(),
            Axis::linear("local barrier -dΛ/d ln T"),
            vec![Series::line("", temperatures.to_vec(), local)],
        )),
    ])
}

/// The heat capacity along a ladder with its error, and the place of its peak.
pub fn heat_capacity(
    temperatures: &[f64],
    values: &[(f64, f64)],
    peak: Option<(f64, (f64, f64))>,
) -> Figure {
    let (c, error): (Vec<f64>, Vec<f64>) = values.iter().copied().unzip();
    let mut series = Vec::new();
    if let Some((at, (low, high))) = peak {
        series.push(Series::shade("", low, high));
        series.push(Series::vline(format!("T = {at:.4e}"), at));
    }
    series.extend(super::band("", temperatures, &c, &error));
    Figure::of(Panel::new(
        Axis::log("T"),
        Axis::linear("heat capacity Var(E)/T²"),
        series,
    ))
}
