//! The canonical form of JSON: RFC 8785. Members in the order of their UTF-16 code units, numbers as ECMAScript
//! writes them, no white space.

use serde_json::{Number, Value};

/// The canonical text of a value. Cost: O(size), and sorting; as deep as the value, which a parser has bounded.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    append(&mut text, value);
    text
}

fn append(text: &mut String, value: &Value) {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => text.push_str(&value.to_string()),
        Value::Number(number) => text.push_str(&of_number(number)),
        Value::Array(list) => {
            text.push('[');
            for (i, value) in list.iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                append(text, value);
            }
            text.push(']');
        }
        Value::Object(map) => {
            let mut members: Vec<_> = map.iter().collect();
            members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            text.push('{');
            for (i, (name, value)) in members.into_iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(&**name).to_string());
                text.push(':');
                append(text, value);
            }
            text.push('}');
        }
    }
}

/// A number as a double, in the shortest form that reads back as itself: ECMA-262, Number::toString.
fn of_number(number: &Number) -> String {
    // A double is what the canonical form knows; JSON has no number that is none.
    let value = number.as_f64().unwrap_or_default();
    if value == 0.0 {
        return "0".to_owned();
    }
    let shortest = format!("{:e}", value.abs());
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits = digits.replace('.', "");
    let exponent: i32 = exponent.parse().unwrap_or_default();
    // The value is 0.digits * 10^point.
    let point = exponent + 1;
    let len = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or_default());
    let split = |at: i32| digits.split_at(usize::try_from(at).unwrap_or_default());
    let unsigned = if (len..=21).contains(&point) {
        format!("{digits}{}", zeros(point - len))
    } else if (1..=21).contains(&point) {
        let (whole, fraction) = split(point);
        format!("{whole}.{fraction}")
    } else if (-5..=0).contains(&point) {
        format!("0.{}{digits}", zeros(-point))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let (first, rest) = split(1);
        let dot = if rest.is_empty() { "" } else { "." };
        format!("{first}{dot}{rest}e{sign}{}", exponent.abs())
    };
    match value < 0.0 {
        true => format!("-{unsigned}"),
        false => unsigned,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_example_of_the_rfc_becomes_its_canonical_form() {
        // RFC 8785, sections 3.2.2 and 3.2.3.
        // The numbers are read by the compiler: our parser of JSON may miss the last digit of a long fraction.
        let given = json!({
            "numbers": [333_333_333.333_333_3, 1E30, 4.50, 2e-3, 0.000_000_000_000_000_000_000_000_001],
            "string": "\u{20ac}$\u{f}\nA'B\"\\\\\"/",
            "literals": [null, true, false],
        });
        let expected = r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
        assert_eq!(canonical(&given), expected);
    }

    #[test]
    fn members_are_ordered_by_utf16_units() {
        // RFC 8785, section 3.2.3: a name beyond the basic plane stands before U+FB33.
        let given = json!({"\u{20ac}": 1, "\r": 2, "\u{fb33}": 3, "1": 4, "\u{1f600}": 5, "\u{80}": 6, "\u{f6}": 7});
        let text = canonical(&given);
        let order: Vec<_> = (text.split(':').skip(1))
            .filter_map(|after| after.chars().next())
            .collect();
        assert_eq!(order, ['2', '4', '6', '7', '1', '5', '3']);
    }

    #[test]
    fn numbers_are_written_as_ecmascript_writes_them() {
        // RFC 8785, appendix B.
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (5e-324, "5e-324"),
            (-5e-324, "-5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (295_147_905_179_352_830_000.0, "295147905179352830000"),
            (9.999_999_999_999_997e22, "9.999999999999997e+22"),
            (1e23, "1e+23"),
            (1e21, "1e+21"),
            (999_999_999_999_999_900_000.0, "999999999999999900000"),
            (9.999_999_999_999_997e-7, "9.999999999999997e-7"),
            (0.000_001, "0.000001"),
            (333_333_333.333_333_3, "333333333.3333333"),
            (
                -0.000_003_333_333_333_333_333_3,
                "-0.0000033333333333333333",
            ),
            (10.0, "10"),
        ] {
            assert_eq!(canonical(&json!(number)), text);
        }
        assert_eq!(canonical(&json!(120)), "120");
    }
}
