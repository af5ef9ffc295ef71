//! Tables of requirements that name the tests which show them: `` `file`: `test`, `test`; `file`: `test` ``.

/// Files, and the names of the tests in them, that a cell of a table names.
#[must_use]
pub fn named(cell: &str) -> Vec<(&str, Vec<&str>)> {
    let of_files = cell.split(';').map(|of_file| {
        let (file, names) = of_file.split_once("`:").unwrap_or((of_file, ""));
        let names = names.split('`').skip(1).step_by(2).collect();
        (file.trim().trim_matches('`'), names)
    });
    of_files.collect()
}

/// The body of a test of this name in a source; `None` if there is none.
#[must_use]
pub fn body<'s>(source: &'s str, name: &str) -> Option<&'s str> {
    let declared = format!("fn {name}(");
    let mut places = source.match_indices(&declared);
    places.find_map(|(at, _)| {
        let line = source[..at].rfind('\n').map_or(0, |end| end + 1);
        let mut above = source[..line].lines().rev().map(str::trim);
        let above = above.find(|line| !line.starts_with("///"));
        let is_marked = above.is_some_and(|it| it == "#[test]" || it.starts_with("#[tokio::test"));
        // A macro makes a test for each place.
        let is_listed = source.contains(&format!("    {name},\n"))
            && ["in_both_places!(", "on_both_engines!("]
                .iter()
                .any(|it| source.contains(it));
        let rest = &source[at..];
        let end = rest.find("\n}\n").unwrap_or(rest.len());
        (is_marked || is_listed).then(|| &rest[..end])
    })
}
