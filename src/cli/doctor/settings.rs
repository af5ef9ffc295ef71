//! What the settings name beside data and addresses: executors, programs, the proxy, files with keys.

use super::{Finding, Verdict};
use crate::cli::CliError;
use crate::cli::serve::{card_keys, card_texts};
use crate::config::{EgressConfig, EngineConfig, ProxyUrl, ServerConfig};
use crate::engine::executor::RegistryBuilder;
use crate::server::{self, StartError};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;
use taskledger_auth::AdminTokens;
use taskledger_sealing::Keyring;
use taskledger_zones::UNKNOWN_EDITION;

/// How long the proxy may take to accept a connection: it is near, or of no use.
const PROXY_ANSWERS_WITHIN: Duration = Duration::from_secs(3);

/// Looks at what the settings name; `executors` are there beside the built-in ones. A connection to the proxy is opened
/// and closed again.
pub(super) fn findings(config: &ServerConfig, executors: RegistryBuilder) -> Vec<Finding> {
    let mut findings = of_outgoing(&config.engine, executors);
    findings.push(of_zones(&config.engine));
    findings.extend(of_files(config));
    findings
}

/// The time zones of schedules.
fn of_zones(engine: &EngineConfig) -> Finding {
    match server::zones(engine) {
        Ok(zones) => {
            let (edition, source) = (zones.edition(), zones.source());
            let found = format!("edition {edition}, {source}");
            match *edition == *UNKNOWN_EDITION {
                false => Finding::good("time zones", found),
                true => {
                    let advice = "add a file `+VERSION` with the edition, so that servers can compare theirs";
                    Finding::new("time zones", Verdict::Warning, found, advice)
                }
            }
        }
        Err(error) => {
            let text = CliError::failed(&error).to_string();
            let advice = "give --zoneinfo a folder with compiled zones, or leave it out";
            Finding::new("time zones", Verdict::Bad, text, advice)
        }
    }
}

/// Outgoing requests, and the executors, some of which make such.
fn of_outgoing(engine: &EngineConfig, executors: RegistryBuilder) -> Vec<Finding> {
    let (mut findings, egress) = match server::egress(engine) {
        Ok(egress) => (vec![of_egress(engine)], Some(egress)),
        // The executors are looked at all the same.
        Err(error) => (
            unusable_egress(engine, &error),
            server::egress(&with_egress(engine, usable_egress(engine))).ok(),
        ),
    };
    let Some(egress) = egress else {
        return findings;
    };
    let faults = server::executor_faults(executors, engine, &egress);
    if faults.is_empty() {
        findings.push(match &*engine.allowed_commands {
            [] => Finding::good("executors", "they can be set up; no program is allowed"),
            allowed => Finding::good(
                "executors",
                format!(
                    "they can be set up; programs that are allowed: {}",
                    allowed.join(", ")
                ),
            ),
        });
    }
    findings.extend(faults.iter().map(|error| {
        let text = CliError::failed(error).to_string();
        let advice = "mend the option that is named, or leave it out";
        Finding::new("executors", Verdict::Bad, text, advice)
    }));
    findings
}

fn with_egress(engine: &EngineConfig, egress: EgressConfig) -> EngineConfig {
    EngineConfig {
        egress,
        ..engine.clone()
    }
}

/// The settings of egress without those that can be unusable.
fn usable_egress(engine: &EngineConfig) -> EgressConfig {
    EgressConfig {
        proxy: None,
        ca_file: None,
        dns: None,
        ..engine.egress.clone()
    }
}

