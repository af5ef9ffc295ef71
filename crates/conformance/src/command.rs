//! What the arguments ask for: looking at a server clause by clause, or the list of clauses.

use crate::error::Error;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;
use taskledger_clock::SystemClock;
use taskledger_conformance::{
    CALL_TIMEOUT, Check, Clause, Level, Options, Report, Suite, Verdict, all, failing_task,
    markdown,
};
use taskledger_terminal::{Column, Output, Text, aligned, printable};

/// The address of a server when none is given.
const URL_DEFAULT: &str = "http://127.0.0.1:8000";
/// Characters of evidence that the table shows; `--json` shows all.
const EVIDENCE_CHARS_MAX: usize = 200;
/// How long a server may take to accept a connection, before anything is looked at.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Check a server against the protocol, clause by clause
#[derive(Debug, clap::Parser)]
#[command(name = "taskledger-conformance", version)]
#[command(after_help = "\
Needs a server that runs at least three tasks at once: with fewer, checks wait in vain for each
other's tasks. Checks create tasks with names and users of their own, and leave them: some 26,000,
almost all by the clauses about limits in `semantics/`. `--only interface/`, `--only data-model/` and
`--only validation/` leave those out.

Where callers need tokens, that of `--header` must be good for tasks of all users (`taskledger tokens create
conformance --service --scopes tasks:read,tasks:write,tasks:run,users:any`), and that of `--other-header`
for those of one user. The checks make more calls than a server may allow one caller
(`taskledger serve --rate-per-second 0` allows them), and some show tokens that nobody issued: wait a minute
before the next run if the server turns away whoever does that often.

Examples:
  taskledger-conformance
  taskledger-conformance --url http://127.0.0.1:9000 --path /tasks --executor noop --slow-executor wait
  taskledger-conformance --header 'Authorization: Bearer TOKEN' --other-header 'Authorization: Bearer OTHER'
  taskledger-conformance --only interface/json-rpc --json
  taskledger-conformance --list

Exit codes: 0 no MUST is broken, 1 one is, 2 usage, 4 no connection")]
pub(crate) struct Args {
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// The server
    #[arg(long, value_name = "URL", env = "TASKLEDGER_URL", default_value = URL_DEFAULT, value_parser = server_url)]
    url: String,
    /// Where the server takes calls: `/` or `/tasks`
    #[arg(long, default_value = "/")]
    path: String,
    /// An executor of the server that ends at once and takes any inputs
    #[arg(long, value_name = "NAME", default_value = "echo_executor")]
    executor: String,
    /// An executor of the server that takes a while
    #[arg(long, value_name = "NAME", default_value = "sleep_executor")]
    slow_executor: String,
    /// Its inputs, for about a minute, if it does not take `{"duration_ms": n}`
    #[arg(long, value_name = "JSON", value_parser = object)]
    slow_inputs: Option<Value>,
    /// Members of a task that fails soon after its start [default: one that runs into its time-out]
    #[arg(long, value_name = "JSON", value_parser = object)]
    failing_task: Option<Value>,
    /// A header of every call, such as a token; may be repeated
    #[arg(long = "header", value_name = "NAME:VALUE", value_parser = header)]
    headers: Vec<(HeaderName, HeaderValue)>,
    /// What another user sends instead, for clauses about who may see what; may be repeated
    #[arg(long = "other-header", value_name = "NAME:VALUE", value_parser = header)]
    other_headers: Vec<(HeaderName, HeaderValue)>,
    /// Authorities in PEM that the certificate of an `https` server may come from, beside those of the system
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// How long one call may take
    #[arg(long, value_name = "SECONDS", default_value_t = CALL_TIMEOUT.as_secs(), value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Only clauses whose id contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Rules that this project decided count like a MUST
    #[arg(long)]
    strict: bool,
    /// Print the clauses; no server is needed
    #[arg(long)]
    list: bool,
    /// Print them as the page `CONFORMANCE.md`
    #[arg(long, requires = "list", conflicts_with = "only")]
    markdown: bool,
}

impl Args {
    /// Whether the report, and errors too, are wanted as JSON.
    pub(crate) const fn wants_json(&self) -> bool {
        self.json
    }
}

fn server_url(text: &str) -> Result<String, String> {
    let parsed =
        reqwest::Url::parse(text).map_err(|error| format!("`{text}` is no URL: {error}"))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(format!(
            "cannot talk to `{text}`: only `http://` and `https://` are supported"
        ));
    }
    if !parsed.has_host() {
        return Err("expected http://HOST:PORT, for example http://127.0.0.1:8000".to_owned());
    }
    Ok(text.to_owned())
}

