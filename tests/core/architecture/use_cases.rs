//! What others may call of the service, and whether it asks who calls.

use super::names::{close, is_name, words};

/// Types whose functions are use cases.
const TYPES: [&str; 2] = ["Service", "Access"];
/// What lets a call in or refuses it, on `self`. `call` does it before it carries out what concerns a flow.
const GATES: [&str; 5] = [
    "self . access . authorize (",
    "self . admit (",
    "self . admit_as (",
    "self . authorize (",
    "self . call (",
];

/// Functions that others may call and that ask nobody, and why.
pub(super) const NO_USE_CASE: &[(&str, &str)] = &[
    ("access", "gives the use cases of tokens, which ask"),
    ("admits_node", "is the question whether a node may call"),
    ("clock", "time is for everybody"),
    ("connected", "counts a connection, whose calls ask"),
    ("correct_times", "the server does it by itself"),
    (
        "declared_description",
        "is what the server says of itself on its card, which everybody may read",
    ),
    ("hint", "the server does it by itself"),
    ("keep_schedules", "the server does it by itself"),
    ("look_at_schedules", "the server does it by itself"),
    ("new", "makes it"),
    ("note_holders", "the server does it by itself"),
    ("pause", "is about when a call is read, before it is known"),
    (
        "speaks_for",
        "is a further question about a call that asks for its use case itself",
    ),
    (
        "taken",
        "takes calls of nodes, and asks `authorize` with the caller that they bring",
    ),
    (
        "turn_to_read",
        "is about when a call is read, before it is known",
    ),
];

/// A function that others may call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    /// It goes through one of [`GATES`], and does not drop what that says.
    pub(super) is_asking: bool,
}

/// The functions of the service in a file that are `pub` or `pub(crate)`, and those of its traits.
pub(super) fn of(code: &str) -> Vec<Function> {
    let words = words(code);
    let mut found = Vec::new();
    let begins = words.iter().enumerate().filter(|(_, word)| *word == "impl");
    for (at, _) in begins {
        let header = behind_generics(&words, at + 1);
        let open = body(&words, header);
        let (of, is_trait) = implementer(&words[header..open]);
        if of.is_some_and(|of| TYPES.contains(&of)) {
            let inner = words.get(open + 1..close(&words, open));
            functions(inner.unwrap_or_default(), is_trait, &mut found);
        }
    }
    found
}

/// The place behind generic parameters, if they begin here.
fn behind_generics(words: &[String], at: usize) -> usize {
    let mut depth = 0_usize;
    for (here, word) in words.iter().enumerate().skip(at) {
        match word.as_str() {
            "<" => depth += 1,
            ">" if words[here - 1] != "-" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return if here == at { at } else { here + 1 };
        }
    }
    words.len()
}

/// Where the body of what is declared here begins, or the `;` in its place.
fn body(words: &[String], mut at: usize) -> usize {
    while let Some(word) = words.get(at) {
        match word.as_str() {
            "{" | ";" => return at,
            "(" | "[" => at = close(words, at),
            _ => {}
        }
        at += 1;
    }
    words.len()
}

/// The type that the header of an `impl` is about, and whether it is that of a trait.
fn implementer(header: &[String]) -> (Option<&str>, bool) {
    let end = header.iter().position(|word| word == "where");
    let header = &header[..end.unwrap_or(header.len())];
    let behind = header.iter().position(|word| word == "for");
    let of = header[behind.map_or(0, |at| at + 1)..].iter();
    let path = of.take_while(|word| is_name(word) || *word == "::");
    let name = path.filter(|word| is_name(word)).last();
    (name.map(String::as_str), behind.is_some())
}

