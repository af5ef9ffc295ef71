//! What one file says: the modules it declares, the names it imports, and the paths it uses.

use super::tokens::{self, Token};

/// A path as it is written, its first name included.
pub(crate) type Names = Vec<String>;

/// What a file says. Code for tests is left out.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// Modules in files of their own.
    pub(crate) declared: Vec<Declared>,
    /// Modules in braces, each as the names below the file's own module.
    pub(crate) inline: Vec<Names>,
    pub(crate) imports: Vec<Import>,
    /// Paths outside of imports, with at least two names.
    pub(crate) paths: Vec<Used>,
    /// All names outside of imports.
    pub(crate) names: Vec<String>,
}

/// `mod name;`
#[derive(Debug)]
pub(crate) struct Declared {
    /// Modules in braces around it.
    pub(crate) within: Names,
    pub(crate) name: String,
    /// From `#[path = ".."]`.
    pub(crate) path: Option<String>,
}

/// One name of a `use`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// Modules in braces around it.
    pub(crate) within: Names,
    pub(crate) path: Names,
    /// What it is called here; `*` for all names of a module.
    pub(crate) name: String,
    /// Whether others see it.
    pub(crate) is_public: bool,
}

/// A path in code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Used {
    /// Modules in braces around it.
    pub(crate) within: Names,
    pub(crate) path: Names,
}

/// Reads a file.
pub(crate) fn read(text: &str) -> Source {
    let mut reader = Reader {
        tokens: tokens::of(text),
        at: 0,
        depth: 0,
        open: Vec::new(),
        source: Source::default(),
    };
    reader.all();
    reader.source
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    /// Modules in braces, with the depth of their braces.
    open: Vec<(String, usize)>,
    source: Source,
}

impl Reader {
    fn all(&mut self) {
        let (mut path, mut is_public) = (None, false);
        while let Some(token) = self.tokens.get(self.at) {
            let begins = self.at;
            match token {
                Token::Mark('#') if self.is_mark(1, '[') => {
                    let attribute = self.attribute();
                    if is_for_tests(&attribute) {
                        self.skip_item();
                        path = None;
                    } else if let [Token::Name(name), Token::Mark('='), Token::Text(text)] =
                        attribute.as_slice()
                        && name == "path"
                    {
                        path = Some(text.clone());
                    }
                    continue;
                }
                Token::Mark('{') => self.depth += 1,
                Token::Mark('}') => {
                    if self
                        .open
                        .last()
                        .is_some_and(|(_, depth)| *depth == self.depth)
                    {
                        self.open.pop();
                    }
                    self.depth = self.depth.saturating_sub(1);
                }
                Token::Name(word) if word == "pub" => {
                    is_public = true;
                    self.at += 1;
                    if self.is_mark(0, '(') {
                        self.skip_group();
                    }
                    continue;
                }
                Token::Name(word) if word == "use" => {
                    self.at += 1;
                    self.import(&mut Vec::new(), is_public);
                }
                Token::Name(word) if word == "mod" && self.name(1).is_some() => {
                    self.module(path.take());
                }
                Token::Name(_) => self.path(),
                Token::Path | Token::Mark(_) | Token::Text(_) => {}
            }
            is_public = false;
            if self.at == begins {
                self.at += 1;
            }
        }
    }

    fn within(&self) -> Names {
        self.open.iter().map(|(name, _)| name.clone()).collect()
    }

    fn is_mark(&self, ahead: usize, mark: char) -> bool {
        self.tokens.get(self.at + ahead) == Some(&Token::Mark(mark))
    }

    fn name(&self, ahead: usize) -> Option<&str> {
        match self.tokens.get(self.at + ahead)? {
            Token::Name(name) => Some(name),
            Token::Path | Token::Mark(_) | Token::Text(_) => None,
        }
    }

    /// The tokens between the brackets of an attribute, behind which reading goes on.
    fn attribute(&mut self) -> Vec<Token> {
        self.at += 1;
        let from = self.at + 1;
        self.skip_group();
        self.tokens[from.min(self.at)..self.at.saturating_sub(1)].to_vec()
    }

