//! Databases that cannot be used: the program says why, without the password, and ends.

use serde_json::json;
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use std::path::Path;
use taskledger_testkit::program::{Ended, run, run_with};
use taskledger_testkit::server::{Folder, Server};

const PASSWORD: &str = "hunter2";
/// Members of this role have to give their password: `.ci/with-postgres` has told the server so.
const WITH_PASSWORD: &str = "with_password";

/// What each command that opens a log says of it. None may show the password.
async fn all_say(url: &str, code: i32, expected: &[&str]) {
    for command in [
        &["serve", "--listen", "127.0.0.1:0", "--log-level", "trace"][..],
        &["events", "export"],
        &["events", "verify"],
        &["events", "import", "-"],
        &["projections", "rebuild"],
        &["migrate"],
    ] {
        let said = with(url, command).await.refused(code);
        for words in expected {
            assert!(said.contains(words), "{command:?}: {said}");
        }
        assert!(!said.contains(PASSWORD), "{command:?}: {said}");
    }
}

async fn with(url: &str, command: &[&str]) -> Ended {
    let storage = ["--database-url", url, "--database-acquire-timeout", "1"];
    run([command, &storage].concat()).await
}

async fn serve(url: &str) -> Ended {
    with(url, &["serve", "--listen", "127.0.0.1:0"]).await
}

/// The folder's database as this user sees it.
fn as_user(folder: &Folder, user: &str) -> String {
    let options = folder.options().unwrap().username(user).password(PASSWORD);
    options.to_url_lossy().to_string()
}

/// A role of its own for this test, which goes with it.
struct Role<'a> {
    name: String,
    folder: &'a Folder,
}

impl<'a> Role<'a> {
    async fn create(folder: &'a Folder, more: &str) -> Self {
        let name = format!("user_of_{}", folder.name());
        let sql = format!("CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'; {more}");
        folder.execute(&sql.replace("$", &name)).await;
        Self { name, folder }
    }

