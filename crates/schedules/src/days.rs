//! Days of the Gregorian calendar as numbers: day 0 is 1970-01-01.

/// Seconds of a day by a clock that is not changed.
pub(crate) const DAY: i64 = 86_400;

/// The number of a day. Months are from 1 to 12; days past the end of a month count on into the next.
pub(crate) const fn number(year: i64, month: u32, day: u32) -> i64 {
    // Years that begin in March, so that the day that comes and goes is the last one.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let months = (month as i64 + 9) % 12;
    let day_of_year = (153 * months + 2) / 5 + day as i64 - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The year, month and day of a number.
pub(crate) const fn civil(number: i64) -> (i64, u32, u32) {
    let number = number + 719_468;
    let era = number.div_euclid(146_097);
    let day_of_era = number.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months + 2) / 5 + 1;
    let month = if months < 10 { months + 3 } else { months - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month as u32, day as u32)
}

/// The day of the week, from 0, Sunday, to 6.
pub(crate) const fn weekday(number: i64) -> u32 {
    (number + 4).rem_euclid(7) as u32
}

/// Whether February has 29 days.
pub(crate) const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// How many days a month has.
pub(crate) const fn month_len(year: i64, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// How many days a year has.
pub(crate) const fn year_len(year: i64) -> u32 {
    if is_leap(year) { 366 } else { 365 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_days_are_the_same_calendar() {
        assert_eq!(number(1970, 1, 1), 0);
        assert_eq!(number(2000, 3, 1), 11_017);
        assert_eq!(weekday(number(2026, 11, 28)), 6);
        let mut day = number(1, 1, 1);
        for year in 1..=2_800 {
            let len = number(year + 1, 1, 1) - number(year, 1, 1);
            assert_eq!(len, i64::from(year_len(year)));
            for month in 1..=12 {
                for of_month in 1..=month_len(year, month) {
                    assert_eq!(number(year, month, of_month), day);
                    assert_eq!(civil(day), (year, month, of_month));
                    day += 1;
                }
            }
        }
        assert_eq!(civil(number(9999, 12, 31)), (9999, 12, 31));
    }
}
