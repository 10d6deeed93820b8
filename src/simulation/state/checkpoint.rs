//! The state of a run as tensors of a checkpoint, and back.

use super::State;
use crate::error::Result;
use crate::sampler::Configured;
use crate::simulation::exchange::{Ladders, Numbers, Replica};
use crate::store::checkpoint::{DataRef, TensorData, TensorRef, Tensors};
use std::collections::HashMap;

/// What the tensors of ladders are called.
const LADDERS: &str = "ladders";

impl State {
    /// Everything, as tensors of a checkpoint; nothing is copied, the state may fill most of the memory.
    ///
    /// `ladders` is what [`Ladders::to_numbers`] gave.
    pub fn tensors<'a>(
        &'a self,
        sampler: &Configured,
        ladders: &'a [(String, Numbers)],
    ) -> Vec<(String, TensorRef<'a>)> {
        let c = self.chains;
        let per = |len: usize| len / c.max(1);
        let rows = |name: &str, width: usize, data| {
            let shape = vec![c, width];
            (name.to_string(), TensorRef { shape, data })
        };
        let mut out = vec![rows("params", self.dim, DataRef::F32(&self.params))];
        for (name, v) in sampler.vectors.iter().zip(&self.vectors) {
            out.push(rows(&format!("vector.{name}"), self.dim, DataRef::F32(v)));
        }
        for (name, v) in [
            ("scalars", &self.scalars),
            ("info_sums", &self.info_sums),
            ("predictions", &self.predictions),
        ] {
            out.push(rows(name, per(v.len()), DataRef::F64(v)));
        }
        for (name, v) in [("steps", &self.steps), ("info_counts", &self.info_counts)] {
            out.push(rows(name, 1, DataRef::U64(v)));
        }
        for (i, r) in self.records.iter().enumerate() {
            let (shape, data) = (vec![r.len()], DataRef::F64(r));
            out.push((format!("records.{i}"), TensorRef { shape, data }));
        }
        for (name, numbers) in ladders {
            let parts = [
                ("whole", numbers.whole.len(), DataRef::U64(&numbers.whole)),
                ("real", numbers.real.len(), DataRef::F64(&numbers.real)),
            ];
            for (kind, len, data) in parts {
                let shape = vec![len];
                out.push((
                    format!("{LADDERS}.{name}.{kind}"),
                    TensorRef { shape, data },
                ));
            }
        }
        out
    }

    /// What is to be kept of ladders and replicas, as [`State::tensors`] takes it.
    pub fn ladder_numbers(&self) -> Vec<(String, Numbers)> {
        let Some(ladders) = &self.ladders else {
            return Vec::new();
        };
        let mut out = ladders.to_numbers();
        let replicas = self.replicas.iter();
        let whole = replicas.clone().flat_map(|r| {
            let flags = [r.redrawn, r.moved].map(u64::from);
            [r.energy.0, flags[0], flags[1]]
        });
        let real = replicas.flat_map(|r| [r.energy.1, r.held]);
        out.push((
            "replicas".into(),
            Numbers {
                whole: whole.collect(),
                real: real.collect(),
            },
        ));
        out
    }

    /// Put ladders and replicas back, from the tensors of a checkpoint.
    fn restore_ladders(&mut self, found: &mut HashMap<String, TensorData>) -> Result<()> {
        let Some(ladders) = &self.ladders else {
            return Ok(());
        };
        let count = ladders.count();
        let ladders = ladders_of(found, count)?;
        let kept = numbers_of(found, "replicas")?;
        anyhow::ensure!(
            kept.whole.len() == 3 * self.chains && kept.real.len() == 2 * self.chains,
            "the checkpoint has other replicas than the run"
        );
        let rows = kept.whole.chunks_exact(3).zip(kept.real.chunks_exact(2));
        for (chain, (whole, real)) in rows.enumerate() {
            self.replicas[chain] = Replica {
                rung: ladders.rung_of(self.index[chain]),
                energy: (whole[0], real[0]),
                held: real[1],
                redrawn: whole[1] != 0,
                moved: whole[2] != 0,
            };
        }
        self.ladders = Some(ladders);
        Ok(())
    }

    /// Put back what [`State::tensors`] gave; an error names what does not fit.
    pub fn restore(&mut self, tensors: Tensors, sampler: &Configured) -> Result<()> {
        let mut found: HashMap<String, TensorData> =
            tensors.into_iter().map(|(n, t)| (n, t.data)).collect();
        self.restore_ladders(&mut found)?;
        let mut take = |name: &str| {
            found
                .remove(name)
                .ok_or_else(|| anyhow::anyhow!("the checkpoint has no tensor '{name}'"))
        };
        fn fill<T>(to: &mut Vec<T>, from: Vec<T>, name: &str) -> Result<()> {
            anyhow::ensure!(
                to.len() == from.len(),
                "the checkpoint's '{name}' has {} numbers, {} are needed",
                from.len(),
                to.len()
            );
            *to = from;
            Ok(())
        }
        let wrong = |name: &str| {
            anyhow::anyhow!("the checkpoint's '{name}' has another type than it should")
        };
        let mut floats = |name: &str, to: &mut Vec<f32>| match take(name)? {
            TensorData::F32(x) => fill(to, x, name),
            _ => Err(wrong(name)),
        };
        floats("params", &mut self.params)?;
        for (name, v) in sampler.vectors.iter().zip(&mut self.vectors) {
            floats(&format!("vector.{name}"), v)?;
        }
        let mut doubles = |name: &str| match take(name)? {
            TensorData::F64(x) => Ok(x),
            _ => Err(wrong(name)),
        };
        fill(&mut self.scalars, doubles("scalars")?, "scalars")?;
        fill(&mut self.info_sums, doubles("info_sums")?, "info_sums")?;
        fill(
            &mut self.predictions,
            doubles("predictions")?,
            "predictions",
        )?;
        for (i, r) in self.records.iter_mut().enumerate() {
            *r = doubles(&format!("records.{i}"))?;
        }
        for (name, to) in [
            ("steps", &mut self.steps),
            ("info_counts", &mut self.info_counts),
        ] {
            match take(name)? {
                TensorData::U64(x) => fill(to, x, name)?,
                _ => return Err(wrong(name)),
            }
        }
        Ok(())
    }
}

/// The numbers of that name among the tensors of a checkpoint, taken out.
fn numbers_of(found: &mut HashMap<String, TensorData>, name: &str) -> Result<Numbers> {
    let mut take = |kind: &str| found.remove(&format!("{LADDERS}.{name}.{kind}"));
    match (take("whole"), take("real")) {
        (Some(TensorData::U64(whole)), Some(TensorData::F64(real))) => Ok(Numbers { whole, real }),
        _ => anyhow::bail!("the checkpoint has no '{name}' of its ladders"),
    }
}

/// The ladders among the tensors of a checkpoint, taken out.
pub fn ladders_of(found: &mut HashMap<String, TensorData>, count: usize) -> Result<Ladders> {
    Ladders::from_numbers(count, |name| numbers_of(found, name))
}
