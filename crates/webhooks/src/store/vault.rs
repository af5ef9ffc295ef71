//! Sealed values: signing keys, and headers.

use super::row::{header_row, key_row};
use super::{Error, Store};
use crate::delivery::{Key, Secret};
use crate::endpoint::EndpointId;
use crate::secret::public;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use taskledger_domain::Timestamp;
use taskledger_sealing::Sealed;
use taskledger_sql::{Columns, MultiRow, Row, Tx};

/// Values that one transaction seals anew.
const RESEAL_ROWS: i64 = 200;

/// What an endpoint signs with and sends along.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    /// The newest first.
    pub(super) keys: Vec<Key>,
    pub(super) headers: Vec<(Arc<str>, Secret)>,
}

static KEYS: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "SELECT endpoint, number, key_id, sealed, expires_at FROM endpoint_keys WHERE endpoint IN (",
        1,
        ") ORDER BY endpoint, number DESC",
    )
});
static HEADERS: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "SELECT endpoint, name, key_id, sealed FROM endpoint_headers WHERE endpoint IN (",
        1,
        ") ORDER BY endpoint, name",
    )
});

impl Store {
    /// What each of these endpoints signs with at `now` and sends along. An endpoint whose values do
    /// not open is left out and logged. Cost: O(values).
    pub(super) async fn secrets(
        &self,
        tx: &mut Tx<'_>,
        of: &[(i64, EndpointId)],
        now: Timestamp,
    ) -> Result<HashMap<i64, Secrets>, Error> {
        let keys = KEYS.fetch(tx, of, |(no, _), args| args.int(*no)).await?;
        let headers = HEADERS.fetch(tx, of, |(no, _), args| args.int(*no)).await?;
        let ids: HashMap<i64, EndpointId> = of.iter().copied().collect();
        let mut found: HashMap<i64, Secrets> =
            ids.keys().map(|no| (*no, Secrets::default())).collect();
        let mut closed = Vec::new();
        for (row, is_key) in keys
            .iter()
            .map(|row| (row, true))
            .chain(headers.iter().map(|row| (row, false)))
        {
            let no = Columns::of(row).int()?;
            let id = ids[&no];
            let secrets = found.entry(no).or_default();
            let opened = if is_key {
                self.key(row, id, now).map(|key| secrets.keys.extend(key))
            } else {
                self.header(row, id)
                    .map(|header| secrets.headers.push(header))
            };
            match opened {
                Ok(()) => {}
                Err(Error::Keys(error)) => {
                    tracing::error!(endpoint.id = %id, %error, "a secret does not open");
                    closed.push(no);
                }
                Err(error) => return Err(error),
            }
        }
        for no in closed {
            found.remove(&no);
        }
        Ok(found)
    }

    fn key(&self, row: &Row, id: EndpointId, now: Timestamp) -> Result<Option<Key>, Error> {
        let mut c = Columns::of(row);
        let (_, number) = (c.int()?, c.int()?);
        let sealed = sealed(&mut c)?;
        let expires_at = c.opt_time()?;
        if expires_at.is_some_and(|at| at <= now) {
            return Ok(None);
        }
        let secret = self.keys.open(&key_row(id, number), &sealed)?;
        Ok(Some(Key { secret, expires_at }))
    }

    fn header(&self, row: &Row, id: EndpointId) -> Result<(Arc<str>, Secret), Error> {
        let mut c = Columns::of(row);
        c.int()?;
        let name = c.text()?;
        let value = self.keys.open(&header_row(id, &name), &sealed(&mut c)?)?;
        Ok((name, value))
    }

    /// Adds a key that signs from now on; it is known by its digest, if there is one.
    pub(super) async fn put_key(
        &self,
        tx: &mut Tx<'_>,
        (no, id): (i64, EndpointId),
        (secret, digest): (&Secret, Option<Vec<u8>>),
        now: Timestamp,
    ) -> Result<(), Error> {
        let mut args = tx.args();
        args.int(no);
        let newest = "SELECT coalesce(max(number), 0) FROM endpoint_keys WHERE endpoint = $1";
        let number = Columns::of(&tx.fetch_one(newest, args).await?).int()? + 1;
        let sealed = self
            .keys
            .seal(&self.clock, &key_row(id, number), &secret.0)?;
        let mut args = tx.args();
        args.int(no);
        args.int(number);
        args.text(sealed.key_id);
        args.bytes(sealed.bytes);
        args.time(now);
        args.bytes(digest);
        tx.execute(INSERT_KEY, args).await?;
        let mut args = tx.args();
        args.int(no);
        args.text(public(secret).map(Arc::from));
        tx.execute("UPDATE endpoints SET public_key = $2 WHERE no = $1", args)
            .await?;
        Ok(())
    }

