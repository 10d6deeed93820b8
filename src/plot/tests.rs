//! Tests of whole figures.

use std::fs;
use std::path::PathBuf;

use super::*;

fn numbers(n: u32, f: impl Fn(f64) -> f64) -> Vec<f64> {
    (0..n).map(|i| f(f64::from(i))).collect()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_string()).collect()
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ergodic-plot-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    folder
}

/// The document is closed and has no markup but the backend's, and no number that is none.
fn check(svg: &str) {
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    assert!(!svg.contains("NaN") && !svg.contains("inf\""));
    let tags = [
        "svg", "/svg", "text", "/text", "polyline", "polygon", "circle", "rect", "line",
    ];
    for tag in svg.split('<').skip(1) {
        let name = tag.split([' ', '>', '\n']).next().unwrap_or("");
        assert!(tags.contains(&name), "stray tag '{name}'");
    }
}

#[test]
fn titles_and_labels_are_there_and_escaped() {
    let chains = [numbers(50, f64::sin), numbers(50, f64::cos)];
    let figure = traces("p<0.5 & \"q\"", &chains, &names(&["a<b", "it's & c>d"]), 10);
    let svg = figure.to_svg().unwrap();
    check(&svg);
    assert!(svg.contains("p&lt;0.5 &amp; &quot;q&quot;: traces"));
    assert!(svg.contains("a&lt;b") && svg.contains("it&apos;s &amp; c&gt;d"));
    assert!(svg.contains("burn-in"));
    check(&Figure::default().titled("tab\tnul\0").to_svg().unwrap());
}

#[test]
fn a_single_label_needs_no_legend() {
    let line = |label: &str| Series::line(label, vec![0.0, 1.0], vec![0.0, 1.0]);
    let draw = |series| {
        let panel = Panel::new(Axis::linear("x"), Axis::linear("y"), series);
        Figure::of(panel).to_svg().unwrap()
    };
    assert!(!draw(vec![line("alone"), line("")]).contains("alone"));
    assert!(draw(vec![line("one"), line("two")]).contains("two"));
}

#[test]
fn long_traces_make_small_files() {
    let chains: Vec<Vec<f64>> = (0..24)
        .map(|k| numbers(200_000, |i| (i * i * 0.37 + f64::from(k)).sin()))
        .collect();
    let svg = traces("loss", &chains, &[], 1000).to_svg().unwrap();
    check(&svg);
    assert!(svg.len() < 300_000, "{} bytes", svg.len());
    assert!(svg.contains("chain 7"));
}

#[test]
fn figures_without_data_say_so() {
    for figure in [
        sweep(
            "T",
            &[f64::NAN],
            vec![("U".into(), vec![1.0], None)],
            true,
            true,
        ),
        Figure::default(),
        traces("u", &[], &[], 0),
        traces("u", &[vec![]], &[], 5),
        histogram("u", &[vec![f64::NAN], vec![]], &[]),
        Figure::stack(Vec::new()),
    ] {
        let svg = figure.to_svg().unwrap();
        check(&svg);
        assert!(svg.contains("no data"));
    }
}

#[test]
fn log_axes_leave_out_what_is_not_positive() {
    let x = [1e-6, 0.0, -1.0, f64::NAN, 1e-5, 3e-5];
    let y = vec![1e-3, 1.0, 1.0, 1.0, -5.0, 2e-3];
    let error = vec![2e-3, 1.0, 1.0, 1.0, 1.0, f64::INFINITY];
    let svg = sweep("T", &x, vec![("U".into(), y, Some(error))], true, true)
        .to_svg()
        .unwrap();
    check(&svg);
    assert!(svg.contains("1e-6") && !svg.contains("no data"));
    assert_eq!(svg.matches("<circle").count(), 2);
}

#[test]
fn no_values_make_drawing_fail() {
    let odd = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        1e-310,
        1e-150,
        1e150,
        1e300,
        f64::MAX,
        f64::MIN,
        f64::NAN,
        f64::INFINITY,
    ];
    let kinds = |x: f64, y: f64| {
        vec![
            Series::line("l", vec![x, y, 1.0], vec![y, x, 2.0]),
            Series::points("p", vec![x, y], vec![y]).with_error(vec![y, x]),
            Series::line_points("lp", vec![x, 0.5], vec![y, 0.5]).with_error(vec![x]),
            Series::bars("b", vec![x, y, 1.0], vec![y, x]),
            Series::band("", vec![x, y], vec![y, x], vec![x, 1.0]),
            Series::hline("h", y),
            Series::vline("v", x),
            Series::shade("s", x, y),
        ]
    };
    for x in odd {
        for y in odd {
            for log in [false, true] {
                let axis = |label| {
                    if log {
                        Axis::log(label)
                    } else {
                        Axis::linear(label)
                    }
                };
                let free = Panel::new(axis("x"), axis("y"), kinds(x, y));
                let mut fixed = free.clone();
                fixed.x = axis("x").with_range(x, y);
                fixed.y = axis("y").with_range(1e-3, 2e-3);
                let figure = Figure {
                    panels: vec![free, fixed],
                    columns: 7,
                    ..Figure::default()
                };
                check(&figure.to_svg().unwrap());
            }
        }
    }
}

#[test]
fn stacks_share_the_abscissa() {
    let one = |x: &[f64]| sweep("T", x, vec![("U".into(), vec![1.0; 2], None)], true, false);
    let stack = Figure::stack(vec![one(&[1e-6, 1e-5]).titled("up"), one(&[1e-4, 1e-3])]);
    assert!(stack.shared_x);
    assert_eq!(stack.panels[0].title, "up");
    let svg = stack.to_svg().unwrap();
    check(&svg);
    assert_eq!(svg.matches("1e-3").count(), 1);
    let other = sweep("step", &[1.0], Vec::new(), false, false);
    assert!(!Figure::stack(vec![one(&[1.0, 2.0]), other]).shared_x);
}

#[test]
fn saving_makes_folders_and_leaves_nothing_aside() {
    let folder = folder("save");
    let path = folder.join("deep/er/figure.svg");
    let figure = traces("u", &[vec![1.0, 2.0]], &[], 0);
    figure.save(&path).unwrap();
    figure.save(&path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), figure.to_svg().unwrap());
    assert_eq!(fs::read_dir(folder.join("deep/er")).unwrap().count(), 1);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn saving_errors_name_the_path() {
    let folder = folder("errors");
    for name in ["figure.png", "figure", ".svg"] {
        let message = format!(
            "{:#}",
            Figure::default().save(&folder.join(name)).unwrap_err()
        );
        assert!(
            message.contains(name) && message.contains("supported: .svg"),
            "{message}"
        );
    }
    let taken = folder.join("taken.svg");
    fs::create_dir_all(taken.join("inside")).unwrap();
    let message = format!("{:#}", Figure::default().save(&taken).unwrap_err());
    assert!(message.contains("taken.svg"), "{message}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    let below = taken.join("inside/file");
    fs::write(&below, "").unwrap();
    let message = format!(
        "{:#}",
        Figure::default().save(&below.join("a.svg")).unwrap_err()
    );
    assert!(message.contains("a.svg"), "{message}");
    fs::remove_dir_all(&folder).unwrap();
}
