//! An authenticated caller.

use crate::audit::SERVER;
use crate::scopes::{Scope, Scopes};
use std::fmt;
use std::sync::{Arc, LazyLock};

/// Unicode scalar values of the name of a user or service.
pub const NAME_CHARS_MAX: usize = 255;
/// The actor of what nobody authenticated did.
pub const ANONYMOUS: &str = "anonymous";
/// The actor of whoever works on the store itself, beside the server.
pub const OPERATOR: &str = "operator";
/// The actor of what the server does with flows by itself.
const ENGINE: &str = "engine";
/// The tenant of everything until there are several.
pub const MAIN_TENANT: &str = "main";

/// Prefixes that tell kinds of callers apart wherever only a text is kept.
const USER: &str = "user:";
const SERVICE: &str = "service:";

/// The `user_id` of flows that belong to a principal, by what histories call it; `None` for one whom nobody has
/// authenticated.
#[must_use]
pub fn owner_of(actor: &str) -> Option<&str> {
    let service = || actor.starts_with(SERVICE).then_some(actor);
    actor.strip_prefix(USER).or_else(service)
}

/// The kinds of callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Nobody is authenticated, because authentication is off, or because the store itself is worked on.
    Anonymous,
    /// A person, or a program that acts for one.
    User,
    /// A program with a name of its own.
    Service,
}

impl Kind {
    /// The name, which never changes: it is stored with tokens.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anonymous => ANONYMOUS,
            Self::User => "user",
            Self::Service => "service",
        }
    }
}

/// The name of a user or service: 1 to [`NAME_CHARS_MAX`] characters without control or invisible characters,
/// compared exactly.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

/// Why a text cannot be a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// It is empty.
    #[error("a name has at least one character")]
    Empty,
    /// It is too long.
    #[error("a name has at most {NAME_CHARS_MAX} characters")]
    TooLong,
    /// It could be taken for another one.
    #[error("a name has no control or invisible characters and no white space at its ends")]
    Invisible,
    /// It looks like the stored form of another kind of caller.
    #[error("a name does not begin with `user:` or `service:`")]
    Prefixed,
}

impl Name {
    /// The name with this text.
    ///
    /// # Errors
    /// [`InvalidName`].
    pub fn new(text: &str) -> Result<Self, InvalidName> {
        if text.is_empty() {
            return Err(InvalidName::Empty);
        }
        if text.chars().count() > NAME_CHARS_MAX {
            return Err(InvalidName::TooLong);
        }
        let is_hidden = |c: char| c.is_control() || is_invisible(c);
        if text.trim() != text || text.chars().any(is_hidden) {
            return Err(InvalidName::Invisible);
        }
        if text.starts_with(USER) || text.starts_with(SERVICE) {
            return Err(InvalidName::Prefixed);
        }
        Ok(Self(Arc::from(text)))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a reader could take it for a name by which histories and the audit log call the server itself or callers
    /// without credentials: in any case, in letters of another width or style, or with letters of another script in
    /// place of some of its own. Cost: O(length).
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        RESERVED.iter().any(|reserved| is_like(&self.0, reserved))
    }
}

/// Names by which histories and the audit log call the server itself and callers without credentials.
const RESERVED: [&str; 4] = [ANONYMOUS, ENGINE, OPERATOR, SERVER];

/// Whether `text` could be read as `word`, which is of ASCII letters. A letter of another script could be one that looks
/// like that of the word; a text of which no letter is one of the word's is not mixed, and another name.
fn is_like(text: &str, word: &str) -> bool {
    let mut shared = 0;
    let mut letters = text.chars().map(plain);
    for expected in word.chars() {
        match letters.next() {
            Some(letter) if letter.eq_ignore_ascii_case(&expected) => shared += 1,
            Some(letter) if !letter.is_ascii() => {}
            Some(_) | None => return false,
        }
    }
    letters.next().is_none() && shared > 0
}

