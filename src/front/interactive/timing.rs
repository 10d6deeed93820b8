//! How long scripts take: `%time` and `%timeit`.

use super::commands::Outcome;
use super::{Answer, Interactive};
use crate::error::count;
use crate::script::Failure;
use std::time::Instant;

/// Seconds that runs take together at least, so that clocks can tell; runs at most; seconds of all repeats; repeats at most.
const LONG_ENOUGH: f64 = 0.1;
const MOST_RUNS: u64 = 10_000_000;
const ALTOGETHER: f64 = 2.0;
const MOST_REPEATS: usize = 7;

impl Interactive {
    /// Run a script and say how long it took.
    pub(super) fn time(&mut self, file: &str, source: &str) -> Outcome {
        let begin = Instant::now();
        let value = self.evaluate(file, source)?;
        let took = format!("{:.3} s", begin.elapsed().as_secs_f64());
        self.interpreter().session().console.print(&took);
        Ok(Answer::Value(value))
    }

    /// Seconds that a script takes by mean and standard deviation of a few repeats, each of so many runs that clocks can tell.
    pub(super) fn time_many(&mut self, file: &str, source: &str) -> Outcome {
        let mut seconds = |script: &str| -> std::result::Result<f64, Failure> {
            let begin = Instant::now();
            let _ = self.apart(file, script)?;
            Ok(begin.elapsed().as_secs_f64())
        };
        let once = seconds(source)?;
        let many = |runs: u64| format!("for _run in 0..{runs} {{ {source}\n}}");
        let mut runs = 1;
        let mut all = once;
        while all < LONG_ENOUGH && runs < MOST_RUNS {
            runs *= 10;
            all = seconds(&many(runs))?;
        }
        let repeats = ((ALTOGETHER / all) as usize).clamp(2, MOST_REPEATS);
        let each = (0..repeats).map(|_| Ok(seconds(&many(runs))? / runs as f64));
        let each = each.collect::<std::result::Result<Vec<f64>, Failure>>()?;
        let mean = each.iter().sum::<f64>() / repeats as f64;
        let squares = each.iter().map(|t| (t - mean).powi(2)).sum::<f64>();
        let sd = (squares / (repeats - 1) as f64).sqrt();
        Ok(Answer::Text(format!(
            "{} ± {} per run (mean ± standard deviation of {repeats} repeats of {} each)",
            duration(mean),
            duration(sd),
            count(runs as usize, "run")
        )))
    }
}

/// Time as a person reads it.
fn duration(seconds: f64) -> String {
    let (scale, unit) = match seconds {
        s if s < 1e-6 => (1e9, "ns"),
        s if s < 1e-3 => (1e6, "µs"),
        s if s < 1.0 => (1e3, "ms"),
        _ => (1.0, "s"),
    };
    let x = seconds * scale;
    let digits = 2 - x.max(1.0).log10().floor().clamp(0.0, 2.0) as usize;
    format!("{x:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits() {
        let all = [2.5e-9, 12.34e-6, 0.5, 1.0, 123.4].map(duration);
        assert_eq!(all, ["2.50 ns", "12.3 µs", "500 ms", "1.00 s", "123 s"]);
    }
}
