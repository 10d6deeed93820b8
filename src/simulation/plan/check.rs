//! What a plan amounts to: its traces, its memory, its description; and what makes it impossible.

use super::{Plan, Starts};
use crate::error::Result;
use crate::memory;
use crate::observable::First;
use crate::sampler::ConfiguredSampler;
use crate::schedule::Schedule;
use crate::simulation::keep::Keep;
use crate::simulation::prediction::Predictor;
use crate::simulation::run::{Column, Group, REPLICA, RunInfo, TEMPERED_ENERGY};
use crate::simulation::session::Session;
use crate::simulation::temper::Temper;
use crate::target::Target;
use crc32fast::Hasher;

impl Plan {
    pub(in crate::simulation) fn columns(
        &self,
        target: &Target,
        sampler: &ConfiguredSampler,
        predictors: &[Predictor],
        starts: &Starts,
    ) -> Result<Vec<Column>> {
        let mut columns: Vec<Column> = Vec::new();
        let first = First {
            target,
            start: &|| starts.of(0, target),
            step: (1..=self.steps).find(|s| self.every.fires(*s)).unwrap_or(1),
            temperature: self.temperatures.first().map_or(1.0, |t| t.at(0)),
            info: &sampler.info,
        };
        for o in &self.observables {
            o.check(target)?;
            o.begin(&first)?;
            columns.push(Column {
                name: o.name(),
                group: Group::Posterior,
                components: o.components(target),
            });
        }
        columns.extend(predictors.iter().flat_map(Predictor::columns));
        if self.exchange.is_some() {
            columns.extend([TEMPERED_ENERGY, REPLICA].map(|name| Column {
                name: name.into(),
                group: Group::SampleStats,
                components: None,
            }));
        }
        let stats = sampler.columns(target).into_iter();
        columns.extend(stats.map(|(report, tensors)| Column {
            name: report.0.into(),
            group: Group::SampleStats,
            components: tensors.map(|names| ("parameter_tensor".into(), names)),
        }));
        let dims: Vec<_> = columns
            .iter()
            .filter_map(|c| c.components.as_ref().map(|(d, _)| d.as_str()))
            .collect();
        for (i, c) in columns.iter().enumerate() {
            let name = c.name.as_str();
            anyhow::ensure!(
                !columns[..i].iter().any(|d| d.name == name)
                    && !["chain", "draw", "temperature"].contains(&name)
                    && !dims.contains(&name),
                "{}: two traces would be called '{}'; name one with observable::named(\"name\", …)",
                self.kind,
                c.name
            );
        }
        Ok(columns)
    }

    /// Bytes that the run will need; `width` numbers per record, so many numbers of predictions per chain.
    pub(in crate::simulation) fn bytes(
        &self,
        target: &Target,
        sampler: &ConfiguredSampler,
        session: &Session,
        (width, predictions): (usize, usize),
    ) -> u128 {
        let (chains, n) = (
            (self.temperatures.len() * self.chains) as u128,
            target.dim() as u128,
        );
        let vectors = 1 + sampler.vectors.len() as u128;
        let draws = self.every.count(self.steps) as u128;
        // Per thread: gradient, a shard's gradient and the sampler's vectors of a step; on a device or side by side per chain.
        let together = session.device.1.is_some() || sampler.couples();
        let sets = if together {
            chains
        } else {
            session.threads as u128
        };
        let scratch = sets * (2 + sampler.scratch() as u128) * n;
        let predictions = 8 * chains * predictions as u128;
        // At a swap a vector of every chain is told to all, in double precision and twice.
        let swapped = match &self.exchange {
            Some(_) if !sampler.of_temperature().vectors.is_empty() => 16 * chains * n,
            _ => 0,
        };
        // Records are held twice while they are written.
        swapped
            + 4 * (chains * n * vectors + scratch)
            + 16 * chains * draws * width as u128
            + predictions
    }

    /// Fail early if the run cannot fit into memory; otherwise say how much it needs.
    pub(in crate::simulation) fn check_size(
        &self,
        target: &Target,
        sampler: &ConfiguredSampler,
        session: &Session,
        sizes: (usize, usize),
    ) -> Result<()> {
        let what = format!(
            "'{}' ({} chains of {} parameters, {} records each)",
            self.name,
            self.temperatures.len() * self.chains,
            target.dim(),
            self.every.count(self.steps)
        );
        let bytes = self.bytes(target, sampler, session, sizes);
        memory::check(bytes, &what)?;
        if !session.quiet && bytes > 1 << 28 {
            let gib = memory::gib(bytes);
            session
                .console
                .remark(&format!("{what}: about {gib:.1} GiB of memory"));
        }
        Ok(())
    }

