//! Options of the runner: pauses after failures, and how much it folds at once.

use super::super::feed::BATCH_EVENTS_MAX;
use std::time::Duration;
use taskledger_domain::Position;

/// Pauses and amounts.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Pause after the first failure.
    pub retry_first: Duration,
    /// Pause that no later one exceeds; each is twice the one before.
    pub retry_max: Duration,
    /// What is gathered while readers wait for the rows now and then.
    pub gather: Gather,
    /// What is gathered once no reader has waited for a second.
    pub gather_unread: Gather,
    /// Position that a log must have reached for empty read models to be filled beside, as a rebuild
    /// does it: three times as fast as following, but nothing can be read before the end, and a server
    /// that is stopped before begins anew.
    pub fill_from: Position,
}

/// How much becomes one transaction of the read models, when no reader waits: a transaction for each commit would cost
/// more than the commits themselves.
#[derive(Debug, Clone, Copy)]
pub struct Gather {
    /// How long commits are gathered.
    pub within: Duration,
    /// Events that are folded without gathering more.
    pub events: u64,
}

impl Gather {
    /// What comes at once.
    pub const NOTHING: Self = Self {
        within: Duration::ZERO,
        events: 1,
    };
}

/// How long no reader has waited for the rows when none is expected to.
const UNREAD_AFTER: Duration = Duration::from_secs(1);

const GATHERED: Gather = Gather {
    within: Duration::from_millis(20),
    events: 512,
};

impl Default for Options {
    fn default() -> Self {
        Self {
            retry_first: Duration::from_millis(50),
            retry_max: Duration::from_secs(5),
            gather: GATHERED,
            gather_unread: GATHERED,
            // Some eight seconds of following.
            fill_from: 100_000,
        }
    }
}

impl Options {
    /// For a server alone on its database: whatever must be read with all that was written before says here that it
    /// waits, which readers on other servers cannot. While none does, more is gathered: most tasks that are soon done
    /// are written once, as they ended.
    #[must_use]
    pub fn of_one_server() -> Self {
        Self {
            gather_unread: Gather {
                within: Duration::from_millis(100),
                events: BATCH_EVENTS_MAX as u64,
            },
            ..Self::default()
        }
    }

    /// What is gathered when no reader has waited for so long; `None`: none ever has.
    pub(super) fn gather_after(&self, away: Option<Duration>) -> Gather {
        match away {
            Some(away) if away < UNREAD_AFTER => self.gather,
            Some(_) | None => self.gather_unread,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_is_gathered_for_a_second_after_a_reader_has_waited() {
        let options = Options::of_one_server();
        let gathered = |away_ms: Option<u64>| {
            let gather = options.gather_after(away_ms.map(Duration::from_millis));
            (gather.within.as_millis(), gather.events)
        };
        assert_eq!(gathered(None), (100, 2048));
        assert_eq!(gathered(Some(0)), (20, 512));
        assert_eq!(gathered(Some(999)), (20, 512));
        assert_eq!(gathered(Some(1000)), (100, 2048));
    }
}
