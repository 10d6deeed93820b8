use super::super::ln_det_exact;
use super::super::matrices::*;
use super::*;
use anyhow::bail;

/// Tests an estimate against an exact value at four standard errors; how many it is off.
fn deviations(got: Estimate, want: f64) -> f64 {
    let off = (got.value - want) / got.standard_error;
    assert!(off.abs() < 4.0, "{got:?} {want}");
    off
}

#[test]
fn spectra_known_in_closed_form() {
    // A square, with every eigenvalue off the diagonal twice, and a rectangle.
    for (rows, columns) in [(20, 20), (13, 24)] {
        let n = rows * columns;
        let want = known_ln_det(&laplacian_spectrum(rows, columns, 0.1), 0.0);
        let off: f64 = (0..12)
            .map(|seed| {
                let product = laplacian(rows, columns, 0.1);
                let got = ln_det_lanczos(n, 12, 48, None, uniform(seed), product).unwrap();
                assert!(got.stopping < 1e-3 && got.not_positive == 0.0, "{got:?}");
                assert_eq!(got.products, 12 * 48);
                deviations(got.ln_det, want)
            })
            .sum();
        // Sum of 12 t variables with 11 degrees of freedom: standard deviation sqrt(12 * 11/9).
        assert!(off.abs() < 4.0 * (12.0 * 11.0 / 9.0f64).sqrt(), "{off}");
    }
    for seed in 0..4 {
        let (product, want) = wishart(seed, 90, 60);
        let got = ln_det_lanczos(60, 40, 40, None, uniform(seed), product).unwrap();
        deviations(got.ln_det, want);
    }
}

#[test]
fn the_standard_error_is_that_of_the_probes() {
    let (n, probes, seeds) = (32, 8, 500u32);
    let values = geometric(n, 1e-2);
    let want = known_ln_det(&values, 0.0);
    // Off-diagonal elements of ln H: 2 sum of squares is the variance of a probe.
    let logarithms: Vec<f64> = values.iter().map(|x| x.ln()).collect();
    let mut ln_h = rotated(7, &logarithms);
    let (mut unit, mut column, mut variance) = (vec![0.0; n], vec![0.0; n], 0.0);
    for i in 0..n {
        unit[i] = 1.0;
        ln_h(&unit, &mut column).unwrap();
        unit[i] = 0.0;
        column[i] = 0.0;
        variance += 2.0 * column.iter().map(|x| x * x).sum::<f64>();
    }
    let (mut covered, mut squares, mut measured) = (0, 0.0, 0.0);
    for seed in 0..seeds {
        let product = rotated(7, &values);
        let source = uniform(1000 + u64::from(seed));
        let got = ln_det_lanczos(n, probes, 24, None, source, product).unwrap();
        let off = (got.ln_det.value - want) / got.ln_det.standard_error;
        covered += u32::from(off.abs() < 1.96);
        // Student's t with 7 degrees of freedom: mean square 7/5 with a deviation of 2.8.
        let error = got.ln_det.standard_error / widening(7.0);
        squares += ((got.ln_det.value - want) / error).powi(2);
        measured += error.powi(2) * probes as f64;
    }
    let seeds = f64::from(seeds);
    let coverage = f64::from(covered) / seeds;
    let mean_square = squares / seeds;
    let ratio = measured / seeds / variance;
    println!("coverage {coverage}, mean square {mean_square}, variance {ratio}");
    assert!((coverage - 0.95).abs() < 4.0 * (0.05 * 0.95 / seeds).sqrt());
    assert!((mean_square - 1.4).abs() < 4.0 * 2.8 / seeds.sqrt());
    // A variance from 8 numbers is off by sqrt(2/7) of itself.
    assert!((ratio - 1.0).abs() < 4.0 * (2.0 / 7.0 / seeds).sqrt());
}

