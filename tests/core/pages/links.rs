//! Links between pages lead to files and headings that exist, and the book has every page once.

use super::{all, page, root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use taskledger_testkit::pages::{Page, pages};

/// The text without what is in backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// Targets of links and images.
fn targets(page: &Page) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in page.prose() {
        let line = without_code(line);
        let ends = line
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split_once(')'));
        found.extend(ends.map(|(target, _)| (number, without_title(target).to_owned())));
        let images = line
            .split("src=\"")
            .skip(1)
            .filter_map(|rest| rest.split_once('"'));
        found.extend(images.map(|(target, _)| (number, target.to_owned())));
    }
    found
}

/// A target without its title and the brackets around it.
fn without_title(target: &str) -> &str {
    let target = target.trim();
    if let Some((target, _)) = target
        .strip_prefix('<')
        .and_then(|rest| rest.split_once('>'))
    {
        return target;
    }
    target.split_once(' ').map_or(target, |(target, _)| target)
}

/// What a heading is called in links, as GitHub and mdBook make it.
fn slug(heading: &str) -> String {
    let text = heading.trim().to_lowercase();
    let kept = text.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        other => other.is_alphanumeric().then_some(other),
    });
    kept.collect()
}

fn anchors(page: &Page) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let headings = page.prose().filter_map(|(_, line)| {
        let text = line.trim_start_matches('#');
        let depth = line.len() - text.len();
        ((1..=6).contains(&depth) && text.starts_with(' ')).then_some(text)
    });
    headings
        .map(|heading| {
            // Of a link only its text counts.
            let plain = heading.replace('[', "");
            let plain: String = plain
                .split("](")
                .enumerate()
                .map(|(i, part)| match i {
                    0 => part,
                    _ => part.split_once(')').map_or("", |(_, rest)| rest),
                })
                .collect();
            let slug = slug(&plain);
            let seen = counts.entry(slug.clone()).or_default();
            *seen += 1;
            if *seen == 1 {
                slug
            } else {
                format!("{slug}-{}", *seen - 1)
            }
        })
        .collect()
}

/// `path` without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            Component::CurDir => {}
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => parts.push(part),
        }
    }
    parts
}

/// What is wrong with a link of `page`, which lies below `root`.
fn fault(root: &Path, page: &Page, target: &str, pages: &BTreeMap<&str, &Page>) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let folder = Path::new(&page.name).parent().expect("a file is somewhere");
    let path = match file {
        "" => PathBuf::from(&page.name),
        file => normal(&folder.join(file)),
    };
    if !root.join(&path).exists() {
        return Some(format!("`{target}`: there is no {}", path.display()));
    }
    if anchor.is_empty() {
        return None;
    }
    let name = path.to_str().expect("names are text");
    let Some(other) = pages.get(name) else {
        return Some(format!("`{target}`: {name} is no page with headings"));
    };
    let missing = !anchors(other).contains(anchor);
    missing.then(|| format!("`{target}`: {name} has no heading `#{anchor}`"))
}

/// What is wrong with the links of these pages.
fn faults(root: &Path, all: &[Page]) -> Vec<String> {
    let by_name: BTreeMap<&str, &Page> = all.iter().map(|p| (p.name.as_str(), p)).collect();
    let mut faults = Vec::new();
    for page in all {
        for (line, target) in targets(page) {
            if let Some(fault) = fault(root, page, &target, &by_name) {
                faults.push(format!("{}:{line}: {fault}", page.name));
            }
        }
    }
    faults
}

#[test]
fn every_link_leads_somewhere() {
    let faults = faults(root(), &all());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn links_of_the_pages_in_packages_lead_to_what_packages_have() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = Command::new("python3")
        .arg(root().join("packaging/pages.py"))
        .arg(folder.path())
        .env_remove("TASKLEDGER_REPOSITORY_URL")
        .status()
        .expect("python3 can be run");
    assert!(made.success());

    let names = ["README.md", "CHANGELOG.md", "docs"];
    let packed = pages(folder.path(), &names);

    let there = pages(root(), &names);
    let name = |page: &Page| page.name.clone();
    assert_eq!(
        packed.iter().map(name).collect::<Vec<_>>(),
        there.iter().map(name).collect::<Vec<_>>()
    );
    let faults = faults(folder.path(), &packed);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let changed = packed.iter().zip(&there).filter(|(a, b)| a.text != b.text);
    assert!(changed.count() > 0, "some links lead out of the packages");
    // What a page shows to be typed is as it was.
    let shown = |page: &Page| page.blocks();
    assert!(packed.iter().map(shown).eq(there.iter().map(shown)));
}

#[test]
fn the_book_lists_every_page_once() {
    let summary = page("docs/SUMMARY.md");
    let mut listed: Vec<String> = targets(&summary).into_iter().map(|(_, t)| t).collect();
    let mut there: Vec<String> = pages(root(), &["docs"])
        .into_iter()
        .filter_map(|page| page.name.strip_prefix("docs/").map(str::to_owned))
        .filter(|name| name != "SUMMARY.md")
        .collect();
    listed.sort();
    there.sort();
    let missing: Vec<_> = there.iter().filter(|name| !listed.contains(name)).collect();
    assert!(
        missing.is_empty(),
        "docs/SUMMARY.md does not list {missing:?}"
    );
    // Each once, and nothing else.
    assert_eq!(listed, there);
}

#[test]
fn a_broken_link_is_noticed() {
    let page = |name: &str, text: &str| Page {
        name: name.to_owned(),
        text: text.to_owned(),
    };
    let with = page(
        "docs/README.md",
        "# The `x` of [y](z.md)\n\n## A b\n## A b\n\n[l](#a-b-1) `[no](link.md)` [![i](i.svg 'I')](<t u.md> \"T\")\n\n```\n[no](link.md)\n```\n",
    );
    let known = BTreeMap::from([("docs/README.md", &with)]);
    let found: Vec<_> = targets(&with).into_iter().map(|(_, t)| t).collect();
    assert_eq!(found, ["z.md", "#a-b-1", "i.svg", "t u.md"]);
    let ok = |target: &str| fault(root(), &with, target, &known).is_none();
    assert!(ok("#a-b-1") && ok("#the-x-of-y") && ok("../README.md") && ok("https://x.y"));
    assert!(!ok("#a-b-2") && !ok("nowhere.md") && !ok("../README.md#a-b"));
}
