//! Where credentials come from, where they may go, and that nobody sees them.

use super::*;
use crate::Api;
use clap::Parser;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const TOKEN: &str = "tl_abcdefgh12345678_hunter2";

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    remote: Remote,
}

fn remote(arguments: &[&str]) -> Remote {
    let words = ["x"].iter().chain(arguments);
    Command::try_parse_from(words).unwrap().remote
}

/// What is shown to the server, or why nothing is.
fn shown(arguments: &[&str], variable: Option<&str>) -> Result<Target, String> {
    let remote = remote(arguments);
    let target = remote
        .access
        .target_of(&remote.url().unwrap(), variable.map(OsString::from));
    target.map_err(|error| {
        assert!(matches!(error, CliError::Usage(_)), "{error:?}");
        error.to_string()
    })
}

fn token_file(folder: &Path, text: &str, mode: u32) -> String {
    let path = folder.join("token");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_token_goes_over_https_and_to_this_machine_and_elsewhere_only_when_told() {
    for url in [
        "https://ledger.example",
        "https://10.0.0.1:8000",
        "http://127.0.0.1:8000",
        "http://127.9.9.9",
        "http://localhost:8000",
        "http://[::1]:8000",
    ] {
        let target = shown(&["--url", url], Some(TOKEN)).unwrap();
        let headers = target.headers();
        assert_eq!(headers[AUTHORIZATION], format!("Bearer {TOKEN}"), "{url}");
    }
    for url in [
        "http://ledger.example",
        "http://10.0.0.1:8000",
        "http://localhost.example",
        "http://0.0.0.0:8000",
    ] {
        let said = shown(&["--url", url], Some(TOKEN)).unwrap_err();
        assert!(said.contains("TASKLEDGER_TOKEN is not sent"), "{said}");
        assert!(said.contains("--insecure-token"), "{said}");
        let cookie = ["--url", url, "--header", "cookie: hunter2"];
        let said = shown(&cookie, None).unwrap_err();
        assert!(said.contains("`cookie` of --header is not sent"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
        let told = shown(&["--url", url, "--insecure-token"], Some(TOKEN)).unwrap();
        assert!(told.headers().contains_key(AUTHORIZATION));
        assert!(shown(&["--url", url, "--header", "x-a: b"], None).is_ok());
    }
}

#[test]
fn a_token_goes_through_a_proxy_elsewhere_only_over_https_or_when_told() {
    let here = ["--url", "http://127.0.0.1:8000"];
    for proxy in [
        "http://192.0.2.2:3128",
        "https://proxy.example",
        "http://key:hunter2@192.0.2.2",
    ] {
        let through = [&here[..], &["--proxy", proxy]].concat();
        let said = shown(&through, Some(TOKEN)).unwrap_err();
        let expected = "is not sent to `http://127.0.0.1:8000/` through the proxy of --proxy";
        assert!(said.contains(expected), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
        assert!(shown(&[&through[..], &["--insecure-token"]].concat(), Some(TOKEN)).is_ok());
        assert!(shown(&through, None).is_ok(), "there is nothing to read");
        let tls = ["--url", "https://ledger.example", "--proxy", proxy];
        assert!(shown(&tls, Some(TOKEN)).is_ok());
    }
    let through_here = [&here[..], &["--proxy", "http://localhost:3128"]].concat();
    assert!(shown(&through_here, Some(TOKEN)).is_ok());
}

#[test]
fn an_option_wins_over_the_variable_and_two_options_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = token_file(folder.path(), "  other\n", 0o600);
    let of = |arguments: &[&str], variable| {
        let target = shown(arguments, variable)?;
        let value = target.headers().get(AUTHORIZATION).cloned();
        Ok::<_, String>(value.map(|value| value.to_str().unwrap().to_owned()))
    };
    assert_eq!(of(&[], None).unwrap(), None);
    assert_eq!(of(&[], Some("")).unwrap(), None);
    assert_eq!(of(&[], Some("t\n")).unwrap().unwrap(), "Bearer t");
    let from_file = of(&["--token-file", &file], Some("t")).unwrap();
    assert_eq!(from_file.unwrap(), "Bearer other");
    let basic = ["--header", "Authorization: Basic eA=="];
    assert_eq!(of(&basic, Some("t")).unwrap().unwrap(), "Basic eA==");
    let both = [basic.as_slice(), &["--token-file", &file]].concat();
    assert!(of(&both, None).unwrap_err().contains("expected one"));
    let twice = [basic, basic].concat();
    assert!(of(&twice, None).unwrap_err().contains("given twice"));
}

#[test]
fn a_header_of_the_variable_yields_to_options_and_wins_over_the_file_of_a_context() {
    let variable = |text: &str| variables::headers_in(HEADER_VARIABLE, OsString::from(text));
    let shown = |arguments: &[&str], text: &str| {
        let access = remote(arguments).access;
        let (file, headers) = access.shown(variable(text), Some(PathBuf::from("kept")));
        let headers: Vec<String> = headers.into_iter().map(|header| header.text).collect();
        (
            file.map(|file| file.display().to_string()),
            headers.join("|"),
        )
    };
    let (kept, option) = (Some("kept".to_owned()), Some("option".to_owned()));
    let both = "x-a: b\nAuthorization: Basic eA==";
    assert_eq!(shown(&[], "x-a: b"), (kept.clone(), "x-a: b".to_owned()));
    let all = "x-a: b|Authorization: Basic eA==";
    assert_eq!(shown(&[], both), (None, all.to_owned()));
    let named = ["--token-file", "option"];
    assert_eq!(shown(&named, both), (option, "x-a: b".to_owned()));
    let header = ["--header", "x-c: d"];
    assert_eq!(shown(&header, both), (kept, "x-c: d".to_owned()));
}

#[test]
fn errors_name_the_variable_that_holds_a_header() {
    let said = |url: &str, text: &str| {
        let access = Access {
            headers: variables::headers_in(HEADER_VARIABLE, OsString::from(text)),
            ..Access::default()
        };
        access.target_of(url, None).unwrap_err().to_string()
    };
    for (text, reason) in [
        ("hunter2", "expected `Name: value`"),
        ("host: hunter2", "`host` is set by the client itself"),
        (
            "authorization: hunter2\nauthorization: hunter2",
            "`authorization` is given twice",
        ),
    ] {
        let found = said("https://h", text);
        assert_eq!(found, format!("TASKLEDGER_HEADER: {reason}"));
    }
    let found = said("http://h", "authorization: hunter2");
    let begin = "`authorization` of TASKLEDGER_HEADER is not sent";
    assert!(found.starts_with(begin), "{found}");
}

#[test]
fn what_is_no_token_or_no_header_is_refused_without_being_shown() {
    let folder = tempfile::tempdir().unwrap();
    for variable in ["two hunter2", "hunter2\u{e9}", "hunter2\r\nx: y", "   "] {
        let said = shown(&[], Some(variable)).unwrap_err();
        assert!(said.starts_with("TASKLEDGER_TOKEN: expected"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
    for text in ["", "two hunter2", "hunter2\nx"] {
        let file = token_file(folder.path(), text, 0o600);
        let said = shown(&["--token-file", &file], None).unwrap_err();
        assert!(said.contains(&file) && !said.contains("hunter2"), "{said}");
    }
    for header in ["hunter2", ": hunter2", "a b: hunter2", "a: hunter2\n"] {
        let remote = remote(&["--header", header]);
        let found = remote.access.target_of(&remote.url().unwrap(), None);
        if let Err(error) = found {
            let said = error.to_string();
            assert!(said.contains("expected `Name: value`"), "{said}");
        } else {
            // White space at the end is no part of a value.
            assert_eq!(header, "a: hunter2\n");
        }
    }
    let said = shown(&["--header", "Content-Length: 1"], None).unwrap_err();
    assert!(
        said.contains("`content-length` is set by the client"),
        "{said}"
    );
    let said = shown(&["--url", "http://u:hunter2@localhost"], None).unwrap_err();
    assert!(
        !said.contains("hunter2") && said.contains("TASKLEDGER_TOKEN"),
        "{said}"
    );
}

#[test]
fn a_token_file_that_others_can_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = token_file(folder.path(), TOKEN, 0o644);
    let said = shown(&["--token-file", &file], None).unwrap_err();
    assert!(said.contains(&format!("chmod 600 '{file}'")), "{said}");
    assert!(said.starts_with("--token-file: "), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    // Nobody has given that option.
    let access = Access {
        token_file: Some(PathBuf::from(&file)),
        ..Access::default()
    };
    let origins = Origins {
        proxy: "--proxy",
        token_file: TOKEN_FILE_VARIABLE,
    };
    let said = access.target_by("https://h", None, origins).unwrap_err();
    let said = said.to_string();
    assert!(said.starts_with("TASKLEDGER_TOKEN_FILE: "), "{said}");
}

#[test]
fn no_debug_text_shows_credentials() {
    let arguments = ["--header", "x-key: hunter2", "--url", "https://h"];
    let target = shown(&arguments, Some(TOKEN)).unwrap();
    let api = HttpApi::of(target.clone()).unwrap();
    for text in [
        format!("{:?}", remote(&arguments)),
        format!("{target:?}"),
        format!("{api:?}"),
    ] {
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn a_file_without_authorities_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = token_file(folder.path(), "nothing", 0o644);
    let said = shown(&["--ca-file", &file], None).unwrap_err();
    assert!(
        said.starts_with("--ca-file: ") && said.contains(&file),
        "{said}"
    );
}

#[test]
fn commands_to_paste_get_the_options_of_the_call_without_secrets() {
    for proxy in [
        "http://u:hunter2@p:1",
        "http://hunter2@p:1",
        "http://:hunter2@p:1",
    ] {
        let given = remote(&[
            "--url",
            "http://h:1",
            "--token-file",
            "my token",
            "--header",
            "x-key: hunter2",
            "--proxy",
            proxy,
            "--insecure-token",
        ]);
        assert_eq!(
            given.options(),
            " --url http://h:1 --token-file 'my token' --insecure-token"
        );
    }
    let named = remote(&["--context", "prod", "--proxy", "http://p:1"]);
    assert_eq!(named.options(), " --context prod --proxy http://p:1/");
    assert_eq!(quoted("it's"), r"'it'\''s'");
    assert_eq!(quoted(""), "''");
    let api = remote(&["--url", "http://127.0.0.1:1"]).api().unwrap();
    assert_eq!(Api::options(&api), " --url http://127.0.0.1:1");
}
