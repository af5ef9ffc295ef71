//! Receivers of the reports of a run, by the names that its caller gave them.

use super::deliveries::{hold, look_again};
use super::endpoints::{New, raise_generation};
use super::intake::hold_state;
use super::sweep::{cancel_open, remember, remove};
use super::{Error, Store, connect};
use crate::endpoint::EndpointId;
use crate::reports::{OfRun, REPORTS_PER_RUN_MAX, Receiver};
use std::sync::Arc;
use taskledger_domain::{CallbackId, Position, RunId, Timestamp};
use taskledger_sql::{Columns, Tx};

/// The result of adding a receiver of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// Kept; one of the same name was replaced.
    Yes,
    /// There are as many as there may be, of this run or in all.
    Full(i64),
}

impl Store {
    /// Keeps a receiver of the reports of a run, which gets what stands above `head`, the end of the log that its
    /// caller saw before, or above the outbox's place, if that is further. One of the same name is sent to as this one
    /// says.
    ///
    /// # Errors
    /// [`Error`]; [`Error::Keys`] when there is something secret and no key.
    pub async fn put_receiver(
        &self,
        new: &New,
        of: OfRun,
        head: Position,
        now: Timestamp,
    ) -> Result<Put, Error> {
        let put = self
            .order(self.put_one_receiver(new, of, head, now))
            .await?;
        self.now_wanted();
        self.now_due();
        Ok(put)
    }

    async fn put_one_receiver(
        &self,
        new: &New,
        of: OfRun,
        head: Position,
        now: Timestamp,
    ) -> Result<Put, Error> {
        let mut tx = self.write().await?;
        let state = hold_state(&mut tx).await?;
        let reported = new.reported.as_ref();
        let name = reported.and_then(|it| it.name.clone());
        let name = name.ok_or_else(|| Error::Damaged("a receiver without a name".to_owned()))?;
        if let Some(known) = found(&mut tx, of.run, &name).await? {
            self.replace(&mut tx, known, new, now).await?;
            connect::announce(&mut tx).await?;
            tx.commit().await?;
            return Ok(Put::Yes);
        }
        raise_generation(&mut tx).await?;
        let mut args = tx.args();
        args.id(of.run.0);
        let there = Columns::of(&tx.fetch_one(COUNT, args).await?).int()?;
        let full = match there >= REPORTS_PER_RUN_MAX {
            true => Some(REPORTS_PER_RUN_MAX),
            false => self.has_no_room(&mut tx, true).await?,
        };
        if let Some(max) = full {
            tx.rollback().await?;
            return Ok(Put::Full(max));
        }
        let since = state.position.map_or(head, |position| position.max(head));
        let no = self.insert(&mut tx, new, since, now).await?;
        let mut args = tx.args();
        args.int(no);
        args.id(of.run.0);
        args.id(of.flow.0);
        args.int(i64::from(of.is_over));
        args.time(of.is_over.then_some(now));
        tx.execute(OF_RUN, args).await?;
        tx.commit().await?;
        Ok(Put::Yes)
    }

    /// What waits for it goes where it says now.
    async fn replace(
        &self,
        tx: &mut Tx<'_>,
        id: EndpointId,
        new: &New,
        now: Timestamp,
    ) -> Result<(), Error> {
        let Some(mut held) = hold(tx, id).await? else {
            return Ok(());
        };
        let reported = new.reported.as_ref();
        let mut args = tx.args();
        args.int(held.no);
        args.text(new.url.clone());
        args.text(reported.and_then(|it| it.scheme.clone()));
        args.text(reported.map(|it| it.content_type.clone()));
        args.time(now);
        tx.execute(REPLACE, args).await?;
        self.put_headers(tx, (held.no, id), &new.headers).await?;
        held.disabled = false;
        held.open_until = None;
        look_again(tx, held).await
    }

