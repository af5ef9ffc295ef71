//! The options that name a server and what is shown to it.

mod quoting;
mod token;
mod variables;

use super::context::{Context, Contexts};
use super::target::{Credentials, Given, Named, TOKEN_VARIABLE, Target};
use super::{ApiError, CliError, HttpApi, http_api};
use chrono::{DateTime, Utc};
use clap::Args;
use clap::builder::FalseyValueParser;
pub use quoting::quoted;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use taskledger_net::tls::{Certificates, Files};
use token::{bearer, no_token, token_in};
use variables::{
    HEADER_VARIABLE, HeaderText, PROXY_VARIABLE, SERVER_VARIABLE, TOKEN_FILE_VARIABLE, headers_of,
    set,
};

/// The address of a server when none is given.
pub const URL_DEFAULT: &str = "http://127.0.0.1:8000";
/// The variables with the files of a certificate and its key. Strangers are shown what an option names, and no more.
const CERTIFICATE_VARIABLES: [&str; 2] = ["TASKLEDGER_CLIENT_CERT", "TASKLEDGER_CLIENT_KEY"];

/// The heading of these options in help. Each names it itself: `next_help_heading` would also hold for the options of
/// commands that are declared behind them.
const SERVER: &str = "Server";

/// What has named a proxy and the file with a token: options, variables or the context. Messages repeat it.
#[derive(Clone, Copy)]
struct Origins {
    proxy: &'static str,
    token_file: &'static str,
}

/// Which server to talk to.
#[derive(Debug, Clone, Args)]
pub struct Remote {
    /// The server; by default that of the context in use, else http://127.0.0.1:8000
    #[arg(long, visible_alias = "server", global = true, help_heading = SERVER, value_name = "URL", env = "TASKLEDGER_URL", value_parser = http_api::server_url)]
    url: Option<String>,
    #[command(flatten)]
    access: Access,
}

impl Remote {
    /// The address of the server.
    pub(super) fn url(&self) -> Result<String, CliError> {
        Ok(self.named_url()?.0)
    }

    fn named_url(&self) -> Result<(String, Named), CliError> {
        if let Some(url) = given_url(self.url.as_deref())? {
            return Ok((url, Named::Given));
        }
        Ok(match self.access.chosen()? {
            Some((name, context)) => (context.server, Named::Context(name)),
            None => (URL_DEFAULT.to_owned(), Named::Default),
        })
    }

    /// The server, with what is shown to it.
    pub(super) fn target(&self) -> Result<Target, CliError> {
        let (url, named) = self.named_url()?;
        let target = self.access.target(&url)?;
        Ok(target.with_options(&self.options()).named(named))
    }

    /// Calls to the server; reads wait a few seconds for one that is too busy.
    pub fn api(&self) -> Result<HttpApi, CliError> {
        Ok(HttpApi::of(self.target()?)?.patient())
    }

    fn options(&self) -> String {
        self.access.options(self.url.as_deref())
    }
}

/// The address that options name, else the variable with the other name of that option.
///
/// # Errors
/// The variable holds no address.
pub fn given_url(option: Option<&str>) -> Result<Option<String>, CliError> {
    let Some(variable) = set(SERVER_VARIABLE).filter(|_| option.is_none()) else {
        return Ok(option.map(str::to_owned));
    };
    let wrong = |why| CliError::Usage(format!("{SERVER_VARIABLE}: {why}"));
    let url = http_api::server_url(&variable.to_string_lossy());
    url.map(Some).map_err(wrong)
}

