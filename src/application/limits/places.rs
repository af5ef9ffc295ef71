//! How many streams each user has open, and how many of its claims wait.

use super::Quota;
use crate::application::error::Error;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Open streams or waiting claims by owner. Owners without one have no entry.
#[derive(Debug)]
pub(super) struct Places {
    quota: Quota,
    max: Option<NonZeroU32>,
    open: Mutex<HashMap<Arc<str>, u32>>,
}

impl Places {
    pub(super) fn new(quota: Quota, max: Option<NonZeroU32>) -> Self {
        Self {
            quota,
            max,
            open: Mutex::default(),
        }
    }

    pub(super) fn take(self: &Arc<Self>, owner: Arc<str>) -> Result<HeldPlace, Error> {
        let mut open = self.lock();
        let used = open.entry(owner.clone()).or_default();
        if let Some(max) = self.max
            && *used >= max.get()
        {
            return Err(Error::QuotaExceeded {
                quota: self.quota,
                limit: max.get().into(),
                used: (*used).into(),
                requested: 1,
            });
        }
        *used += 1;
        drop(open);
        Ok(HeldPlace {
            places: self.clone(),
            owner,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, u32>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a stream or claim, which is free again when this is dropped.
#[derive(Debug)]
pub struct HeldPlace {
    places: Arc<Places>,
    owner: Arc<str>,
}

impl Drop for HeldPlace {
    fn drop(&mut self) {
        let mut open = self.places.lock();
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
    use super::{Error, Places, Quota};
    use std::num::NonZeroU32;
    use std::sync::Arc;

    #[test]
    fn a_closed_stream_makes_room_for_another() {
        let streams = Arc::new(Places::new(Quota::Streams, NonZeroU32::new(2)));
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
