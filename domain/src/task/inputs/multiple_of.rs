//! `multipleOf`, computed exactly on the decimals that are written.
//!
//! The validator divides doubles where the divisor is no integer or is larger than 2^53, and then accepts and refuses
//! other numbers than the schema says. Numbers of values have at most 20 digits, so that integers of 128 bits suffice.

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Number, Value};

/// The keyword that this takes the place of.
pub(super) const KEYWORD: &str = "multipleOf";

/// `digits * 10^exponent`, without zeros at the end of `digits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal {
    digits: u128,
    exponent: i32,
}

impl Decimal {
    /// The magnitude of a number. A double counts as the shortest decimal text that reads as it. `None`: the text has
    /// more digits than a double or an integer of 64 bits has.
    fn magnitude(number: &Number) -> Option<Self> {
        let text = number.to_string();
        let text = text.strip_prefix('-').unwrap_or(&text);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits: u128 = format!("{whole}{fraction}").parse().ok()?;
        let mut exponent = exponent.parse::<i32>().ok()? - i32::try_from(fraction.len()).ok()?;
        while digits != 0 && digits.is_multiple_of(10) {
            digits /= 10;
            exponent += 1;
        }
        Some(Self { digits, exponent })
    }

    /// Cost: O(log of the difference of the exponents).
    fn is_multiple_of(self, divisor: Self) -> bool {
        if self.digits == 0 {
            return true;
        }
        let Ok(power) = u32::try_from(self.exponent - divisor.exponent) else {
            // The divisor has zeros where these digits have their last one, which is none.
            return false;
        };
        let mut rest = self.digits % divisor.digits;
        let (mut factor, mut power) = (10 % divisor.digits, power);
        while power > 0 {
            if power % 2 == 1 {
                rest = rest * factor % divisor.digits;
            }
            factor = factor * factor % divisor.digits;
            power /= 2;
        }
        rest == 0
    }
}

struct MultipleOf {
    divisor: Decimal,
    text: String,
}

impl<'i> Keyword<'i> for MultipleOf {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        match Keyword::is_valid(self, instance) {
            true => Ok(()),
            false => Err(ValidationError::custom(&*self.text)),
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        let Value::Number(number) = instance else {
            return true;
        };
        Decimal::magnitude(number).is_some_and(|it| it.is_multiple_of(self.divisor))
    }
}

/// The factory of the keyword, for the compiler.
pub(super) fn multiple_of<'a>(
    _parent: &'a Map<String, Value>,
    value: &'a Value,
    _path: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    let divisor = value.as_number().and_then(Decimal::magnitude);
    let divisor = divisor.filter(|it| it.digits > 0);
    let keyword = divisor.map(|divisor| MultipleOf {
        divisor,
        text: value.to_string(),
    });
    keyword
        .map(|keyword| Box::new(keyword) as Box<dyn for<'i> Keyword<'i>>)
        .ok_or_else(|| ValidationError::schema("not a number above zero"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number(text: &str) -> Decimal {
        Decimal::magnitude(&serde_json::from_str(text).unwrap()).unwrap()
    }

    #[test]
    fn the_decimals_that_are_written_are_divided() {
        for (value, divisor, is_multiple) in [
            ("9007199254740993", "9007199254740993", true),
            ("9007199254740994", "9007199254740993", false),
            ("18446744073709551615", "0.5", true),
            ("9007199254740993", "1.5", true),
            ("9007199254740992", "1.5", false),
            ("18446744073709551615", "18446744073709551614", false),
            ("-9223372036854775808", "4611686018427387904", true),
            ("0.3", "0.1", true),
            ("19.99", "0.01", true),
            ("19.995", "0.01", false),
            ("1e308", "1e-300", true),
            ("1e308", "3", false),
            ("9e307", "3", true),
            ("1e-300", "1", false),
            ("0", "7", true),
            ("-0.0", "0.7", true),
            ("7.0", "7", true),
            ("15", "10", false),
            ("150", "100", false),
            ("1000", "100", true),
        ] {
            let found = number(value).is_multiple_of(number(divisor));
            assert_eq!(found, is_multiple, "{value} of {divisor}");
        }
    }

    proptest! {
        #[test]
        fn integers_divide_as_machine_integers_do(value: u64, divisor in 1_u64.., factor in 1_u64..1000) {
            let decimal = |it: u64| number(&it.to_string());
            let found = decimal(value).is_multiple_of(decimal(divisor));
            prop_assert_eq!(found, value % divisor == 0);
            let divisor = divisor / factor;
            if divisor > 0 {
                prop_assert!(decimal(divisor * factor).is_multiple_of(decimal(divisor)));
            }
        }

        #[test]
        fn a_common_power_of_ten_changes_nothing(value in 0_u64..1 << 50, divisor in 1_u64..1 << 20, places in 0_usize..15) {
            let decimal = |it: u64| number(&format!("{it}e-{places}"));
            let found = decimal(value).is_multiple_of(decimal(divisor));
            prop_assert_eq!(found, value % divisor == 0);
        }
    }
}
