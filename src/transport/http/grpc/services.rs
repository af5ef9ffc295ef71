//! The gRPC services that exist, and their paths.

use crate::application::Service as Application;
use crate::clock::SharedClock;
use crate::transport::a2a::{A2a, grpc as a2a, v03};
use crate::transport::eventbus::Shared;
use crate::transport::figures::Figures;
use crate::transport::http::options::BrokerOptions;
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use std::convert::Infallible;
use std::sync::Arc;
use taskledger_a2a::grpc as a2a_wire;
use taskledger_a2a::v03::grpc as v03_wire;
use taskledger_eventbus::{EventBusServer, FILE_DESCRIPTOR_SET, SERVICE_NAME};
use tonic_health::server::{HealthReporter, health_reporter};
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt};

/// Bytes of a message of Agent2Agent at most: what clients of gRPC take by default.
pub(super) const A2A_MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A service that answers requests.
pub(super) type Served = BoxCloneSyncService<Request<Body>, Response, Infallible>;

/// The services.
pub(in crate::transport::http) struct Grpc {
    bus: Served,
    a2a: Served,
    /// Version 0.3 of it, if that is served.
    a2a_v03: Option<Served>,
    health: Served,
    reflection: [Served; 2],
    reporter: HealthReporter,
    pub(super) message_bytes_max: usize,
}

/// Paths of the services, with the name of the call behind.
pub(in crate::transport::http) mod paths {
    pub(in crate::transport::http) const BUS: &str = "/eventbus.EventBus/{call}";
    pub(in crate::transport::http) const A2A: &str = "/lf.a2a.v1.A2AService/{call}";
    pub(in crate::transport::http) const A2A_V03: &str = "/a2a.v1.A2AService/{call}";
    pub(in crate::transport::http) const A2A_REST: &str = "/a2a/rest/{*path}";
    pub(in crate::transport::http) const HEALTH: &str = "/grpc.health.v1.Health/{call}";
    pub(in crate::transport::http) const REFLECTION: &str =
        "/grpc.reflection.v1.ServerReflection/{call}";
    pub(in crate::transport::http) const REFLECTION_ALPHA: &str =
        "/grpc.reflection.v1alpha.ServerReflection/{call}";
}

/// Which service a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::transport::http) enum Of {
    Bus,
    A2a,
    /// Version 0.3 of it.
    A2aV03,
    Health,
    Reflection,
    ReflectionAlpha,
}

impl Grpc {
    pub(in crate::transport::http) fn new(
        service: Arc<Application>,
        clock: SharedClock,
        doors: Arc<Figures>,
        options: &BrokerOptions,
        a2a: Arc<A2a>,
    ) -> Self {
        let (reporter, health) = health_reporter();
        let message_bytes_max = options.message_bytes_max;
        let bus = EventBusServer::new(Shared::new(
            service,
            clock,
            doors,
            options.ttl,
            message_bytes_max,
        ))
        .max_decoding_message_size(message_bytes_max);
        let a2a_v03 = a2a.serves_v03().then(|| {
            let service = v03_wire::A2aServiceServer::new(v03::grpc::Shared(a2a.clone()));
            served(service.max_decoding_message_size(A2A_MESSAGE_BYTES_MAX))
        });
        let a2a = a2a_wire::A2aServiceServer::new(a2a::Shared(a2a))
            .max_decoding_message_size(A2A_MESSAGE_BYTES_MAX);
        let reflected = || {
            let all = tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
                .register_encoded_file_descriptor_set(a2a_wire::FILE_DESCRIPTOR_SET)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET);
            match a2a_v03 {
                Some(_) => all.register_encoded_file_descriptor_set(v03_wire::FILE_DESCRIPTOR_SET),
                None => all,
            }
        };
        let checked = "descriptors that a test reads can be read";
        let reflection = [
            served(reflected().build_v1().expect(checked)),
            served(reflected().build_v1alpha().expect(checked)),
        ];
        Self {
            bus: served(bus),
            a2a: served(a2a),
            a2a_v03,
            health: served(health),
            reflection,
            reporter,
            message_bytes_max,
        }
    }

    /// Says to probes whether calls are served.
    pub(in crate::transport::http) async fn serves(&self, is_serving: bool) {
        let status = match is_serving {
            true => tonic_health::ServingStatus::Serving,
            false => tonic_health::ServingStatus::NotServing,
        };
        let older = self.a2a_v03.as_ref().map(|_| v03_wire::SERVICE_NAME);
        for name in ["", SERVICE_NAME, a2a_wire::SERVICE_NAME]
            .into_iter()
            .chain(older)
        {
            self.reporter.set_service_status(name, status).await;
        }
    }

    /// A service; `None`: it is not served.
    pub(super) fn of(&self, of: Of) -> Option<Served> {
        match of {
            Of::Bus => Some(self.bus.clone()),
            Of::A2a => Some(self.a2a.clone()),
            Of::A2aV03 => self.a2a_v03.clone(),
            Of::Health => Some(self.health.clone()),
            Of::Reflection => Some(self.reflection[0].clone()),
            Of::ReflectionAlpha => Some(self.reflection[1].clone()),
        }
    }
}

fn served<S>(service: S) -> Served
where
    S: Service<
            Request<Body>,
            Response = axum::http::Response<tonic::body::Body>,
            Error = Infallible,
        > + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    BoxCloneSyncService::new(service.map_response(|response| response.map(Body::new)))
}
