//! Numbers with as many digits as their errors allow.

/// `mean(error)` with the error in units of the last digit, as physicists write it: 0.1234(12), 3.46(8)e-6.
pub fn with_error(mean: f64, error: f64) -> String {
    if !mean.is_finite() {
        return format!("{mean}");
    }
    if !(error.is_finite() && error > 0.0) {
        // No error to go by: six digits.
        let digits = (5 - mean.abs().max(1e-300).log10().floor() as i32).clamp(0, 12) as usize;
        return match mean.abs() {
            0.0 => "0".to_string(),
            m if (1e-4..1e6).contains(&m) => format!("{mean:.digits$}"),
            _ => format!("{mean:.5e}"),
        };
    }
    let magnitude = mean.abs().max(error).log10().floor() as i32;
    let scientific = !(-3..=5).contains(&magnitude);
    let scale = if scientific {
        10f64.powi(magnitude)
    } else {
        1.0
    };
    let (mean, error) = (mean / scale, error / scale);
    // Two digits of the error, one where the first is 3 or more.
    let lead = error.log10().floor() as i32;
    let digits = if error / 10f64.powi(lead) < 2.95 {
        lead - 1
    } else {
        lead
    };
    let decimals = (-digits).max(0) as usize;
    let unit = 10f64.powi(-(decimals as i32));
    let error = (error / unit).round() * if decimals == 0 { unit } else { 1.0 };
    let exponent = if scientific {
        format!("e{magnitude}")
    } else {
        String::new()
    };
    format!("{mean:.decimals$}({error:.0}){exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_carry_their_error_in_the_last_digits() {
        assert_eq!(with_error(0.123_45, 0.001_2), "0.1235(12)");
        assert_eq!(with_error(0.123_45, 0.004), "0.123(4)");
        assert_eq!(with_error(3.456e-6, 8e-8), "3.46(8)e-6");
        assert_eq!(with_error(1234.5, 20.0), "1234(20)");
        assert_eq!(with_error(1234.5, 2.0), "1234.5(20)");
        assert_eq!(with_error(f64::NAN, 1.0), "NaN");
        assert_eq!(with_error(0.0, 0.0), "0");
        assert_eq!(with_error(0.355_092_1, f64::NAN), "0.355092");
        assert_eq!(with_error(-2.187_36e-5, f64::NAN), "-2.18736e-5");
    }
}