#[test]
fn as_many_steps_as_distinct_eigenvalues_are_exact() {
    let values = [[0.5; 20], [2.0; 20], [7.0; 20]].concat();
    let want = known_ln_det(&values, 0.0);
    // Nothing off the diagonal: no probe differs from another.
    for unit in [1.0, 1e-200, 1e150] {
        let scaled: Vec<f64> = values.iter().map(|x| x * unit).collect();
        let got = ln_det_lanczos(60, 5, 50, None, uniform(3), diagonal(&scaled)).unwrap();
        let want = want + 60.0 * unit.ln();
        assert!((got.ln_det.value - want).abs() < 1e-9, "{got:?} {want}");
        assert!(got.ln_det.standard_error < 1e-10 && got.stopping < 1e-9);
        assert_eq!(got.products, 15);
        assert!((got.smallest / unit - 0.5).abs() < 1e-13);
        assert!((got.largest / unit - 7.0).abs() < 1e-13);
    }
    let turned = ln_det_lanczos(60, 5, 3, None, uniform(3), rotated(2, &values)).unwrap();
    assert!(
        turned.ln_det.standard_error > 0.1 && turned.stopping < 1e-9,
        "{turned:?}"
    );
    deviations(turned.ln_det, want);
}

#[test]
fn one_and_two_parameters() {
    let one = ln_det_lanczos(1, 2, usize::MAX, None, uniform(0), diagonal(&[3.0])).unwrap();
    assert!((one.ln_det.value - 3f64.ln()).abs() < 1e-15);
    assert_eq!((one.ln_det.standard_error, one.products), (0.0, 2));
    // (1, 1) and (1, -1) are the eigenvectors: a probe says 2 ln 3 or 2 ln 1.
    let product = |v: &[f64], out: &mut [f64]| {
        out.copy_from_slice(&[2.0 * v[0] + v[1], v[0] + 2.0 * v[1]]);
        Ok(())
    };
    let two = ln_det_lanczos(2, 400, 2, None, uniform(0), product).unwrap();
    deviations(two.ln_det, 3f64.ln());
    assert!((two.ln_det.standard_error * 20.0 / 3f64.ln() - 1.0).abs() < 0.01);
    assert!((two.smallest - 1.0).abs() < 1e-14 && (two.largest - 3.0).abs() < 1e-14);
}

/// Mean over the probes of z·f(Q D Q^T) z.
fn without_stopping(values: &[f64], floor: f64, turn: u64, probes: u64, seed: u64) -> f64 {
    let (rotation, uniform) = (Rotation::new(turn, values.len()), uniform(seed));
    let of_probe = |probe| {
        let sign = |i| {
            if uniform(probe, i as u32) < 0.5 {
                -1.0
            } else {
                1.0
            }
        };
        let mut z: Vec<f64> = (0..values.len()).map(sign).collect();
        rotation.turn_back(&mut z);
        let terms = z.iter().zip(values);
        terms.map(|(z, x)| z * z * x.max(floor).ln()).sum::<f64>()
    };
    (0..probes).map(of_probe).sum::<f64>() / probes as f64
}

#[test]
fn what_a_power_law_leaves() {
    // Errors 16, 4, 1 of which changes of 12 and 3 remain.
    assert_eq!(remainder(-12.0, -3.0, 0.1, false), 1.0);
    assert_eq!(remainder(-12.0, 3.0, 0.1, true), 3.0);
    assert_eq!(remainder(3.0, 3.0, 0.1, false), f64::INFINITY);
    assert_eq!(remainder(1e-14, 2e-14, 1e-12, false), 1e-12);
    assert_eq!(remainder(f64::NAN, 1.0, 0.1, false), f64::INFINITY);
}

