//! Round trips of replicas between the ends of the ladder, and the flow of replicas that came from either end.

use super::Assignment;
use super::numbers::{Numbers, Reader};
use crate::error::Result;

/// Which end of the ladder a replica visited last (Katzgraber et al. 2006).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Label {
    /// None so far.
    None = 0,
    /// The cold end, rung 0: it is on its way up.
    Up = 1,
    /// The hot end, the last rung: it is on its way down.
    Down = 2,
}

/// Labels, round trips and flow of every replica, from where the replicas are after each sweep.
///
/// A **round trip** is cold end → hot end → cold end, counted when the replica is back; a **restart** is hot end → cold
/// end, the second half of it: what brings a fresh state to the coldest rung. Restarts exceed round trips by at most one
/// per replica, the first of a replica that saw the hot end first; their rates are the same, and the same as that of
/// round trips hot → cold → hot (which Syed et al. 2022 count). A visit is where a replica is at the end of a sweep: only
/// there does it make a step at that temperature, so that passing an end within one sweep of random pairs counts for
/// nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundTrips {
    labels: Vec<Label>,
    /// Whether each replica has been at the cold end.
    cold: Vec<bool>,
    round_trips: Vec<u64>,
    restarts: Vec<u64>,
    /// Per rung, how many sweeps ended with a replica there that was labelled up, and down.
    up: Vec<u64>,
    down: Vec<u64>,
}

impl RoundTrips {
    /// Nothing seen but where the replicas are, which labels those at the ends; of at least 2 rungs.
    pub(super) fn new(assignment: &Assignment) -> Self {
        let n = assignment.len();
        let mut out = Self {
            labels: vec![Label::None; n],
            cold: vec![false; n],
            round_trips: vec![0; n],
            restarts: vec![0; n],
            up: vec![0; n],
            down: vec![0; n],
        };
        out.visit_ends(assignment);
        out
    }

    /// Which end each replica visited last.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// Round trips cold → hot → cold of each replica.
    pub fn round_trips(&self) -> &[u64] {
        &self.round_trips
    }

    /// Restarts hot → cold of each replica.
    pub fn restarts(&self) -> &[u64] {
        &self.restarts
    }

    /// f of each rung: among the replicas with a label that were there, the share labelled up (Katzgraber et al. 2006).
    ///
    /// 1 on rung 0, 0 on the last, and linear in the rung between them when all rejections are equal; a steep fall is where
    /// replicas do not get through. NaN for a rung on which no replica with a label has been.
    pub fn flow(&self) -> Vec<f64> {
        let counts = self.up.iter().zip(&self.down);
        counts
            .map(|(up, down)| *up as f64 / (up + down) as f64)
            .collect()
    }

    /// Note where the replicas are after a sweep.
    pub(super) fn add(&mut self, assignment: &Assignment) {
        self.visit_ends(assignment);
        for (rung, replica) in assignment.replica_at().iter().enumerate() {
            match self.labels[*replica] {
                Label::None => {}
                Label::Up => self.up[rung] += 1,
                Label::Down => self.down[rung] += 1,
            }
        }
    }

    fn visit_ends(&mut self, assignment: &Assignment) {
        let replica_at = assignment.replica_at();
        let (cold, hot) = (replica_at[0], replica_at[replica_at.len() - 1]);
        self.labels[hot] = Label::Down;
        if self.labels[cold] == Label::Down {
            self.restarts[cold] += 1;
            self.round_trips[cold] += u64::from(self.cold[cold]);
        }
        self.labels[cold] = Label::Up;
        self.cold[cold] = true;
    }

    pub(super) fn write(&self, out: &mut Numbers) {
        out.whole.extend(self.labels.iter().map(|l| *l as u64));
        out.whole.extend(self.cold.iter().map(|c| u64::from(*c)));
        for counts in [&self.round_trips, &self.restarts, &self.up, &self.down] {
            out.whole.extend(counts);
        }
    }

    pub(super) fn read(reader: &mut Reader, replicas: usize) -> Result<Self> {
        let label = |number: &u64| match number {
            0 => Ok(Label::None),
            1 => Ok(Label::Up),
            2 => Ok(Label::Down),
            other => anyhow::bail!("the checkpoint labels a replica {other}"),
        };
        let labels = reader
            .whole(replicas)?
            .iter()
            .map(label)
            .collect::<Result<_>>()?;
        let cold = reader.whole(replicas)?.iter().map(|c| *c != 0).collect();
        let mut counts = || Ok::<_, anyhow::Error>(reader.whole(replicas)?.to_vec());
        Ok(Self {
            labels,
            cold,
            round_trips: counts()?,
            restarts: counts()?,
            up: counts()?,
            down: counts()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three rungs, by hand: who is where after each sweep.
    #[test]
    fn a_round_trip_ends_where_it_began() {
        let at = |whole: [u64; 3]| {
            Assignment::from_numbers(&Numbers {
                whole: whole.to_vec(),
                real: vec![],
            })
            .unwrap()
        };
        let mut trips = RoundTrips::new(&Assignment::new(3));
        assert_eq!(trips.labels(), [Label::Up, Label::None, Label::Down]);
        // Rung of each replica.
        for rungs in [[1, 0, 2], [2, 0, 1], [2, 1, 0], [1, 2, 0], [0, 2, 1]] {
            trips.add(&at(rungs));
        }
        assert_eq!(trips.labels(), [Label::Up, Label::Down, Label::Up]);
        // Replica 0 went 0 1 2 2 1 0; replica 1 is not yet back; replica 2 began at the hot end.
        assert_eq!(trips.round_trips(), [1, 0, 0]);
        assert_eq!(trips.restarts(), [1, 0, 1]);
        // On rung 1 were 0 (up), 2 (down), 1 (up), 0 (down) and 2 (up).
        assert_eq!(trips.flow(), [1.0, 0.6, 0.0]);
        trips.add(&at([1, 0, 2]));
        assert_eq!(trips.round_trips(), [1, 1, 0]);
    }

    #[test]
    fn nobody_seen_is_no_flow() {
        let trips = RoundTrips::new(&Assignment::new(3));
        assert!(trips.flow().iter().all(|f| f.is_nan()));
    }
}
