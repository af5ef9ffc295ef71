//! `taskledger context`: named servers, so that no option need be repeated.
//!
//! Owns: the file of contexts, with mode 0600. It names files with tokens and never holds a token.

use super::following::say;
use super::meant::question;
use super::output::{Output, Text, grid};
use super::{CliError, http_api, remote, target};
use clap::Subcommand;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use taskledger_net::secret_file;
use taskledger_private as private;

/// Bytes of the file: thousands of contexts.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Characters of a name.
const NAME_CHARS_MAX: usize = 64;
/// Names another file.
const FILE_VARIABLE: &str = "TASKLEDGER_CONTEXTS";

/// Name servers, and choose the one that commands use
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger context add prod --server https://ledger.example --token-file ~/.ledger-token
  taskledger context use prod
  taskledger tasks list --context staging
  taskledger context list

The first context that is added is used until `use` names another. --url, --context and TASKLEDGER_URL override it. The
token and certificates of a context are sent to its own server only. Contexts are stored in
$XDG_CONFIG_HOME/taskledger/contexts.json, or in the file that TASKLEDGER_CONTEXTS names.")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Add a server, or change its settings
    Add(Box<Add>),
    /// Use this context from now on
    Use {
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// List contexts; `*` marks the one in use
    List,
    /// Remove a context
    Remove {
        #[arg(value_name = "NAME")]
        name: String,
    },
}

#[derive(Debug, clap::Args)]
struct Add {
    /// Its name
    #[arg(value_name = "NAME", value_parser = name)]
    name: String,
    /// The server
    #[arg(long, visible_alias = "url", value_name = "URL", value_parser = server)]
    server: String,
    /// File with an access token, readable by its owner only
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Additional certificate authorities (PEM) for connections to the server
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Certificate (PEM) to show to the server
    #[arg(long, value_name = "FILE", requires = "client_key")]
    client_cert: Option<PathBuf>,
    /// Private key (PEM) of that certificate, readable by its owner only
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    client_key: Option<PathBuf>,
    /// Proxy for requests to the server, without a user name or a password: the file would hold them
    #[arg(long, value_name = "URL", value_parser = proxy)]
    proxy: Option<Url>,
}

/// A server, and what is shown to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Context {
    pub(super) server: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) token_file: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ca_file: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_cert: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_key: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proxy: Option<String>,
}

impl Context {
    /// Through which requests go.
    pub(super) fn proxy(&self) -> Option<Url> {
        self.proxy.as_ref().and_then(|url| Url::parse(url).ok())
    }
}

/// All of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Contexts {
    #[serde(default)]
    current: Option<String>,
    #[serde(default)]
    contexts: BTreeMap<String, Context>,
}

