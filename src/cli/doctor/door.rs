//! Checks what a server needs to listen: addresses, certificates, issuers of tokens.

use super::{Finding, Verdict};
use crate::cli::{CliError, certificates::Renewal, storage};
use crate::config::ServerConfig;
use std::io::ErrorKind;
use std::net::{TcpListener, ToSocketAddrs as _};

/// Looks at what the settings name. Addresses are taken for a moment, and given back.
pub(super) fn findings(config: &ServerConfig) -> Vec<Finding> {
    let admin = config.admin_listen.as_deref();
    let broker = config.broker.listen.as_deref();
    let broker_metrics = config.broker.metrics_listen.as_deref();
    let listens = [
        ("--listen", Some(config.listen.as_str())),
        ("--admin-listen", admin),
        ("--broker-listen", broker),
        ("--broker-metrics-listen", broker_metrics),
    ];
    let listens = listens.into_iter();
    let mut findings: Vec<Finding> = listens
        .filter_map(|(option, address)| Some(address_of(option, address?)))
        .collect();
    findings.extend(certificate(config));
    if let Err(error) = config.oidc.issuers() {
        let advice = "mend the issuer that is named; `taskledger serve --help` lists its options";
        findings.push(Finding::new(
            "issuers",
            Verdict::Bad,
            error.to_string(),
            advice,
        ));
    }
    findings
}

fn address_of(option: &str, address: &str) -> Finding {
    const OF: &str = "address";
    let bad = |found: String, advice: &str| Finding::new(OF, Verdict::Bad, found, advice);
    let found = match address.to_socket_addrs() {
        Ok(mut found) => found.next(),
        Err(error) => {
            let text = format!("{option}: `{address}` means nothing here: {error}");
            return bad(text, "give it the name or the address of this machine");
        }
    };
    let Some(found) = found else {
        let text = format!("{option}: `{address}` means nothing here");
        return bad(text, "give it the name or the address of this machine");
    };
    match TcpListener::bind(found) {
        Ok(_given_back) => Finding::good(OF, format!("{option}: `{address}` is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Finding::new(
            OF,
            Verdict::Warning,
            format!("{option}: `{address}` is in use"),
            "fine if this server is already running; `taskledger health` checks it",
        ),
        Err(error) => bad(
            format!("{option}: `{address}` cannot be listened on: {error}"),
            "give it an address of this machine, and a port that this user may open",
        ),
    }
}

fn certificate(config: &ServerConfig) -> Option<Finding> {
    const OF: &str = "certificate";
    match Renewal::begin(&config.tls, &storage::clock()) {
        Ok(None) => None,
        Ok(Some(_)) => Some(Finding::good(
            OF,
            "certificate and key fit, and are good now",
        )),
        Err(
            error @ (CliError::Usage(_)
            | CliError::Failed(_)
            | CliError::Api(_)
            | CliError::Output(_)),
        ) => {
            let advice = "give the option that is named other files";
            Some(Finding::new(OF, Verdict::Bad, error.to_string(), advice))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_free_in_use_or_of_another_machine() {
        let verdict = |address: &str| address_of("--listen", address).verdict;
        let held = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = held.local_addr().unwrap().to_string();
        assert_eq!(verdict(&address), Verdict::Warning);
        drop(held);
        assert_eq!(verdict("127.0.0.1:0"), Verdict::Good);
        // An address for documentation, which no machine has.
        assert_eq!(verdict("192.0.2.1:0"), Verdict::Bad);
    }
}
