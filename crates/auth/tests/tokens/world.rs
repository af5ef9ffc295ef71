//! A store with its tokens, and people who use them.

use std::sync::Arc;
use taskledger_auth::store::{AUTH_FILE, AuditFilter, AuditRow, AuthStore};
use taskledger_auth::tokens::{Created, New, Refusal};
use taskledger_auth::{
    AdminTokens, AuditLog, Caller, Denial, Kind, Name, Origin, Scope, Scopes, Tokens,
};
use taskledger_clock::{Clock, ManualClock};
use taskledger_domain::Timestamp;
use taskledger_testkit::beside::Opening;
pub(crate) use taskledger_testkit::beside::Place;

/// 2026-01-01T00:00:00Z.
pub(crate) const START: Timestamp = Timestamp(1_767_225_600_000_000);
pub(crate) const SECOND: u64 = 1_000;
pub(crate) const DAY: u64 = 24 * 3_600 * SECOND;

pub(crate) async fn open(place: &Place) -> Arc<AuthStore> {
    let opened = match place.opening() {
        Opening::Folder(folder) => AuthStore::of_folder(folder).await,
        Opening::Database(options) => AuthStore::of_database(&options).await,
    };
    Arc::new(opened.unwrap())
}

pub(crate) struct World {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) tokens: Tokens,
    pub(crate) place: Place,
}

impl World {
    pub(crate) async fn on_sqlite() -> Self {
        Self::at(Place::folder()).await
    }

    pub(crate) async fn on_postgres() -> Self {
        Self::at(Place::database().await).await
    }

    /// Runs a text of SQL beside the store.
    pub(crate) async fn run(&self, sql: &str) -> Result<(), sqlx::Error> {
        self.place.run(AUTH_FILE, "taskledger_auth", sql).await
    }

    async fn at(place: Place) -> Self {
        let clock = Arc::new(ManualClock::at(START));
        let tokens = Self::tokens(open(&place).await, clock.clone(), AdminTokens::default());
        Self {
            clock,
            tokens,
            place,
        }
    }

    pub(crate) fn tokens(
        store: Arc<AuthStore>,
        clock: Arc<ManualClock>,
        admins: AdminTokens,
    ) -> Tokens {
        let audit = Arc::new(AuditLog::new(store.clone(), clock.clone()));
        Tokens::new(store, audit, clock, admins)
    }

    /// Another server on the same store.
    pub(crate) async fn another(&self) -> Tokens {
        let store = match &self.place {
            // One process has the file.
            Place::Folder(_) => self.tokens.store().clone(),
            Place::Database(_) => open(&self.place).await,
        };
        Self::tokens(store, self.clock.clone(), AdminTokens::default())
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) async fn create(&self, caller: &Caller, new: New) -> Result<Created, Refusal> {
        let created = self.tokens.create(caller, &Origin::default(), new).await;
        created.unwrap()
    }

    /// A token that an operator made.
    pub(crate) async fn made(&self, new: New) -> Created {
        self.create(&root(), new).await.unwrap()
    }

    pub(crate) async fn shown(&self, created: &Created) -> Result<Arc<Caller>, Denial> {
        let text = created.token.reveal();
        self.tokens.authenticate(text, self.now()).await
    }

    /// All rows of the audit log, the oldest first.
    pub(crate) async fn audit(&self) -> Vec<AuditRow> {
        let log = self.tokens.audit();
        let mut rows = log
            .list(&AuditFilter::default(), None, 1_000)
            .await
            .unwrap();
        rows.reverse();
        rows
    }

    /// `principal action object outcome` of each row of the audit log.
    pub(crate) async fn audited(&self) -> Vec<String> {
        let line = |row: &AuditRow| {
            let object = row.object.as_deref().unwrap_or("-");
            format!("{} {} {object} {}", row.principal, row.action, row.outcome)
        };
        self.audit().await.iter().map(line).collect()
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// Somebody who may do everything.
pub(crate) fn root() -> Caller {
    Caller::service(&name("root"), Scopes::all())
}

pub(crate) fn user(text: &str, scopes: Scopes) -> New {
    New {
        kind: Kind::User,
        name: name(text),
        scopes,
        methods: None,
        agents: None,
        lifetime_s: None,
        note: Arc::from("for a test"),
        id: None,
    }
}

pub(crate) fn service(text: &str, scopes: Scopes) -> New {
    New {
        kind: Kind::Service,
        ..user(text, scopes)
    }
}

pub(crate) fn reader() -> Scopes {
    Scopes::of([Scope::TasksRead])
}