    /// Replaces all headers.
    pub(super) async fn put_headers(
        &self,
        tx: &mut Tx<'_>,
        (no, id): (i64, EndpointId),
        headers: &[(Arc<str>, Secret)],
    ) -> Result<(), Error> {
        let mut args = tx.args();
        args.int(no);
        tx.execute("DELETE FROM endpoint_headers WHERE endpoint = $1", args)
            .await?;
        for (name, value) in headers {
            let sealed = self
                .keys
                .seal(&self.clock, &header_row(id, name), &value.0)?;
            let mut args = tx.args();
            args.int(no);
            args.text(name.clone());
            args.text(sealed.key_id);
            args.bytes(sealed.bytes);
            tx.execute(INSERT_HEADER, args).await?;
        }
        Ok(())
    }

    /// Seals everything with the first key of the file, so that the others can be taken out of it.
    /// Returns how many values were sealed anew. May be run while servers work, if they have the
    /// same key file. Cost: O(values).
    ///
    /// # Errors
    /// [`Error`]: what was counted is done; run it again.
    pub async fn reseal(&self) -> Result<u64, Error> {
        let first = self.keys.first().map(str::to_owned);
        let first: Arc<str> = first.ok_or(super::KeysError::None)?.into();
        let mut done = 0;
        loop {
            let now = self.order(self.reseal_some(&first)).await?;
            done += now;
            if now == 0 {
                return Ok(done);
            }
        }
    }

    async fn reseal_some(&self, first: &Arc<str>) -> Result<u64, Error> {
        let mut tx = self.write().await?;
        let mut done = 0;
        for (select, update, is_key) in [
            (OLD_KEYS, RESEAL_KEY, true),
            (OLD_HEADERS, RESEAL_HEADER, false),
        ] {
            let mut args = tx.args();
            args.text(first.clone());
            args.int(RESEAL_ROWS);
            for row in tx.fetch_all(select, args).await? {
                let mut c = Columns::of(&row);
                let (no, id) = (c.int()?, EndpointId(c.id()?));
                let old = sealed(&mut c)?;
                let mut args = tx.args();
                args.int(no);
                let name = if is_key {
                    let number = c.int()?;
                    args.int(number);
                    key_row(id, number)
                } else {
                    let name = c.text()?;
                    args.text(name.clone());
                    header_row(id, &name)
                };
                let value = self.keys.open(&name, &old)?;
                let new = self.keys.seal(&self.clock, &name, &value.0)?;
                args.text(new.key_id);
                args.bytes(new.bytes);
                args.text(old.key_id);
                if is_key {
                    args.bytes(self.keys.digest(&value.0));
                }
                done += tx.execute(update, args).await?;
            }
        }
        tx.commit().await?;
        Ok(done)
    }
}

/// The columns `key_id, sealed`.
fn sealed(c: &mut Columns<'_>) -> Result<Sealed, Error> {
    Ok(Sealed {
        key_id: c.text()?,
        bytes: c.bytes()?.to_vec(),
    })
}

const INSERT_KEY: &str =
    "INSERT INTO endpoint_keys (endpoint, number, key_id, sealed, created_at, digest)
    VALUES ($1, $2, $3, $4, $5, $6)";
const INSERT_HEADER: &str = "INSERT INTO endpoint_headers (endpoint, name, key_id, sealed)
    VALUES ($1, $2, $3, $4)";
const OLD_KEYS: &str = "SELECT k.endpoint, e.id, k.key_id, k.sealed, k.number
    FROM endpoint_keys k JOIN endpoints e ON e.no = k.endpoint
    WHERE k.key_id <> $1 LIMIT $2";
const OLD_HEADERS: &str = "SELECT h.endpoint, e.id, h.key_id, h.sealed, h.name
    FROM endpoint_headers h JOIN endpoints e ON e.no = h.endpoint
    WHERE h.key_id <> $1 LIMIT $2";
const RESEAL_KEY: &str = "UPDATE endpoint_keys SET key_id = $3, sealed = $4,
        digest = CASE WHEN (SELECT is_callback FROM endpoints WHERE no = $1) = 0 THEN $6 END
    WHERE endpoint = $1 AND number = $2 AND key_id = $5";
const RESEAL_HEADER: &str = "UPDATE endpoint_headers SET key_id = $3, sealed = $4
    WHERE endpoint = $1 AND name = $2 AND key_id = $5";
