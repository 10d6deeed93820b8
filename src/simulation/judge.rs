//! Judging runs: what is missing for their numbers to be trusted, and which tests of the law failed.

use super::exchange::Ladders;
use super::run::{Column, Group, Run};
use crate::diagnostic::verdict::{LEAST_ESS, MOST_ERROR, MOST_R_HAT, Test, factor};
use crate::diagnostic::{Heat, Reading, Summary as Numbers, Verdict, drift, mcse_mean, mean};
use crate::engine::report;
use crate::error::{Result, count};

/// Deviations of a test that matter to nobody, relative: of the virial, and of identities that weigh few directions most.
const TOLERANCES: [f64; 2] = [0.01, 0.03];

/// R̂ and ESS beyond which error bars are good enough for a test of the law to condemn a run; before, a failing test says that chains
/// still relax.
pub(crate) const RELAXED: (f64, f64) = (1.05, 50.0);

/// Standard errors by which the beginning of the draws differs from their end where chains have not equilibrated.
const DRIFTS: f64 = 4.0;

/// What one chain does not show.
pub(crate) const ALONE: &str =
    "one chain does not show whether others would agree with it; take more chains";

/// The judgement of a run at one temperature.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// In one word.
    pub verdict: Verdict,
    /// What is missing or wrong, one thing each.
    pub reasons: Vec<String>,
    /// About how many steps more would bring what is missing; none where that is not known, or nothing is missing.
    pub more_steps: Option<u64>,
    /// Whether something other than R̂ and ESS is missing that more steps would bring.
    pub open: bool,
    /// The tests of the law.
    pub tests: Vec<Test>,
    /// How many tests were made at all temperatures together.
    pub of: usize,
}

impl Judgement {
    /// The reasons in a line, and about how many steps more it takes.
    pub fn says(&self) -> String {
        let reasons = self.reasons.join(", ");
        match self.more_steps {
            Some(n) => format!("{reasons}; about {} more steps", round(n)),
            None => reasons,
        }
    }
}

/// A number of steps, of two digits.
fn round(n: u64) -> u64 {
    let unit = 10u64.pow(n.checked_ilog10().unwrap_or(0).saturating_sub(1));
    n.div_ceil(unit) * unit
}

/// The largest R̂, the least effective sizes, and whose they are; NaN where nothing is known.
#[derive(Debug, Clone)]
pub struct Mixing {
    /// R̂.
    pub r_hat: (f64, String),
    /// Effective draws in the bulk.
    pub bulk: (f64, String),
    /// Effective draws in the tails.
    pub tail: (f64, String),
}

impl Mixing {
    /// Of these quantities. What is constant says nothing.
    pub fn of<'a>(numbers: impl Iterator<Item = (&'a str, &'a Numbers)>) -> Self {
        let none = || (f64::NAN, String::new());
        let mut out = Self {
            r_hat: none(),
            bulk: none(),
            tail: none(),
        };
        // NaN gives way to everything, and wins against nothing.
        let keep = |kept: &mut (f64, String), x: f64, name: &str, sign: f64| {
            if sign * x > sign * kept.0 || kept.0.is_nan() && !x.is_nan() {
                *kept = (x, name.into());
            }
        };
        for (name, n) in numbers {
            // A constant trace has no R̂, and as many effective draws as draws.
            if n.r_hat.is_nan() && n.sd == 0.0 {
                continue;
            }
            keep(&mut out.r_hat, n.r_hat, name, 1.0);
            keep(&mut out.bulk, n.ess_bulk, name, -1.0);
            keep(&mut out.tail, n.ess_tail, name, -1.0);
        }
        out
    }

    /// What is missing, in words.
    pub fn missing(&self) -> Vec<String> {
        self.missing_of(MOST_R_HAT, LEAST_ESS)
    }

    /// What is missing of so large an R̂ and so many effective draws, in words.
    pub fn missing_of(&self, most_r_hat: f64, least_ess: f64) -> Vec<String> {
        let mut out = Vec::new();
        let (r, name) = &self.r_hat;
        if *r > most_r_hat {
            out.push(format!("R̂ {r:.3} of {name} (at most {most_r_hat})"));
        }
        for (what, (n, name)) in [("ESS", &self.bulk), ("tail ESS", &self.tail)] {
            if *n < least_ess {
                out.push(format!("{what} {n:.0} of {name} (at least {least_ess})"));
            }
        }
        if r.is_nan() && self.bulk.0.is_nan() {
            out.push("too few draws to compare chains".into());
        }
        out
    }

    /// How many times as many draws it takes; none if that is not known.
    pub fn factor(&self) -> Option<f64> {
        self.factor_to(MOST_R_HAT, LEAST_ESS)
    }

    /// How many times as many draws it takes to so small an R̂ and so many effective draws.
    pub fn factor_to(&self, most_r_hat: f64, least_ess: f64) -> Option<f64> {
        let ess = self.bulk.0.min(self.tail.0);
        factor((self.r_hat.0, ess), (most_r_hat, least_ess))
    }

    fn relaxed(&self) -> bool {
        // Of one chain there is no R̂.
        let agree = self.r_hat.0.is_nan() || self.r_hat.0 <= RELAXED.0;
        agree && self.bulk.0 >= RELAXED.1
    }
}