fn object(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(other) => Err(format!("expected a JSON object, got {other}")),
        Err(error) => Err(format!("expected a JSON object: {error}")),
    }
}

/// Its value is kept out of logs.
fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("expected NAME:VALUE, as in `Authorization: Bearer TOKEN`")?;
    let name = HeaderName::from_str(name.trim())
        .map_err(|error| format!("`{name}` is no name of a header: {error}"))?;
    let mut value = HeaderValue::from_str(value.trim())
        .map_err(|error| format!("the value of `{name}` cannot be sent: {error}"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Runs it.
pub(crate) async fn run(args: Args, out: &mut Output) -> Result<ExitCode, Error> {
    let mut clauses = all();
    if args.markdown {
        out.bytes(markdown(&clauses).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(text) = &args.only {
        clauses.retain(|clause| clause.id.contains(text.as_str()));
        if clauses.is_empty() {
            let text = format!("no clause has `{text}` in its id; `--list` shows all");
            return Err(Error::Usage(text));
        }
    }
    if args.list {
        list(&clauses, out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let clock = SystemClock::default();
    let options = options(&args).map_err(Error::Usage)?;
    let suite = Suite::new(options, &clock).map_err(Error::Usage)?;
    reach(&args.url).await?;
    let (terminal, count) = (std::io::stderr().is_terminal(), clauses.len());
    let progress = |done| {
        if terminal {
            eprint!("\r{done} of {count} clauses");
        }
    };
    let report = suite.run(&clauses, progress).await;
    if terminal {
        eprint!("\r\x1b[K");
    }
    show(&report, args.strict, out)?;
    Ok(match report.conforms(args.strict) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// # Errors
/// What is wrong with `--ca-file`.
fn options(args: &Args) -> Result<Options, String> {
    let authorities = match &args.ca_file {
        None => Vec::new(),
        Some(path) => taskledger_net::tls::authorities(path).map_err(|reason| {
            format!(
                "--ca-file: `{}` cannot be used: {reason}; expected PEM, blocks of `-----BEGIN CERTIFICATE-----`",
                path.display()
            )
        })?,
    };
    Ok(Options {
        authorities,
        path: args.path.clone(),
        executor: args.executor.clone(),
        slow_executor: args.slow_executor.clone(),
        slow_inputs: args.slow_inputs.clone(),
        failing_task: args.failing_task.clone().unwrap_or_else(failing_task),
        headers: args.headers.iter().cloned().collect(),
        other_headers: args.other_headers.iter().cloned().collect(),
        call_timeout: Duration::from_secs(args.timeout),
        ..Options::new(&args.url)
    })
}

/// Whether anybody listens: a wrong address is no verdict on a server.
async fn reach(url: &str) -> Result<(), Error> {
    let no = |why: String| Error::Connection(format!("cannot reach {url}: {why}"));
    let parsed = reqwest::Url::parse(url).map_err(|error| no(error.to_string()))?;
    let host = parsed.host_str().unwrap_or_default();
    let host = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    let port = parsed.port_or_known_default().unwrap_or(80);
    let connected = tokio::net::TcpStream::connect((host, port));
    match tokio::time::timeout(CONNECT_TIMEOUT, connected).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(no(error.to_string())),
        Err(_) => Err(no(format!("no answer in {} s", CONNECT_TIMEOUT.as_secs()))),
    }
}

fn list(clauses: &[Clause], out: &mut Output) -> std::io::Result<()> {
    let test = |clause: &Clause| match &clause.check {
        Check::Test { name, .. } => (*name).to_owned(),
        Check::NotTestable(reason) => format!("not testable: {reason}"),
    };
    if out.is_json() {
        let of = |clause: &Clause| {
            json!({
                "id": clause.id,
                "level": clause.level.name(),
                "text": clause.text,
                "same_as": clause.same_as,
                "test": test(clause),
            })
        };
        return out.value(&clauses.iter().map(of).collect());
    }
    let row = |clause: &Clause| {
        let (id, level) = (clause.id.to_owned(), clause.level.name().to_owned());
        vec![id, level, clause.text.to_owned()]
    };
    let rows: Vec<_> = clauses.iter().map(row).collect();
    out.texts(&table(&["CLAUSE", "LEVEL", "DEMANDS"], &rows))
}

fn show(report: &Report, strict: bool, out: &mut Output) -> std::io::Result<()> {
    if out.is_json() {
        return out.value(&report.to_json(strict));
    }
    let rows: Vec<_> = report
        .lines
        .iter()
        .map(|line| {
            vec![
                line.id.to_owned(),
                line.level.name().to_owned(),
                line.verdict.name().to_owned(),
                shortened(line.verdict.text()),
            ]
        })
        .collect();
    out.texts(&table(&["CLAUSE", "LEVEL", "VERDICT", "EVIDENCE"], &rows))?;
    out.bytes(b"\n")?;
    let count = |(level, counts): (Level, [usize; 4])| {
        std::iter::once(level.name().to_owned())
            .chain(counts.map(|n| n.to_string()))
            .collect()
    };
    let counts: Vec<Vec<String>> = report.counts().into_iter().map(count).collect();
    let mut head = vec!["LEVEL"];
    head.extend(Verdict::NAMES.map(|name| match name {
        "not testable" => "not-testable",
        other => other,
    }));
    out.texts(&table(&head, &counts))?;
    let conclusion = match (report.conforms(strict), strict) {
        (true, false) => "conforms: no MUST is broken",
        (true, true) => "conforms: no MUST and no decided rule is broken",
        (false, _) => "does not conform",
    };
    out.line(conclusion)
}

/// As wide as it needs to be: reports are kept and searched.
fn table(head: &[&str], rows: &[Vec<String>]) -> Vec<Text> {
    let columns: Vec<Column<'_>> = head.iter().map(|head| Column::whole(head)).collect();
    let cells = |row: &Vec<String>| row.iter().map(Text::plain).collect();
    let rows: Vec<Vec<Text>> = rows.iter().map(cells).collect();
    aligned(&columns, &rows, None)
}

fn shortened(text: &str) -> String {
    let text = printable(text);
    if text.chars().count() <= EVIDENCE_CHARS_MAX {
        return text;
    }
    let begin: String = text.chars().take(EVIDENCE_CHARS_MAX).collect();
    format!("{begin}...")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};
    use taskledger_conformance::Line;
    use taskledger_terminal::testing::Buffer;

    fn shown(verdict: Verdict, strict: bool) -> String {
        let (id, level, text) = ("a/b/1-c", Level::Decided, "t");
        let report = Report {
            lines: vec![Line {
                id,
                level,
                text,
                verdict,
            }],
        };
        let page = Buffer::default();
        let mut out = Output::to(Box::new(page.clone()), false, false);
        show(&report, strict, &mut out).unwrap();
        page.text()
    }

    #[test]
    fn the_table_shows_each_clause_the_counts_and_the_conclusion() {
        let failed = || Verdict::Failed("sent x,\ngot y".to_owned());
        let expected = "\
CLAUSE   LEVEL    VERDICT  EVIDENCE
a/b/1-c  decided  failed   sent x, got y

LEVEL    passed  failed  skipped  not-testable
decided  0       1       0        0
conforms: no MUST is broken
";
        assert_eq!(shown(failed(), false), expected);
        assert!(shown(failed(), true).ends_with("does not conform\n"));
    }

    #[test]
    fn arguments_are_read_and_senseless_ones_refused() {
        Args::command().debug_assert();
        let read = |line: &str| {
            Args::try_parse_from(std::iter::once("program").chain(line.split_whitespace()))
        };
        for line in [
            "",
            "--url http://h:1 --path /tasks --executor noop --slow-executor wait",
            "--slow-inputs {\"s\":60} --failing-task {\"inputs\":{}} --timeout 1",
            "--only interface/json-rpc --json --strict",
            "--list --markdown",
            "--url https://h --ca-file ca.pem",
        ] {
            assert!(read(line).is_ok(), "{line}");
        }
        for line in [
            "--markdown",
            "--slow-inputs 1",
            "--timeout 0",
            "--url nonsense",
            "--url ftp://h",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_file_without_authorities_is_refused_by_its_name() {
        let args = Args::try_parse_from(["program", "--ca-file", "Cargo.toml"]).unwrap();
        let refused = options(&args).unwrap_err();
        assert!(
            refused.starts_with("--ca-file: `Cargo.toml` cannot be used"),
            "{refused}"
        );
    }

    #[test]
    fn headers_are_read_and_faulty_ones_refused() {
        let (name, value) = header("X-Token:a:b ").unwrap();
        assert_eq!((name.as_str(), value.as_bytes()), ("x-token", &b"a:b"[..]));
        for faulty in ["token", ":x", "a b:x", "a:x\ny"] {
            assert!(header(faulty).is_err(), "{faulty:?}");
        }
    }

    #[test]
    fn long_evidence_stays_on_its_line() {
        let long = shown(Verdict::Passed("e".repeat(EVIDENCE_CHARS_MAX + 1)), true);
        let evidence = format!("passed   {}...\n", "e".repeat(EVIDENCE_CHARS_MAX));
        assert!(long.contains(&evidence), "{long}");
    }
}
