//! The grammar of texts with templates: `{{<reference>}}`, with spaces around the reference or without.
//!
//! `\{{` is the text `{{`. Of backslashes directly before `{{` each pair is one, as in `\\{{a.b}}`; others are what
//! they are, and so is `}}` without `{{`. A reference holds neither `{{` nor `}}`.

pub(super) const OPEN: &str = "{{";
const CLOSE: &str = "}}";

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'t> {
    /// As it stands.
    Text(&'t str),
    /// Backslashes with what they are before, and what they stand for.
    Escape {
        written: &'t str,
        backslashes: usize,
        braces: bool,
    },
    /// What stands between the braces.
    Reference(&'t str),
}

/// A template that does not end, from its braces on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unclosed<'t>(pub(super) &'t str);

/// The pieces of a text in order. Cost: O(length).
pub(super) fn parts(text: &str) -> Parts<'_> {
    Parts {
        text,
        pending: [None, None],
    }
}

/// Iterates over the pieces of a text.
pub(super) struct Parts<'t> {
    text: &'t str,
    /// What was read along with the piece before.
    pending: [Option<Part<'t>>; 2],
}

impl<'t> Parts<'t> {
    fn pending(&mut self) -> Option<Part<'t>> {
        let [first, second] = &mut self.pending;
        first.take().or_else(|| second.take())
    }
}

impl<'t> Iterator for Parts<'t> {
    type Item = Result<Part<'t>, Unclosed<'t>>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(part) = self.pending() {
            return Some(Ok(part));
        }
        if self.text.is_empty() {
            return None;
        }
        let Some(open) = self.text.find(OPEN) else {
            return Some(Ok(Part::Text(std::mem::take(&mut self.text))));
        };
        let text = self.text[..open].trim_end_matches('\\');
        let before = open - text.len();
        let braces = before % 2 == 1;
        let end = if braces { open + OPEN.len() } else { open };
        let escape = (before > 0).then(|| Part::Escape {
            written: &self.text[text.len()..end],
            backslashes: before / 2,
            braces,
        });
        let mut behind = end;
        let reference = match braces {
            true => None,
            false => {
                let inner = &self.text[open + OPEN.len()..];
                let Some(length) = inner.find(CLOSE) else {
                    let unclosed = Unclosed(&self.text[open..]);
                    self.text = "";
                    return Some(Err(unclosed));
                };
                behind = open + OPEN.len() + length + CLOSE.len();
                Some(Part::Reference(inner[..length].trim()))
            }
        };
        self.text = &self.text[behind..];
        self.pending = [escape, reference];
        if text.is_empty() {
            return self.pending().map(Ok);
        }
        Some(Ok(Part::Text(text)))
    }
}

/// Whether a text has a template, or a mark that says it has none.
pub(super) fn may_have(text: &str) -> bool {
    text.contains(OPEN)
}

/// How a reference is written in a text.
pub(super) fn written(reference: &str) -> String {
    // A brace at its end would be taken for one of those that close it.
    let space = if reference.ends_with('}') { " " } else { "" };
    format!("{OPEN}{reference}{space}{CLOSE}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces, each in a short form.
    fn read(text: &str) -> Vec<String> {
        let short = |part| match part {
            Ok(Part::Text(text)) => text.to_owned(),
            Ok(Part::Reference(reference)) => format!("<{reference}>"),
            Ok(Part::Escape {
                backslashes,
                braces,
                ..
            }) => format!("{backslashes}{}", if braces { "{{" } else { "" }),
            Err(Unclosed(rest)) => format!("!{rest}"),
        };
        parts(text).map(short).collect()
    }

    #[test]
    fn texts_are_read_in_pieces() {
        let cases: [(&str, &[&str]); 15] = [
            ("", &[]),
            ("plain } {a} }}", &["plain } {a} }}"]),
            ("{{a.b}}", &["<a.b>"]),
            ("{{ a.b }}", &["<a.b>"]),
            ("x{{a.b}}y{{c#/d}}z", &["x", "<a.b>", "y", "<c#/d>", "z"]),
            ("{{a.b}}{{a.c}}", &["<a.b>", "<a.c>"]),
            (r"\{{a.b}}", &["0{{", "a.b}}"]),
            (r"x\\{{a.b}}", &["x", "1", "<a.b>"]),
            (r"\\\{{a.b}}", &["1{{", "a.b}}"]),
            (r"C:\x {{a.b}}\y", &[r"C:\x ", "<a.b>", r"\y"]),
            ("{{a.b", &["!{{a.b"]),
            ("x{{{{a.b}}", &["x", "<{{a.b>"]),
            ("{{{a.b}}}", &["<{a.b>", "}"]),
            ("{{}}", &["<>"]),
            (r"\{{{{a.b}}", &["0{{", "<a.b>"]),
        ];
        for (text, pieces) in cases {
            let pieces: Vec<String> = pieces.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(read(text), pieces, "{text}");
        }
    }

    #[test]
    fn pieces_make_up_the_text() {
        for text in [r"a\\{{b.c}}d\{{e}}", r"\\\\\{{", "{{a.b}}}}{", "{{a.b} }}}"] {
            let whole: String = parts(text)
                .map(|part| match part {
                    Ok(Part::Text(text) | Part::Escape { written: text, .. }) => text.to_owned(),
                    Ok(Part::Reference(reference)) => written(reference),
                    Err(Unclosed(rest)) => rest.to_owned(),
                })
                .collect();
            assert_eq!(whole, text);
        }
    }
}
