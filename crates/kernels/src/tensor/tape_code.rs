//! Tapes as CUDA C, in double precision: losses that are formulas, one example per thread, and energies of parameters, some terms per thread.

use super::code::{self, Code, Result as One, Written};
use super::element::Results;
use super::real::{Order, Real};
use super::registers::{Line, Step};
use super::tape::Tape;
use crate::Result;
use anyhow::ensure;
use std::fmt::Write;

type Number = Code<true>;

/// Operations that a kernel has at most: a compiler takes too long over more.
const MOST: usize = 20_000;

/// Columns of a term of an energy at most.
const COLUMNS: usize = 3;

/// Gradients of registers, to which those of all operands are added that have one.
struct Sums<'a> {
    registers: &'a mut [Option<Number>],
    step: &'a Step,
    /// The gradient of the result, where it may be 0 because something else was chosen.
    chosen: Option<Number>,
}

impl Results<Number> for Sums<'_> {
    type Numbers = Number;

    fn each(
        &mut self,
        operand: usize,
        [x, y, z]: [&Number; 3],
        f: impl Fn(Number, Number, Number) -> Number,
    ) {
        if self.step.active >> operand & 1 == 1 {
            let zero = Number::of(0.0);
            let change = match self.chosen {
                Some(delta) => Number::choose(delta.is(Order::Equal, zero), zero, f(*x, *y, *z)),
                None => f(*x, *y, *z),
            };
            let sum = &mut self.registers[self.step.operands[operand] as usize];
            *sum = Some(sum.map_or(change, |s| s + change));
        }
    }

    fn powers(&mut self, n: i32, [x, y]: [&Number; 2], f: impl Fn(Number, Number) -> Number) {
        let mut power = [*x];
        Number::powi(&[*x], n, &mut power);
        self.each(0, [&power[0], y, y], |p, y, _| f(p, y));
    }
}

/// Compute the registers of a line behind those that are given.
fn forward(line: &Line, registers: &mut Vec<Number>) {
    for step in &line.steps {
        let mut out = None;
        let of = |k: usize| &registers[step.operands[k] as usize];
        step.element.values(of, One(0, &mut out));
        registers.push(out.unwrap_or_else(|| Number::of(f64::NAN)));
    }
}

/// The way back through a line.
fn backward(line: &Line, registers: &[Number], gradients: &mut [Option<Number>]) {
    for (k, step) in line.steps.iter().enumerate().rev() {
        let result = line.given + k;
        let (below, here) = gradients.split_at_mut(result);
        let (true, Some(delta)) = (step.active != 0, here[0]) else {
            continue;
        };
        let of = |k: usize| &registers[step.operands[k] as usize];
        let sums = Sums {
            registers: below,
            step,
            chosen: line.chooses.then_some(delta),
        };
        step.element.slopes(of, &registers[result], &delta, sums);
    }
}

impl Tape {
    /// A kernel of the loss of each example, with the derivatives with respect to outputs and to parameters of its own. Columns are `outputs`
    /// numbers, then targets (a label, or `targets` numbers), and a weight if there are `weights`.
    ///
    /// Parameters: outputs [C, n, outputs], C, n, positions of a row, targets [C, n, ..], weights [C, rows] or null, the loss's parameters and their
    /// stride; then the gradient of the outputs [C, n, outputs] (null if none is wanted), losses [C, n], errors [C, n], and the gradient
    /// of the parameters for each example [C, n, parameters]. x: n.
    ///
    /// # Errors
    /// If the formula is too long.
    pub fn kernel(
        &self,
        name: &str,
        [outputs, targets]: [usize; 2],
        labels: bool,
        weighted: bool,
    ) -> Result<String> {
        self.check_length()?;
        let Written { lines, results, .. } = code::write(|| self.written(outputs));
        let mut load = String::new();
        for column in &self.columns {
            let column = *column as usize;
            let from = match column {
                c if c < outputs => format!("z[{c}]"),
                c if c < outputs + targets && labels => "targets[at]".to_string(),
                c if c < outputs + targets => format!("targets[at * {targets} + {}]", c - outputs),
                _ => "(weights ? weights[quotient(at, positions)] : 1.0f)".to_string(),
            };
            let _ = writeln!(load, "const double c{column} = (double){from};");
        }
        for parameter in &self.weights {
            let _ = writeln!(
                load,
                "const double w{parameter} = (double)own[chain * own_chain + {parameter}];"
            );
        }
        let (value, gradients) = results.split_at(1);
        let (moved, own) = gradients.split_at(outputs);
        let mut store = String::new();
        for (k, slope) in moved.iter().enumerate() {
            let _ = writeln!(
                store,
                "delta[at * {outputs} + {k}] = (float)(share * {slope});"
            );
        }
        for (k, slope) in own.iter().enumerate() {
            let _ = writeln!(store, "slopes[at * {} + {k}] = share * {slope};", own.len());
        }
        // A loss of data alone knows no classes.
        let wrong = match labels && outputs > 1 && self.moving > 0 {
            true => format!("targets[at] >= {outputs} || argmax(z, {outputs}) != (int)targets[at]"),
            false => "0".into(),
        };
        let unused = match (weighted, self.weights.is_empty()) {
            (true, false) => "",
            (false, false) => "(void)weights;",
            (true, true) => "(void)own; (void)own_chain; (void)slopes;",
            (false, true) => "(void)weights; (void)own; (void)own_chain; (void)slopes;",
        };
        let kind = if labels { "Label" } else { "float" };
        // nvrtc warns of what nobody reads.
        let z = match load.contains("z[") || wrong.contains("(z,") {
            true => format!("const float *z = outputs + at * {outputs};\n"),
            false => "(void)outputs;\n".to_string(),
        };
        Ok(format!(
            "extern \"C\" __global__ void {name}(const float *outputs, int chains, int n, int positions, const {kind} *targets, const float *weights, \
             const float *own, long long own_chain, float *delta, double *loss, unsigned *wrong, double *slopes) {{\n\
             const long long i = THREAD;\n\
             if (i >= n) return;\n\
             const double share = 1.0 / (double)positions;\n{unused}\n\
             for_each_chain(chain, chains) {{\n\
             const long long at = (long long)chain * n + i;\n\
             {z}{load}{lines}\
             loss[at] = {};\n\
             wrong[at] = {wrong};\n\
             if (delta) {{\n{store}}}\n}} }}\n",
            value[0]
        ))
    }

