//! A store that does not answer holds up no scrape, and is seen in it.

use super::scrape::Scrape;
use std::sync::Arc;
use std::time::Duration;
use taskledger::clock::{SharedClock, SystemClock};
use taskledger::engine::executor::{BuiltInOptions, Registry, with_built_ins};
use taskledger::server::{LogIn, Parts, Server, TablesIn};
use taskledger::store::faulty::FaultyStore;
use taskledger::store::memory::MemoryStore;
use taskledger::transport::http::{Admin, Options, Shows};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Between two scrapes.
const PACE: Duration = Duration::from_millis(50);
/// By then a scrape, and a probe, must have been answered.
const SCRAPE_MAX: Duration = Duration::from_secs(2);
const PROBE_MAX: Duration = Duration::from_secs(3);

#[tokio::test]
async fn a_store_that_does_not_answer_holds_up_no_scrape() {
    // given
    let clock: SharedClock = Arc::new(SystemClock::default());
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new(clock.clone()))));
    let faults = store.faults();
    let folder = TempDir::new().unwrap();
    let tables = || TablesIn::Folder(folder.path().to_owned());
    let parts = Parts::new(LogIn::Store(store), tables(), tables()).unwrap();
    let options = BuiltInOptions {
        disk_path: None,
        command: None,
        egress: None,
    };
    let registry = with_built_ins(Registry::builder(), options).unwrap();
    let registry = registry.build().unwrap();
    let server = Server::open(parts, registry, clock.clone()).await.unwrap();
    let options = Options {
        listen: "127.0.0.1:0".to_owned(),
        ..Options::default()
    };
    let stop = CancellationToken::new();
    let draining = CancellationToken::new();
    let served = "127.0.0.1:8000".parse().unwrap();
    let admin = Admin::bind(
        (options, Shows::Server),
        server.service().clone(),
        (served, clock),
        draining.clone(),
    );
    let admin = admin.await.unwrap();
    let url = format!("http://{}", admin.local_addr());
    let serving = tokio::spawn(admin.run(stop.clone()));
    let client = taskledger::tls::client().no_proxy().build().unwrap();
    let get = async |path: &str, within: Duration| {
        let begun = Instant::now();
        let response = client.get(format!("{url}{path}")).send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        assert!(
            begun.elapsed() < within,
            "{path} took {:?}",
            begun.elapsed()
        );
        (status, text)
    };
    let until_ready_is = async |expected: f64| {
        loop {
            let (status, text) = get("/metrics", SCRAPE_MAX).await;
            assert_eq!(status, 200);
            let scrape = Scrape::read(text);
            if scrape.sum("taskledger_ready", &[]) == expected {
                return;
            }
            sleep(PACE).await;
        }
    };
    until_ready_is(1.0).await;
    assert_eq!(get("/readyz", PROBE_MAX).await.0, 200);
    // when
    faults.stall(true);
    // then
    until_ready_is(0.0).await;
    assert_eq!(get("/livez", SCRAPE_MAX).await.0, 200);
    assert_eq!(get("/readyz", PROBE_MAX).await.0, 503);
    // when
    faults.stall(false);
    // then
    until_ready_is(1.0).await;
    // when it stops, probes say so
    sleep(Duration::from_secs(1)).await;
    draining.cancel();
    let (status, text) = get("/readyz", PROBE_MAX).await;
    assert_eq!(status, 503);
    assert!(text.contains("draining"), "{text}");
    stop.cancel();
    serving.await.unwrap();
    server.close().await;
}
