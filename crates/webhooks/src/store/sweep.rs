//! Removes old rows, by how long each kind is kept.

use super::intake::hold_state;
use super::{Error, Store};
use crate::endpoint::EndpointId;
use std::sync::LazyLock;
use taskledger_domain::Timestamp;
use taskledger_sql::{Columns, MultiRow, Row, Tx, in_slices};

/// Days for which deliveries that have ended are shown, and those of disabled endpoints are kept.
pub const KEPT_DAYS: i64 = 30;
/// Deliveries of one endpoint that are shown after they have ended.
pub const KEPT_PER_ENDPOINT: i64 = 10_000;
/// Minutes after which a callback whose run never began is removed: a call ends within an hour.
const UNUSED_MINUTES: i64 = 70;
/// Minutes for which a callback is shown after everything of it has ended.
const FINISHED_MINUTES: i64 = 24 * 60;
/// Days for which receivers of reports are kept after the end of their run, or since they were made behind it.
pub const REPORTS_KEPT_DAYS: i64 = 30;
/// Rows that one transaction removes: others wait for it.
const SLICE: i64 = 500;
/// Endpoints whose deliveries one transaction counts.
const ENDPOINTS_AT_A_TIME: i64 = 100;
const MINUTE: i64 = 60 * 1_000_000;

/// Counts of removed rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Deliveries with their attempts.
    pub deliveries: u64,
    /// Callbacks of executions.
    pub callbacks: u64,
    /// Old keys.
    pub keys: u64,
}

impl Store {
    /// Removes what is old, in slices. `unused_before`: callbacks that were made before this time and
    /// that no event names are removed; only whoever has seen all events up to then knows of one.
    /// Cost: O(what is removed), and O(endpoints) small questions.
    ///
    /// # Errors
    /// [`Error`]: what was removed is removed; ask again later.
    pub async fn sweep(
        &self,
        now: Timestamp,
        unused_before: Option<Timestamp>,
    ) -> Result<Swept, Error> {
        let mut swept = Swept {
            keys: self.order(self.erase_keys(now)).await?,
            ..Swept::default()
        };
        let old = Timestamp(now.0 - KEPT_DAYS * 24 * 60 * MINUTE);
        self.order(self.cancel_old(old, now)).await?;
        let old = in_slices(SLICE, || self.order(self.remove_old(old)));
        swept.deliveries += old.await?;
        let mut after = 0;
        loop {
            let (removed, last) = self.order(self.remove_surplus(after)).await?;
            swept.deliveries += removed;
            match last {
                Some(last) => after = last,
                None => break,
            }
        }
        swept.callbacks += self.order(self.finish_callbacks(now)).await?;
        if let Some(before) = unused_before {
            let before = Timestamp(before.0 - UNUSED_MINUTES * MINUTE);
            swept.callbacks += self.order(self.remove_unused(before, now)).await?;
        }
        Ok(swept)
    }

    async fn erase_keys(&self, now: Timestamp) -> Result<u64, Error> {
        let mut tx = self.write().await?;
        let mut args = tx.args();
        args.time(now);
        let erased = tx.execute(EXPIRED_KEYS, args).await?;
        let mut args = tx.args();
        args.time(Timestamp(now.0 - KEPT_DAYS * 24 * 60 * MINUTE));
        tx.execute("DELETE FROM requests WHERE created_at < $1", args)
            .await?;
        // Their deliveries ended at the latest when they went, and are gone by now.
        let mut args = tx.args();
        args.time(Timestamp(now.0 - (KEPT_DAYS + 1) * 24 * 60 * MINUTE));
        tx.execute("DELETE FROM removed_endpoints WHERE removed_at < $1", args)
            .await?;
        tx.commit().await?;
        Ok(erased)
    }

    /// What has waited for a disabled endpoint for too long is given up.
    async fn cancel_old(&self, old: Timestamp, now: Timestamp) -> Result<(), Error> {
        let mut tx = self.write().await?;
        let mut args = tx.args();
        args.time(old);
        args.time(now);
        args.int(SLICE);
        tx.execute(CANCEL_OLD, args).await?;
        tx.commit().await?;
        Ok(())
    }

    async fn remove_old(&self, old: Timestamp) -> Result<u64, Error> {
        let mut tx = self.write().await?;
        let mut args = tx.args();
        args.time(old);
        args.int(SLICE);
        let rows = tx.fetch_all(OLD, args).await?;
        let removed = remove_deliveries(&mut tx, &rows).await?;
        tx.commit().await?;
        Ok(removed)
    }

