//! The table of docs/results.md: `cargo test --release --test suite -- --ignored --nocapture contract::table`; with nothing else running, for
//! the speeds. `CONTRACT_ROW=sgld` prints that line only.

use super::cases;

#[test]
#[ignore = "prints a table; the tests beside it check every line of it"]
fn table() {
    println!(
        "| sampler | law | checks | largest deviation (σ) | ESS/s: Gaussian | double wells | network | mutation that is caught |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let only = std::env::var("CONTRACT_ROW").ok();
    let wanted = |what: &str| only.as_ref().is_none_or(|o| o == what);
    for case in cases::all().iter().filter(|c| wanted(c.what)) {
        let found = [case.on_gaussian(), case.on_wells(), case.on_network()];
        let worst = found.iter().map(|f| f.worst).fold(0.0, f64::max);
        let checks: usize = found.iter().map(|f| f.checks).sum();
        let [a, b, c] = found.map(|f| f.ess_per_second);
        println!(
            "| `{}` | {} | {checks} | {worst:.1} | {a:.0} | {b:.0} | {c:.0} | {} |",
            case.what, case.law, case.mutation
        );
    }
}