/// What is shown to a server, and how it proves who it is.
#[derive(Debug, Clone, Default, Args)]
pub struct Access {
    /// File with an access token, readable by its owner only; otherwise the token in TASKLEDGER_TOKEN is sent, or
    /// that in the file that TASKLEDGER_TOKEN_FILE names
    #[arg(
        id = "access_token_file",
        long = "token-file",
        global = true,
        help_heading = SERVER,
        value_name = "FILE"
    )]
    token_file: Option<PathBuf>,

    /// Send credentials over http to other machines too, readable by everybody on the way
    #[arg(
        id = "access_insecure_token",
        long = "insecure-token",
        global = true,
        help_heading = SERVER,
        env = "TASKLEDGER_INSECURE_TOKEN",
        value_parser = FalseyValueParser::new()
    )]
    insecure_token: bool,

    /// Certificate (PEM) to show to a server that asks for one; otherwise that of TASKLEDGER_CLIENT_CERT
    #[arg(
        id = "access_client_cert",
        long = "client-cert",
        global = true,
        help_heading = SERVER,
        value_name = "FILE",
        requires = "access_client_key"
    )]
    client_cert: Option<PathBuf>,

    /// Private key (PEM) of that certificate, readable by its owner only; otherwise that of TASKLEDGER_CLIENT_KEY
    #[arg(
        id = "access_client_key",
        long = "client-key",
        global = true,
        help_heading = SERVER,
        value_name = "FILE",
        requires = "access_client_cert"
    )]
    client_key: Option<PathBuf>,

    /// Additional certificate authorities (PEM) for connections to the server
    #[arg(
        id = "access_ca_file",
        long = "ca-file",
        global = true,
        help_heading = SERVER,
        value_name = "FILE",
        env = "TASKLEDGER_CA_FILE"
    )]
    ca_file: Option<PathBuf>,

    /// A named server of `taskledger context`, instead of the one in use
    #[arg(
        id = "access_context",
        long = "context",
        global = true,
        help_heading = SERVER,
        value_name = "NAME",
        env = "TASKLEDGER_CONTEXT"
    )]
    context: Option<String>,

    /// Proxy for requests to the server: http://HOST:PORT; otherwise those of HTTPS_PROXY and NO_PROXY
    #[arg(
        id = "access_proxy",
        long = "proxy",
        global = true,
        help_heading = SERVER,
        value_name = "URL",
        env = "TASKLEDGER_PROXY",
        hide_env_values = true,
        value_parser = proxy
    )]
    proxy: Option<reqwest::Url>,

    /// A header to send with each request; may be repeated. Others on this machine can see it here; otherwise the
    /// lines of TASKLEDGER_HEADER
    #[arg(
        id = "access_header",
        long = "header",
        global = true,
        help_heading = SERVER,
        value_name = "NAME: VALUE"
    )]
    headers: Vec<HeaderText>,
}

impl Access {
    /// Calls to the server at `url`.
    pub fn api(&self, url: &str) -> Result<HttpApi, CliError> {
        let target = self.target(url)?;
        Ok(HttpApi::of(target.with_options(&self.options(Some(url))))?)
    }

    /// The options that lead to the same server in the same way, each behind a blank; `url`: the one that was given.
    /// What may be a secret is left out.
    pub(super) fn options(&self, url: Option<&str>) -> String {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let open = |proxy: &&reqwest::Url| !holds_credentials(proxy);
        let given = [
            ("--url", url.map(str::to_owned)),
            ("--context", self.context.clone()),
            ("--token-file", path(&self.token_file)),
            ("--ca-file", path(&self.ca_file)),
            ("--client-cert", path(&self.client_cert)),
            ("--client-key", path(&self.client_key)),
            (
                "--proxy",
                self.proxy.as_ref().filter(open).map(ToString::to_string),
            ),
        ];
        let named = given.into_iter().filter_map(|(name, value)| {
            let value = value?;
            Some(format!(" {name} {}", quoted(&value)))
        });
        let mut options: String = named.collect();
        if self.insecure_token {
            options.push_str(" --insecure-token");
        }
        options
    }

    /// The server at `url`, with what is shown to it.
    pub(super) fn target(&self, url: &str) -> Result<Target, CliError> {
        self.target_with(url, std::env::var_os(TOKEN_VARIABLE))
    }

    /// A server that is a stranger, to which nothing is shown but what options name.
    pub(super) fn target_of_stranger(&self, url: &str) -> Result<Target, CliError> {
        self.target_of(url, None)
    }

    /// The address in the context that is named, or else in use.
    pub(super) fn url_of_context(&self) -> Result<Option<String>, CliError> {
        Ok(self.chosen()?.map(|(_, context)| context.server))
    }

    /// The address in the context that is named for this call: the one in use does not count.
    pub fn url_of_named_context(&self) -> Result<Option<String>, CliError> {
        match self.context {
            Some(_) => self.url_of_context(),
            None => Ok(None),
        }
    }

    fn chosen(&self) -> Result<Option<(String, Context)>, CliError> {
        let contexts = Contexts::read(Contexts::place().as_deref())?;
        let name = self.context.as_deref().or(contexts.current());
        let chosen = contexts.chosen(name)?;
        Ok(name.map(str::to_owned).zip(chosen))
    }

