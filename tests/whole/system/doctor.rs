//! What `doctor` says of a database is what a server meets there.

use serde_json::{Value, json};
use taskledger_testkit::postgres::is_left_out;
use taskledger_testkit::program::{Ended, run};
use taskledger_testkit::server::{Folder, Server};

/// A user of a database of its own, who may connect and nothing else.
struct User {
    folder: Folder,
    name: String,
}

impl User {
    async fn of(folder: &Folder) -> Self {
        // Users are shared by all databases of a server.
        let name = format!("user_of_{}", folder.name());
        folder
            .execute(&format!("CREATE ROLE {name} LOGIN PASSWORD 'secret'"))
            .await;
        let mut url = reqwest::Url::parse(folder.url().unwrap()).unwrap();
        url.set_username(&name).unwrap();
        url.set_password(Some("secret")).unwrap();
        Self {
            folder: Folder::at(url.into()),
            name,
        }
    }

    /// What the doctor found of the database, and the exit code.
    async fn looked(&self) -> (Value, Option<i32>) {
        let words = ["--json", "doctor"].map(str::to_owned).into_iter();
        let Ended { code, out, .. } = run(words.chain(self.folder.storage())).await;
        let found: Value = serde_json::from_str(&out).unwrap();
        let all = found.as_array().unwrap().iter();
        let of = all.filter(|it| it["of"] == "database");
        (of.cloned().collect::<Vec<_>>()[0].take(), code)
    }

    async fn serves(&self) {
        let server = Server::start(&self.folder).await;
        server.api.call("tasks.create", json!({"name": "n"})).await;
        server.stop().await;
    }
}

/// Removes the user, whom others on the server of databases do not know.
async fn removed(folder: &Folder, user: User) {
    let name = user.name;
    folder
        .execute(&format!("DROP OWNED BY {name} CASCADE; DROP ROLE {name}"))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_statements_of_the_doctor_let_a_user_serve() {
    if is_left_out() {
        return;
    }
    let folder = Folder::with_database().await;
    let user = User::of(&folder).await;

    // Nothing is there, and nothing may be made.
    let (empty, code) = user.looked().await;
    assert_eq!(
        (&empty["verdict"], code),
        (&json!("bad"), Some(1)),
        "{empty}"
    );
    let create = format!(
        "GRANT CREATE ON DATABASE {} TO {};",
        folder.name(),
        user.name
    );
    assert!(
        empty["advice"].as_str().unwrap().ends_with(&create),
        "{empty}"
    );

    // The schemas are those of an owner, who lets the user read the log.
    let words = ["migrate"].map(str::to_owned).into_iter();
    run(words.chain(folder.storage())).await.done();
    let reads = format!(
        "GRANT USAGE ON SCHEMA taskledger TO {0}; GRANT SELECT ON ALL TABLES IN SCHEMA taskledger TO {0}",
        user.name
    );
    folder.execute(&reads).await;
    let (reader, code) = user.looked().await;
    assert_eq!(
        (&reader["verdict"], code),
        (&json!("bad"), Some(1)),
        "{reader}"
    );
    assert!(
        reader["found"]
            .as_str()
            .unwrap()
            .contains("may not create schemas in the database"),
        "{reader}"
    );

    let advice = reader["advice"].as_str().unwrap();
    let (_, statements) = advice.split_once('\n').unwrap();
    folder.execute(statements).await;

    let (granted, code) = user.looked().await;
    assert_eq!(
        (&granted["verdict"], code),
        (&json!("good"), Some(0)),
        "{granted}"
    );
    user.serves().await;
    let (served, _) = user.looked().await;
    assert_eq!(served["verdict"], "good", "{served}");

    // Tables of the read models that another user has made cannot be made anew.
    let owner = "ALTER SCHEMA taskledger_rows OWNER TO CURRENT_USER";
    folder.execute(owner).await;
    let (rows, _) = user.looked().await;
    assert!(
        rows["found"]
            .as_str()
            .unwrap()
            .contains("own the schema taskledger_rows"),
        "{rows}"
    );
    let (_, statements) = rows["advice"].as_str().unwrap().split_once('\n').unwrap();
    assert!(!statements.contains("GRANT CURRENT_USER"), "{rows}");
    folder.execute(statements).await;
    let (given, _) = user.looked().await;
    assert_eq!(given["verdict"], "good", "{given}");
    removed(&folder, user).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_database_is_fine_where_a_server_can_make_its_tables() {
    if is_left_out() {
        return;
    }
    let folder = Folder::with_database().await;
    let user = User::of(&folder).await;
    let create = format!(
        "GRANT CREATE ON DATABASE {} TO {}",
        folder.name(),
        user.name
    );
    folder.execute(&create).await;

    let (found, code) = user.looked().await;

    assert_eq!(
        (&found["verdict"], code),
        (&json!("good"), Some(0)),
        "{found}"
    );
    assert!(
        found["found"].as_str().unwrap().contains("has no log yet"),
        "{found}"
    );
    user.serves().await;
    removed(&folder, user).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_not_there_is_named_in_the_words_of_its_server() {
    if is_left_out() {
        return;
    }
    let folder = Folder::with_database().await;
    let mut url = reqwest::Url::parse(folder.url().unwrap()).unwrap();
    url.set_path("/nobodys");

    let words = ["doctor", "--database-url", url.as_str()];
    let ended = run(words).await;

    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.out.contains("database \"nobodys\" does not exist\n"),
        "{ended:?}"
    );
}
