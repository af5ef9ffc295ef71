//! What waits for others than the flow, kept up to date step by step.

use std::collections::BTreeMap;
use taskledger_domain::Timestamp;
use taskledger_domain::flow::Flow;
use taskledger_domain::schedule::{Outside, Waiting};
use taskledger_domain::testing::Server;

/// It begins anew when there are other executors.
#[derive(Default)]
pub(crate) struct KeptOutside {
    server: Server,
    kept: Option<Outside>,
    waiting: BTreeMap<String, Waiting>,
}

impl KeptOutside {
    /// What is kept up to date equals what is found anew.
    pub(crate) fn check(&mut self, flow: &mut Flow, now: Timestamp, server: &Server) {
        let mut copy = flow.clone();
        let (renewed, all) = Outside::renewed(&mut copy, now, server);
        let all = all.into_iter();
        let all = all.filter_map(|(method, waiting)| Some((method.to_owned(), waiting?)));
        let all: BTreeMap<_, _> = all.collect();
        let is_same = self.server.executors == server.executors;
        let kept = self.kept.as_mut().filter(|_| is_same);
        let Some(kept) = kept else {
            *flow = copy;
            self.server = server.clone();
            (self.kept, self.waiting) = (Some(renewed), all);
            return;
        };
        for (method, waiting) in kept.update(flow, now, server) {
            match waiting {
                Some(waiting) => self.waiting.insert(method.to_owned(), waiting),
                None => self.waiting.remove(method),
            };
        }
        assert_eq!(self.waiting, all, "something has changed unseen");
        assert_eq!(kept.waiting(), renewed.waiting());
        assert_eq!(kept.offered(), renewed.offered());
    }
}