impl Run {
    /// The virial thermometer at one temperature; not applicable while the temperature changes, at the prior, and to observables of kept draws.
    pub fn thermometer(&self, temperature: usize) -> Result<Reading> {
        if self.info.column("virial").is_err() {
            return Ok(Reading::new(f64::NAN, f64::NAN, f64::NAN));
        }
        let t = self.info.temperatures[temperature];
        let set = match self.info.steady && t.is_finite() {
            true => t,
            false => f64::NAN,
        };
        let virial = self.independent(self.draws("virial", 0, temperature, true)?);
        if self.info.column(report::VIRIAL_SCALE.0).is_err() || set.is_nan() {
            return Ok(Reading::new(mean(&virial), mcse_mean(&virial), set));
        }
        // Within walls: what ⟨Σ f ∂U⟩ / ⟨Σ ∂f⟩ says.
        let test = self.virial_test(
            "virial",
            (0, report::VIRIAL_SCALE.0),
            temperature,
            "",
            TOLERANCES[0],
        )?;
        let read = t * (1.0 + test.deviation);
        Ok(Reading::new(read, t * test.error, set))
    }

    /// The test that a virial is T times its scale.
    fn virial_test(
        &self,
        name: &str,
        (k, scale): (usize, &str),
        temperature: usize,
        tensor: &str,
        tolerance: f64,
    ) -> Result<Test> {
        let t = self.info.temperatures[temperature];
        let left = self.independent(self.draws(name, k, temperature, true)?);
        let right: Vec<Vec<f64>> = match self.info.column(scale) {
            Ok(_) => self.independent(self.draws(scale, k, temperature, true)?),
            Err(_) => left.iter().map(|c| vec![1.0; c.len()]).collect(),
        };
        let right: Vec<Vec<f64>> = right
            .into_iter()
            .map(|c| c.into_iter().map(|s| s * t).collect())
            .collect();
        let what = match tensor {
            "" => "virial".to_string(),
            of => format!("virial of {of}"),
        };
        Ok(Test::new(what, &left, &right, tolerance))
    }

    /// The tests of the law at one temperature; none while the temperature changes, and at the prior.
    pub fn tests(&self, temperature: usize) -> Result<Vec<Test>> {
        let t = self.info.temperatures[temperature];
        if !self.info.steady || !t.is_finite() || t <= 0.0 {
            return Ok(Vec::new());
        }
        let has = |name: &str| self.info.column(name).is_ok();
        let mut out = Vec::new();
        if has("virial") {
            let all = (0, report::VIRIAL_SCALE.0);
            out.push(self.virial_test("virial", all, temperature, "", TOLERANCES[0])?);
        }
        if let Ok((_, column)) = self.info.column(report::VIRIAL_BY_TENSOR.0) {
            let labels = column.components.iter().flat_map(|(_, labels)| labels);
            for (k, label) in labels.enumerate() {
                let at = (k, report::VIRIAL_SCALE_BY_TENSOR.0);
                let test = self.virial_test(
                    report::VIRIAL_BY_TENSOR.0,
                    at,
                    temperature,
                    label,
                    TOLERANCES[1],
                )?;
                out.push(test);
            }
        }
        for (name, left, right) in [
            (
                "|∇U|² against TΔU",
                report::SQUARED_GRADIENT.0,
                report::LAPLACIAN.0,
            ),
            (
                "cubic virial",
                report::CUBIC_VIRIAL.0,
                report::SQUARED_DISTANCE_TO_CENTRE.0,
            ),
        ] {
            if !has(left) {
                continue;
            }
            let times = |draws: Vec<Vec<f64>>, factor: f64| -> Vec<Vec<f64>> {
                let scaled = |c: Vec<f64>| c.into_iter().map(|x| x * factor).collect();
                draws.into_iter().map(scaled).collect()
            };
            let left = self.independent(self.draws(left, 0, temperature, true)?);
            let right = self.independent(self.draws(right, 0, temperature, true)?);
            out.push(Test::new(name, &left, &times(right, t), TOLERANCES[1]));
        }
        out.retain(|test| test.sigma().is_finite());
        Ok(out)
    }

    /// What may be said of every temperature; `mixing` is that of its observables, and `broken` says which of them are not finite.
    pub fn judge(&self, mixing: &[Mixing], broken: &[Option<String>]) -> Result<Vec<Judgement>> {
        let tests: Result<Vec<_>> = (0..mixing.len()).map(|t| self.tests(t)).collect();
        let tests = tests?;
        let count = tests.iter().map(Vec::len).sum();
        let each = mixing.iter().zip(tests).enumerate();
        each.map(|(t, (mixing, tests))| {
            self.judge_at(t, (mixing, broken[t].as_ref()), tests, count)
        })
        .collect()
    }

