//! What `packaging/book.py` makes of links and images for the book.

use super::root;
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::{Command, Stdio};

/// The text of `docs/guides/page.md` as it is in the book.
fn in_book(text: &str, url: Option<&str>) -> String {
    let chapter = json!({"content": text, "source_path": "guides/page.md", "sub_items": []});
    let book = json!([{}, {"items": [{"Chapter": chapter}]}]);
    let mut command = Command::new("python3");
    command
        .arg(root().join("packaging/book.py"))
        .env_remove("TASKLEDGER_REPOSITORY_URL")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    if let Some(url) = url {
        command.env("TASKLEDGER_REPOSITORY_URL", url);
    }
    let mut running = command.spawn().expect("python3 can be run");
    let mut input = running.stdin.take().expect("it has an input");
    input
        .write_all(book.to_string().as_bytes())
        .expect("it reads the book");
    drop(input);
    let ended = running.wait_with_output().expect("it ends");
    assert!(ended.status.success());
    let book: Value = serde_json::from_slice(&ended.stdout).expect("a book");
    let content = &book["items"][0]["Chapter"]["content"];
    content.as_str().expect("a text").to_owned()
}

#[test]
fn links_and_images_lead_to_what_the_book_has() {
    for text in [
        "[a](other.md#b) and [c](https://x.y/z \"t\")",
        "[a](../README.md \"the begin\")",
        "![alt](../assets/run.svg 'a tree')",
        "[![alt](../assets/run.svg)](other.md \"t\")",
        "[![alt](https://x.y/z.svg)](https://x.y)",
        "`[a](../../src/main.rs)` and ```\n[a](../../src/main.rs \"t\")\n```",
        "[a](<a b.md> \"t\")",
        "text [x] (y) and [`code`](other.md)",
    ] {
        let expected = text.replace("README.md", "index.md");
        assert_eq!(in_book(text, None), expected);
        assert_eq!(in_book(text, Some("https://forge.example")), expected);
    }
}

#[test]
fn links_and_images_that_lead_out_of_the_book_name_the_file() {
    let base = Some("https://forge.example/blob/main/");
    for (text, named, linked) in [
        (
            "[the program](../../src/main.rs \"t\").",
            "the program (`src/main.rs`).",
            "[the program](https://forge.example/blob/main/src/main.rs \"t\").",
        ),
        (
            "[`main.rs`](../../src/main.rs#l1)",
            "`src/main.rs`",
            "[`main.rs`](https://forge.example/blob/main/src/main.rs#l1)",
        ),
        (
            "![a picture](../../bench/a.svg 't')",
            "a picture (`bench/a.svg`)",
            "[a picture](https://forge.example/blob/main/bench/a.svg 't')",
        ),
        (
            "[![alt](../../bench/a.svg)](https://x.y)",
            "[alt (`bench/a.svg`)](https://x.y)",
            "[alt (`bench/a.svg`)](https://x.y)",
        ),
    ] {
        assert_eq!(in_book(text, None), named);
        assert_eq!(in_book(text, base), linked);
    }
}
