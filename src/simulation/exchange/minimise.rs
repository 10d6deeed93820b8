//! Rough minimisation of an energy, so that a chain does not start where the gradient is extremely large.

use crate::error::Result;

/// How long, and how far at first, a minimisation goes (Baldock 2019, algorithm 2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoughMinimisation {
    /// Most velocity-Verlet steps.
    pub steps: u64,
    /// The first time step, in parameters over sqrt(energy): all masses are 1.
    pub dt: f64,
    /// Stop when no component of the gradient is larger, in energy per parameter; 0 to make all steps.
    pub gradient: f64,
}

/// Where a minimisation ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Minimised {
    /// The energy there, the lowest it saw.
    pub energy: f64,
    /// The largest component of the gradient there, in absolute value.
    pub largest_gradient: f64,
    /// The time step it ended with.
    pub dt: f64,
    /// Steps made, uphill ones included.
    pub steps: u64,
    /// How many of them did not go up.
    pub downhill: u64,
}

/// The rule of one minimisation, for who moves many parameter vectors at once: the lowest energy so far and the time step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Descent {
    /// The lowest energy so far.
    pub energy: f64,
    /// The time step.
    pub dt: f64,
}

impl Descent {
    /// What follows from `energy` after a step: true if it did not go up, and then it goes on with its momenta and a time
    /// step 1.05 times as long; false if it did, and then p = 0, back to where it was before, and 0.95 times as long.
    ///
    /// An energy that is NaN or infinite is up. Two things are not as printed. The paper takes an equal energy for up; but a
    /// time step so short that no f32 parameter changes leaves the energy equal, and would only get shorter for ever. And it
    /// prints dt + 0.05 for the longer step, which has a unit and is anything but the "slowly increase" of its comment where
    /// dt is 1e-4.
    pub fn after(&mut self, energy: f64) -> bool {
        let downhill = energy <= self.energy;
        if downhill {
            self.energy = energy;
        }
        self.dt *= if downhill { 1.05 } else { 0.95 };
        downhill
    }
}

/// Move `w` downhill by velocity-Verlet steps that are taken back when they go up (Baldock 2019, algorithm 2).
///
/// `energy_and_gradient` gives the energy at its first argument and writes the gradient there to its second. Since a step
/// that goes up is undone, `w` ends at the lowest energy seen. Deterministic.
///
/// # Errors
/// If `dt` is not above 0 and finite, the energy at the start is not finite (to go down needs a number to start from), or
/// those of `energy_and_gradient`; `w` is then the best so far.
pub fn rough_minimise(
    w: &mut [f32],
    settings: &RoughMinimisation,
    mut energy_and_gradient: impl FnMut(&[f32], &mut [f32]) -> Result<f64>,
) -> Result<Minimised> {
    let dt = settings.dt;
    anyhow::ensure!(
        dt.is_finite() && dt > 0.0,
        "the time step of the minimisation is {dt}, but it is finite and above 0"
    );
    let mut gradient = vec![0.0; w.len()];
    let energy = energy_and_gradient(w, &mut gradient)?;
    anyhow::ensure!(
        energy.is_finite(),
        "the energy where the minimisation starts is {energy}; start inside the prior's support, or from a narrower draw"
    );
    let mut descent = Descent { energy, dt };
    let mut momenta = vec![0.0; w.len()];
    let (mut trial, mut new_gradient) = (w.to_vec(), gradient.clone());
    let (mut steps, mut downhill) = (0, 0);
    while steps < settings.steps && largest(&gradient) > settings.gradient {
        crate::error::go_on("a minimisation")?;
        let dt = descent.dt as f32;
        for (p, g) in momenta.iter_mut().zip(&gradient) {
            *p -= 0.5 * dt * g;
        }
        for ((t, w), p) in trial.iter_mut().zip(&*w).zip(&momenta) {
            *t = w + dt * p;
        }
        let energy = energy_and_gradient(&trial, &mut new_gradient)?;
        steps += 1;
        if descent.after(energy) {
            downhill += 1;
            for (p, g) in momenta.iter_mut().zip(&new_gradient) {
                *p -= 0.5 * dt * g;
            }
            w.copy_from_slice(&trial);
            // The gradient where it now is; the old one is overwritten by the next step.
            std::mem::swap(&mut gradient, &mut new_gradient);
        } else {
            momenta.fill(0.0);
        }
    }
    Ok(Minimised {
        energy: descent.energy,
        largest_gradient: largest(&gradient),
        dt: descent.dt,
        steps,
        downhill,
    })
}