/// The ASCII letter that a letter of full width or of a mathematical style stands for; others as they are.
fn plain(letter: char) -> char {
    const FULL_WIDTH: std::ops::RangeInclusive<u32> = 0xff01..=0xff5e;
    const FULL_WIDTH_BEHIND: u32 = 0xfee0;
    /// Thirteen alphabets of 52 letters.
    const MATHEMATICAL: std::ops::RangeInclusive<u32> = 0x1d400..=0x1d6a3;
    let code = u32::from(letter);
    let ascii = if FULL_WIDTH.contains(&code) {
        code - FULL_WIDTH_BEHIND
    } else if MATHEMATICAL.contains(&code) {
        u32::from('a') + (code - MATHEMATICAL.start()) % 26
    } else {
        return letter;
    };
    char::from_u32(ascii).unwrap_or(letter)
}

/// Whether a character shows nothing by itself (Unicode: `Default_Ignorable_Code_Point` and the controls of direction),
/// so that two names with and without it look alike.
const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The flows that a caller sees and may act on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reach {
    /// All flows of the tenant.
    All,
    /// The flows whose root has this `user_id`.
    Of(Arc<str>),
}

impl Reach {
    /// The owner of all flows within reach; `None`: there are several.
    #[must_use]
    pub const fn owner(&self) -> Option<&Arc<str>> {
        match self {
            Self::All => None,
            Self::Of(owner) => Some(owner),
        }
    }

    /// Whether a flow with this owner is within reach; `None` for a flow that belongs to nobody.
    #[must_use]
    pub fn covers(&self, owner: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Of(own) => owner == Some(own),
        }
    }
}

/// Who calls, and what the credentials allow. Made once for a credential and shared by its calls. Never
/// holds a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    kind: Kind,
    /// What the history and the audit log call it.
    actor: Arc<str>,
    /// The `user_id` of the flows that belong to it.
    owner: Arc<str>,
    tenant: Arc<str>,
    scopes: Scopes,
    /// The methods that it may claim as a worker; `None` for all.
    methods: Option<Arc<[Arc<str>]>>,
    /// The agents of the broker for which it may speak beside its own name; `None` for no others.
    agents: Option<Arc<[Arc<str>]>>,
    /// The id of the token, or what else names the credential in the audit log.
    credential: Option<Arc<str>>,
    /// When the credential ends, in milliseconds since 1970.
    expires_ms: Option<i64>,
}

static ANONYMOUS_CALLER: LazyLock<Arc<Caller>> = LazyLock::new(|| {
    let name: Arc<str> = Arc::from(ANONYMOUS);
    let caller = Caller::known(Kind::Anonymous, name.clone(), name, Scopes::all());
    Arc::new(caller)
});

static OPERATOR_CALLER: LazyLock<Arc<Caller>> = LazyLock::new(|| {
    let name: Arc<str> = Arc::from(OPERATOR);
    let caller = Caller::known(Kind::Anonymous, name.clone(), name, Scopes::all());
    Arc::new(caller)
});

impl Caller {
    /// Whoever works on the store itself, which its file or database lets him: may do everything, and shows no
    /// credentials. No call to a server is his.
    #[must_use]
    pub fn operator() -> Arc<Self> {
        OPERATOR_CALLER.clone()
    }

    /// Whoever calls while authentication is off: may do everything.
    #[must_use]
    pub fn anonymous() -> Arc<Self> {
        ANONYMOUS_CALLER.clone()
    }

    /// A user of the main tenant.
    #[must_use]
    pub fn user(name: &Name, scopes: Scopes) -> Self {
        let actor = Arc::from(format!("{USER}{name}"));
        Self::known(Kind::User, actor, name.0.clone(), scopes)
    }

    /// A service of the main tenant. Its own flows have its actor as `user_id`, so that a service and a user
    /// of the same name stay apart.
    #[must_use]
    pub fn service(name: &Name, scopes: Scopes) -> Self {
        let actor: Arc<str> = Arc::from(format!("{SERVICE}{name}"));
        Self::known(Kind::Service, actor.clone(), actor, scopes)
    }

