//! Just enough of a shell's grammar to find the commands in an example.

use std::iter::Peekable;
use std::str::Chars;

/// What stands for the value of a variable or of another command.
pub(super) const VALUE: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

/// The simple commands of a script, each as its words, in order of their ends. Redirections, assignments before a
/// command, comments and the bodies of here-documents are left out.
pub(super) fn commands(script: &str) -> Vec<Vec<String>> {
    let script = without_documents(script);
    let mut reader = Reader {
        left: script.chars().peekable(),
        found: Vec::new(),
    };
    reader.list(None);
    reader.found
}

/// The script without the bodies of here-documents.
fn without_documents(script: &str) -> String {
    let mut kept = String::new();
    let mut lines = script.lines();
    while let Some(line) = lines.next() {
        kept.push_str(line);
        kept.push('\n');
        if let Some((_, end)) = line.split_once("<<") {
            let end = end.split_whitespace().next().unwrap_or_default();
            let end = end.trim_matches(['\'', '"']).to_owned();
            lines.by_ref().find(|line| *line == end);
        }
    }
    kept
}

struct Reader<'s> {
    left: Peekable<Chars<'s>>,
    found: Vec<Vec<String>>,
}

impl Reader<'_> {
    /// Commands up to `end`, which is taken too.
    fn list(&mut self, end: Option<char>) {
        let mut words: Vec<String> = Vec::new();
        let mut skip_next = false;
        while let Some(c) = self.left.next() {
            if Some(c) == end {
                break;
            }
            match c {
                ' ' | '\t' => {}
                '#' => while self.left.next_if(|&c| c != '\n').is_some() {},
                '\n' | ';' | '|' | '&' | '(' | ')' => {
                    self.ended(&mut words);
                    if c == '(' {
                        self.list(Some(')'));
                    }
                }
                '<' | '>' => {
                    // `2>` is no word of the command.
                    skip_next = true;
                    while self.left.next_if(|&c| "<>&".contains(c)).is_some() {}
                }
                '\\' if self.left.peek() == Some(&'\n') => {
                    self.left.next();
                }
                c => {
                    let word = self.word(c, end);
                    let is_number = word.chars().all(|c| c.is_ascii_digit());
                    let is_stream = is_number && self.left.peek().is_some_and(|&c| c == '>');
                    let is_assignment = words.is_empty() && word.contains('=');
                    if !std::mem::take(&mut skip_next) && !is_stream && !is_assignment {
                        words.push(word);
                    }
                }
            }
        }
        self.ended(&mut words);
    }

    fn ended(&mut self, words: &mut Vec<String>) {
        if !words.is_empty() {
            self.found.push(std::mem::take(words));
        }
    }

    fn word(&mut self, first: char, end: Option<char>) -> String {
        let mut word = String::new();
        let mut next = Some(first);
        while let Some(c) = next {
            match c {
                '\'' => word.extend(self.left.by_ref().take_while(|&c| c != '\'')),
                '"' => self.quoted(&mut word),
                '$' => self.value(&mut word),
                '\\' => word.extend(self.left.next().filter(|&c| c != '\n')),
                c => word.push(c),
            }
            next = self
                .left
                .next_if(|&c| !" \t\n;|&()<>".contains(c) && Some(c) != end);
        }
        word
    }

    fn quoted(&mut self, word: &mut String) {
        while let Some(c) = self.left.next() {
            match c {
                '"' => return,
                '$' => self.value(word),
                '\\' => word.extend(self.left.next()),
                c => word.push(c),
            }
        }
    }

    /// What stands behind a `$`.
    fn value(&mut self, word: &mut String) {
        if self.left.next_if_eq(&'(').is_some() {
            self.list(Some(')'));
        } else if self.left.next_if_eq(&'{').is_some() {
            self.left.by_ref().find(|&c| c == '}');
        } else {
            while self
                .left
                .next_if(|&c| c.is_alphanumeric() || c == '_')
                .is_some()
            {}
        }
        word.push_str(VALUE);
    }
}

#[test]
fn commands_are_found_in_what_examples_are_made_of() {
    let script = r#"
rpc() { curl -s "http://h" -d "{\"a\":\"$1\"}"; echo; }
# taskledger in a comment
A=1 taskledger run 'a b.json' --url "$URL" | tee out.json   # why
X=$(taskledger tasks get ID 2>/dev/null) && \
  taskledger tasks list --status \
    failed > file &
cat > hello.json <<'JSON'
[{"taskledger": "no"}]
JSON
(umask 077; taskledger whoami)
"#;
    let found: Vec<String> = commands(script)
        .iter()
        .map(|words| words.join(" "))
        .collect();
    let of_ours: Vec<_> = found
        .iter()
        .filter(|c| c.starts_with("taskledger"))
        .collect();
    assert_eq!(
        of_ours,
        [
            &format!("taskledger run a b.json --url {VALUE}"),
            "taskledger tasks get ID",
            "taskledger tasks list --status failed",
            "taskledger whoami",
        ]
    );
}
