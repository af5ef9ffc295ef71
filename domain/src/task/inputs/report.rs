//! The messages for faults of inputs, in the protocol's form. No schema paths, no Rust type names.

use super::limits::LISTED_MAX;
use super::{multiple_of, pattern};
use crate::suggestion::suggestion;
use crate::violation::{PathSegment, Violation};
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::{Value, json};

/// Violations up to [`LISTED_MAX`]; the others are counted, not made.
#[derive(Default)]
pub(super) struct LimitedList {
    listed: Vec<Violation>,
    others: usize,
}

impl LimitedList {
    pub(super) fn push(&mut self, violation: impl FnOnce() -> Violation) {
        if self.listed.len() < LISTED_MAX {
            self.listed.push(violation());
        } else {
            self.others += 1;
        }
    }

    pub(super) fn into_vec(mut self) -> Vec<Violation> {
        if self.others > 0 {
            self.listed.push(Violation::new(
                &[],
                format!("{} more violations are not listed", self.others),
                format!("at most {LISTED_MAX} are listed"),
                &Value::Null,
            ));
        }
        self.listed
    }
}

/// The reason of a violation that stands for a check that would cost too much.
pub(crate) const TOO_COSTLY: &str = "is too costly to check these inputs against";
/// The reason of a violation of `type`.
pub(crate) const WRONG_TYPE: &str = "has the wrong type";

/// A violation of the schema as a whole.
pub(super) fn at_schema(
    reason: impl Into<String>,
    expected: impl Into<String>,
    actual: &Value,
) -> Violation {
    named(
        "input_schema",
        Violation::new(&[], reason, expected, actual),
    )
}

fn named(field: &str, mut violation: Violation) -> Violation {
    if violation.path.is_empty() {
        field.clone_into(&mut violation.field);
    }
    violation
}

pub(super) fn schema_too_costly() -> Violation {
    at_schema(
        "is too costly to compile",
        "a schema that compiles within its limits",
        &Value::Null,
    )
}

/// What is examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// Inputs, against the schema of their author.
    Inputs,
    /// A schema, against what draft-07 demands.
    Schema,
}

impl Subject {
    const fn name(self) -> &'static str {
        match self {
            Self::Inputs => "inputs",
            Self::Schema => "input_schema",
        }
    }

    pub(super) fn too_costly(self) -> Violation {
        match self {
            Self::Inputs => at_schema(
                TOO_COSTLY,
                "a schema whose cost grows with the inputs only",
                &Value::Null,
            ),
            Self::Schema => schema_too_costly(),
        }
    }

    pub(super) fn faults_too_many(self) -> Violation {
        let (reason, expected) = match self {
            Self::Inputs => (
                "do not conform to the input schema in too many ways to list",
                "inputs that conform to the input schema",
            ),
            Self::Schema => (
                "is no draft-07 schema in too many ways to list",
                "a schema of draft-07",
            ),
        };
        let violation = Violation::new(&[], reason, expected, &Value::Null);
        named(self.name(), violation)
    }

    /// The violations of `value`, which may have `members` only, if there are any.
    pub(super) fn translate<'a>(
        self,
        value: &Value,
        members: &[Box<str>],
        errors: impl Iterator<Item = ValidationError<'a>>,
    ) -> Vec<Violation> {
        let mut list = LimitedList::default();
        for error in errors {
            translate((self.name(), members), value, &error, &mut list);
        }
        list.into_vec()
    }
}

/// The regular expression `text`, if it is known, kept `schema` from being compiled.
pub(super) fn of_build(
    schema: &Value,
    text: Option<&str>,
    error: &ValidationError<'_>,
) -> Vec<Violation> {
    let expected = "a regular expression of ECMA 262 without look-around and back-references, \
                    of moderate size when compiled";
    let place = text.and_then(|text| Some((find_pattern(schema, text)?, text)));
    vec![match place {
        Some((path, text)) if pattern::has_open_class(text) => Violation::new(
            &path,
            "is not a regular expression: a class that begins with `[` is not closed",
            r"`]` at the end of each class, or `\[` for the character itself",
            &Value::from(text),
        ),
        Some((path, text)) => Violation::new(
            &path,
            "cannot be used as a regular expression",
            expected,
            &Value::from(text),
        ),
        None => at_schema(
            format!("cannot be compiled: {}", error.masked()),
            expected,
            error.instance(),
        ),
    }]
}

