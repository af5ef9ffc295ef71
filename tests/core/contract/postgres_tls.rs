//! Postgres behind TLS: what the connection string asks for is what is done, or the log is not
//! opened.

use crate::contract::fixture::{append, appended, flow, manual_clock, postgres_options};
use std::path::Path;
use std::process::{Command, Stdio};
use taskledger::store::EventStore;
use taskledger::store::postgres::{OpenError, PostgresStore};
use taskledger_testkit::postgres::Database;
use taskledger_testkit::postgres::admin::Admin;
use taskledger_testkit::postgres::server::Server;

/// Runs `openssl`, which the packages of PostgreSQL bring along.
fn openssl(folder: &Path, arguments: &str) {
    let done = Command::new("openssl")
        .args(arguments.split(' '))
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("openssl is installed");
    assert!(done.success(), "openssl {arguments}");
}

/// An authority, another one, and a certificate for `localhost` by the first.
fn certificates(folder: &Path) {
    for name in ["ours", "other"] {
        openssl(
            folder,
            &format!(
                "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={name} -keyout {name}.key -out {name}.pem"
            ),
        );
    }
    openssl(
        folder,
        "req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr",
    );
    std::fs::write(folder.join("names"), "subjectAltName=DNS:localhost").unwrap();
    openssl(
        folder,
        "x509 -req -in server.csr -CA ours.pem -CAkey ours.key -CAcreateserial -days 2 -extfile names -out server.pem",
    );
}

/// A server that speaks TLS, with its certificates where only it may read the key.
fn secured() -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let server = Server::begin();
    let data = server.data();
    for name in ["server.key", "server.pem"] {
        let to = data.join(name);
        std::fs::copy(folder.path().join(name), &to).unwrap();
        let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&data).unwrap());
        std::os::unix::fs::chown(&to, Some(owner), None).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&to, private).unwrap();
    }
    let settings = "ssl = on\nssl_cert_file = 'server.pem'\nssl_key_file = 'server.key'\n";
    let file = data.join("postgresql.auto.conf");
    std::fs::write(file, settings).unwrap();
    server.restart();
    (folder, server)
}

async fn open(url: &str) -> Result<PostgresStore, OpenError> {
    PostgresStore::open(postgres_options(url, manual_clock())).await
}

async fn refused(url: &str) -> String {
    let error = open(url).await.unwrap_err();
    assert!(matches!(error, OpenError::Unreachable { .. }), "{error:?}");
    error.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_certificate_is_verified_as_the_url_asks() {
    let (folder, server) = secured();
    let authority = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let by_name = server.url().replace("127.0.0.1", "localhost");
    let verified = format!(
        "{by_name}?sslmode=verify-full&sslrootcert={}",
        authority("ours.pem")
    );

    let store = open(&verified).await.unwrap();
    appended(store.append(append(flow(), 0, 1)).await.unwrap());
    let plain = "SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
        WHERE a.application_name LIKE 'taskledger%' AND NOT s.ssl";
    let secured = plain.replace("NOT s.ssl", "s.ssl");
    let mut admin = Admin::at(&server.url()).await;
    assert!(
        admin.number(&secured).await >= 2,
        "the writer and a listener"
    );
    assert_eq!(admin.number(plain).await, 0);
    store.close().await;

    let other_name = verified.replace("localhost", "127.0.0.1");
    let said = refused(&other_name).await;
    assert!(said.contains("certificate"), "{said}");
    let other_authority = verified.replace("ours.pem", "other.pem");
    let said = refused(&other_authority).await;
    assert!(said.contains("certificate"), "{said}");
    let missing = verified.replace("ours.pem", "missing.pem");
    let said = refused(&missing).await;
    assert!(
        said.contains("missing.pem") || said.contains("No such file"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_tls_is_refused_when_tls_is_required() {
    let database = Database::create().await;
    let base = database.url().split('?').next().unwrap();
    let said = refused(&format!("{base}?sslmode=require")).await;
    assert!(said.to_lowercase().contains("tls"), "{said}");
}