impl Contexts {
    /// Where they are kept; `None`: this user has no home.
    pub(super) fn place() -> Option<PathBuf> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        if let Some(file) = variable(FILE_VARIABLE) {
            return Some(file.into());
        }
        let folder = variable("XDG_CONFIG_HOME").map(PathBuf::from);
        let folder = folder.or_else(|| Some(Path::new(&variable("HOME")?).join(".config")))?;
        Some(folder.join("taskledger/contexts.json"))
    }

    /// Reads them; none when there is no file.
    pub(super) fn read(place: Option<&Path>) -> Result<Self, CliError> {
        let Some(place) = place.filter(|place| place.exists()) else {
            return Ok(Self::default());
        };
        let unusable = |reason: String| CliError::Usage(format!("contexts: {reason}"));
        let bytes = secret_file::read(place, FILE_BYTES_MAX);
        let bytes = bytes.map_err(|error| {
            unusable(match error {
                secret_file::Error::Shared { path, mode } => format!(
                    "other users can read or change `{0}` (mode {mode:04o}), so none of them is used: whoever changes \
                     the file chooses where tokens are sent; run `chmod 600 '{0}'`",
                    path.display()
                ),
                error @ (secret_file::Error::Unreadable { .. }
                | secret_file::Error::TooLarge { .. }) => error.to_string(),
            })
        })?;
        serde_json::from_slice(&bytes)
            .map_err(|error| unusable(format!("`{}`: {error}", place.display())))
    }

    /// The name of the one in use.
    pub(super) fn current(&self) -> Option<&str> {
        self.current.as_deref()
    }

    /// The one with this name, else the one in use.
    pub(super) fn chosen(&self, name: Option<&str>) -> Result<Option<Context>, CliError> {
        match name.or(self.current.as_deref()) {
            Some(name) => self.known(name).map(|context| Some(context.clone())),
            None => Ok(None),
        }
    }

    /// Names with their servers.
    pub(super) fn named(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.contexts.iter();
        all.map(|(name, context)| (name.as_str(), context.server.as_str()))
    }

    fn known(&self, name: &str) -> Result<&Context, CliError> {
        self.contexts.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.contexts.keys().map(String::as_str).collect();
            CliError::Usage(match names.as_slice() {
                [] => format!("there is no context `{name}`; `taskledger context add` makes one"),
                names => format!(
                    "there is no context `{name}`{} one of {}",
                    match question(name, names.iter().copied()) {
                        none if none.is_empty() => "; expected".to_owned(),
                        question => question + " Expected",
                    },
                    names.join(", ")
                ),
            })
        })
    }

    fn add(&mut self, name: String, context: Context) {
        self.current.get_or_insert_with(|| name.clone());
        self.contexts.insert(name, context);
    }

    fn choose(&mut self, name: &str) -> Result<(), CliError> {
        self.known(name)?;
        self.current = Some(name.to_owned());
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), CliError> {
        self.known(name)?;
        self.contexts.remove(name);
        self.current = self.current.take().filter(|current| current != name);
        Ok(())
    }

    /// Writes them whole, beside the file and then in its place.
    fn write(&self, place: &Path) -> Result<(), CliError> {
        let write = || {
            if let Some(folder) = place.parent() {
                private::make_folder(folder)?;
            }
            let beside = place.with_extension(format!("{}.new", std::process::id()));
            let mut file = private::create_new(&beside)?;
            file.write_all(&serde_json::to_vec_pretty(self)?)?;
            file.sync_all()?;
            std::fs::rename(&beside, place)
        };
        write().map_err(|error: std::io::Error| {
            CliError::Usage(format!("cannot write `{}`: {error}", place.display()))
        })
    }
}

