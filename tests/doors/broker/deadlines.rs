//! `grpc-timeout`: how long a caller wants to wait is kept by the server, for calls and for streams.

use super::listeners::bus_with;
use super::{Bus, PATIENCE, next, of_requester, task};
use hyper::body::Incoming;
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use taskledger_eventbus::{EventBusClient, PublishTaskRequest, SubscribeToTasksRequest};
use taskledger_testkit::server::Server;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::{Code, Request, Response, Status, Streaming};

/// A connection that leaves the time to the server. Other clients of gRPC end a call themselves when it is over.
pub(crate) async fn patient(
    server: &Server,
) -> impl GrpcService<Body, ResponseBody = Incoming, Error = hyper::Error, Future: Send> + Clone + use<>
{
    let address = server.api.url.strip_prefix("http://").unwrap();
    let socket = TcpStream::connect(address.trim_end_matches('/'))
        .await
        .unwrap();
    let made = handshake(TokioExecutor::new(), TokioIo::new(socket)).await;
    let (sender, connection) = made.unwrap();
    tokio::spawn(connection);
    tower::service_fn(move |request: hyper::Request<Body>| {
        let mut sender = sender.clone();
        async move {
            sender.ready().await?;
            sender.send_request(request).await
        }
    })
}

/// What its calls are addressed to.
pub(crate) fn origin() -> hyper::Uri {
    hyper::Uri::from_static("http://localhost")
}

/// The same call with a time.
pub(crate) fn within<T>(given: &'static str, mut request: Request<T>) -> Request<T> {
    let given = given.parse().unwrap();
    request.metadata_mut().insert("grpc-timeout", given);
    request
}

/// The first item of a stream that is read until its time is over, and its end. On a slow machine the time may
/// be over before anything was told: then another stream is opened.
pub(crate) async fn first_until_end<T>(
    mut open: impl AsyncFnMut() -> Result<Response<Streaming<T>>, Status>,
) -> (T, Status) {
    loop {
        let mut first = None;
        let end = match open().await {
            Err(late) => late,
            Ok(stream) => {
                let mut stream = stream.into_inner();
                loop {
                    match stream.message().await {
                        Ok(item) => {
                            let item = item.expect("the stream has a status");
                            first.get_or_insert(item);
                        }
                        Err(late) => break late,
                    }
                }
            }
        };
        assert_eq!(end.code(), Code::DeadlineExceeded, "{end}");
        if let Some(first) = first {
            return (first, end);
        }
    }
}

#[tokio::test]
async fn a_call_that_is_out_of_time_says_so_and_may_be_repeated() {
    const CALLS: usize = 100;
    let bus = Bus::start().await;
    let client = EventBusClient::with_origin(patient(&bus.server).await, origin());
    let publish = |given: &'static str, id: String| {
        let task = Some(task(&id, "x"));
        within(given, Request::new(PublishTaskRequest { task }))
    };
    let total = async || {
        let list = bus.server.api.call("tasks.list", json!({"limit": 1})).await;
        list["total"].as_u64().unwrap()
    };
    for n in 0..CALLS {
        let late = publish("1n", format!("t{n}"));
        let late = client.clone().publish_task(late).await.unwrap_err();
        assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");
    }
    assert_eq!(total().await, 0, "none was begun");
    // All at once: of those that are late it is not known whether they were published.
    let hurried = (0..CALLS).map(|n| {
        let mut client = client.clone();
        let publish = publish("1m", format!("t{n}"));
        async move { client.publish_task(publish).await }
    });
    for answer in futures_util::future::join_all(hurried).await {
        let late = answer.err().map(|status| status.code());
        assert!(
            matches!(late, None | Some(Code::DeadlineExceeded)),
            "{late:?}"
        );
    }
    for n in 0..CALLS {
        let again = publish("20S", format!("t{n}"));
        let again = client.clone().publish_task(again).await.unwrap();
        assert!(again.into_inner().success);
    }
    assert_eq!(total().await, 100, "each was published once");
    // As long as clients can say, and what says no time.
    for (n, given) in ["99999999H", "18446744073709551615H", "S", "5", "5s", "-5S"]
        .into_iter()
        .enumerate()
    {
        let publish = publish(given, format!("odd-{n}"));
        client.clone().publish_task(publish).await.unwrap();
    }
    drop(client);
    bus.server.stop().await;
}

/// Streams that are open, as the server counts them.
async fn open(bus: &Bus) -> f64 {
    let metrics = format!("{}metrics", bus.server.api.url);
    let answer = bus.server.api.http.get(metrics).send().await.unwrap();
    let text = answer.text().await.unwrap();
    let count = |kind: &str| -> f64 {
        let name = format!("taskledger_broker_streams{{kind=\"{kind}\"}} ");
        let count = text.lines().find_map(|it| it.strip_prefix(&*name));
        let count = count.unwrap_or_else(|| panic!("{kind}: {text}"));
        count.parse().unwrap()
    };
    ["tasks", "results", "progress"].map(count).iter().sum()
}

#[tokio::test]
async fn a_stream_ends_when_its_caller_says_and_leaves_nothing_behind() {
    let bus = bus_with(&["--metrics"]).await;
    let client = EventBusClient::with_origin(patient(&bus.server).await, origin());
    let told = "the stream has lasted as long as `grpc-timeout` says";
    bus.publish(task("t", "x")).await.unwrap();
    let (held, end) = first_until_end(async || {
        let request = Request::new(SubscribeToTasksRequest {
            agent_id: "one".to_owned(),
            task_types: vec!["x".to_owned()],
        });
        let request = within("1S", request);
        client.clone().subscribe_to_tasks(request).await
    })
    .await;
    assert_eq!((&*held.task_id, end.message()), ("t", told));
    // What it held is another's.
    let mut others = bus.subscribe("two", &["x"]).await;
    assert_eq!(next(&mut others).await.task_id, "t");
    bus.progress("two", "t", 50).await.unwrap();
    let asked = || within("1S", Request::new(of_requester("requester", &[])));
    let (progress, end) =
        first_until_end(async || client.clone().subscribe_to_task_progress(asked()).await).await;
    assert_eq!((progress.progress_percentage, end.message()), (50, told));
    bus.complete("two", "t").await.unwrap();
    // A result that such a stream was told comes again.
    for _ in 0..2 {
        let (result, end) =
            first_until_end(async || client.clone().subscribe_to_task_results(asked()).await).await;
        assert_eq!((&*result.task_id, end.message()), ("t", told));
    }
    drop(others);
    let none_is_open = async {
        while open(&bus).await != 0.0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, none_is_open).await.unwrap();
    drop(client);
    bus.server.stop().await;
}