/// Each setting of egress that cannot be used; `error`: what is wrong with all of them together.
fn unusable_egress(engine: &EngineConfig, error: &StartError) -> Vec<Finding> {
    let (given, none) = (&engine.egress, || usable_egress(engine));
    let alone = [
        EgressConfig {
            proxy: given.proxy.clone(),
            ..none()
        },
        EgressConfig {
            ca_file: given.ca_file.clone(),
            ..none()
        },
        EgressConfig {
            dns: given.dns,
            ..none()
        },
    ];
    let refused = |egress| server::egress(&with_egress(engine, egress)).err();
    let told = |error: &StartError| CliError::failed(error).to_string();
    let mut texts: Vec<String> = Vec::new();
    for error in alone.into_iter().filter_map(refused) {
        let text = told(&error);
        // What is wrong without any of the three is wrong with each.
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    if texts.is_empty() {
        texts.push(told(error));
    }
    let advice = "mend the option that is named; `taskledger serve --help` lists those of egress";
    let findings = texts.into_iter();
    findings
        .map(|text| Finding::new("egress", Verdict::Bad, text, advice))
        .collect()
}

fn of_egress(engine: &EngineConfig) -> Finding {
    let egress = &engine.egress;
    let proxy = egress.proxy.as_ref().and_then(ProxyUrl::address);
    if let Some((host, port)) = proxy
        && let Err(reason) = reached(&host, port)
    {
        return Finding::new(
            "egress",
            Verdict::Bad,
            format!("--egress-proxy: no proxy answers at `{host}:{port}`: {reason}"),
            "start the proxy, or give the address of one that runs",
        );
    }
    let mut found = match (&egress.proxy, egress.allow_http) {
        (Some(_), _) => "all requests go through the proxy, which accepts connections".to_owned(),
        (None, true) => "public addresses, also by plain http".to_owned(),
        (None, false) => "public addresses by https".to_owned(),
    };
    let private: Vec<String> = egress
        .allow_nets
        .iter()
        .map(ToString::to_string)
        .chain(egress.allow_hosts.iter().map(ToString::to_string))
        .collect();
    if !private.is_empty() {
        found = format!("{found}, and {}", private.join(", "));
    }
    Finding::good("egress", found)
}

/// Opens a connection to any address of `host`, and closes it.
fn reached(host: &str, port: u16) -> Result<(), String> {
    let found = (host, port)
        .to_socket_addrs()
        .map_err(|error| error.to_string())?;
    let mut reason = "the name has no address".to_owned();
    for address in found {
        match TcpStream::connect_timeout(&address, PROXY_ANSWERS_WITHIN) {
            Ok(_closed) => return Ok(()),
            Err(error) => reason = error.to_string(),
        }
    }
    Err(reason)
}

/// Files with keys and tokens that the settings name.
fn of_files(config: &ServerConfig) -> Vec<Finding> {
    let secrets = config.engine.webhooks.secrets_key_file.as_deref();
    let secrets = secrets.map(|path| {
        let read = Keyring::read(path).map(drop);
        (
            "--secrets-key-file",
            read.map_err(|error| CliError::failed(&error).to_string()),
        )
    });
    let admins = config.auth.admin_token_file.as_deref();
    let admins = admins.map(|path| {
        let read = AdminTokens::of_file(path).map(drop);
        (
            "--admin-token-file",
            read.map_err(|error| CliError::failed(&error).to_string()),
        )
    });
    let keys = &config.a2a.signing_keys;
    let signing = (!keys.is_empty()).then(|| {
        let read = card_keys(keys).map(drop);
        ("--a2a-signing-key", read.map_err(|error| error.to_string()))
    });
    let card = config.a2a.card.as_deref();
    let card = card.map(|file| {
        let read = card_texts(Some(file)).map(drop);
        ("--a2a-card", read.map_err(|error| error.to_string()))
    });
    let read = [secrets, admins, signing, card].into_iter().flatten();
    read.map(|(option, read)| match read {
        Ok(()) => Finding::good("key file", format!("{option}: it can be used")),
        Err(error) => {
            let named = match error.contains(option) {
                true => error,
                false => format!("{option}: {error}"),
            };
            let advice = "mend the file or its rights, or give the option another one";
            Finding::new("key file", Verdict::Bad, named, advice)
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::executor::Registry;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Serve {
        #[command(flatten)]
        config: ServerConfig,
    }

    fn found(options: &[&str]) -> Vec<Finding> {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().to_str().unwrap();
        let words = ["serve", "--data-dir", data].into_iter();
        let words = words.chain(options.iter().copied());
        findings(&Serve::parse_from(words).config, Registry::builder())
    }

    #[test]
    fn what_serve_refuses_is_found() {
        let proxy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = format!("http://{}", proxy.local_addr().unwrap());
        let good = found(&["--allow-command", "true", "--egress-proxy", &at]);
        assert!(
            good.iter().all(|it| it.verdict == Verdict::Good),
            "{good:?}"
        );
        drop(proxy);
        for options in [
            ["--allow-command", "nosuchprog"],
            ["--executor-limit", "foo=3"],
            ["--egress-proxy", &at],
            ["--secrets-key-file", "/nope"],
            ["--admin-token-file", "/nope"],
            ["--a2a-signing-key", "/nope"],
            ["--a2a-card", "/nope"],
        ] {
            let found = found(&options);
            let bad: Vec<_> = found
                .iter()
                .filter(|it| it.verdict == Verdict::Bad)
                .collect();
            let [bad] = bad[..] else {
                panic!("{options:?}: {found:?}");
            };
            assert!(bad.found.contains(options[0]), "{bad:?}");
            assert!(!bad.advice.is_empty());
        }
    }

    #[test]
    fn no_fault_hides_another_one() {
        let options = [
            ["--egress-proxy", "socks5://x"],
            ["--egress-ca-file", "/nope"],
            ["--allow-command", "nosuchprog"],
            ["--allow-command", "nosuchprog2"],
            ["--executor-limit", "foo=3"],
            ["--executor-limit", "command_executor=3"],
            ["--executor-limit", "bar=3"],
        ];
        let found = found(&options.concat());
        let bad = found.iter().filter(|it| it.verdict == Verdict::Bad);
        let bad: Vec<&str> = bad.map(|it| it.found.as_str()).collect();
        let named = ["socks5", "/nope", "nosuchprog", "nosuchprog2", "foo", "bar"];
        assert_eq!(bad.len(), named.len(), "{bad:#?}");
        for (text, name) in bad.iter().zip(named) {
            assert!(text.contains(name), "{name}: {text}");
        }
    }
}
