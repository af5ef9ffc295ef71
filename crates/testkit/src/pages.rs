//! The pages of the documentation, and the blocks of code in them.

use std::path::{Path, PathBuf};

/// Folders with pages of others.
const FOREIGN: [&str; 4] = ["node_modules", "target", "dist", ".venv"];

/// A Markdown page of the repository.
#[derive(Debug)]
pub struct Page {
    /// Its path below the root of the repository.
    pub name: String,
    /// The whole text of the file.
    pub text: String,
}

/// A fenced block of a page.
#[derive(Debug, PartialEq)]
pub struct Block {
    /// The first word behind the fence, such as `sh`.
    pub language: String,
    /// The other words, such as `no-run`.
    pub notes: Vec<String>,
    /// The line of the fence, from 1.
    pub line: usize,
    /// What is between the fences, without their indentation.
    pub text: String,
}

/// The pages below `folders`, which are files or folders below `root`, by name.
#[must_use]
pub fn pages(root: &Path, folders: &[&str]) -> Vec<Page> {
    let mut left: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
    let mut pages = Vec::new();
    while let Some(path) = left.pop() {
        let name = path.strip_prefix(root).expect("below the root");
        if path.is_dir() {
            let is_foreign = name.iter().any(|part| FOREIGN.iter().any(|f| *f == part));
            if !is_foreign {
                let entries = std::fs::read_dir(&path).expect("folders of pages can be read");
                left.extend(entries.map(|entry| entry.expect("an entry").path()));
            }
        } else if path.extension().is_some_and(|end| end == "md") {
            let text = std::fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let name = name.to_str().expect("names are text").to_owned();
            pages.push(Page { name, text });
        }
    }
    assert!(!pages.is_empty(), "{folders:?} have pages");
    pages.sort_by(|a, b| a.name.cmp(&b.name));
    pages
}

impl Page {
    /// Its fenced blocks, from top to bottom.
    #[must_use]
    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut lines = self.text.lines().zip(1..);
        while let Some((fence, line)) = lines.next() {
            let Some(info) = fence.trim_start().strip_prefix("```") else {
                continue;
            };
            let indent = fence.len() - fence.trim_start().len();
            let mut words = info.split_whitespace().map(str::to_owned);
            let mut text = String::new();
            for (inside, _) in lines.by_ref() {
                if inside.trim() == "```" {
                    break;
                }
                text.push_str(inside.get(indent..).unwrap_or_default());
                text.push('\n');
            }
            blocks.push(Block {
                language: words.next().unwrap_or_default(),
                notes: words.collect(),
                line,
                text,
            });
        }
        blocks
    }

    /// Its lines that are not in a fenced block, with their numbers.
    pub fn prose(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut is_code = false;
        self.text
            .lines()
            .zip(1..)
            .filter_map(move |(line, number)| {
                let is_fence = line.trim_start().starts_with("```");
                is_code ^= is_fence;
                (!is_code && !is_fence).then_some((number, line))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        let text =
            "# A\n\n```sh no-run\nls\n```\n- x\n\n  ```json\n  {\n    \"a\": 1}\n  ```\nend\n";
        Page {
            name: "a.md".to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn blocks_have_language_notes_line_and_text() {
        let block = |language: &str, notes: &[&str], line, text: &str| Block {
            language: language.to_owned(),
            notes: notes.iter().map(|&note| note.to_owned()).collect(),
            line,
            text: text.to_owned(),
        };
        assert_eq!(
            page().blocks(),
            [
                block("sh", &["no-run"], 3, "ls\n"),
                block("json", &[], 8, "{\n  \"a\": 1}\n"),
            ]
        );
    }

    #[test]
    fn prose_is_what_is_between_blocks() {
        let page = page();
        let lines: Vec<_> = page.prose().collect();
        assert_eq!(
            lines,
            [(1, "# A"), (2, ""), (6, "- x"), (7, ""), (12, "end")]
        );
    }
}
