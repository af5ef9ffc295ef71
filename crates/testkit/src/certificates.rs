//! Certificates that tests make up, all of one authority, and the files of a server that shows one.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::LazyLock;
use tempfile::TempDir;

static AUTHORITY: LazyLock<CertifiedIssuer<'static, KeyPair>> = LazyLock::new(|| {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
        .distinguished_name
        .push(DnType::CommonName, "authority of the tests");
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
});

/// The authority of all certificates here, in PEM.
pub fn authority_pem() -> String {
    AUTHORITY.pem()
}

/// The authority of all certificates here, in DER.
pub fn authority_der() -> rustls::pki_types::CertificateDer<'static> {
    AUTHORITY.der().clone()
}

/// A certificate and its key.
#[derive(Debug, Clone)]
pub struct Pair {
    /// In PEM.
    pub certificate: String,
    /// The certificate in DER, as a peer sees it.
    pub der: Vec<u8>,
    /// In PEM.
    pub key: String,
    /// The key in DER.
    pub(crate) key_der: Vec<u8>,
}

/// Who has signed a certificate.
#[derive(Debug, Clone, Copy)]
enum Signed {
    OfTheAuthority,
    OfItself,
    AsAnAuthority,
}

impl Pair {
    /// One for these names and addresses, with a key of its own.
    pub fn of(names: &[&str]) -> Self {
        Self::between(names, 2020, 2100)
    }

    /// One that is over.
    pub fn expired(names: &[&str]) -> Self {
        Self::between(names, 2020, 2021)
    }

    fn between(names: &[&str], from: i32, until: i32) -> Self {
        Self::made(names, from, until, Signed::OfTheAuthority)
    }

    /// One that no authority has signed.
    pub fn self_signed(names: &[&str]) -> Self {
        Self::made(names, 2020, 2100, Signed::OfItself)
    }

    /// One that is an authority's own, as `openssl req -x509` makes it.
    pub fn of_an_authority(names: &[&str]) -> Self {
        Self::made(names, 2020, 2100, Signed::AsAnAuthority)
    }

    fn made(names: &[&str], from: i32, until: i32, signed: Signed) -> Self {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = match signed {
            Signed::OfTheAuthority => params.signed_by(&key, &*AUTHORITY).unwrap(),
            Signed::OfItself => params.self_signed(&key).unwrap(),
            Signed::AsAnAuthority => {
                params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
                params.self_signed(&key).unwrap()
            }
        };
        Self {
            certificate: certificate.pem(),
            der: certificate.der().to_vec(),
            key: key.serialize_pem(),
            key_der: key.serialize_der(),
        }
    }
}

/// Names of this machine, which every server of the tests has.
pub const LOCAL: [&str; 2] = ["127.0.0.1", "localhost"];

/// Certificate, key and authority as files; deleted with the value.
#[derive(Debug)]
pub struct Files {
    folder: TempDir,
}

impl Default for Files {
    fn default() -> Self {
        Self::new()
    }
}

impl Files {
    /// Those of a server on this machine.
    pub fn new() -> Self {
        let files = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        std::fs::write(files.authority(), authority_pem()).unwrap();
        files.write(&Pair::of(&LOCAL));
        files
    }

    /// Replaces certificate and key, each in one step, as programs that renew certificates do.
    pub fn write(&self, pair: &Pair) {
        self.replace(self.certificate(), &pair.certificate);
        self.replace(self.key(), &pair.key);
    }

    /// Replaces one file by one with mode 0600.
    pub fn replace(&self, path: PathBuf, text: &str) {
        let new = path.with_extension("new");
        std::fs::write(&new, text).unwrap();
        std::fs::set_permissions(&new, Permissions::from_mode(0o600)).unwrap();
        std::fs::rename(new, path).unwrap();
    }

    /// Path of the certificate, in PEM.
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    /// Path of the private key, in PEM.
    pub fn key(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }

    /// Path of the authority's certificate, in PEM.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }

    /// The arguments of a server that shows the certificate, and believes other nodes that do.
    pub fn arguments(&self) -> Vec<String> {
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let files = [
            ("--tls-cert", self.certificate()),
            ("--tls-key", self.key()),
            ("--node-ca", self.authority()),
        ];
        let words = files.map(|(name, path)| [name.to_owned(), text(path)]);
        words.into_iter().flatten().collect()
    }
}