    /// Fail if a record after burn-in would be of a state that is no sample.
    fn check_samples(&self, sampler: &ConfiguredSampler) -> Result<()> {
        let Some(sampling) = sampler.sampling() else {
            return Ok(());
        };
        let records = (self.burn_in..self.steps).filter(|s| self.every.fires(s + 1));
        let none = records.filter(|s| !sampler.samples(*s)).count();
        let all = self.every.count(self.steps) - self.every.count(self.burn_in);
        anyhow::ensure!(
            none == 0,
            "{}: {none} of {all} records after burn-in ({}) fall where sampler::{} explores or settles, and would not be samples; use every: trigger::cyclical({}, {}, …)",
            self.kind,
            self.every,
            sampler.name(),
            sampling.cycle,
            sampling.from as f64 / sampling.cycle as f64
        );
        Ok(())
    }

    /// A checksum of what defines the run and is not in words: data, starting points, triggers.
    fn fingerprint(&self, target: &Target, law: &Hasher, starts: &Starts) -> String {
        let mut hash = Hasher::new();
        hash.update(
            format!("{:?} {:?} {:?}", self.every, self.region, self.temperatures).as_bytes(),
        );
        if let Some(x) = &self.exchange {
            hash.update(format!("{x:?}").as_bytes());
        }
        if self.temper != Temper::Energy {
            hash.update(format!("{:?}", self.temper).as_bytes());
        }
        if let Some(keep) = &self.keep {
            // How many there will be is not known where the run goes on until it is done.
            let (steps, trigger) = match self.course {
                Some(_) => (&keep.steps[..1], format!("{:?}", keep.trigger)),
                None => (&keep.steps[..], String::new()),
            };
            let (tensors, half) = (&keep.tensors, keep.half);
            let keep = format!("Keep {{ steps: {steps:?}, tensors: {tensors:?}, half: {half} }}");
            hash.update(format!("{keep}{trigger}").as_bytes());
        }
        hash.combine(law);
        for c in 0..starts.count {
            let w = starts.of(c, target);
            w.iter().for_each(|x| hash.update(&x.to_le_bytes()));
        }
        format!("{:08x}", hash.finalize())
    }

    /// What is kept of it; with a fingerprint if it is to be known again, by its `starts`.
    pub(in crate::simulation) fn info(
        &self,
        target: &Target,
        sampler: &ConfiguredSampler,
        columns: Vec<Column>,
        starts: Option<&Starts>,
        session: &Session,
    ) -> Result<RunInfo> {
        for t in &self.temperatures {
            anyhow::ensure!(
                t.at(self.steps) > 0.0,
                "{}: the temperature schedule reaches {} at the last step, but must stay > 0",
                self.kind,
                t.at(self.steps)
            );
        }
        let warm_draws = self.every.count(self.burn_in);
        let all = self.every.count(self.steps);
        anyhow::ensure!(
            all > warm_draws,
            "{}: no record is made after burn-in (records {}, {} steps, {} of them burn-in); lower 'every' or take more steps",
            self.kind,
            self.every,
            self.steps,
            self.burn_in
        );
        self.check_samples(sampler)?;
        let law = starts.map(|_| target.hashed());
        let fingerprint = starts.zip(law.as_ref());
        let fingerprint = fingerprint.map(|(s, law)| self.fingerprint(target, law, s));
        Ok(RunInfo {
            name: self.name.clone(),
            kind: self.kind.into(),
            target: target.describe(),
            sampler: sampler.name().into(),
            options: sampler.options.clone(),
            notes: sampler.notes(self.burn_in),
            temperatures: self.temperatures.iter().map(|t| t.at(self.steps)).collect(),
            schedules: self
                .temperatures
                .iter()
                .filter(|t| t.constant().is_none())
                .map(Schedule::to_string)
                .collect(),
            chains: self.chains,
            steps: self.steps,
            burn_in: self.burn_in,
            course: self.course,
            every: self.every.to_string(),
            warm_draws,
            draws: all - warm_draws,
            columns,
            n: target.examples(),
            m: sampler.batch(),
            scale: target.scale(),
            parameters: target.dim(),
            tensors: target
                .layout()
                .tensors()
                .iter()
                .map(|t| (t.name.clone(), t.shape.clone()))
                .collect(),
            coupled: sampler.couples(),
            ladder: self.exchange.as_ref().map(|x| x.describe(self.temper)),
            temper: Some(self.temper),
            prior_tempered: self.temper.includes_prior() && !target.prior().is_flat(),
            walls: target.prior().has_walls(),
            exact: sampler.is_exact(),
            start_spread: starts.and_then(|s| s.spread(target)),
            steady: self
                .temperatures
                .iter()
                .all(|t| t.at(self.burn_in) == t.at(self.steps)),
            fingerprint: fingerprint.unwrap_or_default(),
            target_checksum: law.map(Hasher::finalize),
            data: target
                .potential()
                .network()
                .map_or(Vec::new(), |n| n.dataset().provenance.clone()),
            kept: self.keep.as_ref().map(Keep::info),
            thinned: 0,
            closures: self
                .observables
                .iter()
                .filter_map(|o| Some((o.name(), o.definition()?)))
                .collect(),
            seed: self.seed,
            quick: self.full_steps.is_some(),
            device: session.device.0.clone(),
            places: self.places(target, session)?,
        })
    }
}
