//! Identifiers and dates of messages.

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
    date(since.as_secs(), since.subsec_micros())
}

fn date(seconds: u64, micros: u32) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// Year, month and day of a day counted from 1970 (H. Hinnant's days-to-civil, for dates after 1970).
fn civil(days: u64) -> (u64, u64, u64) {
    // Years start in March here, so that the leap day comes last.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + later, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        assert_eq!(date(0, 0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(date(951_782_399, 5), "2000-02-28T23:59:59.000005Z");
        assert_eq!(date(951_782_400, 0), "2000-02-29T00:00:00.000000Z");
        assert_eq!(date(1_709_164_800, 0), "2024-02-29T00:00:00.000000Z");
        assert_eq!(date(1_767_225_599, 999_999), "2025-12-31T23:59:59.999999Z");
        assert_eq!(date(4_107_542_400, 0), "2100-03-01T00:00:00.000000Z");
    }

    #[test]
    fn identifiers_differ() {
        let all: std::collections::HashSet<_> = (0..1000).map(|_| fresh()).collect();
        assert_eq!(all.len(), 1000);
    }
}
