//! Numbers and names as a figure has them: 10⁻⁵ and not 1e-5, |w|² and not norm2.

/// A number of few digits: `0.03`, `250`, `3.2×10⁻⁵`, `10⁻⁶`.
pub fn number(x: f64) -> String {
    let magnitude = x.abs();
    if x == 0.0 || !x.is_finite() || (1e-3..1e5).contains(&magnitude) {
        let places = match magnitude {
            m if m > 0.0 && m.is_finite() => (2.0 - m.log10().floor()).max(0.0) as usize,
            _ => 0,
        };
        let text = format!("{x:.places$}");
        return match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
            false => text,
        };
    }
    let text = format!("{x:.2e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    power(digits, exponent.parse().unwrap_or(0))
}

/// These digits times a power of ten.
pub(super) fn power(digits: &str, exponent: i32) -> String {
    let raised: String = exponent.to_string().chars().map(raised).collect();
    match digits {
        "1" => format!("10{raised}"),
        "-1" => format!("-10{raised}"),
        _ => format!("{digits}×10{raised}"),
    }
}

fn raised(c: char) -> char {
    match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        c => c
            .to_digit(10)
            .and_then(|d| char::from_u32(0x2070 + d))
            .unwrap_or(c),
    }
}

/// What an observable or a statistic is called in a figure.
pub(crate) fn name(name: &str) -> String {
    let of = |what: &str, split: &str| format!("{} {what}", split.replace('_', " "));
    match name {
        "norm2" => "|w|²".into(),
        "gradient_norm2" => "|∇U|²".into(),
        "distance2" => "|w − w₀|²".into(),
        "energy" => "energy U".into(),
        "overlap" => "overlap q".into(),
        "tempered_energy" => "tempered energy E".into(),
        "error" => "training error".into(),
        "loss" => "training loss".into(),
        _ => match (name.strip_prefix("error_"), name.strip_prefix("loss_")) {
            (Some(split), _) => of("error", split),
            (_, Some(split)) => of("loss", split),
            // The names of a script's own observables are the script's.
            _ => name.to_string(),
        },
    }
}

/// The same of its average: ⟨|w|²⟩.
pub fn average(observable: &str) -> String {
    let own = name(observable);
    match own.starts_with('|') {
        true => format!("⟨{own}⟩"),
        false => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (x, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.03, "0.03"),
            (250.0, "250"),
            (0.1234, "0.123"),
            (99999.0, "99999"),
            (1e-5, "10⁻⁵"),
            (3.2e-5, "3.2×10⁻⁵"),
            (-1e12, "-10¹²"),
            (6.02e23, "6.02×10²³"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(number(x), text);
        }
    }

    #[test]
    fn names_are_those_of_papers() {
        assert_eq!(average("norm2"), "⟨|w|²⟩");
        assert_eq!(average("error_test"), "test error");
        assert_eq!(average("loss"), "training loss");
        assert_eq!(average("my_own"), "my_own");
    }
}