    /// A callback that an event names belongs to this run: what the outbox finds out by itself a moment later.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn attach_receiver(&self, callback: CallbackId, of: OfRun) -> Result<(), Error> {
        let work = async {
            let mut tx = self.write().await?;
            hold_state(&mut tx).await?;
            let mut args = tx.args();
            args.id(callback.0);
            args.id(of.run.0);
            args.id(of.flow.0);
            tx.execute(ATTACH, args).await?;
            tx.commit().await?;
            Ok(())
        };
        self.order(work).await
    }

    /// The receiver of this name.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn receiver(&self, run: RunId, name: &Arc<str>) -> Result<Option<Receiver>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.id(run.0);
            args.text(name.clone());
            let row = tx.fetch_optional(RECEIVER, args).await?;
            tx.commit().await?;
            row.map(|row| Ok(receiver(&mut Columns::of(&row))?.1))
                .transpose()
        };
        self.order(work).await
    }

    /// Receivers of a run with a number above `after`, oldest first, each with its number.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn receivers(
        &self,
        run: RunId,
        after: i64,
        limit: usize,
    ) -> Result<Vec<(i64, Receiver)>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.id(run.0);
            args.int(after);
            args.int(i64::try_from(limit).unwrap_or(i64::MAX));
            let rows = tx.fetch_all(RECEIVERS, args).await?;
            tx.commit().await?;
            rows.iter()
                .map(|row| receiver(&mut Columns::of(row)))
                .collect()
        };
        self.order(work).await
    }

    /// Forgets a receiver with its secrets; what waits for it is not sent. Says whether there was one.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn delete_receiver(
        &self,
        run: RunId,
        name: &Arc<str>,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let work = async {
            let mut tx = self.write().await?;
            hold_state(&mut tx).await?;
            let Some(id) = found(&mut tx, run, name).await? else {
                tx.rollback().await?;
                return Ok(false);
            };
            raise_generation(&mut tx).await?;
            if let Some(held) = hold(&mut tx, id).await? {
                cancel_open(&mut tx, held.no, now).await?;
                remember(&mut tx, held.no, now).await?;
                remove(&mut tx, held.no).await?;
            }
            tx.commit().await?;
            Ok(true)
        };
        let deleted = self.order(work).await?;
        self.now_wanted();
        Ok(deleted)
    }
}

async fn found(tx: &mut Tx<'_>, run: RunId, name: &Arc<str>) -> Result<Option<EndpointId>, Error> {
    let mut args = tx.args();
    args.id(run.0);
    args.text(name.clone());
    let row = tx.fetch_optional(FOUND, args).await?;
    let id = row.map(|row| Columns::of(&row).id()).transpose()?;
    Ok(id.map(EndpointId))
}

fn receiver(c: &mut Columns<'_>) -> Result<(i64, Receiver), Error> {
    let no = c.int()?;
    let receiver = Receiver {
        name: c.text()?,
        url: c.text()?,
        scheme: c.opt_text()?,
    };
    Ok((no, receiver))
}

// All by `endpoints_reports`.
const COUNT: &str = "SELECT COUNT(*)
    FROM endpoints
    WHERE run_id = $1 AND report_name IS NOT NULL";
const FOUND: &str = "SELECT id
    FROM endpoints
    WHERE run_id = $1 AND report_name = $2
    ORDER BY no DESC LIMIT 1";
const RECEIVER: &str = "SELECT no, report_name, url, auth_scheme
    FROM endpoints
    WHERE run_id = $1 AND report_name = $2
    ORDER BY no DESC LIMIT 1";
const RECEIVERS: &str = "SELECT no, report_name, url, auth_scheme
    FROM endpoints
    WHERE run_id = $1 AND report_name IS NOT NULL AND no > $2
    ORDER BY no LIMIT $3";
const OF_RUN: &str = "UPDATE endpoints
    SET run_id = $2, run_flow = $3, run_ended = $4, run_ended_at = $5
    WHERE no = $1";
const ATTACH: &str = "UPDATE endpoints
    SET run_id = $2, run_flow = $3
    WHERE id = $1 AND run_id IS NULL AND report_name IS NOT NULL";
const REPLACE: &str = "UPDATE endpoints
    SET url = $2, auth_scheme = $3, content_type = $4, updated_at = $5, disabled_reason = NULL,
        disabled_at = NULL, failures = 0, failing_since = NULL, window_since = NULL,
        window_attempts = 0, window_failures = 0, open_until = NULL, openings = 0
    WHERE no = $1";
