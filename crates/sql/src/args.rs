//! The parameters of a statement.

use crate::engine::Engine;
use crate::text::Text;
use crate::values::Param;
use crate::{postgres, sqlite};
use std::sync::Arc;
use taskledger_domain::{Payload, Position, Timestamp};
use uuid::Uuid;

/// Collects the parameters of a statement, row by row.
pub struct Args(pub(crate) Bound);

impl std::fmt::Debug for Args {
    /// Without the values.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Args").finish_non_exhaustive()
    }
}

pub(crate) enum Bound {
    Sqlite(sqlx::sqlite::SqliteArguments),
    Direct(Vec<Param>),
    Postgres(postgres::Columns),
}

impl Args {
    /// Room for the parameters of one statement of a reader, before it has begun.
    #[must_use]
    pub fn of(engine: Engine) -> Self {
        Self(match engine {
            Engine::Sqlite => Bound::Direct(Vec::new()),
            Engine::Postgres => Bound::Postgres(postgres::Columns::single()),
        })
    }

    /// An integer or null.
    pub fn int(&mut self, value: impl Into<Option<i64>>) {
        match &mut self.0 {
            Bound::Sqlite(args) => sqlite::add(args, value.into()),
            Bound::Postgres(columns) => columns.int(value.into()),
            Bound::Direct(params) => params.push(value.into().map_or(Param::Null, Param::Int)),
        }
    }
    /// A text that a caller chose: it may hold any character.
    pub fn text(&mut self, value: impl Into<Option<Arc<str>>>) {
        match &mut self.0 {
            Bound::Sqlite(args) => sqlite::add(args, value.into()),
            Bound::Postgres(columns) => columns.text(value.into().map(postgres::storable)),
            Bound::Direct(params) => params.push(text(value.into().map(Text::Shared))),
        }
    }
    /// A word of this program.
    pub fn name(&mut self, value: impl Into<Option<&'static str>>) {
        match &mut self.0 {
            Bound::Sqlite(args) => sqlite::add(args, value.into()),
            Bound::Postgres(columns) => columns.text(value.into().map(Text::Name)),
            Bound::Direct(params) => params.push(text(value.into().map(Text::Name))),
        }
    }
    /// JSON text.
    pub fn owned(&mut self, value: String) {
        match &mut self.0 {
            Bound::Sqlite(args) => sqlite::add(args, value),
            Bound::Postgres(columns) => columns.text(Some(Text::Owned(value))),
            Bound::Direct(params) => params.push(text(Some(Text::Owned(value)))),
        }
    }
    /// JSON text of an object, or null.
    pub fn payload(&mut self, value: Option<&Payload>) {
        match &mut self.0 {
            Bound::Sqlite(args) => sqlite::add(args, value.map(Payload::as_str)),
            Bound::Postgres(columns) => columns.text(value.cloned().map(Text::Payload)),
            Bound::Direct(params) => params.push(text(value.cloned().map(Text::Payload))),
        }
    }
    /// Bytes or null.
    pub fn bytes(&mut self, value: impl Into<Option<Vec<u8>>>) {
        match &mut self.0 {
            Bound::Sqlite(args) => sqlite::add(args, value.into()),
            Bound::Postgres(columns) => columns.bytes(value.into()),
            Bound::Direct(params) => params.push(value.into().map_or(Param::Null, Param::Bytes)),
        }
    }
    /// Binds a UUID to the next column.
    pub fn id(&mut self, value: Uuid) {
        self.opt_id(Some(value));
    }
    /// An id or null.
    pub fn opt_id(&mut self, value: Option<Uuid>) {
        match &mut self.0 {
            Bound::Sqlite(args) => sqlite::add(args, value.map(|id| id.as_bytes().to_vec())),
            Bound::Postgres(columns) => columns.id(value),
            Bound::Direct(params) => {
                params.push(value.map_or(Param::Null, |id| Param::Id(id.into_bytes())))
            }
        }
    }
    /// A place in the log.
    pub fn position(&mut self, value: Position) {
        self.int(int(value));
    }
    /// A time or null.
    pub fn time(&mut self, value: impl Into<Option<Timestamp>>) {
        self.int(value.into().map(|t| t.0));
    }
    /// Parameters so far: the number of the last one.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Bound::Sqlite(args) => sqlx::Arguments::len(args),
            Bound::Direct(params) => params.len(),
            Bound::Postgres(columns) => columns.len(),
        }
    }
}

impl Args {
    /// Whether there are none yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn text(text: Option<Text>) -> Param {
    text.map_or(Param::Null, Param::Text)
}

/// A log position as a column value.
pub fn int(position: Position) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}
