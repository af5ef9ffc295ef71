//! Reads the dates between which a certificate is valid.
//!
//! The library verifies certificates of others and does not tell the dates of our own. They stand near the
//! beginning of a certificate (RFC 5280, 4.1), so few elements have to be passed over, and no more of DER
//! than their lengths is understood here.

use chrono::{DateTime, NaiveDate, Utc};

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
/// `[0]`, which holds the version of a certificate.
const VERSION: u8 = 0xa0;
/// Bytes of a length: what is longer than 4 GiB is none of ours.
const LENGTH_BYTES_MAX: usize = 4;

/// A span of time, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) from: DateTime<Utc>,
    pub(super) until: DateTime<Utc>,
}

impl Validity {
    /// The validity of a certificate in DER; `None`: it is none.
    pub(super) fn of(certificate: &[u8]) -> Option<Self> {
        let mut certificate = Elements(Elements(certificate).take(SEQUENCE)?);
        let mut signed = Elements(certificate.take(SEQUENCE)?);
        if signed.0.first() == Some(&VERSION) {
            signed.take(VERSION)?;
        }
        signed.take(INTEGER)?; // serial number
        signed.take(SEQUENCE)?; // algorithm
        signed.take(SEQUENCE)?; // issuer
        let mut validity = Elements(signed.take(SEQUENCE)?);
        Some(Self {
            from: validity.time()?,
            until: validity.time()?,
        })
    }

    pub(super) fn contains(&self, now: DateTime<Utc>) -> bool {
        (self.from..=self.until).contains(&now)
    }
}

/// Elements of DER, one after the other.
struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    /// The content of the next element, which must have this tag.
    fn take(&mut self, expected: u8) -> Option<&'a [u8]> {
        let (tag, content) = self.next()?;
        (tag == expected).then_some(content)
    }

    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (tag, rest) = self.0.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (length, rest) = match usize::from(*first) {
            short @ 0..0x80 => (short, rest),
            long => {
                let count = long - 0x80;
                if !(1..=LENGTH_BYTES_MAX).contains(&count) {
                    return None;
                }
                let (bytes, rest) = rest.split_at_checked(count)?;
                let length = bytes
                    .iter()
                    .fold(0, |all, byte| all << 8 | usize::from(*byte));
                (length, rest)
            }
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, content))
    }

    /// `YYMMDDHHMMSSZ` from 1950 to 2049, or `YYYYMMDDHHMMSSZ`.
    fn time(&mut self) -> Option<DateTime<Utc>> {
        let (tag, content) = self.next()?;
        let text = std::str::from_utf8(content).ok()?.strip_suffix('Z')?;
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let (year, rest) = match tag {
            UTC_TIME if text.len() == 12 => {
                let year: i32 = text[..2].parse().ok()?;
                (
                    if year < 50 { 2000 + year } else { 1900 + year },
                    &text[2..],
                )
            }
            GENERALIZED_TIME if text.len() == 14 => (text[..4].parse().ok()?, &text[4..]),
            _ => return None,
        };
        let part = |at: usize| rest[at..at + 2].parse::<u32>().ok();
        let day = NaiveDate::from_ymd_opt(year, part(0)?, part(2)?)?;
        Some(day.and_hms_opt(part(4)?, part(6)?, part(8)?)?.and_utc())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    fn certificate(until: i32) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 2);
        params.not_after = date_time_ymd(until, 12, 31);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn dates_of_both_forms_are_read() {
        for until in [2021, 2049, 2050, 4096] {
            let validity = Validity::of(&certificate(until)).unwrap();
            assert_eq!(validity.from.to_rfc3339(), "2020-01-02T00:00:00+00:00");
            assert_eq!(
                validity.until.to_rfc3339(),
                format!("{until}-12-31T00:00:00+00:00")
            );
        }
    }

    #[test]
    fn a_part_of_a_certificate_or_a_damaged_one_is_read_or_refused_and_nothing_else() {
        let whole = certificate(2030);
        for end in 0..whole.len() {
            assert_eq!(Validity::of(&whole[..end]), None, "{end}");
        }
        for at in 0..whole.len() {
            for byte in [0x00, 0x7f, 0x80, 0x84, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                let _ = Validity::of(&damaged);
            }
        }
    }
}
