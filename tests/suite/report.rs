//! Reports, figures and comparisons of what is on disk: pages that are whole, say what was found, and let nothing act.

use super::support::{Scratch, ergodic, evaluate, text};
use serde_json::Value;
use sha2::Digest;
use std::collections::HashSet;
use std::path::Path;
use std::process::Output;

fn command(words: &[&str], paths: &[&Path]) -> Output {
    ergodic().args(words).args(paths).output().unwrap()
}

/// Run a script into a folder.
fn run(scratch: &Scratch, name: &str, source: &str, more: &[&str]) -> Output {
    let script = scratch.file(&format!("{name}.rhai"), source);
    let mut command = ergodic();
    command.args(["run", "--quiet"]).arg(script).args(more);
    command
        .arg("--out")
        .arg(scratch.join(name))
        .output()
        .unwrap()
}

/// The report of a folder.
fn report(folder: &Path) -> String {
    let output = command(&["report"], &[folder]);
    assert!(output.status.success(), "{}", text(&output));
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    check(&page);
    page
}

/// What stands between tags, as a reader sees it.
fn words(page: &str) -> String {
    let body = page.split("</style>").nth(1).unwrap();
    let mut out = String::new();
    for piece in body.split('<').skip(1) {
        out += piece.split_once('>').map_or("", |(_, text)| text);
    }
    out.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

/// Tags are balanced, ids differ and are there, tables have headers, nothing is loaded, nothing acts.
fn check(page: &str) {
    const VOID: [&str; 3] = ["meta", "img", "!doctype"];
    const DRAWN: [&str; 5] = ["polyline", "polygon", "rect", "circle", "line"];
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    let (mut open, mut ids, mut referred) = (Vec::new(), HashSet::new(), Vec::new());
    let style = page
        .split("<style>")
        .nth(1)
        .unwrap()
        .split("</style>")
        .next()
        .unwrap();
    assert!(!style.contains("url(") && !style.contains("@import") && !style.contains('<'));
    let script = page
        .split("<script>")
        .nth(1)
        .unwrap()
        .split("</script>")
        .next()
        .unwrap();
    assert_eq!(page.matches("<script").count(), 1);
    // Browsers run this script and no other, and fetch nothing.
    let ours = ergodic::plot::base64(&sha2::Sha256::digest(script));
    let policy = format!(
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{ours}';"
    );
    assert!(page.contains(&policy));
    let body = page.replace(style, "").replace(script, "");
    let mut pieces = body.split('<');
    assert_eq!(pieces.next(), Some(""));
    for piece in pieces {
        let (tag, rest) = piece
            .split_once('>')
            .unwrap_or_else(|| panic!("no end of <{piece}"));
        assert!(!rest.contains('>'), "a bare '>' after <{tag}>: {rest}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "</{name}>");
            continue;
        }
        let name = tag.split([' ', '/']).next().unwrap();
        if tag.ends_with('/') {
            assert!(DRAWN.contains(&name), "<{tag}>");
        } else if !VOID.contains(&name) {
            open.push(name);
        }
        let attribute = |key: &str| {
            let (_, value) = tag.split_once(&format!(" {key}=\""))?;
            value.split('"').next()
        };
        if let Some(id) = attribute("id") {
            assert!(ids.insert(id.to_string()), "two of {id}");
        }
        referred.extend(attribute("aria-labelledby").map(str::to_string));
        for source in ["href", "src"].iter().filter_map(|k| attribute(k)) {
            match source.strip_prefix('#') {
                Some(id) => referred.push(id.into()),
                None => assert!(source.starts_with("data:image/svg+xml"), "{source}"),
            }
        }
        assert!(
            !tag.contains(" on") || !tag.contains("=\"javascript"),
            "<{tag}>"
        );
        match name {
            "th" => assert!(["row", "col"].contains(&attribute("scope").unwrap())),
            "svg" => {
                assert!(attribute("role") == Some("img") && attribute("aria-labelledby").is_some())
            }
            "img" => assert!(!attribute("alt").unwrap().is_empty()),
            _ => {}
        }
    }
    assert!(open.is_empty(), "never closed: {open:?}");
    for id in referred {
        assert!(ids.contains(&id), "nothing has the id {id}");
    }
    for table in page.split("<table>").skip(1) {
        let table = table.split("</table>").next().unwrap();
        assert!(table.starts_with("<caption>") && table.contains("<thead><tr><th scope=\"col\">"));
        let rows = table.split("<tbody>").nth(1).unwrap();
        assert_eq!(
            rows.matches("<tr>").count(),
            rows.matches("<tr><th scope=\"row\">").count()
        );
    }
}

/// Chains that mix.
const SWEEP: &str = "//! A <b>title</b> & more\n\
    let t = target(potential::gaussian(#{ dim: 3 }));\n\
    let n = param(\"n\", 1200, \"Steps.\");\n\
    let r = sweep(t, sampler::hmc(#{ leapfrog: 4 }), #{ temperatures: [0.5, 1.0, 2.0], steps: n, chains: 4, every: 1, observe: [observable::norm2()], name: \"mixed\" });\n\
    print(\"said <so>\");\n\
    plot::sweep(r, \"norm2\").save(\"own.svg\");\n\
    r.summary()[\"norm2\"]";

#[test]
fn a_sweep_is_told_with_its_verdicts_numbers_figures_and_command() {
    let scratch = Scratch::new();
    let done = run(
        &scratch,
        "sweep",
        SWEEP,
        &["--seed", "7", "--set", "n=16000"],
    );
    assert!(done.status.success(), "{}", text(&done));
    let page = report(&scratch.join("sweep"));
    let said = words(&page);
    for part in [
        "All checks passed",
        "mixed",
        "✓",
        "converged",
        "worst R̂",
        "least ESS, bulk",
        "least ESS, tail",
        "none of 12 failed",
        "all 16000 steps",
        "--set n=16000 --seed 7",
        "said <so>",
        "//! A <b>title</b> & more",
        "norm2 against temperature, with standard errors",
        "The thermometer:",
        "Trace of norm2",
        "Rank plot of norm2",
        "Figures of the script",
        "own.svg",
        "MCSE",
        "Vehtari",
    ] {
        assert!(said.contains(part), "no '{part}'");
    }
    assert!(
        page.contains("<span class=\"k\">let</span>")
            && page.contains("prefers-color-scheme: dark")
            && page.contains("@media print")
    );
    // The numbers are those of the summary.
    let shown = command(&["show"], &[&scratch.join("sweep")]);
    let shown = text(&shown);
    let row = shown
        .lines()
        .find(|l| l.trim_start().starts_with("5.000e-1"))
        .unwrap();
    let mean = row.split_whitespace().nth(1).unwrap();
    assert!(mean.contains('(') && said.contains(mean), "{mean}");
    // Of the folder of the run alone, and under another name.
    let one = report(&scratch.join("sweep/mixed"));
    assert!(words(&one).contains("sweep / mixed") && words(&one).contains("--seed 7"));
    let file = scratch.join("there/other.html");
    let both = command(
        &["report", "--out", file.to_str().unwrap()],
        &[&scratch.join("sweep"), &scratch.join("sweep/mixed")],
    );
    assert!(both.status.success(), "{}", text(&both));
    check(&std::fs::read_to_string(file).unwrap());
}

#[test]
fn every_kind_of_result_is_told() {
    let scratch = Scratch::new();
    let source = "let g = target(potential::gaussian_mixture(), #{ prior: prior::gaussian(0.25) });\n\
        sample(g, sampler::hmc(#{ leapfrog: 3 }), #{ steps: 300, chains: 2, every: 1, observe: [observable::parameter(0)], name: \"alone\" });\n\
        let l = exchange(g, sampler::hmc(#{ leapfrog: 3 }), #{ temperatures: [1, 2, 4, 10, 30], prior_rung: true, steps: 600, observe: [observable::parameter(0)], name: \"ladder\" });\n\
        let e = evidence(l)[\"ln_z\"];\n\
        smc(g, sampler::hmc(#{ leapfrog: 3 }), #{ particles: 32, populations: 4, name: \"populations\" });\n\
        let d = target(model::mlp(#{ layers: [64, 4, 10] }), dataset::digits(#{ per_class: 5 }), #{ prior: prior::l2(10.0) });\n\
        let trained = train(d, optimizer::adam(#{ epochs: 4, batch: 25 }), #{ chains: 2, name: \"training\" });\n\
        sweep(d, sampler::sgld(#{ step: 1e-3, batch: 10 }), #{ temperatures: [1e-4, 1e-3], start: trained, chains: 2, steps: 200, every: 10, predict: \"test\", observe: [observable::cost()], name: \"predicted\" });\n\
        let x = llc(target(potential::gaussian(#{ dim: 4, examples: 1000 })), sampler::sgld(#{ step: 1e-3, gradient: gradient::full() }), #{ start: parameters([1, 1, 1, 1]), steps: 1000, name: \"coefficient\" });\n\
        llc_benchmark(#{ problems: 2, n: 10_000, steps: 100, samplers: [sampler::sgld(#{ batch: 50 })], step_sizes: [1e-7, 1e-6], name: \"bench\" });\n\
        #{ ln_z: e, lambda: x.estimate }";
    let done = run(&scratch, "all", source, &["--json"]);
    assert!(done.status.success(), "{}", text(&done));
    let value: Value = serde_json::from_slice(&done.stdout).unwrap();
    let folder = scratch.join("all");
    let page = report(&folder);
    let said = words(&page);
    for (kind, parts) in [
        ("sample", &["Distribution of w0", "none of 2 failed"][..]),
        (
            "exchange",
            &[
                "communication barrier Λ",
                "round trips",
                "swap rate",
                "heat capacity",
                "Heat capacity along the ladder",
                "multistate Bennett",
                "Histograms of the tempered energy",
            ],
        ),
        (
            "smc",
            &[
                "tempered sequential Monte Carlo",
                "effective share",
                "Populations of populations",
            ],
        ),
        (
            "train",
            &[
                "What was kept of training",
                "adam",
                "Loss against the epoch",
            ],
        ),
        ("predictions", &["Posterior prediction of predicted", "NLL"]),
        (
            "llc",
            &[
                "learning coefficient λ̂",
                "nβ(L - L(w0)) along every chain",
                "virial temperature around w0 (set to 1)",
            ],
        ),
        (
            "benchmark",
            &[
                "bench: relative error of λ̂ over the problems",
                "sgld, 1.0e-7",
            ],
        ),
    ] {
        for part in parts {
            assert!(said.contains(part), "{kind}: no '{part}'");
        }
    }
    // The evidence and the coefficient are those that the script has got, to four digits.
    for key in ["ln_z", "lambda"] {
        let number = format!("{:.2}", value[key].as_f64().unwrap());
        let start = &number[..number.len() - 1];
        assert!(said.contains(start), "{key}: no {start}");
    }
    // The same is shown, drawn and compared.
    let shown = text(&command(&["show"], &[&folder]));
    for part in [
        "ln Z =",
        "'populations': 4 populations",
        "training: adam",
        "'bench': 2 problems",
        "T virial",
    ] {
        assert!(shown.contains(part), "no '{part}' in\n{shown}");
    }
    let json = command(&["show", "--json"], &[&folder]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["populations"]["particles"], 32);
    assert_eq!(json["training"]["kept"][1]["epoch"], 4.0);
    let drawn = command(&["plot"], &[&folder]);
    let drawn = String::from_utf8(drawn.stdout).unwrap();
    for name in [
        "ladder/figures/heat-capacity.svg",
        "training/figures/loss.svg",
        "populations/figures/stages.svg",
        "coefficient/figures/llc.svg",
        "bench/figures/benchmark.svg",
        "alone/figures/traces-w0.svg",
    ] {
        let line = drawn
            .lines()
            .find(|l| l.ends_with(name))
            .unwrap_or_else(|| panic!("no {name} in\n{drawn}"));
        let svg = std::fs::read_to_string(line.trim_start_matches("figure  ")).unwrap();
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    }
    let place = scratch.join("drawn");
    let moved = command(
        &["plot", "--out", place.to_str().unwrap()],
        &[&folder.join("ladder")],
    );
    assert!(
        moved.status.success() && place.join("energies.svg").exists(),
        "{}",
        text(&moved)
    );
}

#[test]
fn what_is_wrong_comes_first() {
    let scratch = Scratch::new();
    let failing = "let t = target(potential::double_well());\n\
        sample(t, sampler::sgld(#{ step: 0.02, batch: 1 }), #{ start: parameters([[1.0], [1e4]]), chains: 2, steps: 2000, every: 10, observe: [observable::norm2()] });\n\
        throw \"stop <here>\";";
    assert!(!run(&scratch, "failing", failing, &[]).status.success());
    let said = words(&report(&scratch.join("failing")));
    let verdict = said.find("Look at this first.").expect("no verdict");
    assert!(verdict < said.find("What ran").unwrap());
    for part in [
        "stopped: stop <here>",
        "1 of 2 failed and are left out: chain 1 at T = 1, step",
        "✗",
    ] {
        assert!(said.contains(part), "no '{part}'");
    }
    let quick = run(&scratch, "quick", SWEEP, &["--quick"]);
    assert!(quick.status.success(), "{}", text(&quick));
    assert!(words(&report(&scratch.join("quick"))).contains("steps were cut by --quick"));
}

#[test]
fn hostile_names_and_texts_do_not_act() {
    let scratch = Scratch::new();
    let evil = "</script></title></pre><img src=x onerror=alert(1)>&quot;'\\\"";
    let source = format!(
        "//! {evil}\nlet p = param(\"p\", \"x\", \"doc\");\nlet t = target(potential::gaussian(#{{ dim: 2 }}));\n\
         let r = sample(t, sampler::hmc(), #{{ steps: 60, chains: 2, every: 1, observe: [observable::norm2()] }});\n\
         print(\"{evil}\");\nplot::traces(r, \"norm2\").titled(\"{evil}\").save(\"<b>.svg\");\n\"{evil}\"",
    );
    let name = "<svg onload=alert(1)>";
    let done = run(&scratch, name, &source, &["--set", &format!("p={evil}")]);
    assert!(done.status.success(), "{}", text(&done));
    let page = report(&scratch.join(name));
    // What a browser would take for elements is ours alone.
    for act in ["<img src=x", "onerror=alert(1)>&quot;<", "<svg onload"] {
        assert!(!page.contains(act), "{act}");
    }
    let said = words(&page);
    assert!(said.contains("<img src=x onerror=alert(1)>") && said.contains("<b>.svg"));
    assert!(said.contains(name) && page.contains("&lt;svg onload=alert(1)&gt;"));
}

#[test]
fn an_unfinished_and_a_damaged_run_are_told_as_far_as_they_go() {
    let scratch = Scratch::new();
    assert!(run(&scratch, "results", SWEEP, &[]).status.success());
    let folder = scratch.join("results");
    let checkpoint = |name: &str| folder.join(format!("{name}/checkpoint"));
    // A second run, whose checkpoints are both spoilt, and a third without any.
    for name in ["spoilt", "bare"] {
        std::fs::create_dir_all(checkpoint(name)).unwrap();
        std::fs::copy(
            folder.join("mixed/run.json"),
            folder.join(name).join("run.json"),
        )
        .unwrap();
    }
    for entry in std::fs::read_dir(checkpoint("mixed")).unwrap().flatten() {
        let mut bytes = std::fs::read(entry.path()).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        std::fs::write(checkpoint("spoilt").join(entry.file_name()), bytes).unwrap();
    }
    let said = words(&report(&folder));
    for part in [
        "Look at this first.",
        "damaged",
        "no valid checkpoint",
        "no valid checkpoint in",
        "What is in the folder of spoilt",
        "run.json",
        "none of 12 failed",
    ] {
        assert!(said.contains(part), "no '{part}'");
    }
    let refused = command(&["show"], &[&folder]);
    assert!(
        !refused.status.success()
            && text(&refused).contains("`ergodic report` shows what is still there"),
        "{}",
        text(&refused)
    );
    // The record of the script is gone or nonsense: the runs are still told.
    std::fs::write(folder.join("run.json"), "{ not json").unwrap();
    assert!(words(&report(&folder)).contains("the record of the script is damaged"));
    std::fs::remove_file(folder.join("run.json")).unwrap();
    assert!(words(&report(&folder)).contains("it was killed, or this is the folder of a session"));
}

#[test]
fn a_run_that_was_stopped_is_told_as_unfinished() {
    let scratch = Scratch::new();
    let source = "let t = target(potential::gaussian(#{ dim: 3 }));\n\
        sample(t, sampler::sgld(#{ step: 1e-3, gradient: gradient::full() }), #{ steps: 2_000_000_000, every: 1_000_000, burn_in: 0.9, chains: 2, observe: [observable::norm2()] })";
    let script = scratch.file("long.rhai", source);
    let mut child = ergodic();
    let mut child = child
        .args(["run", "--quiet", "--checkpoint", "0.1", "--out"])
        .arg(scratch.join("long"))
        .arg(script)
        .spawn()
        .unwrap();
    let saved = scratch.join("long/sample-1/checkpoint/current.safetensors");
    for _ in 0..600 {
        std::thread::sleep(std::time::Duration::from_millis(50));
        if saved.exists() {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(saved.exists(), "no checkpoint within 30 s");
    let said = words(&report(&scratch.join("long")));
    for part in [
        "unfinished at step",
        "still in burn-in: there are no draws yet",
        "was killed",
        "Target, sampler and sizes",
    ] {
        assert!(said.contains(part), "no '{part}'");
    }
}

#[test]
fn bad_folders_and_names_are_refused_with_what_to_do() {
    let scratch = Scratch::new();
    let file = scratch.file("file.txt", "x");
    let empty = scratch.join("empty");
    std::fs::create_dir_all(&empty).unwrap();
    for (words, path, message) in [
        (
            &["report"][..],
            scratch.join("nowhere"),
            "there is no such folder",
        ),
        (
            &["report"],
            file.clone(),
            "this is a file; name the folder of a run",
        ),
        (
            &["report"],
            empty.clone(),
            "no run in this folder; name the folder of a run",
        ),
        (&["plot"], empty.clone(), "no run in this folder"),
        (
            &["show"],
            scratch.join("nowhere"),
            "there is no such folder",
        ),
        (&["compare"], empty.clone(), "no run in this folder"),
    ] {
        let output = command(words, &[&path]);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(
            text(&output).contains(message),
            "{words:?}: {}",
            text(&output)
        );
    }
    assert!(run(&scratch, "small", SWEEP, &[]).status.success());
    let folder = scratch.join("small");
    for (words, folders, message) in [
        (
            &["report", "--out", "page.txt"][..],
            vec![&folder],
            "a name that ends in .html",
        ),
        (&["report"], vec![&folder, &folder], "say where with --out"),
        (&["compare"], vec![&folder], "there is only one run"),
    ] {
        let folders: Vec<&Path> = folders.into_iter().map(|p| p.as_path()).collect();
        let output = command(words, &folders);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(
            text(&output).contains(message),
            "{words:?}: {}",
            text(&output)
        );
    }
    assert_eq!(command(&["report"], &[]).status.code(), Some(2));
}

#[test]
fn runs_beside_each_other_differ_by_what_they_differ() {
    let scratch = Scratch::new();
    let source = "let run = |precision, name| sample(target(potential::gaussian(#{ dim: 3, condition: 1 }), #{ prior: prior::gaussian(precision) }), sampler::hmc(#{ leapfrog: 4 }), \
        #{ steps: 2000, chains: 4, every: 1, observe: [observable::norm2()], name: name });\n\
        run.call(0.5, \"a\"); run.call(0.5, \"b\"); run.call(2.0, \"c\");";
    let done = run(&scratch, "three", source, &[]);
    assert!(done.status.success(), "{}", text(&done));
    let output = command(&["compare", "--json"], &[&scratch.join("three")]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["runs"].as_array().unwrap().len(), 3);
    for run in json["runs"].as_array().unwrap() {
        let number = |key: &str| run[key].as_f64().unwrap();
        assert!(number("ess") > 100.0 && number("rhat") < 1.05);
        assert!((number("ess_per_second") * number("seconds") / number("ess") - 1.0).abs() < 1e-9);
    }
    let line = &json["means"][0];
    assert_eq!(line["name"], "norm2");
    let deviation = |k: usize| line["others"][k]["deviation"].as_f64().unwrap();
    assert!(deviation(0).abs() < 5.0 && deviation(1) < -8.0, "{line}");
    // Three components of mean and variance 1/(1 + ½).
    let mean = line["first"]["mean"].as_f64().unwrap();
    let error = line["first"]["mcse"].as_f64().unwrap();
    assert!((mean - 10.0 / 3.0).abs() < 5.0 * error, "{mean} ± {error}");
    let told = text(&command(
        &["compare"],
        &[&scratch.join("three/a"), &scratch.join("three/c")],
    ));
    for part in [
        "ESS/s",
        "worst R̂",
        "norm2, 1",
        "in units of the joint standard error",
    ] {
        assert!(told.contains(part), "no '{part}' in\n{told}");
    }
}

#[test]
fn a_script_reports_its_own_run() {
    let value = evaluate(
        "let r = sample(target(potential::gaussian(#{ dim: 2 })), sampler::hmc(), #{ steps: 60, chains: 2, every: 1, observe: [observable::norm2()] });\n\
         r.report(\"page.html\")",
    );
    assert!(value.unwrap().as_str().unwrap().ends_with("out/page.html"));
    let scratch = Scratch::new();
    let source = "let r = sample(target(potential::gaussian(#{ dim: 2 })), sampler::hmc(), #{ steps: 60, chains: 2, every: 1, observe: [observable::norm2()] });\nr.report(\"page.html\")";
    assert!(
        run(&scratch, "own", source, &["--seed", "5"])
            .status
            .success()
    );
    let page = std::fs::read_to_string(scratch.join("own/page.html")).unwrap();
    check(&page);
    assert!(words(&page).contains("--seed 5") && words(&page).contains("r.report(\"page.html\")"));
    for bad in ["\"\"", "\"../x.html\"", "\"page.txt\""] {
        let script = source.replace("\"page.html\"", bad);
        let refused = evaluate(&script).unwrap_err().to_string();
        assert!(refused.contains("report"), "{refused}");
    }
}
