//! Tokens, the audit log, and who the caller is. They lie beside the log, so any node answers, and so does a
//! command that works on the store alone.

use crate::application::api::{
    AuditPage, AuditSearch, CreatedToken, DeniedView, Error, TokenPage, TokenView,
};
use crate::application::authorize::{UseCase, authorize};
use crate::application::context::Context;
use crate::application::limits::Limits;
use crate::clock::SharedClock;
use std::sync::Arc;
use taskledger_auth::store::Owner;
use taskledger_auth::tokens::{New, Refusal};
use taskledger_auth::{
    Action, By, Caller, DeniedJwt, Entry, Kind, Name, Origin, Reach, Scope, Seen, TokenId, Tokens,
    is_credential,
};
use taskledger_domain::{FlowId, Violation};

/// The object of a row of the audit log about a stream that is not of one flow, or a list of names.
pub(super) const ALL: &str = "*";

/// Where a call came from, as far as its context knows.
pub(super) fn origin(context: &Context) -> Origin {
    Origin {
        address: context
            .address
            .map(|address| Arc::from(address.to_string())),
        request: Some(
            context
                .own_id
                .as_ref()
                .unwrap_or(&context.correlation)
                .clone(),
        ),
        client_request: context.own_id.as_ref().map(|_| context.correlation.clone()),
    }
}

/// The user whose things beside the log a call is about, such as secrets or documents. `asked`: the user that the call
/// names, empty for nobody; absent: the caller, or nobody without authentication. A user reaches only their own.
///
/// # Errors
/// `Forbidden` for what is of somebody else without `users:any`.
pub(super) fn user_for(
    context: &Context,
    asked: Option<Arc<str>>,
) -> Result<Option<Arc<str>>, Error> {
    let caller = &context.caller;
    let own = match caller.kind() {
        Kind::Anonymous => None,
        Kind::User | Kind::Service => Some(caller.owner().clone()),
    };
    let user = match asked {
        None => own.clone(),
        Some(asked) => Some(asked).filter(|asked| !asked.is_empty()),
    };
    if user != own && !caller.may(Scope::UsersAny) {
        return Err(Error::Forbidden {
            scope: Scope::UsersAny,
            field: Some("owner".into()),
        });
    }
    Ok(user)
}

/// The use cases of tokens and the audit log.
#[derive(Debug)]
pub struct Access {
    tokens: Arc<Tokens>,
    clock: SharedClock,
    /// The OIDC issuers that are trusted; absent where no server runs, whose settings say it.
    issuers: Option<Arc<[Arc<str>]>>,
    /// How often callers may ask; absent where no server runs.
    limits: Option<Arc<Limits>>,
}

/// What has them: the whole application, or they alone.
pub trait HasAccess: Send + Sync + 'static {
    /// The use cases of tokens and the audit log.
    fn access(&self) -> &Access;
}

impl HasAccess for Access {
    fn access(&self) -> &Access {
        self
    }
}

impl Access {
    /// The use cases on these tokens.
    #[must_use]
    pub const fn new(tokens: Arc<Tokens>, clock: SharedClock) -> Self {
        Self {
            tokens,
            clock,
            issuers: None,
            limits: None,
        }
    }

    /// The same for a server that trusts these OIDC issuers and no others.
    #[must_use]
    pub(super) fn trusting(mut self, issuers: Arc<[Arc<str>]>) -> Self {
        self.issuers = Some(issuers);
        self
    }

    /// The same within these limits.
    #[must_use]
    pub(super) fn limited(mut self, limits: Arc<Limits>) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Lets a call for this use case in, and counts it.
    fn admit(&self, context: &Context, use_case: UseCase) -> Result<(), Error> {
        self.authorize(context, use_case, None)?;
        match &self.limits {
            Some(limits) => limits.rate(context, use_case, 1),
            None => Ok(()),
        }
    }