#[test]
fn the_error_of_stopping_is_bounded() {
    let n = 200;
    let line: Vec<f64> = (0..n).map(|i| 1.0 + i as f64 / 4.0).collect();
    let outliers: Vec<f64> = (0..n).map(|i| 0.01 + (i.max(189) - 189) as f64).collect();
    let (product, _) = wishart(3, 250, n);
    let wishart = ln_det_exact(n, product).unwrap().eigenvalues;
    let mut cases = vec![(line, None), (outliers, None), (wishart, None)];
    cases.push((laplacian_spectrum(10, 20, 0.0), None));
    for least in [1e-2, 1e-4, 1e-6] {
        cases.push((geometric(n, least), None));
    }
    cases.push((geometric(n, 1e-12), Some(1e-3)));
    for (case, (values, floor)) in cases.iter().enumerate() {
        let want = without_stopping(values, floor.unwrap_or(0.0), 4, 6, 1);
        for steps in [1, 2, 3, 4, 6, 8, 11, 16, 25, 32, 64] {
            let product = rotated(4, values);
            let got = ln_det_lanczos(n, 6, steps, *floor, uniform(1), product).unwrap();
            let off = got.ln_det.value - want;
            let text = format!("{case} {steps}: {off} {got:?}");
            assert!(off.abs() <= got.stopping, "{text}");
            // Gauss quadrature of a function whose even derivatives are negative is too large.
            assert!(
                floor.is_some() || off > -got.tolerance / got.smallest * n as f64,
                "{text}"
            );
            // And a bound worth having.
            if steps == 64 && case < 5 || steps > 22 && case == 1 {
                assert!(got.stopping < 1e-4, "{text}");
            }
            if steps % 4 == 0
                && off.abs() > 0.1
                && floor.is_none()
                && (case == 0 || case == 2 || case == 5)
            {
                assert!(got.stopping < 10.0 * off.abs(), "{text}");
            }
        }
    }
}

#[test]
fn a_condition_number_of_1e12() {
    let values = geometric(60, 1e-12);
    for seed in 0..4 {
        let want = without_stopping(&values, 0.0, seed, 5, seed);
        let got = |steps, floor| {
            let product = rotated(seed, &values);
            ln_det_lanczos(60, 5, steps, floor, uniform(seed), product).unwrap()
        };
        let all = got(60, None);
        let off = all.ln_det.value - want;
        assert!(
            off.abs() <= all.stopping && all.stopping < 0.5,
            "{off} {all:?}"
        );
        assert_eq!(all.not_positive, 0.0);
        deviations(all.ln_det, known_ln_det(&values, 0.0));
        // Far too few steps, and it says so.
        let few = got(12, None);
        assert!(
            few.ln_det.value - want > 100.0 && few.stopping > 100.0,
            "{few:?}"
        );
        let floored = got(60, Some(1e-4));
        let want = without_stopping(&values, 1e-4, seed, 5, seed);
        assert!(
            (floored.ln_det.value - want).abs() < 1e-8,
            "{floored:?} {want}"
        );
        assert!((floored.at_floor - 2.0 / 3.0).abs() < 0.15, "{floored:?}");
    }
}

#[test]
fn flat_and_falling_directions_are_flagged() {
    let values = [vec![-1.0; 6], vec![0.0; 4], vec![2.0; 30]].concat();
    let product = || diagonal(&values);
    let got = ln_det_lanczos(40, 4, 40, None, uniform(1), product()).unwrap();
    assert!(got.ln_det.value.is_nan() && got.ln_det.standard_error.is_nan());
    assert!((got.not_positive - 0.25).abs() < 1e-13, "{got:?}");
    assert!((got.smallest + 1.0).abs() < 1e-14 && got.at_floor == 0.0);
    let got = ln_det_lanczos(40, 4, 40, Some(0.1), uniform(1), product()).unwrap();
    let want = 10.0 * 0.1f64.ln() + 30.0 * 2f64.ln();
    assert!((got.ln_det.value - want).abs() < 1e-11, "{got:?}");
    assert!((got.at_floor - 0.25).abs() < 1e-13);
    // Flat alone, turned: the zeros are noise of either sign.
    for seed in 0..20 {
        let flat: Vec<f64> = values.iter().map(|x| x.max(0.0)).collect();
        let got = ln_det_lanczos(40, 4, 40, None, uniform(seed), rotated(seed, &flat)).unwrap();
        assert!(
            got.ln_det.value.is_nan() && got.not_positive > 0.05,
            "{got:?}"
        );
    }
    let known = laplacian_spectrum(12, 12, -2.0);
    let falling = known.partition_point(|x| *x < 0.0) as f64 / 144.0;
    let product = || laplacian(12, 12, -2.0);
    let got = ln_det_lanczos(144, 60, 60, None, uniform(2), product()).unwrap();
    assert!(got.ln_det.value.is_nan() && (got.not_positive - falling).abs() < 0.05);
    let zero = ln_det_lanczos(3, 2, 3, None, uniform(0), |_, _| Ok(())).unwrap();
    assert!(zero.ln_det.value.is_nan() && zero.not_positive == 1.0);
}

