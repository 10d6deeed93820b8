//! Sums, and passes over the parameters.

use super::bench::{args, doubles, near, numbers, same};
use super::{SHAPES, devices};
use ergodic::kernels::device::Pointer;
use ergodic::model::Layout;
use ergodic::target::prior::Prior;

#[test]
fn sums_are_those_of_the_definition() {
    for d in devices() {
        for (chains, rows, _) in SHAPES {
            let n = chains * rows;
            let mut values = doubles(&numbers(n, 10, false));
            let counts: Vec<u32> = (0..n).map(|i| (i % 3) as u32).collect();
            let exact = |c: usize| counts[c * rows..][..rows].iter().sum::<u32>() as f64;
            for parts in [1, 4, 64] {
                let (partials, out) = (d.room::<f64>(chains * parts), d.room::<f64>(chains * 3));
                let broken = d.put(&vec![0u64; chains]);
                let finish = |factor: f64, add: usize, step: i64| {
                    d.launch(
                        "finish_sums",
                        chains,
                        1,
                        args![
                            partials, chains, parts, out, 3i64, factor, add, step, broken
                        ],
                    );
                };
                d.launch(
                    "partial_sums",
                    parts,
                    chains,
                    args![d.put(&values), chains, rows, parts, partials],
                );
                finish(0.5, 0, 7);
                d.launch(
                    "partial_counts",
                    parts,
                    chains,
                    args![d.put(&counts), chains, rows, parts, partials],
                );
                finish(-1.0, 1, 8);
                let sum =
                    |c: usize| 0.5 * values[c * rows..][..rows].iter().sum::<f64>() - exact(c);
                let expected: Vec<_> = (0..chains).flat_map(|c| [sum(c), 77.0, 77.0]).collect();
                near(&d.get(out, chains * 3), &expected, 1e-13, "sums");
                assert_eq!(d.get::<u64>(broken, chains), vec![0; chains]);
                // The first step at which a sum is not finite is kept.
                let last = chains - 1;
                let was = std::mem::replace(&mut values[last * rows], f64::NAN);
                d.launch(
                    "partial_sums",
                    parts,
                    chains,
                    args![d.put(&values), chains, rows, parts, partials],
                );
                finish(1.0, 0, 9);
                finish(1.0, 0, 10);
                let found = d.get::<u64>(broken, chains);
                assert_eq!(found[last], 9);
                assert!(found[..last].iter().all(|step| *step == 0));
                values[last * rows] = was;
            }
        }
    }
}

#[test]
fn parameters_are_pulled_reflected_and_copied() {
    for d in devices() {
        for chains in [1, 3] {
            let (n, stride) = (301, 310);
            let (w, g) = (
                numbers(chains * stride, 11, true),
                numbers(chains * stride, 12, true),
            );
            let (at, centre) = (d.put(&w), numbers(n, 13, false));
            for c in [None, Some(&centre)] {
                // One precision for all chains, and one each.
                let own: Vec<f32> = (0..chains).map(|c| 0.3 + 0.1 * c as f32).collect();
                for precisions in [None, Some(&own)] {
                    let (out, mut expected) = (d.put(&g), g.clone());
                    let args = args![
                        out,
                        at,
                        chains,
                        n as i64,
                        stride as i64,
                        1.5f32,
                        0.3f32,
                        precisions.map_or(Pointer::NULL, |p| d.put(p)),
                        c.map_or(Pointer::NULL, |c| d.put(c))
                    ];
                    d.launch("scale_and_pull", n, chains, args);
                    for i in (0..chains * stride).filter(|i| i % stride < n) {
                        let pulled = w[i] - c.map_or(0.0, |c| c[i % stride]);
                        let precision = precisions.map_or(0.3, |p| p[i / stride]);
                        expected[i] = 1.5 * g[i] + precision * pulled;
                    }
                    same(&d.get(out, chains * stride), &expected, "scale_and_pull");
                }
            }

            let layout = Layout::new([
                ("a".to_string(), vec![200]),
                ("b".to_string(), vec![n - 200]),
            ]);
            let widths = vec![2.5, 0.7];
            let walls = Prior::Box {
                widths: widths.clone(),
            }
            .resolve(&layout, &[])
            .unwrap();
            for p in [None, Some(g.clone())] {
                let (at, momentum) = (d.put(&w), p.as_ref().map_or(Pointer::NULL, |p| d.put(p)));
                for (start, length, half) in [(0, 200, 1.25f32), (200, n - 200, 0.35)] {
                    let args = args![
                        at,
                        momentum,
                        chains,
                        stride as i64,
                        start as i64,
                        length as i64,
                        half
                    ];
                    d.launch("reflect", length, chains, args);
                }
                let (mut w, mut p) = (w.clone(), p);
                for c in 0..chains {
                    let part = c * stride..c * stride + n;
                    walls.reflect(&mut w[part.clone()], p.as_mut().map(|p| &mut p[part]));
                }
                same(&d.get(at, chains * stride), &w, "reflect");
                if let Some(p) = p {
                    same(&d.get(momentum, chains * stride), &p, "momenta of reflect");
                }
            }

            let which: Vec<u8> = (0..chains).map(|c| (c % 2 == 0) as u8).collect();
            let to = d.put(&g);
            d.launch(
                "copy_where",
                stride,
                chains,
                args![at, to, stride as i64, chains, d.put(&which)],
            );
            let from = |i: usize| if which[i / stride] != 0 { w[i] } else { g[i] };
            same(
                &d.get(to, chains * stride),
                &(0..chains * stride).map(from).collect::<Vec<_>>(),
                "copy_where",
            );
            d.launch("fill", n, 1, args![to.offset(4), n as i64, 2.5f32]);
            let filled = |i: usize| if (1..=n).contains(&i) { 2.5 } else { from(i) };
            same(
                &d.get(to, chains * stride),
                &(0..chains * stride).map(filled).collect::<Vec<_>>(),
                "fill",
            );
        }
    }
}
