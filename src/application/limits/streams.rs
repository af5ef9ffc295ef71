//! How many streams each user has open.

use super::Quota;
use crate::application::error::Error;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Open streams by owner. Owners without one have no entry.
#[derive(Debug)]
pub(super) struct Streams {
    max: Option<NonZeroU32>,
    open: Mutex<HashMap<Arc<str>, u32>>,
}

impl Streams {
    pub(super) fn new(max: Option<NonZeroU32>) -> Self {
        Self {
            max,
            open: Mutex::default(),
        }
    }

    pub(super) fn take(self: &Arc<Self>, owner: Arc<str>) -> Result<StreamPlace, Error> {
        let mut open = self.lock();
        let used = open.entry(owner.clone()).or_default();
        if let Some(max) = self.max
            && *used >= max.get()
        {
            return Err(Error::QuotaExceeded {
                quota: Quota::Streams,
                limit: max.get().into(),
                used: (*used).into(),
                requested: 1,
            });
        }
        *used += 1;
        drop(open);
        Ok(StreamPlace {
            streams: self.clone(),
            owner,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, u32>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a stream, which is free again when this is dropped.
#[derive(Debug)]
pub struct StreamPlace {
    streams: Arc<Streams>,
    owner: Arc<str>,
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        if let Some(used) = open.get_mut(&self.owner) {
            *used -= 1;
            if *used == 0 {
                open.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, Quota, Streams};
    use std::num::NonZeroU32;
    use std::sync::Arc;

    #[test]
    fn a_closed_stream_makes_room_for_another() {
        let streams = Arc::new(Streams::new(NonZeroU32::new(2)));
        let take = |owner: &str| streams.take(Arc::from(owner));
        let first = take("ann").expect("the first");
        let _second = take("ann").expect("the second");
        let Err(Error::QuotaExceeded {
            quota, limit, used, ..
        }) = take("ann")
        else {
            panic!("two is the limit");
        };
        assert_eq!((quota, limit, used), (Quota::Streams, 2, 2));
        let other = take("bob").expect("limits are those of one user");
        drop(first);
        let third = take("ann").expect("there is room again");
        drop((third, other));
        assert_eq!(streams.lock().len(), 1, "who has none is not remembered");
    }
}
