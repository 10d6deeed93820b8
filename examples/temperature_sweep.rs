//! A temperature sweep of a small network on digits, from Rust: `cargo run --release --example temperature_sweep`.

use ergodic::prelude::*;

fn main() -> Result<()> {
    // Ctrl-C saves what there is.
    prepare();
    let data = dataset::Digits::new().per_class(50).build()?;
    let net = model::Mlp::new([64, 16, 10])
        .activation(choices::Activation::Tanh)
        .build()?;
    let prior = prior::L2::new(10.0).build()?;
    let target = Target::of(&net, &data).prior(&prior).run()?;
    let adam = optimizer::Adam::new().epochs(30).build()?;
    let trained = train(&target, &adam).chains(2).run()?;
    let hmc = sampler::Hmc::new().build()?;
    let run = sweep(&target, &hmc)
        .temperatures(logspace(1e-4, 1e-2, 3))
        .chains(2)
        .steps(1000)
        .every(5)
        .start(&trained)
        .run();
    let run = match run {
        Err(e) if Interrupted::is(&e) => {
            println!("{e}");
            return Ok(());
        }
        other => other?,
    };
    println!("{}", run.summary()?);
    let page = write_report(&[&run.folder], None)?;
    println!("the report is {}", page.display());
    Ok(())
}
