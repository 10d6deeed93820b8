//! The state of a run as tensors of a checkpoint, and back.

use super::State;
use crate::error::Result;
use crate::simulation::exchange::Replica;
use crate::store::archive::{Archive, Kept};

impl Kept for State {
    /// Nothing is copied but what is small: the state may fill most of the memory.
    fn keep<'a>(&'a mut self, archive: &mut Archive<'a>) -> Result<()> {
        let c = self.chains;
        archive.rows("params", &mut self.params, c)?;
        for (name, v) in self.vector_names.iter().zip(&mut self.vectors) {
            archive.rows(&format!("vector.{name}"), v, c)?;
        }
        for (name, v) in [
            ("scalars", &mut self.scalars),
            ("info_sums", &mut self.info_sums),
            ("predictions", &mut self.predictions),
        ] {
            archive.rows(name, v, c)?;
        }
        archive.rows("steps", &mut self.steps, c)?;
        archive.rows("info_counts", &mut self.info_counts, c)?;
        for (i, r) in self.records.iter_mut().enumerate() {
            archive.grows(&format!("records.{i}"), r)?;
        }
        let Some(ladders) = &mut self.ladders else {
            return Ok(());
        };
        ladders.keep(archive)?;
        let replicas = &mut self.replicas;
        archive.made(
            "ladders.replicas.whole",
            replicas,
            |all: &Vec<Replica>| {
                let flags = |r: &Replica| [r.energy.0, r.redrawn.into(), r.moved.into()];
                all.iter().flat_map(flags).collect()
            },
            |all, found: Vec<u64>| {
                check(found.len(), 3 * c)?;
                for (r, [step, redrawn, moved]) in all.iter_mut().zip(found.as_chunks().0) {
                    r.energy.0 = *step;
                    (r.redrawn, r.moved) = (*redrawn != 0, *moved != 0);
                }
                Ok(())
            },
        )?;
        archive.made(
            "ladders.replicas.real",
            replicas,
            |all: &Vec<Replica>| all.iter().flat_map(|r| [r.energy.1, r.held]).collect(),
            |all, found: Vec<f64>| {
                check(found.len(), 2 * c)?;
                for (r, [energy, held]) in all.iter_mut().zip(found.as_chunks().0) {
                    (r.energy.1, r.held) = (*energy, *held);
                }
                Ok(())
            },
        )?;
        for (replica, chain) in replicas.iter_mut().zip(&self.index) {
            replica.rung = ladders.rung_of(*chain);
        }
        Ok(())
    }
}

fn check(found: usize, wanted: usize) -> Result<()> {
    anyhow::ensure!(
        found == wanted,
        "the checkpoint has other replicas than the run"
    );
    Ok(())
}
