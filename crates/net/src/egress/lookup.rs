//! DNS lookups: the port, and the resolver of the network.

use async_trait::async_trait;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig,
    ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::system_conf::read_system_conf;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How long one name server may take; the whole lookup has its own limit.
const ASK_TIMEOUT: Duration = Duration::from_millis(900);
/// Answers that are remembered; a name that changes its address is seen within this time.
const REMEMBERED_MAX: Duration = Duration::from_secs(60);
/// Failures are not believed for longer than this.
const FAILURE_REMEMBERED_MAX: Duration = Duration::from_secs(5);
/// Names that are remembered.
const NAMES_MAX: u64 = 4096;

/// Why a name has no addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// The name does not exist, or has no addresses.
    #[error("the name has no addresses")]
    NotFound,
    /// Nobody answered in time.
    #[error("no name server answered in time")]
    Timeout,
    /// A name server could not say.
    #[error("the name cannot be looked up")]
    Failed,
}

/// Names to addresses.
#[async_trait]
pub trait Lookup: Send + Sync {
    /// All addresses of a name; forbidden ones too. Not asked for addresses that are written as digits.
    ///
    /// # Errors
    /// [`LookupError`].
    async fn lookup(&self, host: &str) -> Result<Vec<IpAddr>, LookupError>;
}

/// Asks name servers: those of the system (and its file of hosts), or given ones alone. Search domains
/// of the system are not used: a name is what it says.
pub struct SystemLookup {
    resolver: Option<TokioResolver>,
}

impl SystemLookup {
    /// The name servers of the system. Where it names none, no name is found.
    ///
    /// # Errors
    /// The resolver does not start.
    pub fn of_the_system() -> Result<Self, super::BuildError> {
        match read_system_conf() {
            Ok((config, mut options)) => {
                let (_, _, servers) = config.into_parts();
                options.use_hosts_file = ResolveHosts::Always;
                Self::asking(servers, options)
            }
            Err(error) => {
                tracing::warn!(%error, "the system names no name servers; outgoing requests go to addresses only");
                Ok(Self { resolver: None })
            }
        }
    }

    /// One name server, and nothing else.
    ///
    /// # Errors
    /// The resolver does not start.
    pub fn of_server(server: SocketAddr) -> Result<Self, super::BuildError> {
        let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut c| {
            c.port = server.port();
            c
        });
        let server = NameServerConfig::new(server.ip(), true, connections.into());
        let mut options = ResolverOpts::default();
        options.use_hosts_file = ResolveHosts::Never;
        Self::asking(vec![server], options)
    }

    fn asking(
        servers: Vec<NameServerConfig>,
        mut options: ResolverOpts,
    ) -> Result<Self, super::BuildError> {
        options.timeout = ASK_TIMEOUT;
        options.attempts = 1;
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.cache_size = NAMES_MAX;
        options.positive_max_ttl = Some(REMEMBERED_MAX);
        options.negative_max_ttl = Some(FAILURE_REMEMBERED_MAX);
        let config = ResolverConfig::from_parts(None, Vec::new(), servers);
        let resolver = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
            .with_options(options)
            .build()
            .map_err(|error| super::BuildError::Lookup(error.to_string()))?;
        Ok(Self {
            resolver: Some(resolver),
        })
    }
}

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        let resolver = self.resolver.as_ref().ok_or(LookupError::NotFound)?;
        // The dot at the end says that the name is complete.
        let name = format!("{}.", host.trim_end_matches('.'));
        match resolver.lookup_ip(name).await {
            Ok(found) => Ok(found.iter().collect()),
            Err(error) if error.is_no_records_found() => Err(LookupError::NotFound),
            Err(NetError::Timeout) => Err(LookupError::Timeout),
            Err(_) => Err(LookupError::Failed),
        }
    }
}
