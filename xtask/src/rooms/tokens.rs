//! Source as tokens: names, marks and texts, without comments.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// A name or a keyword.
    Name(String),
    /// `::`
    Path,
    /// Any other mark; a number or a character literal is `0`.
    Mark(char),
    /// What stands between the quotes of a string.
    Text(String),
}

/// The tokens of a file.
pub(crate) fn of(source: &str) -> Vec<Token> {
    let mut reader = Reader { rest: source };
    let mut tokens = Vec::new();
    while let Some(token) = reader.next() {
        tokens.push(token);
    }
    tokens
}

struct Reader<'a> {
    rest: &'a str,
}

const fn begins_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

impl Reader<'_> {
    fn next(&mut self) -> Option<Token> {
        self.skip_blank();
        let c = self.rest.chars().next()?;
        if let Some(text) = self.raw_text() {
            return Some(Token::Text(text));
        }
        // Strings of bytes and of C.
        let letters = self.rest.len() - self.rest.trim_start_matches(['b', 'c']).len();
        if letters <= 1 && self.rest[letters..].starts_with('"') {
            self.rest = &self.rest[letters + 1..];
            return Some(Token::Text(self.text()));
        }
        if letters == 1 && self.rest.starts_with("b'") {
            self.rest = &self.rest[1..];
            return Some(self.quote());
        }
        if begins_name(c) {
            // `r#name` is a name too.
            self.rest = self.rest.strip_prefix("r#").unwrap_or(self.rest);
            let name = self.take(|c| begins_name(c) || c.is_ascii_digit());
            return Some(Token::Name(name));
        }
        if c.is_ascii_digit() {
            self.take(|c| begins_name(c) || c.is_ascii_digit());
            return Some(Token::Mark('0'));
        }
        if c == '\'' {
            return Some(self.quote());
        }
        if let Some(rest) = self.rest.strip_prefix("::") {
            self.rest = rest;
            return Some(Token::Path);
        }
        self.rest = &self.rest[c.len_utf8()..];
        Some(Token::Mark(c))
    }

    fn take(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken.to_owned()
    }

    /// White space and comments, which may hold comments.
    fn skip_blank(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            if self.rest.starts_with("//") {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.rest = &self.rest[end..];
            } else if self.rest.starts_with("/*") {
                let mut depth = 0_usize;
                loop {
                    if let Some(rest) = self.rest.strip_prefix("/*") {
                        depth += 1;
                        self.rest = rest;
                    } else if let Some(rest) = self.rest.strip_prefix("*/") {
                        depth -= 1;
                        self.rest = rest;
                    } else if let Some(c) = self.rest.chars().next() {
                        self.rest = &self.rest[c.len_utf8()..];
                    } else {
                        return;
                    }
                    if depth == 0 {
                        break;
                    }
                }
            } else {
                return;
            }
        }
    }

    /// `r"..."`, `r#"..."#` and those of bytes.
    fn raw_text(&mut self) -> Option<String> {
        let after = self.rest.strip_prefix('b').unwrap_or(self.rest);
        let after = after.strip_prefix('r')?;
        let fence = after.len() - after.trim_start_matches('#').len();
        let text = after[fence..].strip_prefix('"')?;
        let close = format!("\"{}", "#".repeat(fence));
        let end = text.find(&close).unwrap_or(text.len());
        self.rest = text.get(end + close.len()..).unwrap_or("");
        Some(text[..end].to_owned())
    }

    /// The rest of a string behind its first quote.
    fn text(&mut self) -> String {
        let mut escaped = false;
        let end = self.rest.char_indices().find(|&(_, c)| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let (text, rest) = match end {
            Some((at, _)) => (&self.rest[..at], &self.rest[at + 1..]),
            None => (self.rest, ""),
        };
        self.rest = rest;
        text.to_owned()
    }

    /// A character literal, or a lifetime, of which only the mark is given.
    fn quote(&mut self) -> Token {
        let inner = &self.rest[1..];
        let mut chars = inner.chars();
        let (first, second) = (chars.next(), chars.next());
        if first == Some('\\') {
            // Behind the escaped character, so that `'\''` ends where it does.
            let end = inner.char_indices().skip(2).find(|&(_, c)| c == '\'');
            self.rest = end.map_or("", |(at, _)| &inner[at + 1..]);
            return Token::Mark('0');
        }
        if second == Some('\'') {
            self.rest = &inner[first.map_or(0, char::len_utf8) + 1..];
            return Token::Mark('0');
        }
        self.rest = inner;
        self.take(|c| begins_name(c) || c.is_ascii_digit());
        Token::Mark('\'')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str) -> Vec<String> {
        let names = of(source).into_iter().filter_map(|token| match token {
            Token::Name(name) => Some(name),
            Token::Path | Token::Mark(_) | Token::Text(_) => None,
        });
        names.collect()
    }

    #[test]
    fn comments_texts_and_characters_hold_no_names() {
        let source = r###"
            a // crate::no
            /* no /* no */ no */ b "no \" no" c r#"no " no"# d b"no" e '"' f '\'' g '\u{1F600}' h
            fn i<'no>(j: &'no str) {} b'"' k 1_000u64 l r#type
        "###;
        let found = names(source).join(" ");
        assert_eq!(found, "a b c d e f g h fn i j str k l type");
    }

    #[test]
    fn paths_are_one_token() {
        let found = of("a::b: c");
        let name = |text: &str| Token::Name(text.to_owned());
        let expected = [
            name("a"),
            Token::Path,
            name("b"),
            Token::Mark(':'),
            name("c"),
        ];
        assert_eq!(found, expected);
    }
}
