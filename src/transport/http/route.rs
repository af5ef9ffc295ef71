//! Every way into the server, with its paths. The router is made of this list and of nothing else, so that tests which
//! match over it find each of them.

use super::grpc::paths;
use super::scrape;
use crate::application::api::PEER_CALLS;
use crate::transport::{a2a, ws};

macro_rules! routes {
    ($($(#[$doc:meta])* $variant:ident = [$($path:expr),+]),+ $(,)?) => {
        /// Something that the listener serves.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Route {
            $($(#[$doc])* $variant),+
        }

        impl Route {
            /// All variants.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The paths at which it is, as the router writes them.
            #[must_use]
            pub const fn paths(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &[$($path),+]),+ }
            }
        }
    };
}

routes! {
    /// JSON-RPC, and a page for people who look at it.
    Front = ["/"],
    /// JSON-RPC.
    Calls = ["/tasks"],
    /// The card of this server.
    AgentCard = ["/.well-known/agent-card"],
    /// The card of Agent2Agent.
    A2aCard = [a2a::CARD_PATH],
    /// The keys that sign it.
    A2aKeys = [a2a::KEYS_PATH],
    /// Agent2Agent over JSON-RPC.
    A2aRpc = [a2a::RPC_PATH, "/a2a/"],
    /// Agent2Agent over HTTP and JSON.
    A2aRest = [paths::A2A_REST],
    /// Agent2Agent over gRPC.
    A2aGrpc = [paths::A2A],
    /// Agent2Agent 0.3 over gRPC.
    A2aGrpcV03 = [paths::A2A_V03],
    /// The description of the methods.
    OpenRpc = ["/openrpc.json"],
    /// Server-sent events.
    Events = ["/events"],
    /// WebSockets.
    Socket = [ws::PATH],
    /// Whether the process lives.
    Live = ["/livez"],
    /// Whether it can take calls.
    Ready = ["/readyz", "/healthz"],
    /// Calls of other nodes.
    Peers = [PEER_CALLS],
    /// Figures for monitoring, where they are beside the calls.
    Metrics = [scrape::PATH],
    /// The EventBus.
    Bus = [paths::BUS],
    /// Health in gRPC.
    Health = [paths::HEALTH],
    /// Reflection in gRPC.
    Reflection = [paths::REFLECTION],
    /// Its earlier version.
    ReflectionAlpha = [paths::REFLECTION_ALPHA],
}

impl Route {
    /// Whether agents of the broker call it, and it is at an address for them too.
    pub(super) const fn is_for_agents(self) -> bool {
        match self {
            Self::Bus | Self::Health | Self::Reflection | Self::ReflectionAlpha => true,
            Self::Front
            | Self::Calls
            | Self::AgentCard
            | Self::A2aCard
            | Self::A2aKeys
            | Self::A2aRpc
            | Self::A2aRest
            | Self::A2aGrpc
            | Self::A2aGrpcV03
            | Self::OpenRpc
            | Self::Events
            | Self::Socket
            | Self::Live
            | Self::Ready
            | Self::Peers
            | Self::Metrics => false,
        }
    }
}