/// Where the regular expression `text` stands in the schema as written.
fn find_pattern(schema: &Value, text: &str) -> Option<Vec<PathSegment>> {
    fn search(value: &Value, text: &str, path: &mut Vec<PathSegment>) -> bool {
        let steps: Vec<(PathSegment, &Value)> = match value {
            Value::Object(map) => map.iter().map(|(k, v)| (k.as_str().into(), v)).collect(),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(i, v)| (i.into(), v))
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        };
        for (step, child) in steps {
            let key = match &step {
                PathSegment::Key(key) => key.clone(),
                PathSegment::Index(_) => String::new(),
            };
            path.push(step);
            let here = match key.as_str() {
                "pattern" => child.as_str() == Some(text),
                "patternProperties" => child.get(text).is_some(),
                _ => false,
            };
            if here || search(child, text, path) {
                return true;
            }
            path.pop();
        }
        false
    }
    let mut path = Vec::new();
    search(schema, text, &mut path).then_some(path)
}

/// Bytes of names on the way from the root to any value, at most. Recurses; values have at most the
/// depth that the parser lets through. Cost: O(size).
pub(super) fn path_bytes_max(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        Value::Array(items) => items.iter().map(path_bytes_max).max().unwrap_or(0),
        Value::Object(members) => {
            let below = members.iter().map(|(k, v)| k.len() + path_bytes_max(v));
            below.max().unwrap_or(0)
        }
    }
}

fn translate(
    (root, members): (&str, &[Box<str>]),
    document: &Value,
    error: &ValidationError<'_>,
    list: &mut LimitedList,
) {
    let path = || segments(document, error.instance_path().as_str());
    let below = |name: &str| {
        let mut path = path();
        path.push(name.into());
        path
    };
    let kind = error.kind();
    if let Kind::Required { property } = kind {
        list.push(|| {
            let name = property.as_str().unwrap_or_default();
            Violation::new(&below(name), "is required", "a value", &Value::Null)
        });
    } else if let Kind::AdditionalProperties { unexpected } = kind {
        for name in unexpected {
            list.push(|| {
                let actual = error.instance().get(name).unwrap_or(&Value::Null);
                let path = below(name);
                let expected = match path.len() {
                    1 => known_member(name, members),
                    _ => NO_MEMBER.to_owned(),
                };
                Violation::new(&path, "is not a known member", expected, actual)
            });
        }
    } else {
        list.push(|| {
            let (reason, expected) = describe(kind);
            let violation = Violation::new(&path(), reason, expected, error.instance());
            named(root, violation)
        });
    }
}

/// What is told instead of the members that there are, where these are not at hand.
const NO_MEMBER: &str = "no such member";

/// What is expected in place of the member `given`.
fn known_member(given: &str, members: &[Box<str>]) -> String {
    let names = || members.iter().map(|name| &**name);
    match suggestion(given, names()) {
        Some(near) => format!("a known member; did you mean `{near}`?"),
        None if members.is_empty() => NO_MEMBER.to_owned(),
        None => {
            let names: Vec<String> = names().map(|name| format!("`{name}`")).collect();
            format!("one of {}", names.join(", "))
        }
    }
}

/// The steps of a JSON pointer; a number is an index only where the document has an array.
fn segments(document: &Value, pointer: &str) -> Vec<PathSegment> {
    let mut current = Some(document);
    pointer
        .split('/')
        .skip(1)
        .map(|step| {
            let step = step.replace("~1", "/").replace("~0", "~");
            let (segment, next) = match current {
                Some(Value::Array(items)) => match step.parse::<usize>() {
                    Ok(index) => (index.into(), items.get(index)),
                    Err(_) => (step.as_str().into(), None),
                },
                other => (step.as_str().into(), other.and_then(|v| v.get(&step))),
            };
            current = next;
            segment
        })
        .collect()
}

