//! Parameters of a statement on SQLite.

use sqlx::sqlite::{Sqlite, SqliteArguments};
use sqlx::{Arguments, Encode, Type};

/// Adds a value of a type that always encodes.
pub(crate) fn add<'t, T>(args: &mut SqliteArguments, value: T)
where
    T: Encode<'t, Sqlite> + Type<Sqlite>,
{
    args.add(value)
        .expect("integers, texts and bytes always encode");
}
