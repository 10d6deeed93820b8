//! Identifiers and dates of messages.

use crate::dataset::date;
use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

/// A fresh identifier: 128 bits as the standard library draws them from the system, in hexadecimal.
pub fn fresh() -> String {
    let half = |n: u8| RandomState::new().hash_one((n, std::process::id(), SystemTime::now()));
    format!("{:016x}{:016x}", half(0), half(1))
}

/// Now, in ISO 8601 with microseconds.
pub fn now() -> String {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    moment(since.as_secs(), since.subsec_micros())
}

fn moment(seconds: u64, micros: u32) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let day = date::text(days as i64);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{day}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        assert_eq!(moment(0, 0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(moment(951_782_399, 5), "2000-02-28T23:59:59.000005Z");
        assert_eq!(moment(951_782_400, 0), "2000-02-29T00:00:00.000000Z");
        assert_eq!(moment(1_709_164_800, 0), "2024-02-29T00:00:00.000000Z");
        assert_eq!(
            moment(1_767_225_599, 999_999),
            "2025-12-31T23:59:59.999999Z"
        );
        assert_eq!(moment(4_107_542_400, 0), "2100-03-01T00:00:00.000000Z");
    }

    #[test]
    fn identifiers_differ() {
        let all: std::collections::HashSet<_> = (0..1000).map(|_| fresh()).collect();
        assert_eq!(all.len(), 1000);
    }
}