/// What is wrong, and what would be accepted.
fn describe(kind: &Kind) -> (&'static str, String) {
    match kind {
        Kind::Type { kind } => (WRONG_TYPE, types(kind)),
        Kind::Enum { options } => ("is not one of the allowed values", one_of(options)),
        Kind::Constant { expected_value } => ("is not the allowed value", short(expected_value)),
        Kind::Maximum { limit } => ("is too large", format!("at most {limit}")),
        Kind::ExclusiveMaximum { limit } => ("is too large", format!("less than {limit}")),
        Kind::Minimum { limit } => ("is too small", format!("at least {limit}")),
        Kind::ExclusiveMinimum { limit } => ("is too small", format!("more than {limit}")),
        Kind::MultipleOf {
            multiple_of: divisor,
        } => ("is not a multiple", format!("a multiple of {divisor}")),
        Kind::Custom { keyword, message } if keyword == multiple_of::KEYWORD => {
            ("is not a multiple", format!("a multiple of {message}"))
        }
        Kind::MaxLength { limit } => ("is too long", format!("at most {limit} characters")),
        Kind::MinLength { limit } => ("is too short", format!("at least {limit} characters")),
        Kind::MaxItems { limit } => ("has too many items", format!("at most {limit} items")),
        Kind::AdditionalItems { limit } => ("has too many items", format!("at most {limit} items")),
        Kind::MinItems { limit } => ("has too few items", format!("at least {limit} items")),
        Kind::MaxProperties { limit } => {
            ("has too many members", format!("at most {limit} members"))
        }
        Kind::MinProperties { limit } => {
            ("has too few members", format!("at least {limit} members"))
        }
        Kind::Required { .. } => ("is required", "a value".to_owned()),
        Kind::AdditionalProperties { .. } | Kind::UnevaluatedProperties { .. } => {
            ("has unknown members", "known members only".to_owned())
        }
        Kind::UnevaluatedItems { .. } => ("has too many items", "known items only".to_owned()),
        Kind::Pattern { pattern } => (
            "does not match the pattern",
            format!(
                "text that matches `{}`",
                short(&json!(pattern::as_written(pattern))).trim_matches('"')
            ),
        ),
        Kind::Format { format } if format == "uuid" => (
            "does not have the format",
            "format `uuid` (version 4)".to_owned(),
        ),
        Kind::Format { format } => ("does not have the format", format!("format `{format}`")),
        Kind::PropertyNames { error } => {
            let (_, expected) = describe(error.kind());
            (
                "has a member with a name that is not allowed",
                format!("names: {expected}"),
            )
        }
        Kind::UniqueItems => ("has an item twice", "unique items".to_owned()),
        Kind::Contains => (
            "contains no item of the required form",
            "an item that matches the schema under `contains`".to_owned(),
        ),
        Kind::Not { .. } => (
            "matches a schema that is excluded",
            "a value that does not match the schema under `not`".to_owned(),
        ),
        Kind::AnyOf { context } => (
            "matches none of the alternatives",
            format!(
                "a value that matches one of {} alternatives (`anyOf`)",
                context.len()
            ),
        ),
        Kind::OneOfNotValid { context } => (
            "matches none of the alternatives",
            format!(
                "a value that matches exactly one of {} alternatives (`oneOf`)",
                context.len()
            ),
        ),
        Kind::OneOfMultipleValid { context } => (
            "matches several of the alternatives",
            format!(
                "a value that matches exactly one of {} alternatives (`oneOf`)",
                context.len()
            ),
        ),
        Kind::FalseSchema => ("is not allowed here", "no value".to_owned()),
        Kind::ContentEncoding { content_encoding } => (
            "is not encoded as required",
            format!("`{content_encoding}` text"),
        ),
        Kind::FromUtf8 { .. } => (
            "is not encoded as required",
            "encoded UTF-8 text".to_owned(),
        ),
        Kind::ContentMediaType { content_media_type } => (
            "does not have the content type",
            format!("content of type `{content_media_type}`"),
        ),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => (
            "is too costly to match",
            "text that the pattern can be matched with".to_owned(),
        ),
        Kind::Custom { message, .. } => ("does not conform", message.clone()),
        Kind::Referencing(error) => ("cannot be resolved", error.to_string()),
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(set) => {
            let names: Vec<_> = set.iter().map(|t| t.to_string()).collect();
            names.join(" or ")
        }
    }
}

fn one_of(options: &Value) -> String {
    const VALUES_MAX: usize = 20;
    let values = options.as_array().map_or(&[][..], Vec::as_slice);
    let shown: Vec<_> = values.iter().take(VALUES_MAX).map(short).collect();
    let more = values.len().saturating_sub(VALUES_MAX);
    if more == 0 {
        format!("one of {}", shown.join(", "))
    } else {
        format!("one of {}, and {more} more", shown.join(", "))
    }
}

/// The JSON text of a value from the schema, cut after [`SHORT_CHARS_MAX`] characters.
fn short(value: &Value) -> String {
    const SHORT_CHARS_MAX: usize = 200;
    let text = value.to_string();
    match text.char_indices().nth(SHORT_CHARS_MAX) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
