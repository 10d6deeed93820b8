//! How far a finite step is from the law, as each sampler states it.

/// How the law that a sampler samples is off at a finite step size, the option that [`ConfiguredSampler::step_size`](super::ConfiguredSampler::step_size) names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accuracy {
    /// Not at all: every move is accepted or rejected by the energy over all examples.
    Exact,
    /// Means are off by this power of the step size, as it goes to 0.
    Order(i32),
    /// By no power that is known; why, in words.
    Unknown(&'static str),
}
