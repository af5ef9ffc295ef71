//! The meaning of a plain scalar in the core schema. spec: YAML 1.2.2, 10.3.2
//!
//! `yes`, `no`, `on` and `off` are strings; so are dates and numbers with `_`.

use serde_json::{Number, Value};

/// Why a scalar has no value.
pub(super) type Reason = &'static str;

const TOO_LARGE: Reason = "the integer does not fit into 64 bits; quote it if it is a text";
const NOT_FINITE: Reason =
    "the number is not finite, which JSON cannot express; quote it if it is a text";

/// The value of a plain scalar without tag.
pub(super) fn plain(text: &str) -> Result<Value, Reason> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(NOT_FINITE);
    }
    if let Some(number) = integer(text, unsigned) {
        return number;
    }
    if is_float(unsigned) {
        let number = text.parse().ok().and_then(Number::from_f64);
        return number.map(Value::Number).ok_or(NOT_FINITE);
    }
    Ok(Value::from(text))
}

/// The value of a scalar with a tag of the core schema: `suffix` is what stands after `!!`.
pub(super) fn tagged(suffix: &str, text: &str) -> Result<Value, Reason> {
    if suffix == "str" {
        return Ok(Value::from(text));
    }
    let value = plain(text)?;
    let fits = match suffix {
        "null" => value.is_null(),
        "bool" => value.is_boolean(),
        "int" => value.is_i64() || value.is_u64(),
        "float" => value.is_number(),
        _ => {
            return Err(
                "only the tags !!str, !!int, !!float, !!bool, !!null, !!map and !!seq are known",
            );
        }
    };
    if !fits {
        return Err("the value is not of the type that its tag names");
    }
    let float = value.as_f64().filter(|_| suffix == "float");
    Ok(float
        .and_then(Number::from_f64)
        .map_or(value, Value::Number))
}

fn integer(text: &str, unsigned: &str) -> Option<Result<Value, Reason>> {
    let radix = |digits: &str, radix| {
        Some(
            u64::from_str_radix(digits, radix)
                .map(Value::from)
                .map_err(|_| TOO_LARGE),
        )
    };
    if let Some(digits) = text
        .strip_prefix("0o")
        .filter(|d| all(d, |c| c.is_digit(8)))
    {
        return radix(digits, 8);
    }
    if let Some(digits) = text
        .strip_prefix("0x")
        .filter(|d| all(d, |c| c.is_ascii_hexdigit()))
    {
        return radix(digits, 16);
    }
    if !all(unsigned, |c| c.is_ascii_digit()) {
        return None;
    }
    let signed = text.parse::<i64>().map(Value::from);
    Some(
        signed
            .or_else(|_| text.parse::<u64>().map(Value::from))
            .map_err(|_| TOO_LARGE),
    )
}

fn all(text: &str, is_digit: impl Fn(char) -> bool) -> bool {
    !text.is_empty() && text.chars().all(is_digit)
}

/// `( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
fn is_float(unsigned: &str) -> bool {
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |text: &str| all(text, |c| c.is_ascii_digit());
    let is_mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    let is_exponent = |text: &str| digits(text.strip_prefix(['-', '+']).unwrap_or(text));
    is_mantissa && exponent.is_none_or(is_exponent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_plain_scalar_has_the_value_of_the_core_schema() {
        for (text, value) in [
            ("", json!(null)),
            ("~", json!(null)),
            ("NULL", json!(null)),
            ("nULL", json!("nULL")),
            ("True", json!(true)),
            ("on", json!("on")),
            ("off", json!("off")),
            ("yes", json!("yes")),
            ("No", json!("No")),
            ("y", json!("y")),
            ("12", json!(12)),
            ("+12", json!(12)),
            ("-12", json!(-12)),
            ("012", json!(12)),
            ("0o17", json!(15)),
            ("0xfF", json!(255)),
            ("0x", json!("0x")),
            ("-0x1", json!("-0x1")),
            ("18446744073709551615", json!(u64::MAX)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("1_000", json!("1_000")),
            ("12:30", json!("12:30")),
            ("1.5", json!(1.5)),
            ("1.", json!(1.0)),
            (".5", json!(0.5)),
            ("-.5e1", json!(-5.0)),
            ("1e3", json!(1000.0)),
            ("1e", json!("1e")),
            (".", json!(".")),
            ("+", json!("+")),
            ("--1", json!("--1")),
            ("1.2.3", json!("1.2.3")),
            ("2026-01-01", json!("2026-01-01")),
            ("inf", json!("inf")),
            ("NaN", json!("NaN")),
            ("+.nan", json!("+.nan")),
            ("٣", json!("٣")),
        ] {
            assert_eq!(plain(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn a_number_that_json_cannot_hold_is_refused() {
        for text in [
            "18446744073709551616",
            "-9223372036854775809",
            "0x10000000000000000",
        ] {
            assert_eq!(plain(text), Err(TOO_LARGE), "{text}");
        }
        for text in [".inf", "-.INF", "+.Inf", ".nan", ".NaN", "1e999", "-1e999"] {
            assert_eq!(plain(text), Err(NOT_FINITE), "{text}");
        }
    }

    #[test]
    fn a_tag_of_the_core_schema_must_fit() {
        assert_eq!(tagged("str", "12"), Ok(json!("12")));
        assert_eq!(tagged("float", "12"), Ok(json!(12.0)));
        assert_eq!(tagged("int", "12"), Ok(json!(12)));
        assert_eq!(tagged("null", ""), Ok(json!(null)));
        for (suffix, text) in [
            ("int", "1.5"),
            ("bool", "yes"),
            ("null", "0"),
            ("binary", "AA=="),
        ] {
            assert!(tagged(suffix, text).is_err(), "{suffix} {text}");
        }
    }
}
