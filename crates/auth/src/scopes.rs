//! Scopes: what credentials allow, in closed sets.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

macro_rules! scopes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// Something that credentials may allow.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(try_from = "String", into = "String")]
        #[repr(u8)]
        pub enum Scope {
            $($(#[$doc])* $variant),+
        }

        impl Scope {
            /// All of them, in the order in which they are shown.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name, which never changes: it is stored with tokens.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

scopes! {
    /// Read tasks, history, explanations and streams.
    TasksRead = "tasks:read",
    /// Create, change, delete and copy tasks.
    TasksWrite = "tasks:write",
    /// Execute, retry and cancel tasks.
    TasksRun = "tasks:run",
    /// Claim tasks and report their results.
    Worker = "worker",
    /// Manage webhook endpoints.
    Webhooks = "webhooks",
    /// See and change the flows of all users of the tenant, and act for any of them.
    UsersAny = "users:any",
    /// Use executors that start programs on the server's machine.
    ExecLocal = "exec:local",
    /// Read metrics and detailed health.
    Metrics = "metrics",
    /// Manage tokens, retention and read models, and read the audit log. Shows no task by itself.
    Admin = "admin",
}

/// A text that names no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a scope; scopes are {names}", names = Scopes::all())]
pub struct UnknownScope(pub String);

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        let found = Self::ALL.iter().find(|scope| scope.as_str() == text);
        found.copied().ok_or_else(|| UnknownScope(text.to_owned()))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl TryFrom<String> for Scope {
    type Error = UnknownScope;

    fn try_from(text: String) -> Result<Self, UnknownScope> {
        text.parse()
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> Self {
        scope.as_str().to_owned()
    }
}

/// A set of scopes. Written as their names, separated by spaces, in the order of [`Scope::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Scopes(u16);

impl Scopes {
    /// No scope.
    pub const NONE: Self = Self(0);

    /// Every scope.
    #[must_use]
    pub const fn all() -> Self {
        Self((1 << Scope::ALL.len()) - 1)
    }

    /// The set of these.
    #[must_use]
    pub fn of(scopes: impl IntoIterator<Item = Scope>) -> Self {
        scopes.into_iter().fold(Self::NONE, Self::with)
    }

    /// This set and one more.
    #[must_use]
    pub const fn with(self, scope: Scope) -> Self {
        Self(self.0 | 1 << scope as u8)
    }

    /// This set without one.
    #[must_use]
    pub const fn without(self, scope: Scope) -> Self {
        Self(self.0 & !(1 << scope as u8))
    }

    /// Whether it is in the set.
    #[must_use]
    pub const fn has(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }

    /// Whether all of the others are in the set.
    #[must_use]
    pub const fn includes(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// What is in both.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// Those in the set, in the order of [`Scope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL
            .iter()
            .copied()
            .filter(move |scope| self.has(*scope))
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, scope) in self.iter().enumerate() {
            let gap = if n == 0 { "" } else { " " };
            write!(f, "{gap}{scope}")?;
        }
        Ok(())
    }
}

impl FromStr for Scopes {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        let scopes = text.split_ascii_whitespace().map(str::parse);
        Ok(Self::of(scopes.collect::<Result<Vec<Scope>, _>>()?))
    }
}

impl TryFrom<String> for Scopes {
    type Error = UnknownScope;

    fn try_from(text: String) -> Result<Self, UnknownScope> {
        text.parse()
    }
}

impl From<Scopes> for String {
    fn from(scopes: Scopes) -> Self {
        scopes.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{Scope, Scopes};

    #[test]
    fn a_set_is_read_as_it_is_written() {
        let set = Scopes::of([Scope::Admin, Scope::TasksRead]);
        assert_eq!(set.to_string(), "tasks:read admin");
        assert_eq!("admin tasks:read".parse(), Ok(set));
        assert_eq!(Scopes::all().to_string().parse(), Ok(Scopes::all()));
        assert_eq!("".parse(), Ok(Scopes::NONE));
    }

    #[test]
    fn an_unknown_scope_is_named_with_those_there_are() {
        let error = "tasks:reed".parse::<Scopes>().expect_err("no such scope");
        assert!(
            error
                .to_string()
                .starts_with("`tasks:reed` is not a scope; scopes are tasks:read ")
        );
    }

    #[test]
    fn sets_are_compared_and_cut() {
        let both = Scopes::of([Scope::TasksRead, Scope::TasksRun]);
        assert!(both.includes(Scopes::of([Scope::TasksRun])));
        assert!(!both.includes(Scopes::of([Scope::TasksRun, Scope::Admin])));
        assert_eq!(
            both.without(Scope::TasksRun).iter().collect::<Vec<_>>(),
            [Scope::TasksRead]
        );
        assert_eq!(both.and(Scopes::all()), both);
    }
}