    /// Removes what some endpoints have too much of; where the next ones begin.
    async fn remove_surplus(&self, after: i64) -> Result<(u64, Option<i64>), Error> {
        let mut tx = self.write().await?;
        let mut args = tx.args();
        args.int(after);
        args.int(ENDPOINTS_AT_A_TIME);
        let endpoints = tx.fetch_all(NEXT_ENDPOINTS, args).await?;
        let (mut removed, mut last) = (0, None);
        for row in &endpoints {
            let no = Columns::of(row).int()?;
            let mut args = tx.args();
            args.int(no);
            args.int(KEPT_PER_ENDPOINT);
            args.int(SLICE);
            let rows = tx.fetch_all(SURPLUS, args).await?;
            removed += remove_deliveries(&mut tx, &rows).await?;
            last = Some(no);
        }
        tx.commit().await?;
        Ok((removed, last))
    }

    /// Erases the secrets of callbacks that are over, and later the callbacks themselves.
    async fn finish_callbacks(&self, now: Timestamp) -> Result<u64, Error> {
        let mut tx = self.write().await?;
        for text in [FINISHED_KEYS, FINISHED_HEADERS] {
            let args = tx.args();
            tx.execute(text, args).await?;
        }
        let mut args = tx.args();
        args.time(Timestamp(now.0 - FINISHED_MINUTES * MINUTE));
        args.int(SLICE);
        args.time(now);
        args.time(Timestamp(now.0 - REPORTS_KEPT_DAYS * 24 * 60 * MINUTE));
        let removed = tx.execute(REMEMBER_FINISHED, args).await?;
        let args = tx.args();
        tx.execute(FINISHED, args).await?;
        tx.commit().await?;
        Ok(removed)
    }

    async fn remove_unused(&self, before: Timestamp, now: Timestamp) -> Result<u64, Error> {
        let mut tx = self.write().await?;
        hold_state(&mut tx).await?;
        let mut args = tx.args();
        args.time(before);
        args.int(SLICE);
        let rows = tx.fetch_all(UNUSED, args).await?;
        for row in &rows {
            let no = Columns::of(row).int()?;
            cancel_open(&mut tx, no, now).await?;
            remove(&mut tx, no).await?;
        }
        tx.commit().await?;
        Ok(rows.len() as u64)
    }

    /// Removes the callback of a call that was refused: no event names it.
    ///
    /// # Errors
    /// [`Error`]: it is swept later.
    pub async fn forget_callback(&self, id: EndpointId) -> Result<(), Error> {
        let work = async {
            let mut tx = self.write().await?;
            hold_state(&mut tx).await?;
            let mut args = tx.args();
            args.id(id.0);
            let text =
                "SELECT no FROM endpoints WHERE id = $1 AND is_callback = 1 AND run_id IS NULL";
            if let Some(row) = tx.fetch_optional(text, args).await? {
                remove(&mut tx, Columns::of(&row).int()?).await?;
            }
            tx.commit().await?;
            Ok(())
        };
        self.order(work).await
    }
}

/// Ends what waits for an endpoint that is held. Cost: O(open deliveries).
pub(super) async fn cancel_open(
    tx: &mut Tx<'_>,
    endpoint: i64,
    now: Timestamp,
) -> Result<u64, Error> {
    let mut args = tx.args();
    args.int(endpoint);
    args.time(now);
    let cancelled = tx.execute(CANCEL, args).await?;
    let mut args = tx.args();
    args.int(endpoint);
    tx.execute(FORGET_HANDS, args).await?;
    Ok(cancelled)
}

/// Keeps the id of an endpoint that is about to be removed, for its deliveries.
pub(super) async fn remember(tx: &mut Tx<'_>, endpoint: i64, now: Timestamp) -> Result<(), Error> {
    let mut args = tx.args();
    args.int(endpoint);
    args.time(now);
    tx.execute(REMEMBER, args).await?;
    Ok(())
}

/// Removes an endpoint with its secrets.
pub(super) async fn remove(tx: &mut Tx<'_>, endpoint: i64) -> Result<(), Error> {
    for text in [
        "DELETE FROM endpoint_keys WHERE endpoint = $1",
        "DELETE FROM endpoint_headers WHERE endpoint = $1",
        "DELETE FROM endpoints WHERE no = $1",
    ] {
        let mut args = tx.args();
        args.int(endpoint);
        tx.execute(text, args).await?;
    }
    Ok(())
}

static REMOVE_ATTEMPTS: LazyLock<MultiRow> =
    LazyLock::new(|| MultiRow::new("DELETE FROM attempts WHERE delivery IN (", 1, ")"));
static REMOVE_DELIVERIES: LazyLock<MultiRow> =
    LazyLock::new(|| MultiRow::new("DELETE FROM deliveries WHERE id IN (", 1, ")"));
