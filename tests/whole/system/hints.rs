//! What a command says of names that were probably meant, of programs that may not run, and of files that are none
//! of ours.

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
        said.contains("inputs.program: is no program that this server allows")
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
                    .contains("line 1: this is no export or archive of taskledger")
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
}
