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
fn notebooks_get_an_image_that_fits_its_cell() {
    let figure = traces("a \"100 %\" & 'b'", &[vec![1.0, 2.0]], &[], 0);
    assert!(!figure.to_svg().unwrap().contains("style=\"max-width"));
    assert!(
        figure
            .to_inline_svg()
            .unwrap()
            .contains("style=\"max-width:100%;height:auto\"")
    );
    let html = figure.to_html().unwrap();
    let (before, source) = html.split_once(" src=\"").unwrap();
    assert!(before.contains("style=\"max-width:100%;height:auto\""));
    assert!(before.contains("alt=\"a &quot;100 %&quot; &amp; &#39;b&#39;: traces\""));
    let source = source.split_once('"').unwrap().0;
    assert!(source.starts_with("data:image/svg+xml;charset=utf-8,%3Csvg width=%22"));
    assert!(source.trim_end_matches("%0A").ends_with("%3C/svg%3E"));
    assert!(source.contains("100 %25%26quot;") && !source.contains(['<', '>', '#', '\n']));
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
    assert!(svg.contains("10⁻⁶") && !svg.contains("no data"));
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
            Series::dashed("d", vec![x, y, 1.0], vec![y, x, 2.0]),
            Series::density("n", vec![x, y, 1.0], vec![y, x], vec![x, y, 1.0]),
            Series::contours(
                "c",
                (vec![x, y, 1.0], vec![0.0, y, 2.0]),
                vec![x, y, 1.0, 2.0, x, 0.5, 1.0],
                vec![x, 0.7, y],
            ),
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
    assert_eq!(svg.matches("10⁻³").count(), 1);
    let other = sweep("step", &[1.0], Vec::new(), false, false);
    assert!(!Figure::stack(vec![one(&[1.0, 2.0]), other]).shared_x);
}

#[test]
fn figures_stand_beside_each_other() {
    let one = |title: &str| traces("u", &[vec![1.0, 2.0]], &[], 0).titled(title);
    let figures = || vec![one("a first"), one("a second"), one("a third")];
    let row = Figure::beside(figures(), 3);
    assert_eq!((row.panels.len(), row.columns), (3, 3));
    assert_eq!(row.panels[2].title, "a third");
    let size = |figure: &Figure| {
        let svg = figure.to_svg().unwrap();
        check(&svg);
        let value = |name: &str| -> String {
            let rest = svg.split(&format!("{name}=\"")).nth(1).unwrap();
            rest.split('"').next().unwrap().into()
        };
        let number = |text: &str| text.parse::<f64>().unwrap();
        let view = value("viewBox");
        let drawn: Vec<_> = view.split(' ').map(number).collect();
        // What it takes of a page has the same shape, and an end.
        let (width, height) = (number(&value("width")), number(&value("height")));
        assert!(width <= 900.0 && (width / height / (drawn[2] / drawn[3]) - 1.0).abs() < 0.01);
        (drawn[2], drawn[3])
    };
    let (wide, high) = (size(&row), size(&Figure::beside(figures(), 0)));
    assert!(wide.0 > 2.9 * high.0 && high.1 > 2.9 * wide.1);
    // An incomplete row, and more columns than panels.
    assert!(size(&Figure::beside(figures(), 2)).0 < wide.0);
    assert_eq!(size(&Figure::beside(figures(), 9)), wide);
    check(&Figure::beside(Vec::new(), 2).to_svg().unwrap());
}