static REMOVE_MESSAGES: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "DELETE FROM messages WHERE no IN (",
        1,
        ") AND NOT EXISTS (SELECT 1 FROM deliveries WHERE deliveries.message = messages.no)",
    )
});

/// Removes deliveries (`id, message` of each row), their attempts, and messages that nobody has any more.
async fn remove_deliveries(tx: &mut Tx<'_>, rows: &[Row]) -> Result<u64, Error> {
    let both: Result<Vec<(i64, i64)>, Error> = rows
        .iter()
        .map(|row| {
            let mut c = Columns::of(row);
            Ok((c.int()?, c.int()?))
        })
        .collect();
    let both = both?;
    let mut messages: Vec<i64> = both.iter().map(|(_, message)| *message).collect();
    messages.sort_unstable();
    messages.dedup();
    for statement in [&REMOVE_ATTEMPTS, &REMOVE_DELIVERIES] {
        statement
            .execute(tx, &both, |(id, _), args| args.int(*id))
            .await?;
    }
    REMOVE_MESSAGES
        .execute(tx, &messages, |no, args| args.int(*no))
        .await?;
    Ok(both.len() as u64)
}

const EXPIRED_KEYS: &str = "DELETE FROM endpoint_keys WHERE expires_at <= $1";
const CANCEL_OLD: &str = "UPDATE deliveries
    SET state = 'cancelled', next_at = NULL, hand_at = NULL, ended_at = $2
    WHERE id IN (
        SELECT d.id FROM endpoints e JOIN deliveries d ON d.endpoint = e.no
        WHERE e.disabled_reason IS NOT NULL AND d.state = 'waiting' AND d.created_at < $1
        LIMIT $3)";
// By `deliveries_ended`.
const OLD: &str = "SELECT id, message FROM deliveries
    WHERE ended_at < $1 AND state <> 'waiting' AND hand_at IS NULL ORDER BY ended_at LIMIT $2";
const NEXT_ENDPOINTS: &str = "SELECT no FROM endpoints WHERE no > $1 ORDER BY no LIMIT $2";
// By `deliveries_endpoint`.
const SURPLUS: &str = "SELECT id, message FROM deliveries
    WHERE endpoint = $1 AND state <> 'waiting' AND hand_at IS NULL AND id <= (
        SELECT id FROM deliveries WHERE endpoint = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)
    ORDER BY id LIMIT $3";
const FINISHED_KEYS: &str = "DELETE FROM endpoint_keys WHERE endpoint IN (
        SELECT no FROM endpoints e WHERE is_callback = 1 AND run_ended = 1 AND NOT EXISTS (
            SELECT 1 FROM deliveries d
            WHERE d.endpoint = e.no AND (d.state = 'waiting' OR d.hand_at IS NOT NULL)))";
const FINISHED_HEADERS: &str = "DELETE FROM endpoint_headers WHERE endpoint IN (
        SELECT no FROM endpoints e WHERE is_callback = 1 AND run_ended = 1 AND NOT EXISTS (
            SELECT 1 FROM deliveries d
            WHERE d.endpoint = e.no AND (d.state = 'waiting' OR d.hand_at IS NOT NULL)))";
const REMEMBER: &str = "INSERT INTO removed_endpoints (no, id, removed_at, owner)
    SELECT no, id, $2, owner FROM endpoints WHERE no = $1";
const REMEMBER_FINISHED: &str = "INSERT INTO removed_endpoints (no, id, removed_at, owner)
    SELECT no, id, $3, owner FROM endpoints e WHERE is_callback = 1 AND run_ended = 1
    AND (report_name IS NULL OR run_ended_at < $4) AND NOT EXISTS (
        SELECT 1 FROM deliveries d
        WHERE d.endpoint = e.no
          AND (d.state = 'waiting' OR d.hand_at IS NOT NULL OR d.ended_at >= $1))
    LIMIT $2";
const FINISHED: &str = "DELETE FROM endpoints WHERE is_callback = 1 AND run_ended = 1
    AND no IN (SELECT no FROM removed_endpoints)";
const UNUSED: &str = "SELECT no FROM endpoints
    WHERE is_callback = 1 AND run_ended = 0 AND run_id IS NULL AND created_at < $1 ORDER BY no LIMIT $2";
const CANCEL: &str = "UPDATE deliveries
    SET state = 'cancelled', next_at = NULL, hand_at = NULL, ended_at = $2
    WHERE endpoint = $1 AND state = 'waiting'";
const FORGET_HANDS: &str =
    "UPDATE deliveries SET hand_at = NULL WHERE endpoint = $1 AND hand_at IS NOT NULL";