/// The largest absolute value; infinite if one is NaN, so that nothing takes it for small.
fn largest(gradient: &[f32]) -> f64 {
    gradient.iter().fold(0.0, |most: f64, g| {
        let size = f64::from(g.abs());
        if size.is_nan() {
            f64::INFINITY
        } else {
            most.max(size)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rosenbrock's valley, (1 - a)² + 100 (b - a²)², lowest at (1, 1).
    fn valley(w: &[f32], g: &mut [f32]) -> Result<f64> {
        let (a, b) = (f64::from(w[0]), f64::from(w[1]));
        let across = b - a * a;
        g[0] = (-2.0 * (1.0 - a) - 400.0 * a * across) as f32;
        g[1] = (200.0 * across) as f32;
        Ok((1.0 - a).powi(2) + 100.0 * across.powi(2))
    }

    fn settings(steps: u64, dt: f64, gradient: f64) -> RoughMinimisation {
        RoughMinimisation {
            steps,
            dt,
            gradient,
        }
    }

    /// Half of w·κw with stiffness κ from 0.1 to 10.
    fn quadratic(w: &[f32], g: &mut [f32]) -> Result<f64> {
        let mut energy = 0.0;
        for (i, (w, g)) in w.iter().zip(g).enumerate() {
            let stiffness = 10f64.powf(0.5 * i as f64 - 1.0);
            *g = (stiffness * f64::from(*w)) as f32;
            energy += 0.5 * stiffness * f64::from(*w) * f64::from(*w);
        }
        Ok(energy)
    }

    #[test]
    fn it_finds_the_minimum_from_any_first_time_step() {
        // Steps of 1e-9 at first move nothing in f32.
        for dt in [1e-9, 1e-3, 1.0, 1e6] {
            let mut w = [3.0; 5];
            let end = rough_minimise(&mut w, &settings(20_000, dt, 1e-4), quadratic).unwrap();
            assert!(
                end.largest_gradient <= 1e-4 && end.steps < 20_000,
                "{end:?}"
            );
            // Rough: half the steps go up and stop it, so that it creeps along the valley.
            let mut w = [-1.2, 1.0];
            let end = rough_minimise(&mut w, &settings(20_000, dt, 0.0), valley).unwrap();
            assert!(
                end.energy < 1e-3 && (w[0] - 1.0).abs() < 0.05,
                "{w:?} {end:?}"
            );
        }
    }

    /// The algorithm line by line, against which the same numbers must come out: state saved before each step, gradient
    /// evaluated anew.
    #[test]
    fn it_is_the_algorithm_of_the_paper() {
        let (mut w, mut p, mut dt) = ([-1.2f32, 1.0], [0.0f32; 2], 0.01f64);
        for n in 0..60 {
            let mut ours = [-1.2, 1.0];
            let end = rough_minimise(&mut ours, &settings(n, 0.01, 0.0), valley).unwrap();
            assert_eq!((ours, end.dt), (w, dt), "after {n} steps");
            let (saved, mut g) = (w, [0.0; 2]);
            let before = valley(&w, &mut g).unwrap();
            let h = dt as f32;
            for i in 0..2 {
                p[i] -= 0.5 * h * g[i];
                w[i] += h * p[i];
            }
            let after = valley(&w, &mut g).unwrap();
            (0..2).for_each(|i| p[i] -= 0.5 * h * g[i]);
            if after <= before {
                dt *= 1.05;
            } else {
                (p, w, dt) = ([0.0; 2], saved, dt * 0.95);
            }
        }
        assert!(
            dt < 0.01 * 1.05f64.powi(59),
            "no step went up: nothing was tested"
        );
    }

    #[test]
    fn a_wall_or_a_nan_is_uphill_and_the_start_must_be_a_number() {
        let mut seen = f64::INFINITY;
        // A wall at w < 1, and the energy falls towards it.
        let wall = |w: &[f32], g: &mut [f32]| {
            g[0] = if w[0] < 1.0 { f32::NAN } else { 2.0 * w[0] };
            let energy = f64::from(w[0]).powi(2);
            let energy = if w[0] < 1.0 { f64::NAN } else { energy };
            seen = seen.min(energy);
            Ok(energy)
        };
        let mut w = [5.0];
        let end = rough_minimise(&mut w, &settings(500, 0.1, 0.0), wall).unwrap();
        assert!((1.0..1.1).contains(&w[0]) && end.energy == f64::from(w[0]).powi(2));
        assert_eq!(end.energy, seen);
        for start in [f64::NAN, f64::INFINITY] {
            let e = rough_minimise(&mut [0.0], &settings(5, 0.1, 0.0), |_, _| Ok(start));
            assert!(e.unwrap_err().to_string().contains("starts"));
        }
        assert!(rough_minimise(&mut [0.0], &settings(5, 0.0, 0.0), quadratic).is_err());
    }
}