#[test]
fn cells_of_one_colour_are_one_mark() {
    let edges = |n: u32| numbers(n + 1, |i| i);
    let draw = |columns: u32, rows: u32, values: Vec<f64>| {
        let series = Series::density("", edges(columns), edges(rows), values);
        let panel = Panel::new(Axis::linear("x"), Axis::linear("y"), vec![series]);
        let svg = Figure::of(panel).to_svg().unwrap();
        check(&svg);
        svg
    };
    // Without those of the bar.
    let marks = |svg: &str| svg.matches("<polygon").count() - bar::STEPS;
    assert_eq!(marks(&draw(50, 3, vec![1.0; 150])), 3);
    // Zero, negative and undefined cells are not drawn, nor those that are missing.
    let odd = vec![1.0, 0.0, 1.0, -1.0, f64::NAN, 0.5, f64::INFINITY];
    assert_eq!(marks(&draw(4, 2, odd)), 3);
    assert!(draw(4, 2, vec![0.0; 8]).contains("no data"));
    assert!(draw(0, 2, vec![1.0; 8]).contains("no data"));
    let noise = numbers(250_000, |i| (i * i * 0.37).sin().abs());
    let svg = draw(500, 500, noise);
    assert!(svg.len() < 3_000_000, "{} bytes", svg.len());
    let sample: Vec<Vec<f64>> = [0.37, 0.73]
        .iter()
        .map(|c| numbers(50_000, |i| (i * c).sin() + (i * i * c).sin()))
        .collect();
    let panel = Panel::new(
        Axis::log("x"),
        Axis::linear("y").with_range(0.0, 1.0),
        vec![density(&sample[0], &sample[1], 60, "")],
    );
    let svg = Figure::of(panel).to_svg().unwrap();
    check(&svg);
    assert!(marks(&svg) > 10 && svg.len() < 200_000, "{}", svg.len());
}

#[test]
fn contours_have_one_entry_in_the_legend() {
    let x = numbers(41, |i| i / 10.0 - 2.0);
    let z: Vec<f64> = x
        .iter()
        .flat_map(|y| x.iter().map(move |x| x * x + y * y))
        .collect();
    let levels = even_levels(&z, 7);
    let series = vec![
        Series::contours("U(x, y)", (x.clone(), x.clone()), z, levels),
        Series::points("end", vec![0.0], vec![0.0]),
    ];
    let panel = Panel::new(Axis::linear("x"), Axis::linear("y"), series);
    let svg = Figure::of(panel.clone()).to_svg().unwrap();
    check(&svg);
    assert_eq!(svg.matches("U(x, y)").count(), 1);
    let (lowest, highest) = (svg.matches("#185ABC"), svg.matches("#D01C1C"));
    assert!(lowest.count() >= 2 && highest.count() >= 2);
    let mut none = panel;
    none.series[0].y.clear();
    let svg = Figure::of(none).to_svg().unwrap();
    assert!(svg.contains("U(x, y) (no data)"));
}

#[test]
fn ordered_series_go_from_blue_to_red() {
    let line = |i: f64| Series::line(format!("t = {i}"), vec![0.0, 1.0], vec![i, i]);
    let mut panel = Panel::new(
        Axis::linear("x").with_ticks(vec![(0.0, "start".into()), (9.0, "far".into())]),
        Axis::linear("y"),
        numbers(12, |i| i).into_iter().map(line).collect(),
    );
    let plain = Figure::of(panel.clone()).to_svg().unwrap();
    panel.colours = Colours::Order;
    let graded = Figure::of(panel).to_svg().unwrap();
    check(&graded);
    assert!(graded.contains("#185ABC") && graded.contains("#D01C1C"));
    assert!(!plain.contains("#185ABC") && !plain.contains("#D01C1C"));
    assert!(graded.contains("start") && !graded.contains("far"));
}

#[test]
fn bands_have_the_colour_of_their_line() {
    let x = numbers(20, |i| i);
    let y = numbers(20, f64::sin);
    let series = [band("a", &x, &y, &[0.1; 20]), band("b", &x, &y, &[0.2; 7])].concat();
    let panel = Panel::new(Axis::linear("x"), Axis::linear("y"), series);
    let svg = Figure::of(panel).to_svg().unwrap();
    check(&svg);
    for area in svg.split("<polygon").skip(1) {
        let colour = area.split("fill=\"").nth(1).unwrap();
        assert!(svg.matches(&colour[..7]).count() > 1);
    }
    assert_eq!(svg.matches("<polygon").count(), 2);
}

