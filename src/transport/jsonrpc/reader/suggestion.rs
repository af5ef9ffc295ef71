//! The name that was probably meant.

/// The name among `names` that `given` was probably meant to be: at most two letters away, and
/// at most half of them wrong. Cost: O(names x letters²); texts over 64 bytes have none.
pub(crate) fn suggestion<'n>(given: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    const BYTES_MAX: usize = 64;
    if given.len() > BYTES_MAX {
        return None;
    }
    names
        .map(|name| (distance(given, name), name))
        .filter(|(distance, name)| *distance <= 2 && distance * 2 <= name.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Insertions, deletions and replacements between two texts, ignoring ASCII case.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<u8> = b.bytes().map(|c| c.to_ascii_lowercase()).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.bytes().map(|c| c.to_ascii_lowercase()).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::suggestion;

    #[test]
    fn near_misses_are_suggested_and_far_ones_are_not() {
        let names = ["task_id", "cascade", "id"];
        assert_eq!(suggestion("taskid", names.into_iter()), Some("task_id"));
        assert_eq!(suggestion("Task_Id", names.into_iter()), Some("task_id"));
        assert_eq!(suggestion("zz", names.into_iter()), None);
        assert_eq!(suggestion(&"a".repeat(100), names.into_iter()), None);
    }
}
