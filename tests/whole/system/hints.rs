//! What a command says of names that were probably meant, of programs that may not run, and of files that are none
//! of ours.

use serde_json::json;
use std::path::Path;
use taskledger_testkit::program::{run, run_with};
use taskledger_testkit::server::{Folder, Server};

const MISSPELLED: &str = r#"[{"name": "a", "schemas": {"method": "ehco_executor"}}]"#;
const STRANGE: &str = r#"[{"name": "a", "schemas": {"method": "build"}}]"#;
const FORBIDDEN: &str =
    r#"[{"name": "a", "schemas": {"method": "command_executor"}, "inputs": {"program": "ls"}}]"#;
const MISNAMED: &str =
    r#"[{"name": "a", "schemas": {"method": "echo_executor"}, "lables": {"team": "data"}}]"#;

#[tokio::test]
async fn a_local_run_names_the_executors_of_the_program_and_no_server() {
    let folder = Folder::new();
    let local = async |text: &str| {
        let data = folder.data();
        let words = ["run", "-", "--data-dir", data.to_str().unwrap()];
        run_with(words, Path::new("."), text).await.refused(2)
    };

    let meant = local(MISSPELLED).await;
    let strange = local(STRANGE).await;
    let member = local(MISNAMED).await;
    let off = local(FORBIDDEN).await;

    assert!(
        meant.contains("expected the name of an executor; did you mean `echo_executor`?")
            && !meant.contains("taskledger executors"),
        "{meant}"
    );
    assert!(
        strange.contains("`echo_executor`, ")
            && strange.contains("`sleep_executor`")
            && !strange.contains("taskledger executors"),
        "{strange}"
    );
    assert!(
        off.contains("--allow-command PROGRAM turns it on, given to `taskledger serve` or to a `taskledger run` without a server"),
        "{off}"
    );
    assert!(
        member.contains("lables: Unknown field, expected a known field; did you mean `labels`?"),
        "{member}"
    );
}

#[tokio::test]
async fn a_program_that_is_not_allowed_is_answered_with_those_that_are() {
    let folder = Folder::new();
    let allowed = ["--allow-command", "true", "--allow-command", "false"];
    let server = Server::start_with(&folder, &allowed).await;
    let words = ["run", "-", "--url", &server.api.url];

    let said = run_with(words, Path::new("."), FORBIDDEN).await.refused(2);

    assert!(
        said.contains("inputs.program: is not a program that this server allows")
            && said.contains("one of `false`, `true`; `--allow-command PROGRAM` allows more")
            && said.contains("found \"ls\""),
        "{said}"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_file_that_is_no_export_is_said_to_be_none() {
    let folder = Folder::new();
    let (list, workflow) = (
        folder.path().join("hello.json"),
        folder.path().join("flow.json"),
    );
    std::fs::write(&list, "[\n  {\"name\": \"hello\"}\n]\n").unwrap();
    std::fs::write(&workflow, r#"{"tasks": [{"name": "hello"}]}"#).unwrap();
    let data = folder.data();
    for file in [&list, &workflow] {
        let file = file.to_str().unwrap();
        let verified = run(["events", "verify", file]).await;
        let into = [
            "events",
            "import",
            file,
            "--data-dir",
            data.to_str().unwrap(),
        ];
        let imported = run(into).await;
        for ended in [verified, imported] {
            assert!(
                ended
                    .err
                    .contains("line 1: this is not an export or archive of taskledger")
                    && ended.err.contains("`taskledger events export`"),
                "{ended:?}"
            );
            assert_ne!(ended.code, Some(0));
        }
    }
}

#[tokio::test]
async fn the_same_refusal_has_the_same_exit_code() {
    let folder = Folder::new();
    let data = folder.data();
    std::fs::create_dir(&data).unwrap();
    let archive = folder.path().join("archive");
    let (data, archive) = (data.to_str().unwrap(), archive.to_str().unwrap());
    for words in [
        &["retention", "--older-than", "30d", "--archive", archive][..],
        &["projections", "rebuild"],
        &["events", "export"],
        &["events", "verify"],
    ] {
        let place = ["--data-dir", data];
        let words = words.iter().chain(&place);
        let said = run(words).await.refused(1);
        assert!(said.contains("there is no log in"), "{said}");
    }
    let local = ["run", "-", "--egress-proxy", "socks5://127.0.0.1:1"];
    run_with(local, Path::new("."), STRANGE).await.refused(2);
    let remote = ["health", "--proxy", "socks5://127.0.0.1:1"];
    run(remote).await.refused(2);
    for command in ["run", "save"] {
        let words = ["workflows", command, "-"];
        let ended = run_with(words, Path::new("."), "phases: 7").await;
        assert!(ended.out.contains("-:1:"), "{ended:?}");
        let said = ended.refused(2);
        assert!(said.contains("the document `-` has errors"), "{said}");
    }
    let said = run(["workflows", "run"]).await.refused(2);
    assert!(said.contains("run [OPTIONS] --saved <NAME>"), "{said}");
}

#[tokio::test]
async fn a_task_that_was_created_with_a_misspelt_executor_says_so_before_it_is_executed() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.as_str();
    let task = json!({"name": "a", "schemas": {"method": "ehco_executor"}});
    let made = server.api.call("tasks.create", task).await;
    let id = made["id"].as_str().unwrap();

    let why = server
        .api
        .call("tasks.explain", json!({"task_id": id}))
        .await;
    let said = run(["tasks", "explain", id, "--url", url]).await.done();
    let tree = run(["tasks", "tree", id, "--url", url]).await.done();

    assert_eq!(
        why["summary"],
        "`a` was never executed: no run includes it, and no executor has its method `ehco_executor`; did you mean \
         `echo_executor`?"
    );
    let reason = &why["reasons"][0];
    assert_eq!(
        (
            &reason["code"],
            &reason["unknown_executor"],
            &reason["meant"]
        ),
        (
            &json!("not_covered"),
            &json!("ehco_executor"),
            &json!("echo_executor")
        )
    );
    let mend = format!("taskledger tasks update {id} --method echo_executor --url {url}");
    assert!(said.contains(&format!("you can: {mend}\n")), "{said}");
    assert_eq!(
        tree,
        "· a  pending  no executor `ehco_executor`; did you mean `echo_executor`?\n"
    );
    run(mend.split(' ').skip(1)).await.done();
    let mended = run(["tasks", "tree", id, "--url", url]).await.done();
    assert_eq!(mended, "· a  pending\n");
    server.stop().await;
}