/// Lines and points of several temperatures, with what a legend and a bar say of them.
fn example() -> Figure {
    let x = numbers(9, |i| 10f64.powf(-i / 2.0));
    let curve = |k: f64| x.iter().map(|x| k * x.sqrt()).collect::<Vec<_>>();
    let curves = [1.0, 2.0, 3.0].map(|k| (format!("curve {k}"), curve(k), Some(vec![0.1; 9])));
    sweep("temperature T", &x, curves.into(), true, false).titled("An example")
}

/// The number behind a word, as that of `width="86mm"`.
fn number_after(text: &str, word: &str) -> f64 {
    let rest = text.split(word).nth(1).unwrap();
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap();
    rest[..end].parse().unwrap()
}

#[test]
fn a_figure_has_the_size_and_the_letters_that_are_asked_for() {
    for (style, width, height, points) in [
        (Style::paper(), 86.0, 64.0, 8.0),
        (Style::slide(), 254.0, 143.0, 20.0),
        (
            Style {
                size: Some((178.0, 60.0)),
                font_size: 7.0,
                ..Style::default()
            },
            178.0,
            60.0,
            7.0,
        ),
    ] {
        let two = Figure::beside(vec![example(), example()], 2);
        let stack = Figure::stack(vec![example(), example()]);
        for figure in [example(), two, stack] {
            let Ok(svg) = figure.styled(style.clone()).to_svg() else {
                continue;
            };
            check(&svg);
            assert!(svg.starts_with(&format!("<svg width=\"{width}mm\" height=\"{height}mm\"")));
            // A unit of the drawing in points, and with it the size of the letters beside the axis.
            let wide = number_after(&svg, "viewBox=\"0 0 ");
            let unit = width / 25.4 * 72.0 / wide;
            let label = svg.split("temperature T").next().unwrap();
            let size = number_after(&label[label.rfind("font-size").unwrap()..], "font-size=\"");
            assert!(
                (size * unit / points - 1.0).abs() < 0.03,
                "{} {points}",
                size * unit
            );
            // Nothing stands beyond the page.
            let high = number_after(&svg, &format!("viewBox=\"0 0 {wide} "));
            for y in svg.split(" y=\"").skip(1) {
                let y: f64 = y.split('"').next().unwrap().parse().unwrap();
                assert!((0.0..=high).contains(&y), "{y} of {high}");
            }
        }
    }
    assert!(example().styled(Style::paper()).to_svg().is_ok());
    assert!(example().styled(Style::slide()).to_svg().is_ok());
    let small = Style {
        size: Some((20.0, 20.0)),
        ..Style::default()
    };
    let error = example().styled(small).to_svg().unwrap_err().to_string();
    assert!(error.contains("has no room for its labels"), "{error}");
}

#[test]
fn a_style_has_colours_a_legend_and_a_theme() {
    let drawn = |change: &dyn Fn(&mut Style)| {
        let mut style = Style::default();
        change(&mut style);
        let svg = example().styled(style).to_svg().unwrap();
        check(&svg);
        svg
    };
    let plain = drawn(&|_| {});
    assert!(plain.contains("curve 2") && plain.contains("#0072B2"));
    assert!(!drawn(&|s| s.legend = Legend::None).contains("curve 2"));
    let red = drawn(&|s| s.palette = vec![Style::colour("#aa0011").unwrap()]);
    assert!(red.contains("#AA0011") && !red.contains("#0072B2"));
    let dark = drawn(&|s| s.dark = true);
    assert!(dark.contains("#121212") && !dark.contains("#FFFFFF") && !dark.contains("#0072B2"));
    let (beside, below) = (
        number_after(&plain, "width=\""),
        drawn(&|s| s.legend = Legend::Below),
    );
    assert!(number_after(&below, "width=\"") < beside);
}