    /// Refuses what the credentials of the caller do not allow; a change is noted as refused. `action`: what it is
    /// there, where the use case does not say it. Cost: O(1).
    ///
    /// # Errors
    /// `Forbidden` with the scope that is missing.
    pub(super) fn authorize(
        &self,
        context: &Context,
        use_case: UseCase,
        action: Option<Action>,
    ) -> Result<(), Error> {
        let refused = match authorize(context, use_case) {
            Ok(()) => return Ok(()),
            Err(refused) => Err(refused),
        };
        match action.or_else(|| use_case.recorded().change()) {
            Some(action) => self.noted(context, (action, None), refused),
            None => refused,
        }
    }

    /// What was decided about a change. That it was refused for lack of a scope is noted. Cost: O(1).
    ///
    /// # Errors
    /// The same.
    pub(super) fn noted<T>(
        &self,
        context: &Context,
        change: (Action, Option<Arc<str>>),
        decided: Result<T, Error>,
    ) -> Result<T, Error> {
        if let Err(Error::Forbidden { scope, .. }) = &decided {
            let audit = self.tokens.audit();
            audit.denied_for(&context.caller, &origin(context), change, *scope);
        }
        decided
    }

    /// Time and the ids of failures.
    #[must_use]
    pub const fn clock(&self) -> &SharedClock {
        &self.clock
    }

    /// A new token, with its secret.
    ///
    /// # Errors
    /// [`Error`]; `Forbidden` for a scope that the caller lacks himself.
    pub async fn create_token(&self, context: &Context, new: New) -> Result<CreatedToken, Error> {
        self.admit(context, UseCase::CreateToken)?;
        let id = new.id.clone();
        let (caller, origin) = (&context.caller, origin(context));
        let created = self.tokens.create(caller, &origin, new).await?;
        let created = created.map_err(|refusal| refused(refusal, id.as_ref()))?;
        Ok(CreatedToken::of(created, self.clock.now()))
    }

