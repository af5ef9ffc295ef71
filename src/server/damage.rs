//! Reads damaged events of the log again now and then, since a disk or a person may have mended them. When a flow whose
//! rows are folded no further can be read again, the read models are rebuilt, while the old ones serve.

use crate::application::App;
use crate::store::damage::is_mended;
use crate::store::{self, EventStore};
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::Position;
use tokio_util::sync::CancellationToken;

/// Pause before the next look; each is twice the one before, up to the last.
const LOOK_FIRST: Duration = Duration::from_secs(1);
const LOOK_MAX: Duration = Duration::from_secs(10 * 60);

/// Looks until `stop`.
pub(super) async fn look_at_damage(app: Arc<App>, stop: CancellationToken) {
    let mut pause = LOOK_FIRST;
    let mut known = 0;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        if let Err(error) = look(&app).await {
            tracing::debug!(%error, "damaged events could not be looked at");
        }
        let left = app.store.damage().list().len();
        pause = match left == known {
            true => (pause * 2).min(LOOK_MAX),
            false => LOOK_FIRST,
        };
        known = left;
    }
}

/// Forgets the damaged events that can be read again, and has the rows of their flows made again.
async fn look(app: &App) -> Result<(), store::Error> {
    let register = app.store.damage();
    for damaged in register.list() {
        if is_mended(&*app.store, &damaged).await? {
            register.remove(damaged.position);
            tracing::info!(
                position = damaged.position,
                flow.id = damaged.flow.map(tracing::field::display),
                "a damaged event of the log can be read again"
            );
        }
    }
    let flows = app.queries.damaged_flows();
    for damaged in flows.values().filter(|it| !it.is_readable) {
        if !is_readable(&*app.store, damaged.position).await? {
            continue;
        }
        match app.rebuild_read_models().await {
            Ok(_) => tracing::info!(
                flow.id = %damaged.flow,
                "the read models are rebuilt, because a damaged flow can be read again"
            ),
            // One is under way, perhaps on another server.
            Err(error) => tracing::debug!(%error, "the read models are not rebuilt now"),
        }
        return Ok(());
    }
    Ok(())
}

async fn is_readable(log: &dyn EventStore, position: Position) -> Result<bool, store::Error> {
    let page = log.read_all(position.saturating_sub(1), 1).await?;
    let first = page.events.first();
    Ok(first.is_some_and(|event| event.position == position))
}
