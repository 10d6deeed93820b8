//! Closures that branch on symbols: called once for each way through them, and put together where the ways part.

use crate::error::Result;
use crate::kernels::tensor::{Binary, Tensor};
use anyhow::{Error, anyhow, ensure};
use std::cell::RefCell;

/// How many ways through a closure are followed, and how many decisions along one.
const MOST: usize = 64;

const TOO_MANY: &str = "parameters are compared in more than 64 ways: every comparison doubles them, and in a loop every round; use choose, max and min";

/// A call that is followed.
struct Way {
    /// What its first comparisons of symbols are taken for; later ones are taken for true.
    answers: Vec<bool>,
    /// The conditions that its comparisons of symbols asked for, in order: tensors of one number, 1 or 0.
    conditions: Vec<Tensor>,
}

thread_local! {
    static WAY: RefCell<Option<Way>> = const { RefCell::new(None) };
}

/// Whether a comparison of symbols holds on the way that is followed.
///
/// # Errors
/// If none is followed, there are too many decisions, or more than one number is compared.
pub(super) fn decide(name: &str, comparison: Binary, a: &Tensor, b: &Tensor) -> Result<bool> {
    let condition = a.binary(comparison, b)?;
    WAY.with_borrow_mut(|way| {
        let Some(way) = way else {
            return Ok(condition.item(&format!("the comparison {name}"))? != 0.0);
        };
        let shape = condition.shape()?;
        ensure!(
            !shape.rows && shape.rank() == 0,
            "the comparison {name} needs single numbers, but of what is traced this has shape {shape}; for each element use lt, le, gt, ge, eq or ne, and choose"
        );
        ensure!(way.conditions.len() < MOST, TOO_MANY);
        let answer = way.answers.get(way.conditions.len()).copied();
        way.conditions.push(condition);
        Ok(answer.unwrap_or(true))
    })
}

/// The result of a closure of symbols over all ways through it. `call` calls the closure, once for each way; `join(condition, a, b)` is the result that is a
/// where the condition holds and b where it does not; `fail` turns an error of this module into one of the caller's.
///
/// # Errors
/// Those of `call` and `join`, and more than 64 ways.
pub(super) fn follow<T, E>(
    call: impl Fn() -> std::result::Result<T, E>,
    join: impl Fn(&Tensor, T, T) -> Result<T>,
    fail: impl Fn(Error) -> E,
) -> std::result::Result<T, E> {
    let mut ways = 0;
    follow_from(&mut ways, Vec::new(), &(call, join, fail))
}

/// The ways that begin with these answers.
fn follow_from<T, E>(
    ways: &mut usize,
    answers: Vec<bool>,
    how: &(
        impl Fn() -> std::result::Result<T, E>,
        impl Fn(&Tensor, T, T) -> Result<T>,
        impl Fn(Error) -> E,
    ),
) -> std::result::Result<T, E> {
    let (call, join, fail) = how;
    *ways += 1;
    if *ways > MOST {
        return Err(fail(anyhow!(TOO_MANY)));
    }
    let outer = WAY.replace(Some(Way {
        answers: answers.clone(),
        conditions: Vec::new(),
    }));
    let result = call();
    let way = WAY.replace(outer);
    let mut result = result?;
    let conditions = way.map_or(Vec::new(), |w| w.conditions);
    for at in (answers.len()..conditions.len()).rev() {
        let mut other = answers.clone();
        other.resize(at, true);
        other.push(false);
        let otherwise = follow_from(ways, other, how)?;
        result = join(&conditions[at], result, otherwise).map_err(fail)?;
    }
    Ok(result)
}