    /// Tokens, oldest first: all with `admin`, else the caller's own. `after` is where the page before ended.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn tokens(
        &self,
        context: &Context,
        owner: Option<(Kind, Name)>,
        after: i64,
        limit: usize,
    ) -> Result<TokenPage, Error> {
        self.admit(context, UseCase::ListTokens)?;
        let owner = owner.map(|(kind, name)| Owner {
            kind,
            name,
            tenant: context.caller.tenant().clone(),
        });
        let found = self
            .tokens
            .list(&context.caller, owner.as_ref(), after, limit + 1);
        let mut tokens = found.await?;
        let more = tokens.len() > limit;
        tokens.truncate(limit);
        let next = tokens.last().filter(|_| more).map(|last| last.no);
        let now = self.clock.now();
        let shown = tokens.into_iter().map(|row| TokenView::of(row, now));
        let tokens = shown.collect();
        Ok(TokenPage { tokens, next })
    }

    /// A new secret for a token, which lasts as long again; the old one is accepted for `grace_s` seconds.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn rotate_token(
        &self,
        context: &Context,
        id: &TokenId,
        grace_s: u64,
    ) -> Result<CreatedToken, Error> {
        self.admit(context, UseCase::RotateToken)?;
        let (caller, origin) = (&context.caller, origin(context));
        let rotated = self
            .tokens
            .rotate(caller, &origin, id, Some(grace_s))
            .await?;
        let rotated = rotated.map_err(|refusal| refused(refusal, Some(id)))?;
        Ok(CreatedToken::of(rotated, self.clock.now()))
    }

    /// Ends a token with all of its secrets.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn revoke_token(&self, context: &Context, id: &TokenId) -> Result<TokenView, Error> {
        self.admit(context, UseCase::RevokeToken)?;
        let (caller, origin) = (&context.caller, origin(context));
        let revoked = self.tokens.revoke(caller, &origin, id).await?;
        let revoked = revoked.map_err(|refusal| refused(refusal, Some(id)))?;
        Ok(TokenView::of(revoked, self.clock.now()))
    }

    /// Refuses JWTs of an issuer before they expire. Of an issuer that is not trusted none are accepted anyway, so
    /// a name that is none of theirs is a mistake; where no server runs, any is taken.
    ///
    /// # Errors
    /// [`Error`]; `Invalid` for an issuer that this server does not trust, with those that it does.
    pub async fn deny_jwt(
        &self,
        context: &Context,
        issuer: Arc<str>,
        what: DeniedJwt,
    ) -> Result<DeniedView, Error> {
        self.admit(context, UseCase::DenyJwt)?;
        no_credential(&issuer, &what)?;
        if let Some(trusted) = &self.issuers
            && !trusted.contains(&issuer)
        {
            return Err(not_trusted(&issuer, trusted));
        }
        let (caller, origin) = (&context.caller, origin(context));
        let denied = self.tokens.deny(caller, &origin, issuer, what).await?;
        denied.map_err(|refusal| refused(refusal, None))
    }

    /// Rows of the audit log, newest first; `before` is where the page before ended.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn audit(
        &self,
        context: &Context,
        search: &AuditSearch,
        before: Option<i64>,
        limit: usize,
    ) -> Result<AuditPage, Error> {
        self.admit(context, UseCase::ReadAudit)?;
        let audit = self.tokens.audit();
        let mut entries = audit.list(search, before, limit + 1).await?;
        let more = entries.len() > limit;
        entries.truncate(limit);
        let next = entries.last().filter(|_| more).map(|last| last.seq);
        Ok(AuditPage { entries, next })
    }

    /// Who calls.
    ///
    /// # Errors
    /// [`Error`].
    pub fn whoami(&self, context: &Context) -> Result<Arc<Caller>, Error> {
        self.admit(context, UseCase::WhoAmI)?;
        Ok(context.caller.clone())
    }

    /// Whether it is noted when a caller reads or changes what is of somebody else: callers who see all flows, unless
    /// authentication is off.
    pub(super) fn notes_reads(context: &Context) -> bool {
        let caller = &context.caller;
        caller.kind() != Kind::Anonymous && caller.reach() == Reach::All
    }

    /// Notes that a caller read a flow of this owner, if that is somebody else. Cost: O(1).
    pub(super) fn read(&self, context: &Context, flow: FlowId, owner: Option<&str>) {
        if Self::reads_of_others(context, owner) {
            let flow = Arc::from(flow.to_string());
            self.seen(context, (Action::FlowRead, Some(flow)), None);
        }
    }

    /// Notes that a caller was given a task of this user to work on, if that is somebody else. Cost: O(1).
    pub(super) fn given(&self, context: &Context, owner: Option<&Arc<str>>) {
        if Self::reads_of_others(context, owner.map(|owner| &**owner)) {
            self.seen(context, (Action::TaskClaim, owner.cloned()), None);
        }
    }

    /// Notes that a caller read something of this user that lies beside the log, if that is somebody else; `name`:
    /// what, or [`ALL`]. Cost: O(1).
    pub(super) fn read_beside(
        &self,
        context: &Context,
        (action, name): (Action, &str),
        owner: Option<&Arc<str>>,
    ) {
        if Self::reads_of_others(context, owner.map(|owner| &**owner)) {
            let what = (action, Some(Arc::from(name)));
            self.seen(context, what, owner.cloned());
        }
    }

    /// Whether it is noted when the caller reads or changes something of this user, `None`: of nobody.
    pub(super) fn reads_of_others(context: &Context, owner: Option<&str>) -> bool {
        Self::notes_reads(context) && owner != Some(&**context.caller.owner())
    }

    fn seen(
        &self,
        context: &Context,
        (action, object): (Action, Option<Arc<str>>),
        owner: Option<Arc<str>>,
    ) {
        let seen = Seen {
            action,
            object,
            owner,
        };
        let audit = self.tokens.audit();
        audit.read(&context.caller, &origin(context), seen);
    }

    /// Notes that a caller opened a stream of the flows of this user, `None`: of all, if it shows flows of somebody
    /// else. Cost: O(1).
    pub(super) fn flows_watched(&self, context: &Context, user: Option<&str>) {
        if Self::reads_of_others(context, user) {
            self.seen(context, (Action::FlowRead, Some(Arc::from(ALL))), None);
        }
    }

    /// Writes a row of the caller into the audit log.
    ///
    /// # Errors
    /// [`Error`]: it is not written.
    pub(super) async fn note(
        &self,
        context: &Context,
        entry: impl FnOnce(By) -> Entry,
    ) -> Result<(), Error> {
        let by = By::call(&context.caller, &origin(context));
        Ok(self.tokens.audit().record(&entry(by)).await?)
    }
}

