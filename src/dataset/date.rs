//! Dates: `2024-03-01`, also with a time, as days.

/// Days from 1970-01-01 to a date of the Gregorian calendar, with the part of the day that has passed; none if the text is no date.
///
/// `2024-03-01`, `2024-03-01 12:30`, `2024-03-01T12:30:15.5Z`, `2024-03-01T12:30:15+02:00`; without a zone the time is taken as it is.
pub fn days(text: &str) -> Option<f64> {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time.trim())),
        None => (text, None),
    };
    let parts: Vec<&str> = date.split('-').collect();
    let [year, month, day] = parts[..] else {
        return None;
    };
    if (year.len(), month.len(), day.len()) != (4, 2, 2) {
        return None;
    }
    let (year, month, day) = (whole(year)?, whole(month)?, whole(day)?);
    if !(1..=12).contains(&month) || !(1..=length(year, month)).contains(&day) {
        return None;
    }
    Some(civil(year, month, day) as f64 + time.map_or(Some(0.0), of_day)?)
}

/// A day, given in days from 1970-01-01, as a date (Hinnant, "chrono-compatible low-level date algorithms").
pub fn text(day: i64) -> String {
    // Years from March on, so that the day that leap years add is the last one.
    let z = day + 719_468;
    let era = z.div_euclid(146_097);
    let d = z.rem_euclid(146_097);
    let y = (d - d / 1460 + d / 36_524 - d / 146_096) / 365;
    let of_year = d - (365 * y + y / 4 - y / 100);
    let m = (5 * of_year + 2) / 153;
    let (day, month) = (
        of_year - (153 * m + 2) / 5 + 1,
        if m < 10 { m + 3 } else { m - 9 },
    );
    let year = y + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

fn civil(year: i64, month: i64, day: i64) -> i64 {
    let y = year - i64::from(month <= 2);
    let era = y.div_euclid(400);
    let of_era = y.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn length(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn whole(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

/// `HH:MM`, `HH:MM:SS` or `HH:MM:SS.sss`, with a zone behind it or none, as a part of the day.
fn of_day(text: &str) -> Option<f64> {
    let (text, zone) = match text.strip_suffix(['Z', 'z']) {
        Some(rest) => (rest, 0.0),
        None => match text.rfind(['+', '-']) {
            Some(at) => {
                let sign = if text[at..].starts_with('-') {
                    -1.0
                } else {
                    1.0
                };
                (&text[..at], sign * clock(&text[at + 1..])?)
            }
            None => (text, 0.0),
        },
    };
    Some((clock(text.trim())? - zone) / 86_400.0)
}

/// Seconds of `HH:MM` and so on; `HHMM` of zones too.
fn clock(text: &str) -> Option<f64> {
    let parts: Vec<&str> = match text.split_at_checked(2) {
        Some((h, m)) if m.len() == 2 && !m.contains(':') => vec![h, m],
        _ => text.split(':').collect(),
    };
    let ([h, m] | [h, m, _]) = parts[..] else {
        return None;
    };
    let seconds = parts.get(2).map_or(Some(0.0), |s| {
        let plain = s.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        plain.then(|| s.parse::<f64>().ok())?
    })?;
    let (h, m) = (whole(h)?, whole(m)?);
    (h < 24 && m < 60 && seconds < 61.0).then_some((h * 3600 + m * 60) as f64 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of `datetime.date(…).toordinal() - 719163` in Python, and of `datetime.timestamp() / 86400`.
    #[test]
    fn dates_are_days_of_the_calendar() {
        for (date, day) in [
            ("1970-01-01", 0),
            ("2000-02-29", 11_016),
            ("2024-03-01", 19_783),
            ("1900-03-01", -25_508),
            ("0001-01-01", -719_162),
            ("9999-12-31", 2_932_896),
        ] {
            assert_eq!(days(date), Some(day as f64), "{date}");
            assert_eq!(text(day), date);
        }
        // Every day of four centuries, there and back.
        for day in -80_000..80_000 {
            assert_eq!(days(&text(day)), Some(day as f64), "{day}");
        }
        for (date, day) in [
            ("2024-03-01T12:00", 19_783.5),
            ("2024-03-01 06:00:00.0", 19_783.25),
            ("2024-03-01T00:00:43.2Z", 19_783.000_5),
            ("2024-03-01T02:00:00+02:00", 19_783.0),
            ("2024-02-29T21:30:00-0230", 19_783.0),
        ] {
            let found = days(date).unwrap();
            assert!((found - day).abs() < 1e-9, "{date}: {found}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "2024",
            "2024-3-1",
            "01.03.2024",
            "2023-02-29",
            "1900-02-29",
            "2024-13-01",
            "2024-00-10",
            "2024-03-32",
            "2024-03-01T25:00",
            "2024-03-01Tnoon",
            "2024-03-01T12",
            "+024-03-01",
            "2024-03-01T12:00:-1",
        ] {
            assert_eq!(days(text), None, "{text}");
        }
    }
}
