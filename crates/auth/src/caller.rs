//! An authenticated caller.

use crate::name::Name;
use crate::scopes::{Scope, Scopes};
use std::sync::{Arc, LazyLock};

/// The actor of what nobody authenticated did.
pub const ANONYMOUS: &str = "anonymous";
/// The actor of whoever works on the store itself, beside the server.
pub const OPERATOR: &str = "operator";
/// The tenant of everything until there are several.
pub const MAIN_TENANT: &str = "main";

/// Prefixes that tell kinds of callers apart wherever only a text is kept.
pub(crate) const USER: &str = "user:";
pub(crate) const SERVICE: &str = "service:";

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
