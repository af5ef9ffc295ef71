//! The options that name a server and what is shown to it.

mod place;
mod quoting;
mod token;
mod variables;

use super::context::{Context, Contexts};
use super::target::{Credentials, Given, Named, TOKEN_VARIABLE, Target};
use super::{ApiError, CliError, HttpApi, http_api};
use chrono::{DateTime, Utc};
use clap::Args;
use clap::builder::FalseyValueParser;
use place::first;
pub use quoting::quoted;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use taskledger_net::tls::{Certificates, Files};
use token::{bearer, no_token, token_in};
use variables::{
    CA_FILE_VARIABLE, HEADER_VARIABLE, HeaderText, PROXY_VARIABLE, TOKEN_FILE_VARIABLE, headers_of,
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
    /// The server; otherwise that of --context, of TASKLEDGER_URL or of the context in use, else http://127.0.0.1:8000
    #[arg(long, visible_alias = "server", global = true, help_heading = SERVER, value_name = "URL", value_parser = http_api::server_url)]
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
        let named = self.access.server(self.url.as_deref())?;
        Ok(named.unwrap_or_else(|| (URL_DEFAULT.to_owned(), Named::Default)))
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

    /// Additional certificate authorities (PEM) for connections to the server; otherwise those of TASKLEDGER_CA_FILE
    #[arg(
        id = "access_ca_file",
        long = "ca-file",
        global = true,
        help_heading = SERVER,
        value_name = "FILE"
    )]
    ca_file: Option<PathBuf>,

    /// A named server of `taskledger context`, instead of the one in use; its settings win over variables
    #[arg(
        id = "access_context",
        long = "context",
        global = true,
        help_heading = SERVER,
        value_name = "NAME",
        env = "TASKLEDGER_CONTEXT"
    )]
    context: Option<String>,

    /// Proxy for requests to the server: http://HOST:PORT; otherwise that of TASKLEDGER_PROXY, else those of
    /// HTTPS_PROXY and NO_PROXY
    #[arg(
        id = "access_proxy",
        long = "proxy",
        global = true,
        help_heading = SERVER,
        value_name = "URL",
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
        // A context that is named for this call wins over variables, the one in use does not.
        let is_named = self.context.is_some();
        let path = |name| set(name).map(PathBuf::from);
        let [client_cert, client_key] = self.certificate_files(&context, is_named);
        let (proxy, proxy_of) = self.proxy_of(context.proxy(), is_named)?;
        let mut headers = headers_of(HEADER_VARIABLE);
        let (variable, token_file_variable) = match is_named && context.token_file.is_some() {
            true => {
                headers.retain(|header| !header.is_authorization());
                (None, None)
            }
            false => (variable, path(TOKEN_FILE_VARIABLE)),
        };
        // A token that was set for this call wins over a file that was named once.
        let has_token = variable.as_ref().is_some_and(|text| !text.is_empty());
        let origins = Origins {
            proxy: proxy_of,
            token_file: match (&self.token_file, &token_file_variable) {
                (Some(_), _) => "--token-file",
                (None, Some(_)) => TOKEN_FILE_VARIABLE,
                (None, None) => "the token file of the context",
            },
        };
        let file = token_file_variable.or(context.token_file);
        let file = file.filter(|_| !has_token);
        let (token_file, headers) = self.shown(headers, file);
        let ca_file = first(is_named, context.ca_file, path(CA_FILE_VARIABLE));
        let given = Self {
            token_file,
            ca_file: self.ca_file.clone().or(ca_file),
            client_cert,
            client_key,
            proxy,
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

    /// The proxy, and what has named it.
    fn proxy_of(
        &self,
        of_context: Option<reqwest::Url>,
        is_named: bool,
    ) -> Result<(Option<reqwest::Url>, &'static str), CliError> {
        if let Some(proxy) = &self.proxy {
            return Ok((Some(proxy.clone()), "--proxy"));
        }
        let variable = set(PROXY_VARIABLE).map(|text| {
            let wrong = |why| CliError::Usage(format!("{PROXY_VARIABLE}: {why}"));
            proxy(&text.to_string_lossy()).map_err(wrong)
        });
        let of_context = of_context.map(|proxy| (Some(proxy), "the context"));
        let of_variable = variable.transpose()?.map(|it| (Some(it), PROXY_VARIABLE));
        let found = first(is_named, of_context, of_variable);
        Ok(found.unwrap_or((None, "the context")))
    }

    /// The files of certificate and key: of options, else of variables, else of the context; of a named context before
    /// variables.
    fn certificate_files(&self, context: &Context, is_named: bool) -> [Option<PathBuf>; 2] {
        if self.client_cert.is_some() {
            return [self.client_cert.clone(), self.client_key.clone()];
        }
        let some = |files: [Option<PathBuf>; 2]| files.iter().any(Option::is_some).then_some(files);
        let of_context = some([context.client_cert.clone(), context.client_key.clone()]);
        let of_variables = some(CERTIFICATE_VARIABLES.map(|name| set(name).map(PathBuf::from)));
        first(is_named, of_context, of_variables).unwrap_or_default()
    }

    fn target_of(&self, url: &str, variable: Option<OsString>) -> Result<Target, CliError> {
        let (proxy, proxy_of) = self.proxy_of(None, false)?;
        let ca_file = set(CA_FILE_VARIABLE).map(PathBuf::from);
        let given = Self {
            ca_file: self.ca_file.clone().or(ca_file),
            proxy,
            ..self.clone()
        };
        let origins = Origins {
            proxy: proxy_of,
            token_file: "--token-file",
        };
        given.target_by(url, variable, origins)
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