    fn known(kind: Kind, actor: Arc<str>, owner: Arc<str>, scopes: Scopes) -> Self {
        Self {
            kind,
            actor,
            owner,
            tenant: Arc::from(MAIN_TENANT),
            scopes,
            methods: None,
            agents: None,
            credential: None,
            expires_ms: None,
        }
    }

    /// The same, allowed to claim these methods only.
    #[must_use]
    pub fn narrowed(mut self, methods: Option<Arc<[Arc<str>]>>) -> Self {
        self.methods = methods;
        self
    }

    /// The same, allowed to speak for these agents of the broker too.
    #[must_use]
    pub fn with_agents(mut self, agents: Option<Arc<[Arc<str>]>>) -> Self {
        self.agents = agents;
        self
    }

    /// The same by a credential with this id, until then (milliseconds since 1970; `None`: without end).
    #[must_use]
    pub fn by(mut self, credential: Arc<str>, expires_ms: Option<i64>) -> Self {
        self.credential = Some(credential);
        self.expires_ms = expires_ms;
        self
    }

    /// A caller that another node has authenticated and describes so; `None` if no caller is like that.
    #[must_use]
    pub fn described(
        actor: &str,
        tenant: &str,
        scopes: Scopes,
        methods: Option<Arc<[Arc<str>]>>,
        credential: Option<Arc<str>>,
        expires_ms: Option<i64>,
    ) -> Option<Self> {
        let caller = if actor == ANONYMOUS {
            (*Self::anonymous()).clone()
        } else if let Some(name) = actor.strip_prefix(USER) {
            Self::user(&Name::new(name).ok()?, scopes)
        } else {
            Self::service(&Name::new(actor.strip_prefix(SERVICE)?).ok()?, scopes)
        };
        Some(Self {
            tenant: Arc::from(tenant),
            scopes,
            methods,
            credential,
            expires_ms,
            ..caller
        })
    }

    /// Whether it is a user, a service or anonymous.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// What the history, the audit log and stored keys call it: `anonymous`, `user:ann`, `service:ci`.
    #[must_use]
    pub const fn actor(&self) -> &Arc<str> {
        &self.actor
    }

    /// The `user_id` of flows that belong to it.
    #[must_use]
    pub const fn owner(&self) -> &Arc<str> {
        &self.owner
    }

    /// The tenant that the caller belongs to.
    #[must_use]
    pub const fn tenant(&self) -> &Arc<str> {
        &self.tenant
    }

    /// What the credentials allow.
    #[must_use]
    pub const fn scopes(&self) -> Scopes {
        self.scopes
    }

    /// Whether the credentials allow it.
    #[must_use]
    pub const fn may(&self, scope: Scope) -> bool {
        self.scopes.has(scope)
    }

    /// The methods that it may claim as a worker; `None` for all.
    #[must_use]
    pub const fn methods(&self) -> Option<&Arc<[Arc<str>]>> {
        self.methods.as_ref()
    }

    /// The agents of the broker for which it may speak beside its own name; `None` for no others.
    #[must_use]
    pub const fn agents(&self) -> Option<&Arc<[Arc<str>]>> {
        self.agents.as_ref()
    }

    /// Whether it may speak for an agent of the broker: its own name, one of those that its credential names, or any
    /// with [`Scope::UsersAny`]. Cost: O(agents).
    #[must_use]
    pub fn speaks_for(&self, agent: &str) -> bool {
        let name = self.actor.split_once(':').map(|(_, name)| name);
        let mut named = self.agents.iter().flat_map(|all| all.iter());
        self.may(Scope::UsersAny) || name == Some(agent) || named.any(|it| **it == *agent)
    }

    /// What names the credential in the audit log: the id of a token, never its secret.
    #[must_use]
    pub const fn credential(&self) -> Option<&Arc<str>> {
        self.credential.as_ref()
    }

