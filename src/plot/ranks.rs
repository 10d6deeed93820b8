//! Rank plots: whether chains agree, seen at a glance (Vehtari et al. 2021, §4.4).

use super::{Axis, Figure, Panel, Series};

/// Bins of the ranks, if there are draws enough for them.
const BINS: usize = 20;

/// How the draws of each chain rank among those of all: histograms over their mean, which are flat at 1 where chains agree.
pub fn ranks(name: &str, chains: &[Vec<f64>], labels: &[String]) -> Figure {
    let mut all: Vec<(f64, usize)> = Vec::new();
    for (c, chain) in chains.iter().enumerate() {
        all.extend(chain.iter().filter(|x| x.is_finite()).map(|x| (*x, c)));
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let longest = chains.iter().map(Vec::len).max().unwrap_or(0);
    let bins = BINS.min(longest / 5).max(1);
    let mut heights = vec![vec![0.0; bins]; chains.len()];
    // Equal values share their mean rank, so that chains of one value alone do not look apart.
    for tied in all.chunk_by(|a, b| a.0 == b.0).scan(0, |first, tied| {
        *first += tied.len();
        Some((*first - tied.len(), tied))
    }) {
        let (first, tied) = tied;
        let middle = first as f64 + (tied.len() as f64 - 1.0) / 2.0;
        let bin = ((middle + 0.5) * bins as f64 / all.len() as f64) as usize;
        for (_, chain) in tied {
            heights[*chain][bin.min(bins - 1)] += 1.0;
        }
    }
    let edges: Vec<f64> = (0..=bins).map(|k| k as f64 / bins as f64).collect();
    let mut series = vec![Series::hline("", 1.0)];
    for (c, counts) in heights.into_iter().enumerate() {
        let draws: f64 = counts.iter().sum();
        let label = labels.get(c).cloned();
        let share = counts.iter().map(|n| n * bins as f64 / draws).collect();
        series.push(Series::bars(
            label.unwrap_or_else(|| format!("chain {}", c + 1)),
            edges.clone(),
            share,
        ));
    }
    Figure::of(Panel::new(
        Axis::linear(format!("rank of {name} among all draws")).with_range(0.0, 1.0),
        Axis::linear("share relative to the mean"),
        series,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heights(chains: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let figure = ranks("x", chains, &[]);
        let bars = figure.panels[0].series.iter().skip(1);
        bars.map(|s| s.y.clone()).collect()
    }

    #[test]
    fn chains_that_agree_are_flat_and_chains_apart_fill_opposite_ends() {
        let even = (0..200).map(|i| f64::from(2 * i)).collect::<Vec<_>>();
        let odd = (0..200).map(|i| f64::from(2 * i + 1)).collect::<Vec<_>>();
        for chain in heights(&[even.clone(), odd]) {
            assert_eq!(chain, vec![1.0; 20]);
        }
        let far = even.iter().map(|x| x + 1e4).collect::<Vec<_>>();
        let apart = heights(&[even, far]);
        let low = [vec![2.0; 10], vec![0.0; 10]].concat();
        assert_eq!(apart[0], low);
        assert_eq!(apart[1], low.into_iter().rev().collect::<Vec<_>>());
    }

    #[test]
    fn ties_and_missing_draws_do_no_harm() {
        let tied = heights(&[vec![1.0; 100], vec![1.0; 100]]);
        assert_eq!(tied[0], tied[1]);
        assert_eq!(tied[0].iter().sum::<f64>(), 20.0);
        ranks("x", &[vec![f64::NAN; 9], Vec::new()], &[]);
        ranks("x", &[], &[]);
    }
}