    fn judge_at(
        &self,
        t: usize,
        (mixing, broken): (&Mixing, Option<&String>),
        tests: Vec<Test>,
        of: usize,
    ) -> Result<Judgement> {
        let mut reasons: Vec<_> = self.failed_chains(t).into_iter().collect();
        reasons.extend(broken.cloned());
        reasons.extend(self.health(t)?.against());
        let lacking = self.ladders.as_ref().and_then(Ladders::lacking);
        if self.chains_here(t) == 1 && self.ladders.is_none() && self.of_source.is_empty() {
            reasons.push(ALONE.into());
        }
        let mut open = lacking.is_some();
        reasons.extend(lacking);
        let mut factor = Some(1.0);
        let missing = mixing.missing();
        if !missing.is_empty() {
            factor = mixing.factor();
        }
        let failing: Vec<_> = tests.iter().filter(|test| test.fails(of)).collect();
        // Chains that agree with each other may still be on their way, and a virial around where they were is then too small.
        // What accepts or rejects by U has its law by construction: more is asked before it is called wrong.
        let agree = match self.info.exact {
            true => missing.is_empty(),
            false => mixing.relaxed(),
        };
        let wrong = !failing.is_empty() && agree && !self.drifts(t, &[report::VIRIAL])?;
        if wrong {
            reasons.extend(failing.iter().map(|test| off(test)));
        }
        reasons.extend(missing);
        let before = reasons.len();
        if !wrong && let Some((first, others)) = failing.split_first() {
            let more = match others.len() {
                0 => String::new(),
                n => format!(" and {}", count(n, "other test")),
            };
            let off = off(first);
            reasons.push(format!(
                "{off}{more}, as can happen while chains still relax"
            ));
        }
        let reading = self.thermometer(t)?;
        if !self.info.exact && reading.verdict == Heat::Undecided {
            let error = reading.mcse / self.info.temperatures[t];
            reasons.push(format!(
                "the error of the temperature is {} (at most {})",
                percent(error),
                percent(MOST_ERROR)
            ));
            let times = (error / MOST_ERROR).powi(2);
            factor = factor.map(|f| f.max(times)).filter(|f| f.is_finite());
        }
        open |= reasons.len() > before;
        let own = match (wrong, reasons.is_empty()) {
            (true, _) => Verdict::Wrong,
            (_, false) => Verdict::NotYet,
            (_, true) if !self.info.steady => Verdict::NotJudged,
            _ => Verdict::Converged,
        };
        let source = self.of_source.get(t);
        let verdict = source.map_or(own, |s| own.max(s.verdict));
        reasons.extend(source.into_iter().flat_map(|s| s.reasons.clone()));
        let done = (self.info.steps - self.info.burn_in) as f64;
        Ok(Judgement {
            verdict,
            more_steps: factor
                .filter(|f| verdict == Verdict::NotYet && *f > 1.0)
                .map(|f| (done * (f - 1.0)).ceil() as u64),
            reasons,
            open,
            tests,
            of,
        })
    }

    /// That chains of a temperature failed, if any did.
    pub(in crate::simulation) fn failed_chains(&self, t: usize) -> Option<String> {
        let (count, all) = (self.failed(t), self.chains_here(t));
        (count > 0).then(|| format!("{count} of {all} chains failed"))
    }
}

impl Run {
    /// Whether the first tenth of the draws at a temperature differs from their last half, in an observable or in one of these reports.
    pub(super) fn drifts(&self, temperature: usize, reports: &[report::Report]) -> Result<bool> {
        let own = |c: &Column| reports.iter().any(|r| r.0 == c.name);
        let scalar = |c: &&Column| (c.group == Group::Posterior || own(c)) && c.width() == 1;
        for column in self.info.columns.iter().filter(scalar) {
            let traces = self.independent(self.draws(&column.name, 0, temperature, true)?);
            if drift(&traces).abs() > DRIFTS {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// What the convergence of one quantity lacks, in words, and how many times as many steps would do, about; none if it lacks nothing.
pub(crate) fn lacking(of: &str, [r_hat, bulk, tail]: [f64; 3]) -> Option<(String, Option<f64>)> {
    let named = |x: f64| (x, of.to_string());
    let mixing = Mixing {
        r_hat: named(r_hat),
        bulk: named(bulk),
        tail: named(tail),
    };
    let missing = mixing.missing();
    (!missing.is_empty()).then(|| (missing.join(", "), mixing.factor().filter(|f| *f > 1.0)))
}

/// A failing test in words.
fn off(test: &Test) -> String {
    let (sign, size) = match test.deviation > 0.0 {
        true => ("too large", test.deviation),
        false => ("too small", -test.deviation),
    };
    format!(
        "{} is {} {sign} ({:.1} standard errors)",
        test.name,
        percent(size),
        test.sigma()
    )
}

/// A part as a percentage of two digits; "unknown" where it is NaN.
pub(crate) fn percent(x: f64) -> String {
    let x = 100.0 * x;
    match x.abs() {
        a if a.is_nan() => "unknown".into(),
        a if a < 0.95 => format!("{x:.2} %"),
        a if a < 9.5 => format!("{x:.1} %"),
        _ => format!("{x:.0} %"),
    }
}
