//! Removes a data folder that the server created, if its start fails.

use crate::private;
use crate::store::lock::DataDirLock;
use crate::store::sqlite::LEDGER_FILE;
use crate::store::sqlite::export::Export;
use crate::store::transfer::Source;
use std::fs::{remove_dir, remove_dir_all};
use std::path::{Path, PathBuf};

/// Folders that are missing, from the data folder outwards.
#[derive(Debug)]
pub(super) struct Fresh(Vec<PathBuf>);

impl Fresh {
    /// What has to be made for a data folder; `None`: it is there.
    pub(super) fn of(folder: &Path) -> Option<Self> {
        let missing = private::missing_folders(folder);
        let is_missing = missing.first().is_some_and(|first| first == folder);
        is_missing.then_some(Self(missing))
    }

    /// Removes what the start has made. Not if somebody uses it, or has used it meanwhile: then there are events. What
    /// cannot be removed does no harm.
    pub(super) fn remove(self) {
        let [folder, above @ ..] = self.0.as_slice() else {
            return;
        };
        if !folder.is_dir() {
            return;
        }
        let Ok(_lock) = DataDirLock::acquire(folder) else {
            return;
        };
        let log = folder.join(LEDGER_FILE);
        let is_unused = !log.exists() || Export::open(&log, 0).is_ok_and(|log| log.head() == 0);
        if is_unused && remove_dir_all(folder).is_ok() {
            let mut above = above.iter();
            while above.next().is_some_and(|it| remove_dir(it).is_ok()) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    #[test]
    fn what_a_start_has_made_is_removed_and_nothing_else() {
        let place = TempDir::new().unwrap();
        let folder = place.path().join("above/data");
        // Nothing was made.
        Fresh::of(&folder).unwrap().remove();
        let fresh = Fresh::of(&folder).unwrap();
        private::make_folder(&folder).unwrap();
        fs::write(folder.join("webhooks.db"), "").unwrap();
        assert!(Fresh::of(&folder).is_none(), "it is there now");
        fresh.remove();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_somebody_uses_stays() {
        let place = TempDir::new().unwrap();
        let folder = place.path().join("data");
        let fresh = || Fresh(vec![folder.clone()]);
        let lock = DataDirLock::acquire(&folder).unwrap();
        fresh().remove();
        assert!(folder.is_dir(), "it is locked");
        drop(lock);
        // What is no log cannot be read as one.
        fs::write(folder.join(LEDGER_FILE), "something").unwrap();
        fresh().remove();
        assert!(
            folder.is_dir(),
            "it has a log that is not known to be empty"
        );
    }
}
