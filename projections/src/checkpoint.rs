//! How far a projector has come: one row that changes together with the rows it speaks of.

use crate::sql::{Columns, int};
use crate::{Error, Projector};
use sqlx::sqlite::SqliteConnection;
use taskledger_domain::Position;

/// Version and position of `P`'s checkpoint; `None` when it has none.
pub(crate) async fn load<P: Projector>(
    db: &mut SqliteConnection,
) -> Result<Option<(i64, Position)>, Error> {
    let row = sqlx::query(LOAD).bind(P::NAME).fetch_optional(db).await?;
    row.map(|row| {
        let mut c = Columns::of(&row);
        Ok((c.int()?, c.number()?))
    })
    .transpose()
}

/// Starts `P` at position 0 in its present version.
pub(crate) async fn begin<P: Projector>(db: &mut SqliteConnection) -> Result<(), Error> {
    sqlx::query(BEGIN)
        .bind(P::NAME)
        .bind(P::VERSION)
        .execute(db)
        .await?;
    Ok(())
}

/// Moves the checkpoint from `from` to `to`; refused when it is elsewhere.
pub(crate) async fn advance<P: Projector>(
    db: &mut SqliteConnection,
    from: Position,
    to: Position,
) -> Result<(), Error> {
    let moved = sqlx::query(ADVANCE)
        .bind(int(to))
        .bind(P::NAME)
        .bind(P::VERSION)
        .bind(int(from))
        .execute(db)
        .await?;
    if moved.rows_affected() == 1 {
        Ok(())
    } else {
        Err(Error::CheckpointMoved { expected: from })
    }
}

const LOAD: &str = "SELECT version, position
    FROM checkpoints
    WHERE name = $1";
const BEGIN: &str = "INSERT INTO checkpoints (name, version, position)
    VALUES ($1, $2, 0)";
const ADVANCE: &str = "UPDATE checkpoints
    SET position = $1
    WHERE name = $2 AND version = $3 AND position = $4";
