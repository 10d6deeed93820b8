//! Evidence from draws of known laws: values, error bars and their coverage; MBAR against pymbar's numbers.

mod coverage;
mod density_of_states;
mod exact;
mod synthetic;
mod transition;