    /// The same with this value of the variable. What the context holds is for its own server only.
    fn target_with(&self, url: &str, variable: Option<OsString>) -> Result<Target, CliError> {
        // Contexts that cannot be read are of no interest to whoever names a server and no context.
        let chosen = match self.context.is_some() {
            true => self.chosen()?,
            false => self.chosen().unwrap_or_default(),
        };
        let context = chosen.map(|(_, context)| context);
        let context = context.filter(|context| context.server == url);
        let context = context.unwrap_or_default();
        let proxy = context.proxy();
        let [client_cert, client_key] = self.certificate_files(&context);
        // A token that was set for this call wins over a file that was named once.
        let has_token = variable.as_ref().is_some_and(|text| !text.is_empty());
        let named = set(TOKEN_FILE_VARIABLE).map(PathBuf::from);
        let file = named.or(context.token_file).filter(|_| !has_token);
        let origins = Origins {
            proxy: self.proxy_of(),
            token_file: match (&self.token_file, set(TOKEN_FILE_VARIABLE)) {
                (Some(_), _) => "--token-file",
                (None, Some(_)) => TOKEN_FILE_VARIABLE,
                (None, None) => "the token file of the context",
            },
        };
        let (token_file, headers) = self.shown(headers_of(HEADER_VARIABLE), file);
        let given = Self {
            token_file,
            ca_file: self.ca_file.clone().or(context.ca_file),
            client_cert,
            client_key,
            proxy: self.proxy.clone().or(proxy),
            headers,
            ..self.clone()
        };
        given.target_by(url, variable, origins)
    }

    /// The file with a token and the headers, where variables hold these headers, and they or the context name this
    /// file: options win over variables, and `Authorization` in a header over that file.
    fn shown(
        &self,
        mut headers: Vec<HeaderText>,
        file: Option<PathBuf>,
    ) -> (Option<PathBuf>, Vec<HeaderText>) {
        if !self.headers.is_empty() {
            headers.clone_from(&self.headers);
        } else if self.token_file.is_some() {
            headers.retain(|header| !header.is_authorization());
        }
        let shows = headers.iter().any(HeaderText::is_authorization);
        let file = file.filter(|_| !shows);
        (self.token_file.clone().or(file), headers)
    }

