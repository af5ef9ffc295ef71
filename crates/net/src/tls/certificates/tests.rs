//! Usable and unusable files, and which certificate is shown meanwhile.

use super::*;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use tempfile::TempDir;

/// A certificate and its key, in PEM.
struct Pair {
    certificate: String,
    key: String,
}

fn pair(from: i32, until: i32) -> Pair {
    let mut params = CertificateParams::new(vec!["ledger.example".to_owned()]).unwrap();
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(until, 1, 1);
    let key = KeyPair::generate().unwrap();
    Pair {
        certificate: params.self_signed(&key).unwrap().pem(),
        key: key.serialize_pem(),
    }
}

fn now() -> DateTime<Utc> {
    "2026-06-01T00:00:00Z".parse().unwrap()
}

/// Two files.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new(pair: &Pair) -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        place.write(&pair.certificate, &pair.key);
        place
    }

    fn files(&self) -> Files {
        Files {
            certificate: self.folder.path().join("cert.pem"),
            key: self.folder.path().join("key.pem"),
        }
    }

    fn write(&self, certificate: &str, key: &str) {
        let files = self.files();
        std::fs::write(&files.certificate, certificate).unwrap();
        std::fs::write(&files.key, key).unwrap();
        self.key_mode(0o600);
    }

    fn key_mode(&self, mode: u32) {
        std::fs::set_permissions(self.files().key, Permissions::from_mode(mode)).unwrap();
    }

    fn load(&self) -> Result<Arc<Certificates>, Error> {
        Certificates::load(self.files(), now())
    }

    /// What is said of files that cannot be used.
    fn refused(&self) -> String {
        self.load().unwrap_err().to_string()
    }
}

#[test]
fn a_new_pair_replaces_the_one_before_and_the_same_one_does_not() {
    let (first, second) = (pair(2026, 2027), pair(2026, 2028));
    let place = Place::new(&first);
    let certificates = place.load().unwrap();
    let before = certificates.current().certified.cert.clone();
    assert_eq!(certificates.reload(now()).unwrap(), Reloaded::Same);

    place.write(&second.certificate, &second.key);

    assert_eq!(certificates.reload(now()).unwrap(), Reloaded::Replaced);
    assert_ne!(certificates.current().certified.cert, before);
    assert_eq!(
        certificates.expires_at().to_rfc3339(),
        "2028-01-01T00:00:00+00:00"
    );
    assert_eq!(certificates.reload(now()).unwrap(), Reloaded::Same);
}

#[test]
fn files_that_cannot_be_used_are_named_and_the_pair_before_is_kept() {
    let (good, other, over) = (pair(2026, 2027), pair(2026, 2027), pair(2020, 2021));
    let early = pair(2027, 2028);
    let place = Place::new(&good);
    let certificates = place.load().unwrap();
    let kept = certificates.current().certified.cert.clone();
    let half = |text: &str| text[..text.len() / 2].to_owned();
    let encrypted = good.key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let no_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let cases = [
        (
            "does not belong",
            other.certificate.clone(),
            good.key.clone(),
        ),
        (
            "does not belong",
            good.certificate.clone(),
            other.key.clone(),
        ),
        (
            "valid from 2020-01-01T00:00:00Z until 2021",
            over.certificate,
            over.key,
        ),
        (
            "valid from 2027-01-01T00:00:00Z until 2028",
            early.certificate,
            early.key,
        ),
        (
            "cert.pem` cannot be used: a block has no end",
            half(&good.certificate),
            good.key.clone(),
        ),
        (
            "key.pem` cannot be used: a block has no end",
            good.certificate.clone(),
            half(&good.key),
        ),
        (
            "there is no certificate in it",
            String::new(),
            good.key.clone(),
        ),
        (
            "there is no certificate in it",
            good.key.clone(),
            good.key.clone(),
        ),
        (
            "there is no private key in it",
            good.certificate.clone(),
            String::new(),
        ),
        ("its key is encrypted", good.certificate.clone(), encrypted),
        (
            "a block holds no certificate",
            no_certificate.to_owned(),
            good.key.clone(),
        ),
        (
            "a block holds no certificate",
            format!("{}{no_certificate}", good.certificate),
            good.key.clone(),
        ),
    ];
    for (told, certificate, key) in cases {
        place.write(&certificate, &key);
        let said = place.refused();
        assert!(said.contains(told), "{told}: {said}");
        assert!(said.contains("expected"), "{said}");
        assert_eq!(certificates.reload(now()).unwrap_err().to_string(), said);
        assert_eq!(certificates.current().certified.cert, kept, "{told}");
    }
    std::fs::remove_file(place.files().certificate).unwrap();
    assert!(place.refused().contains("cert.pem` cannot be used"));
    std::fs::remove_file(place.files().key).unwrap();
    assert!(certificates.reload(now()).is_err());
    assert_eq!(certificates.current().certified.cert, kept);
}

#[test]
fn a_key_that_others_can_read_is_refused_with_the_command_that_mends_it() {
    let place = Place::new(&pair(2026, 2027));
    for mode in [0o644, 0o604, 0o606] {
        place.key_mode(mode);
        let said = place.refused();
        let command = format!("chmod 600 '{}'", place.files().key.display());
        assert!(said.contains(&command), "{said}");
    }
    place.key_mode(0o400);
    place.load().unwrap();
}

#[test]
fn no_text_shows_the_key() {
    let good = pair(2026, 2027);
    let place = Place::new(&good);
    let shown = format!("{:?}", place.load().unwrap());
    assert!(
        shown.contains("2027-01-01") && shown.contains("key.pem"),
        "{shown}"
    );
    let secret = good.key.lines().nth(1).unwrap();
    let broken = good
        .key
        .replace("-----BEGIN PRIVATE KEY-----\n", "-----BEGIN ");
    place.write(&good.certificate, &broken);
    let (said, shown) = (place.refused(), format!("{:?}", place.load().unwrap_err()));
    assert!(!said.contains(secret) && !shown.contains(secret), "{said}");
}