/// The functions in a block that others may call: all of a trait.
fn functions(block: &[String], is_trait: bool, found: &mut Vec<Function>) {
    let (mut at, mut is_open) = (0, is_trait);
    while let Some(word) = block.get(at) {
        let next = block.get(at + 1).map_or("", String::as_str);
        match word.as_str() {
            "pub" if next == "(" => {
                is_open = block.get(at + 2).is_some_and(|word| word == "crate");
                at = close(block, at + 1);
            }
            "pub" => is_open = true,
            "fn" => {
                let begin = body(block, at);
                let end = close(block, begin);
                if is_open {
                    found.push(Function {
                        name: next.to_owned(),
                        is_asking: is_asking(&block[begin..end]),
                    });
                }
                (at, is_open) = (end, is_trait);
            }
            // Attributes, and values of constants.
            "(" | "[" | "{" => at = close(block, at),
            ";" => is_open = is_trait,
            _ => {}
        }
        at += 1;
    }
}

/// Whether a body goes through a gate and uses what that says.
fn is_asking(body: &[String]) -> bool {
    let gates = GATES.map(|gate| gate.split(' ').collect::<Vec<_>>());
    gates.iter().any(|gate| {
        let places = body.windows(gate.len()).enumerate();
        let mut places = places.filter(|(_, words)| **words == gate[..]);
        places.any(|(at, _)| {
            let end = close(body, at + gate.len() - 1);
            body.get(end + 1).is_none_or(|next| next != ";")
        })
    })
}

#[test]
fn a_use_case_that_asks_nobody_is_found() {
    for bad in [
        "pub fn f(&self, context: &Context) {}",
        "pub(crate) fn f(&self, context: &Context) {}",
        "pub const fn f(&self, context: &Context) {}",
        "pub async fn f<F: Fn() -> u8>(&self, context: &Context) -> [u8; 2] { g() }",
        "pub fn f(&self, context: &Context) { /* self.admit(context, X)? */ }",
        "pub fn f(&self, context: &Context) { // self.admit(context, X)?\n }",
        "pub fn f(&self, context: &Context) { g(\"self.admit(context, X)?\") }",
        "pub fn f(&self, context: &Context) { authorize(context, X)? }",
        "pub fn f(&self, context: &Context) { other.call(context, X).await }",
        "pub fn f(&self, context: &Context) { self.app.admit(context, X)? }",
        "pub fn f(&self, context: &Context) { let _ = self.admit(context, X); g() }",
        "pub fn f(&self, context: &Context) { self.readmit(context, X)? }",
    ] {
        for header in ["impl Service", "impl super::Access", "impl Do for Service"] {
            let found = of(&format!("{header} {{ #[must_use] {bad} }}"));
            let expected = Function {
                name: "f".to_owned(),
                is_asking: false,
            };
            assert_eq!(found, [expected], "{header}: {bad}");
        }
    }
}

#[test]
fn a_use_case_that_asks_is_told_from_what_is_none() {
    for good in [
        "pub async fn f(&self, context: &Context) -> Done { self.admit(context, X)?; g() }",
        "pub fn f(&self, context: &Context) { self.admit_as(context, X, Some(Y))?; g() }",
        "pub(crate) fn f(&self, context: &Context) { self.authorize(context, X, None) }",
        "pub const fn f(&self) { self\n.access\n.authorize(context, X, None)?; }",
        "pub async fn f(&self) { g(self.call(context, X).await?) }",
    ] {
        let found = of(&format!(
            "impl<'a, T> Service<'a, T> where T: Do {{ {good} }}"
        ));
        assert_eq!(found.len(), 1, "{good}");
        assert!(found[0].is_asking, "{good}");
    }
    for other in [
        "impl Service { fn f(&self, context: &Context) { g() } const ALL: [u8; 1] = [1]; }",
        "impl Service { pub(super) fn f(&self, context: &Context) { g() } }",
        "impl Service { pub(in crate::application) fn f(&self) { g() } }",
        "impl Services { pub fn f(&self, context: &Context) { g() } }",
        "impl From<Service> for Other { fn f(&self, context: &Context) { g() } }",
        "fn f(x: impl Fn(&Service) -> u8) { pub fn g() {} }",
    ] {
        assert_eq!(of(other), [], "{other}");
    }
}
