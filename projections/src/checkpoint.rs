//! The checkpoint of a projector: one row that changes together with the rows it covers.

use crate::{Error, Projector};
use taskledger_domain::{Position, Recorded};
use taskledger_sql::{Columns, Engine, Tx};

/// Version and position of `P`'s checkpoint; `None` when it has none.
pub(crate) async fn load<P: Projector>(tx: &mut Tx<'_>) -> Result<Option<(i64, Position)>, Error> {
    found(LOAD, P::NAME, tx).await
}

/// As [`load`], for whoever will write: a transaction that is about to move it is waited for.
pub(crate) async fn load_settled<P: Projector>(
    tx: &mut Tx<'_>,
) -> Result<Option<(i64, Position)>, Error> {
    let sql = match tx.engine() {
        Engine::Sqlite => LOAD,
        Engine::Postgres => LOAD_SETTLED,
    };
    found(sql, P::NAME, tx).await
}

async fn found(
    sql: &'static str,
    name: &'static str,
    tx: &mut Tx<'_>,
) -> Result<Option<(i64, Position)>, Error> {
    let mut args = tx.args();
    args.name(name);
    let row = tx.fetch_optional(sql, args).await?;
    row.map(|row| {
        let mut c = Columns::of(&row);
        Ok((c.int()?, c.number()?))
    })
    .transpose()
}

/// Starts `P` at position 0 in its present version.
pub(crate) async fn begin<P: Projector>(tx: &mut Tx<'_>) -> Result<(), Error> {
    let mut args = tx.args();
    args.name(P::NAME);
    args.int(P::VERSION);
    tx.execute(BEGIN, args).await?;
    Ok(())
}

/// Moves the checkpoint from `from` to an event; refused when it is elsewhere. The commit notifies the listeners of
/// `channel`.
pub(crate) async fn advance<P: Projector>(
    tx: &mut Tx<'_>,
    from: Position,
    to: &Recorded,
    channel: Option<String>,
) -> Result<(), Error> {
    let mut args = tx.args();
    args.position(to.position);
    args.id(to.id.0);
    args.name(P::NAME);
    args.int(P::VERSION);
    args.position(from);
    let moved = match channel {
        None => tx.execute(ADVANCE, args).await? == 1,
        Some(channel) => {
            args.owned(channel);
            tx.fetch_optional(ADVANCE_AND_TELL, args).await?.is_some()
        }
    };
    if moved {
        Ok(())
    } else {
        Err(Error::CheckpointMoved { expected: from })
    }
}

/// Reads position and event id of the checkpoint from `{table}`, the table `checkpoints` of a file or a schema.
pub const CHECKPOINT_QUERY: &str = "SELECT position, event
    FROM {table}
    ORDER BY position DESC
    LIMIT 1";
pub(crate) const LOAD: &str = "SELECT version, position
    FROM checkpoints
    WHERE name = $1";
const LOAD_SETTLED: &str = "SELECT version, position
    FROM checkpoints
    WHERE name = $1
    FOR SHARE";
const BEGIN: &str = "INSERT INTO checkpoints (name, version, position)
    VALUES ($1, $2, 0)";
const ADVANCE: &str = "UPDATE checkpoints
    SET position = $1, event = $2
    WHERE name = $3 AND version = $4 AND position = $5";
/// PostgreSQL's; one round trip.
const ADVANCE_AND_TELL: &str = "WITH moved AS (
        UPDATE checkpoints
        SET position = $1, event = $2
        WHERE name = $3 AND version = $4 AND position = $5
        RETURNING position)
    SELECT position, pg_notify($6, position::TEXT)
    FROM moved";
