//! The audit log as a table: rows are added and, when they are old, removed.

use super::audit_row::AuditRow;
use super::{AuthStore, Error, audit_chain};
use crate::audit::{Entry, Outcome};
use std::sync::Arc;
use taskledger_domain::Timestamp;
use taskledger_sql::{Columns, Tx};

/// A filter for rows of the audit log; `None`: all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only rows of this principal, in its stored form: `user:ann`.
    pub principal: Option<Arc<str>>,
    /// What was done.
    pub action: Option<Arc<str>>,
    /// Only rows about this object.
    pub object: Option<Arc<str>>,
    /// Not before.
    pub since: Option<Timestamp>,
    /// Before.
    pub until: Option<Timestamp>,
}

impl AuthStore {
    /// Adds a row to the audit log, within the transaction of what it is about.
    ///
    /// # Errors
    /// [`Error`]: then nothing of the transaction may be committed.
    pub async fn append(
        &self,
        tx: &mut Tx<'_>,
        entry: &Entry,
        now: Timestamp,
    ) -> Result<(), Error> {
        let detail = entry.kept_detail();
        let row = AuditRow {
            seq: 0,
            at: now,
            principal: entry.by.principal.clone(),
            token: entry.by.token.clone(),
            address: entry.by.address.clone(),
            request: entry.by.request.clone(),
            action: Arc::from(entry.action.as_str()),
            object: entry.object.clone(),
            outcome: Arc::from(entry.outcome.as_str()),
            detail: detail.map(|detail| Arc::from(detail.to_string())),
        };
        let hash = audit_chain::extend(tx, &row).await?;
        let mut args = tx.args();
        args.time(row.at);
        args.text(row.principal);
        args.text(row.token);
        args.text(row.address);
        args.text(row.request);
        args.text(row.action);
        args.text(row.object);
        args.text(row.outcome);
        args.text(row.detail);
        args.text(Arc::<str>::from(hash));
        tx.execute(APPEND, args).await?;
        self.audited[entry.outcome as usize].increment();
        Ok(())
    }

    /// How many rows this server has added to the audit log, by their outcome. One whose transaction failed at its
    /// end counts too.
    #[must_use]
    pub fn appended(&self) -> [(Outcome, u64); Outcome::ALL.len()] {
        std::array::from_fn(|n| (Outcome::ALL[n], self.audited[n].get()))
    }

    /// Rows with a number below `before` (`None`: all), the newest first, at most `limit`.
    /// Cost: O(limit) by the index of the first filter that is given; others are compared row by row.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn audit(
        &self,
        filter: &AuditFilter,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<AuditRow>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.int(before.unwrap_or(i64::MAX));
            let mut text = format!("SELECT {ROW} FROM audit WHERE seq < $1");
            let texts = [
                ("principal =", &filter.principal),
                ("action =", &filter.action),
                ("object =", &filter.object),
            ];
            for (comparison, value) in texts {
                if let Some(value) = value {
                    args.text(value.clone());
                    text.push_str(&format!(" AND {comparison} ${}", args.len()));
                }
            }
            for (comparison, value) in [("at >=", filter.since), ("at <", filter.until)] {
                if let Some(value) = value {
                    args.time(value);
                    text.push_str(&format!(" AND {comparison} ${}", args.len()));
                }
            }
            args.int(i64::try_from(limit).unwrap_or(i64::MAX));
            text.push_str(&format!(" ORDER BY seq DESC LIMIT ${}", args.len()));
            let rows = tx.fetch_all(sqlx::AssertSqlSafe(text), args).await?;
            let found = rows
                .iter()
                .map(|it| AuditRow::read(&mut Columns::of(it)))
                .collect::<Result<Vec<_>, Error>>()?;
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }
}

const ROW: &str = "seq, at, principal, token, address, request, action, object, outcome, detail";
const APPEND: &str = "INSERT INTO audit
    (at, principal, token, address, request, action, object, outcome, detail, hash)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