    /// What has named the proxy.
    fn proxy_of(&self) -> &'static str {
        let variable = set(PROXY_VARIABLE).and_then(|text| proxy(text.to_str()?).ok());
        match &self.proxy {
            Some(given) if variable.as_ref() == Some(given) => PROXY_VARIABLE,
            Some(_) => "--proxy",
            None => "the context",
        }
    }

    /// The files of certificate and key: of options, else of variables, else of the context.
    fn certificate_files(&self, context: &Context) -> [Option<PathBuf>; 2] {
        if self.client_cert.is_some() {
            return [self.client_cert.clone(), self.client_key.clone()];
        }
        let set = CERTIFICATE_VARIABLES.map(|name| set(name).map(PathBuf::from));
        match set.iter().all(Option::is_none) {
            true => [context.client_cert.clone(), context.client_key.clone()],
            false => set,
        }
    }

    fn target_of(&self, url: &str, variable: Option<OsString>) -> Result<Target, CliError> {
        let origins = Origins {
            proxy: self.proxy_of(),
            token_file: "--token-file",
        };
        self.target_by(url, variable, origins)
    }

    fn target_by(
        &self,
        url: &str,
        variable: Option<OsString>,
        origins: Origins,
    ) -> Result<Target, CliError> {
        let mut headers = self.headers()?;
        let headers_of = self.headers.first().map_or("--header", |header| header.of);
        let token = self.token(
            headers.contains_key(AUTHORIZATION),
            variable,
            origins.token_file,
        )?;
        let credentials = match token {
            Some((value, from)) => {
                headers.insert(AUTHORIZATION, value);
                from
            }
            None if headers.contains_key(AUTHORIZATION) => Credentials::Header(headers_of),
            None => Credentials::None,
        };
        let given = Given {
            headers,
            headers_of,
            credentials,
            unencrypted: self.insecure_token,
            authorities: self.authorities()?,
            certificate: self.certificate()?,
            proxy: self.proxy.clone(),
            proxy_of: origins.proxy,
            named: Named::Given,
            options: String::new(),
        };
        Target::new(url, given).map_err(|error| match error {
            // A server was not asked yet.
            ApiError::Connection(text) => CliError::Usage(text),
            error
            @ (ApiError::Denied { .. } | ApiError::Refused { .. } | ApiError::Protocol(_)) => {
                error.into()
            }
        })
    }

    /// The value of `Authorization`, and where it comes from: options win over the variable.
    fn token(
        &self,
        has_header: bool,
        variable: Option<OsString>,
        file_of: &str,
    ) -> Result<Option<(HeaderValue, Credentials)>, CliError> {
        if let Some(path) = &self.token_file {
            if has_header {
                let text = "--token-file and --header give an `Authorization` each; expected one";
                return Err(CliError::Usage(text.to_owned()));
            }
            let value = token_in(path, file_of)?;
            return Ok(Some((value, Credentials::File(path.clone()))));
        }
        let Some(variable) = variable.filter(|text| !has_header && !text.is_empty()) else {
            return Ok(None);
        };
        let value = variable.to_str().and_then(bearer);
        let value = value.ok_or_else(|| no_token(TOKEN_VARIABLE))?;
        Ok(Some((value, Credentials::Variable)))
    }

    fn headers(&self) -> Result<HeaderMap, CliError> {
        /// What the client says itself.
        const OWN: [&str; 9] = [
            "accept",
            "connection",
            "content-length",
            "content-type",
            "host",
            "last-event-id",
            "te",
            "transfer-encoding",
            "upgrade",
        ];
        let mut headers = HeaderMap::new();
        for HeaderText { text, of } in &self.headers {
            let parsed = text.split_once(':').and_then(|(name, value)| {
                let name = HeaderName::from_str(name.trim()).ok()?;
                let mut value = HeaderValue::from_str(value.trim()).ok()?;
                value.set_sensitive(true);
                Some((name, value))
            });
            // What is wrong may be a secret.
            let wrong = || CliError::Usage(format!("{of}: expected `Name: value`"));
            let (name, value) = parsed.ok_or_else(wrong)?;
            if OWN.contains(&name.as_str()) {
                return Err(CliError::Usage(format!(
                    "{of}: `{name}` is set by the client itself"
                )));
            }
            if headers.append(&name, value) && name == AUTHORIZATION {
                return Err(CliError::Usage(format!("{of}: `{name}` is given twice")));
            }
        }
        Ok(headers)
    }

    /// The certificate that is shown to a server which asks for one.
    fn certificate(&self) -> Result<Option<Arc<Certificates>>, CliError> {
        let files = match (&self.client_cert, &self.client_key) {
            (None, None) => return Ok(None),
            (Some(certificate), Some(key)) => Files {
                certificate: certificate.clone(),
                key: key.clone(),
            },
            (certificate, _) => {
                let [given, missing] = match certificate {
                    Some(_) => ["certificate", "--client-key or TASKLEDGER_CLIENT_KEY"],
                    None => ["key", "--client-cert or TASKLEDGER_CLIENT_CERT"],
                };
                return Err(CliError::Usage(format!(
                    "a {given} of this client is given alone; expected {missing} as well"
                )));
            }
        };
        let now = super::clock().wall();
        let now = DateTime::from_timestamp_micros(now.0).unwrap_or(DateTime::<Utc>::MAX_UTC);
        let read = Certificates::load(files, now).map(Some);
        read.map_err(|error| CliError::Usage(format!("--client-cert, --client-key: {error}")))
    }

    fn authorities(&self) -> Result<Vec<taskledger_net::tls::Authority>, CliError> {
        let Some(path) = &self.ca_file else {
            return Ok(Vec::new());
        };
        let fail = |reason: String| {
            CliError::Usage(format!(
                "--ca-file: `{}` cannot be used: {reason}; expected PEM, blocks of `-----BEGIN \
                 CERTIFICATE-----`",
                path.display()
            ))
        };
        let authorities = taskledger_net::tls::authorities(path).map_err(fail)?;
        taskledger_net::tls::config(authorities.clone())
            .map_err(|error| fail(error.to_string()))?;
        Ok(authorities)
    }
}

/// Whether a URL holds what may be a secret. A key of a proxy often stands alone, where a user name does.
pub(super) fn holds_credentials(url: &reqwest::Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// A proxy. Its URL may hold a secret, so it is not repeated.
pub(super) fn proxy(text: &str) -> Result<reqwest::Url, String> {
    let url = reqwest::Url::parse(text).ok();
    let usable = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    usable.ok_or_else(|| "expected http://HOST:PORT or https://HOST:PORT".to_owned())
}

#[cfg(test)]
mod tests;