    async fn drop(self) {
        let name = &self.name;
        let sql = format!("DROP OWNED BY {name} CASCADE; DROP ROLE {name}");
        self.folder.execute(&sql).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_address_of_a_database_is_refused_without_repeating_it() {
    for url in [
        "",
        " ",
        "hunter2",
        "sqlite://u:hunter2@h/d",
        "mysql://u:hunter2@h/d",
        "http://u:hunter2@h/d",
        "postgres:u:hunter2@h/d",
        "postgres://u:hunter2@h:port/d",
        "postgres://u:hunter2@h:99999/d",
        "postgres://u:hunter2@[h/d",
        "postgres://u:hunter2@h/d?sslmode=perhaps",
        "postgres://u:hunter2@h/d?port=none",
    ] {
        let expected = ["--database-url", "expected postgres://USER:PASSWORD@HOST"];
        all_say(url, 2, &expected).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_not_there_is_named() {
    let folder = Folder::with_database().await;
    let options = folder.options().unwrap();
    let (host, port) = (options.get_host(), options.get_port());
    let url = options.clone().database("no_such").password(PASSWORD);
    let place = format!("`no_such` at `{host}:{port}`");
    let said = [&place, "cannot be reached", "does not exist"];
    all_say(url.to_url_lossy().as_str(), 1, &said).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_there_or_does_not_speak_is_named() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let place = format!("`d` at `{address}`");
    let url = format!("postgres://u:{PASSWORD}@{address}/d");
    all_say(
        &url,
        1,
        &[&place, "cannot be reached", "no answer within 1s"],
    )
    .await;

    drop(silent);
    all_say(&url, 1, &[&place, "cannot be reached", "refused"]).await;

    let url = format!("postgres://u:{PASSWORD}@no-such-host.invalid/d");
    let place = "`d` at `no-such-host.invalid:5432`";
    all_say(&url, 1, &[place, "cannot be reached"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_told_and_the_right_one_is_never_shown() {
    let folder = Folder::with_database().await;
    let group = format!(
        "DO 'BEGIN CREATE ROLE {WITH_PASSWORD}; EXCEPTION WHEN duplicate_object THEN NULL; END'; \
         GRANT {WITH_PASSWORD} TO $; GRANT ALL ON DATABASE {} TO $",
        folder.name()
    );
    let role = Role::create(&folder, &group).await;
    let url = as_user(&folder, &role.name);
    let wrong = url.replace(PASSWORD, "hunter22");
    let options: PgConnectOptions = wrong.parse().unwrap();
    let asked = options.connect().await.is_err();
    assert!(
        asked,
        "the server was started by another `.ci/with-postgres` than this one"
    );
    let said = [&role.name, "password authentication failed"];
    all_say(&wrong, 1, &said).await;

    let mut arguments = folder.storage();
    let given = arguments.last_mut().unwrap();
    given.clone_from(&url);
    let mut command = taskledger_testkit::program::command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", "trace"]);
    command.args(arguments);
    let server = Server::spawn(command, folder.path()).await;
    server.api.call("tasks.create", json!({"name": "a"})).await;
    let health = server.api.call("system.health", json!({})).await;
    assert!(!health.to_string().contains(PASSWORD), "{health}");
    let said = server.stop().await;
    assert!(!said.contains(PASSWORD), "{said}");
    role.drop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_may_not_make_the_schema_is_told_so() {
    let folder = Folder::with_database().await;
    let role = Role::create(&folder, "").await;
    let said = serve(&as_user(&folder, &role.name)).await.refused(1);
    assert!(said.contains(&role.name), "{said}");
    assert!(said.contains("permission denied"), "{said}");
    assert!(!said.contains(PASSWORD), "{said}");
    role.drop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_only_reads_is_refused() {
    let folder = Folder::with_database().await;
    let name = folder.name();
    let sql = format!("ALTER DATABASE {name} SET default_transaction_read_only = on");
    folder.execute(&sql).await;
    let options: PgConnectOptions = folder.options().unwrap().password(PASSWORD);
    let said = serve(options.to_url_lossy().as_str()).await.refused(1);
    assert!(said.contains(&name), "{said}");
    assert!(said.contains("it is read-only"), "{said}");
    assert!(!said.contains(PASSWORD), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_of_a_newer_program_is_refused_and_left_alone() {
    let folder = Folder::with_database().await;
    let server = Server::start(&folder).await;
    server.api.call("tasks.create", json!({"name": "a"})).await;
    server.stop().await;
    let newer = "INSERT INTO taskledger.schema_steps (purpose, number, name)
                 VALUES ('log', 99, 'of the future')";
    folder.execute(newer).await;

    let url = as_user(&folder, "postgres");
    let refused = serve(&url).await.refused(1);

    assert!(refused.contains("has schema version 99"), "{refused}");
    assert!(refused.contains("use the newer program"), "{refused}");
    let older = "DELETE FROM taskledger.schema_steps WHERE number = 99";
    folder.execute(older).await;
    let server = Server::start(&folder).await;
    let list = server.api.call("tasks.list", json!({})).await;
    assert_eq!(list["total"], 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_without_a_log_has_none_to_read() {
    let folder = Folder::with_database().await;
    let url = as_user(&folder, "postgres");
    for command in ["export", "verify"] {
        let said = with(&url, &["events", command]).await.refused(1);
        let told = format!("there is no log in the database `{}`", folder.name());
        assert!(said.contains(&told), "{command}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_in_the_program_does_not_take_a_database_for_a_folder() {
    let arguments = ["run", "-", "--database-url", "postgres://u:hunter2@h/d"];
    let workflow = r#"[{"name": "a", "schemas": {"method": "echo_executor"}}]"#;
    let said = run_with(arguments, Path::new("."), workflow).await;
    let said = said.refused(2);
    assert!(said.contains("--database-url"), "{said}");
    assert!(!said.contains(PASSWORD), "{said}");
}