    /// A kernel of an energy of parameters that is a sum of n terms. Each is one of up to three columns, which are parameters; what does not depend on
    /// columns reads all parameters.
    ///
    /// Parameters: the parameters [C, dim], dim, C, n; where each column begins, and how far it is to that of the next term, 0 or 1; factors `[C]`, the
    /// gradient [C, dim] (null if none is wanted), to which the slopes times the factor are added, but those of columns that all terms have in common;
    /// and sums [3, C, parts]: of the terms, and of those slopes of columns 1 and 2. x: parts.
    ///
    /// # Errors
    /// If the formula is too long.
    pub fn term_kernel(&self, name: &str) -> Result<String> {
        self.check_length()?;
        let Written { lines, results, .. } = code::write(|| self.written(COLUMNS));
        let mut load = String::new();
        for column in &self.columns {
            let _ = writeln!(
                load,
                "const double c{column} = (double)w[at{column} + i * step{column}];"
            );
        }
        for parameter in &self.weights {
            let _ = writeln!(load, "const double w{parameter} = (double)w[{parameter}];");
        }
        let (moved, own) = results[1..].split_at(COLUMNS);
        let mut store = String::new();
        for column in &self.columns {
            let slope = format!("factor * {}", moved[*column as usize]);
            let _ = match column {
                0 => writeln!(store, "g[at0 + i * step0] += (float)({slope});"),
                k => writeln!(
                    store,
                    "if (step{k}) g[at{k} + i * step{k}] += (float)({slope}); else sum{k} += {slope};"
                ),
            };
        }
        for parameter in &self.weights {
            let slope = &own[*parameter as usize];
            let _ = writeln!(store, "g[{parameter}] += (float)(factor * {slope});");
        }
        Ok(format!(
            "extern \"C\" __global__ void {name}(const float *params, long long dim, int chains, long long n, \
             long long at0, int step0, long long at1, int step1, long long at2, int step2, \
             const double *factors, float *gradient, double *sums, int parts) {{\n\
             const long long part = THREAD;\n\
             if (part >= parts) return;\n\
             (void)at0; (void)step0; (void)at1; (void)step1; (void)at2; (void)step2;\n\
             for_each_chain(chain, chains) {{\n\
             const float *w = params + chain * dim;\n\
             const double factor = factors[chain];\n\
             double sum0 = 0.0, sum1 = 0.0, sum2 = 0.0;\n\
             for (long long i = part; i < n; i += parts) {{\n{load}{lines}\
             sum0 += {};\n\
             if (gradient) {{\n\
             float *g = gradient + chain * dim;\n(void)g; (void)factor;\n{store}}}\n}}\n\
             const long long own = (long long)chain * parts + part, all = (long long)chains * parts;\n\
             sums[own] = sum0; sums[all + own] = sum1; sums[2 * all + own] = sum2;\n}} }}\n",
            results[0]
        ))
    }

    fn check_length(&self) -> Result<()> {
        let steps = self.shared.steps.len() + self.rows.steps.len();
        ensure!(
            steps <= MOST,
            "its formula has {steps} operations, more than the {MOST} that a device compiles"
        );
        Ok(())
    }

    /// The value, the derivatives with respect to the first `outputs` columns, and those with respect to the parameters.
    fn written(&self, outputs: usize) -> Vec<Number> {
        let mut shared: Vec<Number> = self.constants.iter().map(|c| Number::of(*c)).collect();
        let names = self.weights.iter();
        shared.extend(names.map(|i| Number::variable(format!("w{i}"))));
        forward(&self.shared, &mut shared);
        let mut rows: Vec<Number> = self.carried.iter().map(|i| shared[*i as usize]).collect();
        let names = self.columns.iter();
        rows.extend(names.map(|i| Number::variable(format!("c{i}"))));
        forward(&self.rows, &mut rows);
        let alone = self.rows.given == 0;
        let line = if alone { &shared } else { &rows };
        let value = line[self.output as usize];
        let mut of_rows = vec![None; rows.len()];
        let mut of_shared = vec![None; shared.len()];
        let seed = if alone { &mut of_shared } else { &mut of_rows };
        seed[self.output as usize] = Some(Number::of(1.0));
        backward(&self.rows, &rows, &mut of_rows);
        for (i, slope) in self.carried.iter().zip(&of_rows) {
            let sum: &mut Option<Number> = &mut of_shared[*i as usize];
            *sum = match (*sum, *slope) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            };
        }
        backward(&self.shared, &shared, &mut of_shared);
        let mut out = vec![value];
        let zero = Number::of(0.0);
        for column in 0..outputs as u32 {
            let found = self.columns.iter().position(|c| *c == column);
            let slope = found.and_then(|k| of_rows[self.carried.len() + k]);
            out.push(slope.unwrap_or(zero));
        }
        for parameter in 0..self.parameters as u32 {
            let found = self.weights.iter().position(|w| *w == parameter);
            let slope = found.and_then(|k| of_shared[self.constants.len() + k]);
            out.push(slope.unwrap_or(zero));
        }
        out
    }
}