    /// When the credential ends, in milliseconds since 1970; `None`: without end.
    #[must_use]
    pub const fn expires_ms(&self) -> Option<i64> {
        self.expires_ms
    }

    /// The flows that the caller sees. Cost: O(1).
    #[must_use]
    pub fn reach(&self) -> Reach {
        if self.may(Scope::UsersAny) {
            Reach::All
        } else {
            Reach::Of(self.owner.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    #[test]
    fn names_that_could_be_taken_for_others_are_refused() {
        let long = "x".repeat(NAME_CHARS_MAX + 1);
        for (text, reason) in [
            ("", InvalidName::Empty),
            (&long, InvalidName::TooLong),
            (" ann", InvalidName::Invisible),
            ("ann\0", InvalidName::Invisible),
            ("an\u{200b}n", InvalidName::Invisible),
            ("ann\u{202e}", InvalidName::Invisible),
            ("a\u{ad}nn", InvalidName::Invisible),
            ("service:ann", InvalidName::Prefixed),
        ] {
            assert_eq!(Name::new(text), Err(reason), "{text:?}");
        }
        assert_eq!(name("ann@example.org").as_str(), "ann@example.org");
    }

    #[test]
    fn names_that_could_be_taken_for_the_servers_own_are_reserved() {
        for text in [
            "anonymous",
            "engine",
            "operator",
            "server",
            "Engine",
            "SERVER",
            "s\u{435}rver",
            "\u{430}n\u{43e}nymous",
            "\u{ff53}\u{ff45}\u{ff52}\u{ff56}\u{ff45}\u{ff52}",
            "\u{1d42c}\u{1d41e}\u{1d42b}\u{1d42f}\u{1d41e}\u{1d42b}",
        ] {
            assert!(name(text).is_reserved(), "{text:?}");
        }
        for text in [
            "engineer",
            "engin",
            "servers",
            "corp:server",
            "ann",
            "\u{441}\u{435}\u{440}\u{433}\u{435}\u{439}",
            "\u{30aa}\u{30da}",
        ] {
            assert!(!name(text).is_reserved(), "{text:?}");
        }
    }

    #[test]
    fn a_user_and_a_service_of_one_name_own_different_flows() {
        let scopes = Scopes::of([Scope::TasksRead]);
        let user = Caller::user(&name("ci"), scopes);
        let service = Caller::service(&name("ci"), scopes);
        assert!(user.reach().covers(Some("ci")));
        assert!(!service.reach().covers(Some("ci")));
        assert!(service.reach().covers(Some("service:ci")));
        assert!(!user.reach().covers(None));
        assert!(Caller::anonymous().reach().covers(None));
    }

    #[test]
    fn a_caller_speaks_for_its_own_name_and_the_agents_of_its_credential() {
        let ann = Caller::user(&name("ann"), Scopes::of([Scope::Worker]));
        assert!(ann.speaks_for("ann") && !ann.speaks_for("robot") && !ann.speaks_for("user:ann"));
        let ann = ann.with_agents(Some([Arc::from("robot")].into()));
        assert!(ann.speaks_for("robot") && !ann.speaks_for("robo"));
        assert!(Caller::user(&name("chief"), Scopes::of([Scope::UsersAny])).speaks_for("x"));
        assert!(Caller::anonymous().speaks_for("x"));
    }

    #[test]
    fn a_caller_is_the_same_on_the_node_that_is_told_of_it() {
        let caller = Caller::service(&name("ci"), Scopes::of([Scope::UsersAny]))
            .by(Arc::from("id"), Some(5));
        let told = Caller::described(
            caller.actor(),
            caller.tenant(),
            caller.scopes(),
            caller.methods().cloned(),
            caller.credential().cloned(),
            caller.expires_ms(),
        );
        assert_eq!(told, Some(caller));
        let nobody = Caller::described("ann", MAIN_TENANT, Scopes::all(), None, None, None);
        assert_eq!(nobody, None);
    }
}
