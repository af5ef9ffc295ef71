//! References to secrets in the inputs of a task.

use super::{MEMBER, NAMES_MAX};
use serde_json::{Map, Value, json};
use taskledger_auth::SecretName;
use taskledger_domain::Violation;
use taskledger_domain::limits::VIOLATIONS_MAX;
use taskledger_domain::violation::PathSegment;

/// The places where inputs of an executor may name secrets: always in a member of a member of the inputs.
#[derive(Debug, Clone, Copy)]
pub struct Places {
    /// A member of the inputs, and which of its members; `None`: any.
    pub members: &'static [(&'static str, Option<&'static str>)],
    /// The places in words, for whoever named one elsewhere.
    pub told: &'static str,
}

impl Places {
    /// The schema of a text that may be a reference instead. `text` is the schema of the text, without
    /// words that concern objects.
    #[must_use]
    pub fn schema_of(text: &Value) -> Value {
        let mut schema = json!({
            "required": [MEMBER],
            "additionalProperties": false,
            "properties": {MEMBER: {"type": "string", "pattern": SecretName::PATTERN}}
        });
        if let (Value::Object(schema), Value::Object(text)) = (&mut schema, text) {
            schema.extend(text.clone());
            schema.insert("type".to_owned(), json!(["string", "object"]));
        }
        schema
    }

    fn hold(&self, path: &[PathSegment]) -> bool {
        let [PathSegment::Key(outer), PathSegment::Key(inner)] = path else {
            return false;
        };
        let mut members = self.members.iter();
        members.any(|(member, of)| member == outer && of.is_none_or(|name| name == inner))
    }

    /// The secrets that the inputs name, each once. What is no reference, or stands elsewhere, is left to
    /// [`Self::check`]. Cost: O(members at these places).
    #[must_use]
    pub fn names(&self, inputs: &Map<String, Value>) -> Vec<SecretName> {
        let mut names: Vec<_> = self.values(inputs).filter_map(name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn values<'a>(&self, inputs: &'a Map<String, Value>) -> impl Iterator<Item = &'a Value> {
        let members = self.members.iter();
        members.flat_map(move |(member, of)| {
            let inner = inputs.get(*member).and_then(Value::as_object);
            let inner = inner.into_iter().flatten();
            inner
                .filter(move |(name, _)| of.is_none_or(|of| of == name.as_str()))
                .map(|(_, value)| value)
        })
    }