/// Changes or shows the contexts.
pub fn context(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    let no_home = || CliError::Usage(format!("there is no HOME; set {FILE_VARIABLE}"));
    let place = Contexts::place().ok_or_else(no_home)?;
    let mut contexts = Contexts::read(Some(&place))?;
    let done = match args.command {
        Command::List => return list(&contexts, out),
        Command::Add(add) => {
            let add = *add;
            let done = match contexts.contexts.contains_key(&add.name) {
                true => format!("changed {}, which was there already", add.name),
                false => format!("added {}", add.name),
            };
            let context = Context {
                server: add.server,
                token_file: absolute(add.token_file)?,
                ca_file: absolute(add.ca_file)?,
                client_cert: absolute(add.client_cert)?,
                client_key: absolute(add.client_key)?,
                proxy: add.proxy.map(|url| url.to_string()),
            };
            contexts.add(add.name, context);
            done
        }
        Command::Use { name } => {
            contexts.choose(&name)?;
            format!("using {name}")
        }
        Command::Remove { name } => {
            contexts.remove(&name)?;
            format!("removed {name}")
        }
    };
    contexts.write(&place)?;
    match out.is_json() {
        true => out.value(&json!(contexts))?,
        false => out.line(done)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(contexts: &Contexts, out: &mut Output) -> Result<ExitCode, CliError> {
    if out.is_json() {
        out.value(&json!(contexts))?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows = contexts.contexts.iter().map(|(name, context)| {
        let used = contexts.current.as_ref() == Some(name);
        let token = context.token_file.as_ref();
        let token = token.map(|path| path.display().to_string());
        vec![
            Text::from(if used { "*" } else { "" }),
            Text::from(name.as_str()),
            Text::from(context.server.as_str()),
            Text::from(token.unwrap_or_default()),
        ]
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        say("no contexts; `taskledger context add NAME --server URL` makes one");
        return Ok(ExitCode::SUCCESS);
    }
    out.texts(&grid(
        &["", "NAME", "SERVER", "TOKEN FILE"],
        &rows,
        3,
        out.look().columns,
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Relative paths would mean another file in another folder.
fn absolute(path: Option<PathBuf>) -> Result<Option<PathBuf>, CliError> {
    let absolute = |path: PathBuf| {
        std::path::absolute(&path)
            .map_err(|error| CliError::Usage(format!("`{}`: {error}", path.display())))
    };
    path.map(absolute).transpose()
}

fn name(text: &str) -> Result<String, String> {
    let known = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !text.is_empty() && text.len() <= NAME_CHARS_MAX && text.chars().all(known) {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "expected 1 to {NAME_CHARS_MAX} letters, digits, `-`, `_` or `.`"
        ))
    }
}

/// A server that commands can talk to. Its URL may hold a secret, which is then not repeated.
fn server(text: &str) -> Result<String, String> {
    let url = http_api::server_url(text)?;
    match target::parse_url(&url) {
        Ok(_) => Ok(url),
        Err(error) => Err(error.to_string()),
    }
}

fn proxy(text: &str) -> Result<Url, String> {
    let url = remote::proxy(text)?;
    match remote::holds_credentials(&url) {
        false => Ok(url),
        true => {
            Err("holds a user name or a password; expected none: set TASKLEDGER_PROXY".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn at(server: &str) -> Context {
        Context {
            server: server.to_owned(),
            ..Context::default()
        }
    }

    #[test]
    fn the_first_is_used_until_another_is_chosen() {
        let mut contexts = Contexts::default();
        assert_eq!(contexts.chosen(None).unwrap(), None);
        contexts.add("prod".to_owned(), at("https://a"));
        contexts.add("test".to_owned(), at("https://b"));
        assert_eq!(contexts.chosen(None).unwrap(), Some(at("https://a")));
        assert_eq!(
            contexts.chosen(Some("test")).unwrap(),
            Some(at("https://b"))
        );
        contexts.choose("test").unwrap();
        assert_eq!(contexts.chosen(None).unwrap(), Some(at("https://b")));
        contexts.remove("test").unwrap();
        assert_eq!(contexts.chosen(None).unwrap(), None);
        let said = contexts.chosen(Some("test")).unwrap_err().to_string();
        assert_eq!(said, "there is no context `test`; expected one of prod");
        let said = contexts.choose("pro").unwrap_err().to_string();
        assert_eq!(
            said,
            "there is no context `pro`; did you mean `prod`? Expected one of prod"
        );
        assert!(contexts.choose("test").is_err() && contexts.remove("test").is_err());
    }

    #[test]
    fn they_are_kept_in_a_file_of_their_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a/contexts.json");
        let mut contexts = Contexts::read(Some(&place)).unwrap();
        contexts.add("prod".to_owned(), at("https://a"));
        contexts.write(&place).unwrap();
        contexts.write(&place).unwrap();
        let mode = std::fs::metadata(&place).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(Contexts::read(Some(&place)).unwrap(), contexts);
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&place, open).unwrap();
        let said = Contexts::read(Some(&place)).unwrap_err().to_string();
        assert!(said.contains("chmod 600"), "{said}");
    }

    #[test]
    fn a_server_with_credentials_in_its_url_is_refused_before_they_are_kept() {
        assert_eq!(
            server("http://127.0.0.1:8000").unwrap(),
            "http://127.0.0.1:8000"
        );
        for secret in [
            "http://u:hunter2@127.0.0.1:8000",
            "https://hunter2@ledger.example",
        ] {
            let said = server(secret).unwrap_err();
            assert!(said.contains("--token-file FILE"), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn names_and_proxies_are_checked() {
        assert!(name("prod-1.eu").is_ok() && name("").is_err() && name("a b").is_err());
        assert!(proxy("http://p:3128").is_ok() && proxy("socks5://p").is_err());
        for secret in ["http://u:hunter2@p", "http://hunter2@p:3128"] {
            let said = proxy(secret).unwrap_err();
            assert!(said.contains("TASKLEDGER_PROXY"), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
}
