//! The certificate and key of a server, reloaded while it runs: on SIGHUP, and each minute, because programs that renew
//! certificates do not always send a signal.

use super::CliError;
use crate::clock::SharedClock;
use crate::config::TlsConfig;
use crate::tls::{Certificates, Error, Reloaded};
use chrono::{DateTime, TimeDelta, Utc};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Between two looks at the files.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Renewals happen weeks before the end, so by then one has failed.
const EXPIRY_NEAR: TimeDelta = TimeDelta::days(14);
/// Between two warnings of that.
const WARN_EVERY: TimeDelta = TimeDelta::days(1);

/// The certificate that a server shows, and who tells that it is another one.
pub(super) struct Renewal {
    certificates: Arc<Certificates>,
    clock: SharedClock,
    hangup: Signal,
}

impl Renewal {
    /// Reads the files that the settings name; `None`: the server does not speak TLS. From now on SIGHUP
    /// does not end the process.
    pub(super) fn begin(config: &TlsConfig, clock: &SharedClock) -> Result<Option<Self>, CliError> {
        let Some(files) = config.files() else {
            return Ok(None);
        };
        let hangup = signal(SignalKind::hangup()).map_err(|e| CliError::failed(&e))?;
        let certificates = match &config.client_authorities {
            Some(authorities) => Certificates::load_with_clients(files, authorities, now(clock)),
            None => Certificates::load(files, now(clock)),
        };
        let certificates = certificates.map_err(|error| {
            CliError::Usage(match error {
                Error::Clients { .. } => format!("--tls-client-ca: {error}"),
                Error::Certificate { .. }
                | Error::Key { .. }
                | Error::KeyFile(_)
                | Error::Mismatch(_)
                | Error::NotValid { .. } => format!("--tls-cert, --tls-key: {error}"),
            })
        })?;
        Ok(Some(Self {
            certificates,
            clock: clock.clone(),
            hangup,
        }))
    }

    /// What the server shows.
    pub(super) fn certificates(&self) -> Arc<Certificates> {
        self.certificates.clone()
    }

    /// Reads the files until it is aborted.
    pub(super) async fn keep_fresh(self) {
        let Self {
            certificates,
            clock,
            mut hangup,
        } = self;
        let mut looks = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut keeper = Keeper {
            certificates,
            told: None,
            warned: None,
        };
        keeper.warn_of_expiry(now(&clock));
        loop {
            let asked = tokio::select! {
                // Once no more signals can come, looking goes on.
                Some(()) = hangup.recv() => true,
                _ = looks.tick() => false,
            };
            keeper.look(asked, now(&clock)).await;
        }
    }
}

/// What the clock says, as certificates say it.
fn now(clock: &SharedClock) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(clock.now().0).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

struct Keeper {
    certificates: Arc<Certificates>,
    /// What was wrong with the files at the last look.
    told: Option<String>,
    /// When the end of the certificate was last warned of.
    warned: Option<DateTime<Utc>>,
}

impl Keeper {
    async fn look(&mut self, asked: bool, now: DateTime<Utc>) {
        let certificates = self.certificates.clone();
        let read = tokio::task::spawn_blocking(move || certificates.reload(now));
        let Ok(read) = read.await else {
            // It panicked, which was logged, or the program ends.
            return;
        };
        match read {
            Ok(Reloaded::Replaced) => {
                self.told = None;
                self.warned = None;
                let expires = self.certificates.expires_at();
                tracing::info!(%expires, "the certificate was replaced");
            }
            Ok(Reloaded::Same) => {
                self.told = None;
                if asked {
                    tracing::info!("the files hold the certificate that is in use");
                }
            }
            Err(error) => {
                let text = error.to_string();
                if asked || self.told.as_ref() != Some(&text) {
                    tracing::error!(error = %text, "the certificate before stays in use");
                }
                self.told = Some(text);
            }
        }
        self.warn_of_expiry(now);
    }

    fn warn_of_expiry(&mut self, now: DateTime<Utc>) {
        let expires = self.certificates.expires_at();
        let recently = self.warned.is_some_and(|at| now - at < WARN_EVERY);
        if expires - now < EXPIRY_NEAR && !recently {
            self.warned = Some(now);
            tracing::warn!(%expires, "the certificate ends soon and was not renewed");
        }
    }
}