#[test]
fn noise_of_the_products_shows_as_asymmetry() {
    let values: Vec<f64> = geometric(80, 1e-2).iter().map(|x| x - 0.01).collect();
    for (seed, single) in [(1, true), (2, true), (3, false)] {
        let mut exact = rotated(5, &values);
        let product = |v: &[f64], out: &mut [f64]| {
            exact(v, out)?;
            if single {
                out.iter_mut().for_each(|x| *x = f64::from(*x as f32));
            }
            Ok(())
        };
        let got = ln_det_lanczos(80, 4, 80, None, uniform(seed), product).unwrap();
        assert!(got.smallest.abs() < got.tolerance && got.ln_det.value.is_nan());
        let range = if single { 1e-9..1e-7 } else { 1e-17..1e-14 };
        assert!(range.contains(&got.asymmetry), "{got:?}");
    }
    // v_0 pushes element 1, not the other way round.
    let product = |v: &[f64], out: &mut [f64]| {
        out.copy_from_slice(v);
        out[1] += 0.1 * v[0];
        Ok(())
    };
    let got = ln_det_lanczos(10, 4, 3, None, uniform(0), product).unwrap();
    assert!(got.asymmetry > 0.01 && got.asymmetry < 0.2, "{got:?}");
}

#[test]
fn errors_name_what_is_wrong() {
    let error = |n, probes, steps, floor, u: f64, product: &Product| {
        let got = ln_det_lanczos(n, probes, steps, floor, |_, _| u, product);
        format!("{:#}", got.unwrap_err())
    };
    let fine = |v: &[f64], out: &mut [f64]| {
        out.copy_from_slice(v);
        Ok(())
    };
    let odd = |_: &[f64], out: &mut [f64]| {
        out[2] = f64::NAN;
        Ok(())
    };
    let huge = |_: &[f64], out: &mut [f64]| {
        out.fill(f64::MAX);
        Ok(())
    };
    let message = error(4, 2, 2, None, 0.3, &odd);
    assert!(message.contains("element 2") && message.contains("vector 0 of probe 0 is NaN"));
    let failed = error(4, 2, 2, None, 0.3, &|_, _| bail!("no data"));
    assert!(failed.contains("probe 0: no data"), "{failed}");
    assert!(error(0, 2, 2, None, 0.3, &fine).contains("no parameters"));
    assert!(error(4, 1, 2, None, 0.3, &fine).contains("at least two"));
    assert!(error(4, 2, 0, None, 0.3, &fine).contains("one step"));
    assert!(error(usize::MAX, 2, 2, None, 0.3, &fine).contains("2^32"));
    let large = error(1 << 31, 2, usize::MAX, None, 0.3, &fine);
    assert!(large.contains("no memory"), "{large}");
    assert!(error(9, 2, 2, None, 0.3, &huge).contains("overflow"));
    for u in [0.0, 1.0, -0.1, f64::NAN] {
        assert!(error(4, 2, 2, None, u, &fine).contains("probe 0, element 0"));
    }
    for floor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(error(4, 2, 2, Some(floor), 0.3, &fine).contains("floor"));
    }
}
