//! Renews leases while endpoints are held, and gives up those that have expired.

use super::{RENEW_EVERY, STORE_AGAIN_AFTER, Shared};
use tokio::time::{Instant, sleep};

/// Leases in one call to the store: one statement of moderate size.
const AT_ONCE: usize = 1_000;

/// Never ends by itself.
pub(super) async fn keep(shared: &Shared) {
    let mut failing = false;
    loop {
        sleep(if failing {
            STORE_AGAIN_AFTER
        } else {
            RENEW_EVERY
        })
        .await;
        let renewed = renew(shared).await;
        if let (Err(error), false) = (&renewed, failing) {
            tracing::warn!(error = %error, "leases of webhooks could not be renewed");
        }
        failing = renewed.is_err();
        shared.holdings.expire();
    }
}

async fn renew(shared: &Shared) -> Result<(), crate::delivery::Unavailable> {
    for leases in shared.holdings.leases().chunks(AT_ONCE) {
        let asked = Instant::now();
        let until = shared.until_of_lease();
        let kept = shared
            .ask(shared.parts.deliveries.renew(leases, until))
            .await?;
        shared.holdings.renewed(leases, &kept, asked);
    }
    Ok(())
}
