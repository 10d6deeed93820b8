//! The limits of a script: steps, print, sizes of values, memory.

use super::report::{OUT_OF_MEMORY, TOO_MANY_STEPS, TOO_MUCH_PRINTED};
use crate::memory;
use crate::simulation::session::Session;
use rhai::{Dynamic, Engine};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Steps that an untrusted script may make without `--max-steps`.
const MOST_STEPS: u64 = 1_000_000_000;

/// Bytes that an untrusted script may print.
const MOST_PRINTED: u64 = 16 << 20;

/// The steps that a script has made and the bytes that it has printed, on all threads; counted where they are limited. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Spent(Arc<[AtomicU64; 2]>);

impl Spent {
    /// Count so many bytes of print.
    pub fn say(&self, bytes: usize) {
        self.0[1].fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Count a step. What ends the script, whatever it catches: a limit of its own, or hardly any memory, where it was filled little by little; large
    /// things that are asked for at once are checked where they are made.
    pub fn ends(&self, session: &Session) -> Option<Dynamic> {
        let [steps, said] = &*self.0;
        let most = session
            .most_steps
            .or(session.untrusted.then_some(MOST_STEPS));
        let why = match () {
            _ if memory::is_short() => OUT_OF_MEMORY,
            _ if most.is_some_and(|n| steps.fetch_add(1, Ordering::Relaxed) > n) => TOO_MANY_STEPS,
            _ if session.untrusted && said.load(Ordering::Relaxed) > MOST_PRINTED => {
                TOO_MUCH_PRINTED
            }
            _ => return None,
        };
        Some(Dynamic::from(why))
    }
}

/// Limit the sizes of the values of an untrusted script. Others have no such limits: with one, every operation on an array walks through all of it.
pub(super) fn set(engine: &mut Engine) {
    engine.set_max_string_size(16 << 20);
    engine.set_max_array_size(1_000_000);
    engine.set_max_map_size(100_000);
    engine.set_max_variables(10_000);
    engine.set_max_functions(10_000);
}