    /// The inputs with the texts in place of the references.
    ///
    /// # Errors
    /// The secret whose text is not there.
    pub fn filled<'t>(
        &self,
        inputs: &Map<String, Value>,
        text: impl Fn(&SecretName) -> Option<&'t str>,
    ) -> Result<Map<String, Value>, SecretName> {
        let mut inputs = inputs.clone();
        for (member, of) in self.members {
            let Some(Value::Object(inner)) = inputs.get_mut(*member) else {
                continue;
            };
            for (key, value) in inner {
                if of.is_none_or(|of| of == key)
                    && let Some(name) = name(value)
                {
                    *value = text(&name).ok_or(name)?.into();
                }
            }
        }
        Ok(inputs)
    }

    /// What is wrong with references: those that stand where no secret can be used, and those that are
    /// none. Cost: O(size of the inputs).
    #[must_use]
    pub fn check(&self, inputs: &Map<String, Value>) -> Vec<Violation> {
        let mut violations = Vec::new();
        let mut path = Vec::new();
        for (key, value) in inputs {
            path.push(PathSegment::from(key.as_str()));
            self.walk(value, &mut path, &mut violations);
            path.pop();
        }
        let named = self.names(inputs).len();
        if named > NAMES_MAX {
            let path = [PathSegment::from(self.members[0].0)];
            violations.push(Violation::new(
                &path,
                "too many secrets",
                format!("at most {NAMES_MAX} different secrets for a task"),
                &named.into(),
            ));
        }
        violations
    }

    fn walk(&self, value: &Value, path: &mut Vec<PathSegment>, found: &mut Vec<Violation>) {
        if found.len() >= VIOLATIONS_MAX {
            return;
        }
        match value {
            Value::Object(members) if members.contains_key(MEMBER) => {
                if !self.hold(path) {
                    let expected = format!("`{{\"{MEMBER}\": ..}}` only {}", self.told);
                    let reason = "a secret cannot be used here";
                    found.push(Violation::new(path, reason, expected, value));
                } else if name(value).is_none() {
                    let expected = format!(
                        "`{{\"{MEMBER}\": \"name\"}}` and no other member; the name has {}",
                        SecretName::EXPECTED
                    );
                    // Somebody may have written a secret where its name belongs.
                    let reason = "not a reference to a secret";
                    found.push(Violation::new(path, reason, expected, &"***".into()));
                }
            }
            Value::Object(members) => {
                for (key, value) in members {
                    path.push(key.as_str().into());
                    self.walk(value, path, found);
                    path.pop();
                }
            }
            Value::Array(items) => {
                for (index, value) in items.iter().enumerate() {
                    path.push(index.into());
                    self.walk(value, path, found);
                    path.pop();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// The secret that a value refers to.
fn name(value: &Value) -> Option<SecretName> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    SecretName::new(members.get(MEMBER)?.as_str()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: Places = Places {
        members: &[("headers", None), ("auth", Some("token"))],
        told: "in a header and in `auth.token`",
    };

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn names_are_found_and_filled_where_they_may_stand() {
        let inputs = object(json!({
            "headers": {"a": {"$secret": "one"}, "b": "plain", "c": {"$secret": "one"}},
            "auth": {"type": "bearer", "token": {"$secret": "two"}}
        }));
        assert!(PLACES.check(&inputs).is_empty());
        let names = PLACES.names(&inputs);
        let names: Vec<_> = names.iter().map(SecretName::as_str).collect();
        assert_eq!(names, ["one", "two"]);
        let filled = PLACES.filled(&inputs, |name| match name.as_str() {
            "one" => Some("1"),
            _ => Some("2"),
        });
        let expected = json!({
            "headers": {"a": "1", "b": "plain", "c": "1"},
            "auth": {"type": "bearer", "token": "2"}
        });
        assert_eq!(filled, Ok(object(expected)));
        let missing = PLACES.filled(&inputs, |_| None).expect_err("not given");
        assert_eq!(missing.as_str(), "one");
    }

    #[test]
    fn a_reference_elsewhere_is_refused_with_the_places_where_it_works() {
        for inputs in [
            json!({"url": {"$secret": "a"}}),
            json!({"json": {"deep": [1, {"$secret": "a"}]}}),
            json!({"auth": {"type": {"$secret": "a"}}}),
            json!({"headers": {"a": {"b": {"$secret": "a"}}}}),
        ] {
            let inputs = object(inputs);
            assert!(PLACES.names(&inputs).is_empty());
            let found = PLACES.check(&inputs);
            assert_eq!(found.len(), 1, "{inputs:?}");
            assert_eq!(found[0].reason, "a secret cannot be used here");
            assert!(
                found[0]
                    .expected
                    .contains("in a header and in `auth.token`")
            );
        }
    }

    #[test]
    fn what_is_almost_a_reference_is_refused_and_not_repeated() {
        for value in [
            json!({"$secret": 1}),
            json!({"$secret": "hunter2 hunter2"}),
            json!({"$secret": "a", "more": 1}),
        ] {
            let inputs = object(json!({"headers": {"a": value}}));
            let found = PLACES.check(&inputs);
            assert_eq!(found.len(), 1);
            assert!(!format!("{found:?}").contains("hunter2"));
        }
    }

    #[test]
    fn a_task_names_a_bounded_number_of_secrets() {
        let headers =
            (0..=NAMES_MAX).map(|i| (format!("h{i}"), json!({"$secret": format!("s{i}")})));
        let inputs = object(json!({"headers": headers.collect::<Map<_, _>>()}));
        assert_eq!(PLACES.check(&inputs)[0].reason, "too many secrets");
    }
}
