//! Suggests the name that was probably meant, for messages about an unknown one.

/// Bytes of a text that is compared: a longer one is no mistyped name.
const BYTES_MAX: usize = 64;
/// Letters by which a mistyped name may differ.
const LETTERS_MAX: usize = 2;

/// The name among `names` that `given` was probably meant to be: at most two letters away, and
/// at most half of them wrong; or else the first that begins with it, if at most a third is missing.
/// Cost: O(names x letters²); texts over 64 bytes have none.
pub fn suggestion<'n>(given: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let mut begun = None;
    let names = names.inspect(|name| {
        if begun.is_none() && begins(name, given) {
            begun = Some(*name);
        }
    });
    let near = nearest(given, names).filter(|(letters, name)| letters * 2 <= name.len());
    near.map(|(_, name)| name).or(begun)
}

/// What is expected in place of the unknown member `given` of an object: the member that was probably meant, or else
/// all of them. Cost: as for [`suggestion`].
#[must_use]
pub fn known_member(given: &str, known: &[&str]) -> String {
    match suggestion(given, known.iter().copied()) {
        Some(near) => format!("a known field; did you mean `{near}`?"),
        None => format!("one of: {}", known.join(", ")),
    }
}

/// Whether `given` is `name` without its end.
fn begins(name: &str, given: &str) -> bool {
    let beginning = name.as_bytes().get(..given.len());
    given.len() * 3 >= name.len() * 2
        && beginning.is_some_and(|it| it.eq_ignore_ascii_case(given.as_bytes()))
}

/// As [`suggestion`], for texts that may well mean something else: they begin alike, and at most a
/// quarter of the letters is wrong.
pub(crate) fn near_miss<'n>(given: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let first = |text: &str| text.bytes().next().map(|c| c.to_ascii_lowercase());
    let begins_alike = names.filter(|name| first(name) == first(given));
    nearest(given, begins_alike)
        .filter(|(letters, name)| letters * 4 <= name.len())
        .map(|(_, name)| name)
}

/// The closest name that is near enough, and by how many letters it differs.
fn nearest<'n>(given: &str, names: impl Iterator<Item = &'n str>) -> Option<(usize, &'n str)> {
    if given.len() > BYTES_MAX {
        return None;
    }
    names
        .filter(|name| name.len().abs_diff(given.len()) <= LETTERS_MAX)
        .map(|name| (distance(given, name), name))
        .filter(|(letters, _)| *letters <= LETTERS_MAX)
        .min_by_key(|(letters, _)| *letters)
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
    use super::{near_miss, suggestion};

    #[test]
    fn near_misses_are_suggested_and_far_ones_are_not() {
        let names = ["task_id", "cascade", "id"];
        assert_eq!(suggestion("taskid", names.into_iter()), Some("task_id"));
        assert_eq!(suggestion("Task_Id", names.into_iter()), Some("task_id"));
        assert_eq!(suggestion("zz", names.into_iter()), None);
        let methods = ["tasks.get", "tasks.execute", "tasks.explain"];
        assert_eq!(
            suggestion("Tasks.exec", methods.into_iter()),
            Some("tasks.execute")
        );
        assert_eq!(suggestion("tasks", methods.into_iter()), None);
        assert_eq!(suggestion(&"a".repeat(100), names.into_iter()), None);
    }

    #[test]
    fn words_of_their_own_are_no_near_misses() {
        let names = ["retry", "deadline"];
        assert_eq!(near_miss("Deadlne", names.into_iter()), Some("deadline"));
        assert_eq!(near_miss("retr", names.into_iter()), Some("retry"));
        for word in ["headline", "entry", "", "red"] {
            assert_eq!(near_miss(word, names.into_iter()), None, "{word}");
        }
    }
}