#[test]
fn documents_and_images_are_what_they_say() {
    let folder = folder("formats");
    let figure = example().styled(Style::paper());
    for name in ["a.svg", "a.pdf", "a.PNG"] {
        figure.save(&folder.join(name)).unwrap();
    }
    let pdf = fs::read(folder.join("a.pdf")).unwrap();
    assert!(pdf.starts_with(b"%PDF-") && pdf.trim_ascii_end().ends_with(b"%%EOF"));
    let text = String::from_utf8_lossy(&pdf);
    let box_ = text
        .split("/MediaBox [")
        .nth(1)
        .unwrap()
        .split(']')
        .next()
        .unwrap();
    let corners: Vec<f64> = box_
        .split_whitespace()
        .map(|x| x.parse().unwrap())
        .collect();
    assert!((corners[2] - 86.0 / 25.4 * 72.0).abs() < 0.1, "{box_}");
    assert!((corners[3] - 64.0 / 25.4 * 72.0).abs() < 0.1, "{box_}");
    // Letters are letters, of the font that comes with the program.
    assert!(text.contains("DejaVuSans"));
    let png = fs::read(folder.join("a.PNG")).unwrap();
    assert!(png.starts_with(b"\x89PNG"));
    let side = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    assert_eq!((side(16), side(20)), (1016, 756));
    for name in ["a.jpg", "a"] {
        let error = figure.save(&folder.join(name)).unwrap_err().to_string();
        assert!(error.contains("supported: .svg, .pdf, .png"), "{error}");
    }
    let huge = Style {
        size: Some((2000.0, 2000.0)),
        dpi: 2400.0,
        ..Style::default()
    };
    let error = example().styled(huge).to_png().unwrap_err().to_string();
    assert!(error.contains("at most 20000 along a side"), "{error}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn points_that_are_not_to_be_trusted_are_hollow() {
    let points = |hollow: Vec<bool>| {
        let one = Series::points("", vec![0.0, 1.0], vec![0.0, 1.0]).with_hollow(hollow);
        let panel = Panel::new(Axis::linear("x"), Axis::linear("y"), vec![one]);
        let svg = Figure::of(panel).to_svg().unwrap();
        check(&svg);
        svg.matches("<circle").count()
    };
    // A hollow one is a white disc and its outline.
    assert_eq!(points(vec![]), 2);
    assert_eq!(points(vec![false, true]), 3);
    assert_eq!(points(vec![true, true, true]), 4);
}

#[test]
fn temperatures_have_a_bar_of_colours() {
    let temperatures = [1e-4, 1e-3, 1e-2, 1e-1];
    let samples: Vec<_> = (0..4)
        .map(|k| numbers(50, |i| (i * 0.7).sin() + f64::from(k)))
        .collect();
    let figure = histogram("cost", &samples, &labels(&temperatures)).by_temperature(&temperatures);
    let svg = figure.to_svg().unwrap();
    check(&svg);
    assert!(svg.contains("temperature T") && !svg.contains("T = "));
    // The coldest is blue, the hottest red, and the bar has decades.
    assert!(svg.contains("#185ABC") && svg.contains("#D01C1C") && svg.contains("10⁻²"));
    let few = histogram("cost", &samples[..2], &labels(&temperatures[..2]));
    let few = few.by_temperature(&temperatures[..2]).to_svg().unwrap();
    assert!(few.contains("T = 10⁻⁴") && few.contains("T = 0.001"));
}

#[test]
fn equal_axes_have_equal_units() {
    let series = Series::line("", vec![0.0, 2.0], vec![0.0, 1.0]);
    let axis = |name: &str, high| Axis::linear(name).with_range(0.0, high);
    let panel = Panel {
        equal: true,
        ..Panel::new(axis("x", 2.0), axis("y", 1.0), vec![series])
    };
    let svg = Figure::of(panel).to_svg().unwrap();
    // The frame is the last closed line.
    let frame = svg.split("<polyline").last().unwrap();
    let points = frame
        .split("points=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let corner = |k: usize| -> Vec<f64> {
        let point = points.split_whitespace().nth(k).unwrap();
        point.split(',').map(|x| x.parse().unwrap()).collect()
    };
    let (a, c) = (corner(0), corner(2));
    assert!(((c[0] - a[0]) / (c[1] - a[1]) - 2.0).abs() < 0.01);
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
    for name in ["figure.jpg", "figure", ".svg"] {
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
