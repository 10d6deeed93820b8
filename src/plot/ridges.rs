//! Curves above each other, one for each time: how a distribution changes.

use super::{Axis, Colours, Panel, Series};

/// Curves `(label, x, y)` in their order, the first lowest, each shifted upwards by one step and coloured by its place in
/// the order. The labels stand at the left of the base lines, in place of numbers. The reference is drawn dashed into
/// every one of them; its label becomes a note.
pub fn ridges(
    x_label: &str,
    curves: Vec<(String, Vec<f64>, Vec<f64>)>,
    reference: Option<(String, Vec<f64>, Vec<f64>)>,
) -> Panel {
    let peaks = curves.iter().chain(&reference).map(|(_, _, y)| peak(y));
    let step = step(peaks.collect(), curves.len());
    let mut series = Vec::new();
    let mut ticks = Vec::new();
    for (i, (label, x, y)) in curves.into_iter().enumerate() {
        let base = step * i as f64;
        let shifted = |y: &[f64]| y.iter().map(|y| base + y).collect::<Vec<f64>>();
        let line = shifted(&y);
        // Unlabelled: it has the colour of the line that follows.
        let bases = vec![base; x.len()];
        series.push(Series::band("", x.clone(), bases, line.clone()));
        series.push(Series::line("", x, line));
        if let Some((_, x, y)) = &reference {
            series.push(Series::dashed("", x.clone(), shifted(y)));
        }
        ticks.push((base, label));
    }
    let note = reference
        .filter(|(label, ..)| !label.is_empty())
        .map(|(label, ..)| format!("dashed: {label}"));
    let y = Axis::default().with_ticks(ticks);
    Panel {
        colours: Colours::Order,
        annotations: note.into_iter().collect(),
        ..Panel::new(Axis::linear(x_label), y, series)
    }
}

/// The greatest height above zero.
fn peak(y: &[f64]) -> f64 {
    let known = y.iter().copied().filter(|y| y.abs() <= 1e150);
    known.fold(0.0, f64::max)
}

/// How far the curves are apart: the usual one just fits if they are few, or reaches over some above it, and one with a
/// high peak reaches over a few more.
fn step(mut peaks: Vec<f64>, count: usize) -> f64 {
    peaks.retain(|peak| *peak > 0.0);
    peaks.sort_by(f64::total_cmp);
    let usual = peaks.get(peaks.len() / 2).copied().unwrap_or(1.0);
    let greatest = peaks.last().copied().unwrap_or(1.0);
    let reach = (count as f64 / 12.0).clamp(1.0, 6.0);
    (usual * 0.9 / reach).max(greatest / (3.0 + reach))
}

#[cfg(test)]
mod tests {
    use super::super::{Figure, Kind};
    use super::*;

    fn curve(label: &str, height: f64) -> (String, Vec<f64>, Vec<f64>) {
        (label.into(), vec![0.0, 1.0, 2.0], vec![0.0, height, 0.0])
    }

    #[test]
    fn curves_stand_above_each_other() {
        let curves = ["t = 0", "t = 1", "t = 2"].map(|label| curve(label, 2.0));
        let panel = ridges("x", curves.to_vec(), Some(curve("N(0, 1)", 1.0)));
        assert_eq!(panel.series.len(), 9);
        assert_eq!(panel.annotations, ["dashed: N(0, 1)"]);
        let heights: Vec<f64> = panel
            .series
            .iter()
            .filter(|s| s.kind == Kind::Line)
            .map(|s| s.y[1])
            .collect();
        assert!((heights[1] - heights[0] - (heights[2] - heights[1])).abs() < 1e-12);
        assert!(heights[1] - heights[0] > 1.0);
        let svg = Figure::of(panel).to_svg().unwrap();
        for label in ["t = 0", "t = 1", "t = 2", "dashed: N(0, 1)"] {
            assert_eq!(svg.matches(label).count(), 1, "{label}");
        }
    }

    #[test]
    fn odd_curves_are_drawn_or_left_out() {
        let odd = |y: Vec<f64>| ("odd".to_string(), vec![0.0, 1.0], y);
        for curves in [
            Vec::new(),
            vec![odd(Vec::new())],
            vec![odd(vec![f64::NAN, f64::INFINITY]), odd(vec![0.0; 7])],
            vec![odd(vec![f64::MAX, -1.0]), odd(vec![1e150, 1e150])],
            vec![curve("same", 1.0); 300],
        ] {
            for reference in [None, Some(curve("r", 1.0)), Some(odd(Vec::new()))] {
                let svg = Figure::of(ridges("x", curves.clone(), reference))
                    .to_svg()
                    .unwrap();
                assert!(!svg.contains("NaN"));
            }
        }
    }
}
