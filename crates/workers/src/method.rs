//! Declared methods, and the reasons why one cannot be declared.

use std::sync::Arc;
use taskledger_domain::{Payload, Timestamp};

/// Bytes of JSON text of each schema of a method, and of its defaults.
pub const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// Unicode scalar values of a description.
pub const DESCRIPTION_CHARS_MAX: usize = 2_000;
/// The highest limit that a method may declare.
pub const LIMIT_MAX: u32 = 100_000;

/// Methods that one user may have declared for their own flows.
pub const OWN_METHODS_MAX: usize = 1_000;
/// Bytes of all that one user has declared for their own flows.
pub const OWN_METHODS_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A method as one declaration has it: its tasks are offered and its attempts counted together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MethodKey {
    /// What tasks say in `schemas.method`.
    pub name: Arc<str>,
    /// The user whose flows alone the declaration is for; `None`: it is shared, or there is none.
    pub owner: Option<Arc<str>>,
}

impl MethodKey {
    /// The method as all have it who have not declared it for themselves.
    #[must_use]
    pub const fn shared(name: Arc<str>) -> Self {
        Self { name, owner: None }
    }
}

/// A method whose tasks workers claim, as somebody declared it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    /// The user whose flows alone it is for; `None`: it is for all flows but those of users who have declared the same
    /// method for themselves.
    pub owner: Option<Arc<str>>,
    /// What tasks say in `schemas.method`; 1 to 255 characters.
    pub name: Arc<str>,
    /// For people; at most [`DESCRIPTION_CHARS_MAX`].
    pub description: Option<Arc<str>>,
    /// The JSON Schema of inputs; at most [`SCHEMA_BYTES_MAX`].
    pub input_schema: Option<Payload>,
    /// The JSON Schema of outputs; at most [`SCHEMA_BYTES_MAX`].
    pub output_schema: Option<Payload>,
    /// Members of `params` that new tasks get when they do not say; at most [`SCHEMA_BYTES_MAX`].
    pub defaults: Option<Payload>,
    /// Attempts at once, all servers together, 1 to [`LIMIT_MAX`]; `None`: any number.
    pub limit: Option<u32>,
    /// The principal that declared it: `user:ann`, `service:ci`, `anonymous`.
    pub declared_by: Arc<str>,
    /// When it was last declared.
    pub declared_at: Timestamp,
}

impl Method {
    /// What it is known by.
    #[must_use]
    pub fn key(&self) -> MethodKey {
        MethodKey {
            name: self.name.clone(),
            owner: self.owner.clone(),
        }
    }

    /// Bytes of all its texts.
    pub(crate) fn bytes(&self) -> usize {
        let payload = |payload: &Option<Payload>| payload.as_ref().map_or(0, |p| p.as_str().len());
        self.name.len()
            + self.owner.as_ref().map_or(0, |owner| owner.len())
            + self.declared_by.len()
            + self.description.as_ref().map_or(0, |text| text.len())
            + payload(&self.input_schema)
            + payload(&self.output_schema)
            + payload(&self.defaults)
    }
}

/// The methods that a caller may replace and remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// Those that the same principal declared.
    Own,
    /// All: an administrator.
    All,
}

/// Why a method is not declared or removed; the caller can mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It belongs to somebody else.
    #[error("method `{name}` was declared by another principal")]
    AnotherPrincipal {
        /// The method that another principal has declared.
        name: Arc<str>,
    },
    /// There are as many as there may be.
    #[error("{max} methods are declared; undeclare one that is not used any more")]
    TooMany {
        /// How many there may be.
        max: usize,
    },
    /// All of them together would be too large.
    #[error("the declared methods together would have more than {max} bytes")]
    TooLarge {
        /// How many bytes there may be.
        max: usize,
    },
    /// Users have declared as many for themselves, all together, as they may.
    #[error(
        "users have declared {max} methods for their own tasks, which is the most for all users together; undeclare \
         one that is not used any more"
    )]
    UsersTooMany {
        /// How many there may be.
        max: usize,
    },
    /// What users have declared for themselves would be too large, all together.
    #[error(
        "the methods that users have declared for their own tasks would have more than {max} bytes, which is the most \
         for all users together"
    )]
    UsersTooLarge {
        /// How many bytes there may be.
        max: usize,
    },
    /// A member is longer than it may be.
    #[error("`{member}` has {found} bytes or characters; at most {max} are allowed")]
    TooLong {
        /// Which: `input_schema`, `output_schema`, `defaults` or `description`.
        member: &'static str,
        /// How long it is.
        found: usize,
        /// How long it may be.
        max: usize,
    },
}

/// Whether each member is within its limit.
pub(crate) fn measured(method: &Method) -> Result<(), Refusal> {
    let payloads = [
        ("input_schema", &method.input_schema),
        ("output_schema", &method.output_schema),
        ("defaults", &method.defaults),
    ];
    for (member, payload) in payloads {
        let found = payload.as_ref().map_or(0, |payload| payload.as_str().len());
        if found > SCHEMA_BYTES_MAX {
            let max = SCHEMA_BYTES_MAX;
            return Err(Refusal::TooLong { member, found, max });
        }
    }
    let described = method.description.as_ref();
    let found = described.map_or(0, |text| text.chars().count());
    if found > DESCRIPTION_CHARS_MAX {
        return Err(Refusal::TooLong {
            member: "description",
            found,
            max: DESCRIPTION_CHARS_MAX,
        });
    }
    Ok(())
}
