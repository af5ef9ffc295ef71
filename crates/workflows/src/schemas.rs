//! The inputs and outputs of phases as JSON Schemas (draft-07), for those who write workers in any language.

use crate::limits;
use crate::types::is_optional;
use crate::workflow::{Input, Phase, Source, Validation, Workflow};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use taskledger_domain::contract::Outputs;

/// The input and output schemas of a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseSchemas {
    /// Name of the phase.
    pub phase: String,
    /// Its input: exactly the declared keys. Of inputs without a type, the type of the output that they come from, if
    /// that is declared.
    pub input: Value,
    /// Its output: the declared keys, and any others.
    pub output: Value,
}

/// Why there are no schemas.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSchemas {
    /// The document has no such phase.
    #[error("the document has no phase `{0}`")]
    UnknownPhase(String),
    /// The types of the document would be repeated too often.
    #[error(
        "the schemas of all phases would take more than {} bytes; ask for one phase",
        limits::SCHEMAS_BYTES_MAX
    )]
    TooLarge,
}

impl Workflow {
    /// Those of one phase, or of all, in the order of [`Workflow::phases`]. Cost: O(phases * types of the document).
    ///
    /// # Errors
    /// [`NoSchemas`].
    pub fn schemas(&self, phase: Option<&str>) -> Result<Vec<PhaseSchemas>, NoSchemas> {
        let wanted = |it: &&Phase| phase.is_none_or(|name| it.name == name);
        let wanted: Vec<&Phase> = self.phases.iter().filter(wanted).collect();
        if let (Some(name), true) = (phase, wanted.is_empty()) {
            return Err(NoSchemas::UnknownPhase(name.to_owned()));
        }
        let types = self.types.clone().map(Value::from);
        let types_bytes = types.as_ref().map_or(0, |types| types.to_string().len());
        let mut left = limits::SCHEMAS_BYTES_MAX;
        let by_name: HashMap<&str, &Phase> = self
            .phases
            .iter()
            .map(|it| (it.name.as_str(), it))
            .collect();
        let mut schemas = Vec::with_capacity(wanted.len());
        for phase in wanted {
            // Before the types are compiled once more.
            left = left.checked_sub(types_bytes).ok_or(NoSchemas::TooLarge)?;
            let one = PhaseSchemas {
                phase: phase.name.clone(),
                input: input_of(phase, &by_name, types.as_ref()),
                output: self.output_of(phase, types.as_ref()),
            };
            let bytes = one.input.to_string().len() + one.output.to_string().len();
            left = left.checked_sub(bytes).ok_or(NoSchemas::TooLarge)?;
            schemas.push(one);
        }
        Ok(schemas)
    }

    fn output_of(&self, phase: &Phase, types: Option<&Value>) -> Value {
        let outputs = phase.outputs.clone().unwrap_or_default();
        let shallow = self.validation == Validation::Shallow;
        schema_of(outputs, types, shallow)
    }
}

fn input_of(phase: &Phase, by_name: &HashMap<&str, &Phase>, types: Option<&Value>) -> Value {
    let declared = phase.inputs.iter().map(|(key, input)| {
        let is_sure = input.required || input.default.is_some();
        let of = type_of(input, by_name).unwrap_or_else(|| "any".into());
        (key.clone(), json!({"type": of, "required": is_sure}))
    });
    let mut schema = schema_of(declared.collect(), types, false);
    schema["additionalProperties"] = Value::from(false);
    schema
}

/// The type that an input has: its own, or that of the whole output that it names.
fn type_of(input: &Input, by_name: &HashMap<&str, &Phase>) -> Option<Value> {
    if let Some(declared) = &input.type_ {
        return Some(declared.clone());
    }
    let Source::Phase {
        phase,
        key,
        pointer: None,
    } = &input.source
    else {
        return None;
    };
    let outputs = by_name.get(phase.as_str())?.outputs.as_ref()?;
    let declared = outputs.get(key)?;
    // A default may be of any type.
    let is_sure = input.default.is_none();
    match declared
        .get("type")
        .filter(|_| is_optional(declared) || declared.get("required").is_some())
    {
        Some(inner) => Some(inner.clone()).filter(|_| is_sure),
        None => Some(declared.clone()).filter(|_| is_sure),
    }
}

/// The schema of an object with these keys; of any object when there are none.
fn schema_of(declared: Map<String, Value>, types: Option<&Value>, shallow: bool) -> Value {
    let mut schemas = Map::new();
    schemas.insert("outputs".to_owned(), declared.into());
    if let Some(types) = types {
        schemas.insert("types".to_owned(), types.clone());
    }
    if shallow {
        schemas.insert("validation".to_owned(), "shallow".into());
    }
    // A document without faults has none here.
    match Outputs::of_map(&schemas) {
        Some(outputs) => outputs.json_schema(),
        None => json!({"type": "object"}),
    }
}
