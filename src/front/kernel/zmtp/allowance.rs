//! How much memory clients may take before anybody knows who they are.
//!
//! A message is held as a whole before its signature can be checked. So each has a largest size, and all that are being
//! received on one socket share a pool.

use anyhow::{Result, ensure};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a message may take without drawing on the pool: requests of people at work pass, whatever others send.
const FREE: u64 = 64 << 10;

/// What the messages that a socket receives may take.
pub struct Allowance {
    largest: u64,
    pool: AtomicU64,
}

impl Allowance {
    /// An allowance of `largest` bytes for one message, and `pool` bytes for all that are unfinished.
    pub fn new(largest: u64, pool: u64) -> Self {
        Self {
            largest,
            pool: AtomicU64::new(pool),
        }
    }

    /// The claim of a message that begins.
    pub fn claim(&self) -> Claim<'_> {
        Claim {
            allowance: self,
            announced: 0,
            taken: 0,
        }
    }
}

/// What one message takes; given back when it is dropped.
pub struct Claim<'a> {
    allowance: &'a Allowance,
    announced: u64,
    taken: u64,
}

impl Claim<'_> {
    /// An error if the message would become too large with a frame of that size.
    pub fn announce(&mut self, size: u64) -> Result<()> {
        self.announced = self.announced.saturating_add(size);
        let (size, largest) = (self.announced, self.allowance.largest);
        ensure!(
            size <= largest,
            "a message of {size} bytes is too large; here the limit is {largest}"
        );
        Ok(())
    }

    /// Take memory for what is about to be received.
    pub fn take(&mut self, bytes: u64) -> Result<()> {
        let before = self.drawn();
        self.taken += bytes;
        let more = self.drawn() - before;
        let pool = &self.allowance.pool;
        let drawn = pool.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(more)
        });
        if drawn.is_err() {
            self.taken -= bytes;
        }
        ensure!(
            drawn.is_ok(),
            "too many large messages are being received at once"
        );
        Ok(())
    }

    fn drawn(&self) -> u64 {
        self.taken.saturating_sub(FREE)
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let drawn = self.drawn();
        self.allowance.pool.fetch_add(drawn, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_messages_share_a_pool_and_small_ones_always_pass() {
        let allowance = Allowance::new(4 * FREE, 4 * FREE);
        let mut one = allowance.claim();
        assert!(one.announce(4 * FREE + 1).is_err());
        one.take(4 * FREE).unwrap();
        let mut two = allowance.claim();
        two.take(2 * FREE).unwrap();
        assert!(two.take(FREE).is_err(), "the pool is used up");
        allowance.claim().take(FREE).unwrap();
        drop(one);
        two.take(FREE).unwrap();
        drop(two);
        let left = allowance.pool.load(Ordering::Relaxed);
        assert_eq!(left, 4 * FREE, "all was given back");
    }
}