    /// Goes behind the group that opens here.
    fn skip_group(&mut self) {
        let mut depth = 0_usize;
        while let Some(token) = self.tokens.get(self.at) {
            self.at += 1;
            match token {
                Token::Mark('(' | '[' | '{') => depth += 1,
                Token::Mark(')' | ']' | '}') => depth = depth.saturating_sub(1),
                Token::Name(_) | Token::Path | Token::Mark(_) | Token::Text(_) => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// Goes behind the item, field or variant that begins here, with its further attributes.
    fn skip_item(&mut self) {
        while self.is_mark(0, '#') && self.is_mark(1, '[') {
            self.attribute();
        }
        const ITEMS: [&str; 17] = [
            "pub",
            "fn",
            "mod",
            "use",
            "impl",
            "struct",
            "enum",
            "const",
            "static",
            "type",
            "async",
            "unsafe",
            "extern",
            "trait",
            "macro_rules",
            "let",
            "crate",
        ];
        let is_item = self.name(0).is_some_and(|word| ITEMS.contains(&word));
        while let Some(token) = self.tokens.get(self.at) {
            match token {
                Token::Mark('{') => {
                    self.skip_group();
                    if is_item {
                        return;
                    }
                }
                Token::Mark('(' | '[') => self.skip_group(),
                Token::Mark(';') => {
                    self.at += 1;
                    return;
                }
                Token::Mark(',') if !is_item => {
                    self.at += 1;
                    return;
                }
                // The group around it ends.
                Token::Mark('}' | ')' | ']') => return,
                Token::Name(_) | Token::Path | Token::Mark(_) | Token::Text(_) => self.at += 1,
            }
        }
    }

    fn module(&mut self, path: Option<String>) {
        let Some(name) = self.name(1).map(str::to_owned) else {
            return;
        };
        if self.is_mark(2, '{') {
            self.at += 3;
            self.depth += 1;
            self.open.push((name, self.depth));
            let within = self.within();
            self.source.inline.push(within);
        } else if self.is_mark(2, ';') {
            self.at += 3;
            let within = self.within();
            self.source.declared.push(Declared { within, name, path });
        }
    }

    /// A tree of names of a `use`, up to its end.
    fn import(&mut self, before: &mut Names, is_public: bool) {
        let given = before.len();
        loop {
            match self.tokens.get(self.at) {
                Some(Token::Name(word)) if word == "as" => {
                    let name = self.name(1).unwrap_or("_").to_owned();
                    self.at += 2;
                    self.add(before, name, is_public);
                    break;
                }
                Some(Token::Name(word)) => {
                    before.push(word.clone());
                    self.at += 1;
                    let goes_on = matches!(
                        self.tokens.get(self.at),
                        Some(Token::Path) | Some(Token::Name(_))
                    );
                    if !goes_on {
                        let name = self.last(before);
                        self.add(before, name, is_public);
                        break;
                    }
                }
                Some(Token::Path) => self.at += 1,
                Some(Token::Mark('*')) => {
                    self.at += 1;
                    self.add(before, "*".to_owned(), is_public);
                    break;
                }
                Some(Token::Mark('{')) => {
                    self.at += 1;
                    while !self.is_mark(0, '}') && self.at < self.tokens.len() {
                        let from = self.at;
                        self.import(before, is_public);
                        if self.is_mark(0, ',') || self.at == from {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    break;
                }
                Some(Token::Mark(_) | Token::Text(_)) | None => break,
            }
        }
        before.truncate(given);
    }

    /// What a name is called that is imported as it is; `x::self` is called `x`.
    fn last(&self, path: &[String]) -> String {
        let mut names = path.iter().rev().filter(|name| *name != "self");
        names.next().cloned().unwrap_or_default()
    }

    fn add(&mut self, path: &[String], name: String, is_public: bool) {
        let mut path = path.to_vec();
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let within = self.within();
        self.source.imports.push(Import {
            within,
            path,
            name,
            is_public,
        });
    }

    /// A name, or a path of several.
    fn path(&mut self) {
        let after_path = self.at > 0 && self.tokens[self.at - 1] == Token::Path;
        let mut path = Names::new();
        while let Some(name) = self.name(0) {
            path.push(name.to_owned());
            self.at += 1;
            // Not `path::<T>` or `path::{`.
            if self.tokens.get(self.at) != Some(&Token::Path) || self.name(1).is_none() {
                break;
            }
            self.at += 1;
        }
        // `<T as X>::name` and `::name` begin elsewhere.
        if after_path {
            return;
        }
        self.source.names.extend(path.first().cloned());
        if path.len() > 1 {
            let within = self.within();
            self.source.paths.push(Used { within, path });
        }
    }
}

/// `cfg(test)`, alone or among what must all hold.
fn is_for_tests(attribute: &[Token]) -> bool {
    let words: Vec<&str> = attribute
        .iter()
        .filter_map(|token| match token {
            Token::Name(name) => Some(name.as_str()),
            Token::Path | Token::Mark(_) | Token::Text(_) => None,
        })
        .collect();
    matches!(
        words.as_slice(),
        ["cfg", "test"] | ["cfg", "all", "test", ..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imported(text: &str) -> Vec<(String, String)> {
        let imports = read(text).imports.into_iter();
        imports.map(|i| (i.path.join("::"), i.name)).collect()
    }

    fn used(text: &str) -> Vec<String> {
        let paths = read(text).paths.into_iter();
        paths.map(|used| used.path.join("::")).collect()
    }

    #[test]
    fn groups_in_groups_are_imported_name_by_name() {
        let found =
            imported("use crate::{a::{self, B as C, d::*}, e}; pub(crate) use super::f::G;");
        let expected = [
            ("crate::a", "a"),
            ("crate::a::B", "C"),
            ("crate::a::d", "*"),
            ("crate::e", "e"),
            ("super::f::G", "G"),
        ];
        let expected = expected.map(|(path, name)| (path.to_owned(), name.to_owned()));
        assert_eq!(found, expected);
    }

    #[test]
    fn code_for_tests_is_left_out_and_what_follows_is_not() {
        let text = "#[cfg(test)] mod tests { use crate::no; }
            #[cfg(test)] #[path = \"x.rs\"] mod no;
            #[cfg(test)] use crate::{no, never};
            struct S { #[cfg(test)] no: crate::no::Never, yes: crate::yes::A }
            mod there; fn f() { crate::yes::b::<crate::yes::C>() }";
        let source = read(text);
        assert_eq!(source.imports, []);
        let declared: Vec<_> = source.declared.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(declared, ["there"]);
        assert_eq!(
            used(text),
            ["crate::yes::A", "crate::yes::b", "crate::yes::C"]
        );
    }

    #[test]
    fn modules_in_braces_are_known() {
        let source = read("mod a { fn f() { super::g() } } fn g() { super::h() }");
        let within: Vec<_> = source.paths.iter().map(|used| used.within.len()).collect();
        assert_eq!(within, [1, 0]);
    }
}