/// Refuses a credential in place of a name or claim: it denies nothing, and would be kept and shown. It is not
/// repeated.
fn no_credential(issuer: &str, what: &DeniedJwt) -> Result<(), Error> {
    let (value, expected) = match what {
        DeniedJwt::Id(value) => (value, "the claim `jti` of the token, not the token itself"),
        DeniedJwt::Subject(value) => (value, "the claim `sub` of the token, not the token itself"),
    };
    let issuer = (
        "issuer",
        issuer,
        "the claim `iss` of the token, not the token itself",
    );
    let faults = [issuer, ("value", value, expected)]
        .into_iter()
        .filter(|(_, text, _)| is_credential(text))
        .map(|(field, _, expected)| Violation::of(field, "a credential", expected, &"***".into()));
    let faults: Vec<_> = faults.collect();
    if faults.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(faults))
}

/// Tokens of this issuer are not accepted. Told only to those who may refuse tokens: they see the settings.
fn not_trusted(issuer: &str, trusted: &[Arc<str>]) -> Error {
    let (reason, expected) = if trusted.is_empty() {
        let expected = "a server with `--oidc-issuer`; this one accepts tokens of no issuer";
        ("no issuer is configured", expected.to_owned())
    } else {
        let names: Vec<_> = trusted.iter().map(|name| format!("`{name}`")).collect();
        let expected = format!("exactly as its tokens name it: {}", names.join(", "));
        ("not an issuer that is configured", expected)
    };
    Error::invalid([Violation::of("issuer", reason, expected, &issuer.into())])
}

/// Why nothing was done, as a fault of the member that it is about.
fn refused(refusal: Refusal, id: Option<&TokenId>) -> Error {
    let (field, expected) = match refusal {
        Refusal::Scope(scope) => {
            let field = Some("scopes".into());
            return Error::Forbidden { scope, field };
        }
        Refusal::Methods => (
            "methods",
            "methods to which your own credential is narrowed",
        ),
        Refusal::NarrowedTo => ("methods", "a list of methods"),
        Refusal::NoWorker => ("methods", "the scope `worker` too, or no methods"),
        Refusal::Agents => ("agents", "agents for which the caller speaks"),
        Refusal::Named => ("agents", "a list of agents"),
        Refusal::Unknown => ("id", "the id of a token, as `tokens.list` shows it"),
        Refusal::Ended => ("id", "the id of a token that has not ended"),
        Refusal::Taken => ("id", "an id that no token has"),
        Refusal::Lifetime => ("expires_in_seconds", "a number of seconds"),
        Refusal::Grace => ("grace_seconds", "a number of seconds"),
        Refusal::Note => ("note", "a shorter note"),
        Refusal::Reserved => ("name", "another name"),
        Refusal::Nothing => ("scopes", "at least one scope"),
        Refusal::Full(_) => ("tokens", "fewer tokens"),
        Refusal::DeniedFull(_) => ("value", "fewer JWTs that are refused"),
    };
    let actual = match (field, id) {
        ("id", Some(id)) => id.to_string().into(),
        _ => serde_json::Value::Null,
    };
    let fault = Violation::of(field, refusal.to_string(), expected, &actual);
    Error::invalid([fault])
}
