//! Keys over time: rotation, an issuer that is unreachable, strangers who name keys that do not exist. Time is
//! simulated, and the issuer is called without a network.

use crate::issuing::{ISSUER, NOW_MS, Signer, claims, issuer, options, set};
use async_trait::async_trait;
use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use taskledger_auth::jwt::{
    Algorithm, Denied, DeniedTokens, DenyList, DenyListUnavailable, Documents, FetchError, Issuers,
    Revocable,
};
use tokio::time::{Instant, sleep};
use url::Url;

/// Between two looks at an issuer that answers.
const REFRESH: Duration = Duration::from_secs(600);
/// After which another look can be asked for.
const REST: Duration = Duration::from_secs(11);

/// An issuer in memory.
#[derive(Debug, Default)]
struct Site {
    /// What it publishes; `None` while it is away.
    jwks: Mutex<Option<Vec<Value>>>,
    description: Mutex<Value>,
    /// How often its keys were fetched, or tried to be.
    looks: AtomicU64,
    /// How long an answer takes.
    delay: Mutex<Duration>,
}

#[async_trait]
impl Documents for Site {
    async fn get(&self, url: &Url) -> Result<Bytes, FetchError> {
        let delay = *self.delay.lock().unwrap();
        sleep(delay).await;
        if url.path() == "/.well-known/openid-configuration" {
            self.looks.fetch_add(1, Ordering::SeqCst);
            return Ok(self.description.lock().unwrap().to_string().into());
        }
        assert_eq!(url.as_str(), "https://login.example/keys");
        match &*self.jwks.lock().unwrap() {
            Some(jwks) => Ok(set(jwks).into()),
            None => Err(FetchError::Status {
                url: url.to_string(),
                status: StatusCode::BAD_GATEWAY,
            }),
        }
    }
}

impl Site {
    fn with(jwks: Option<Vec<Value>>) -> Arc<Self> {
        let site = Self::default();
        site.publish(jwks);
        site.describe(json!({"issuer": ISSUER, "jwks_uri": "https://login.example/keys"}));
        Arc::new(site)
    }

    fn publish(&self, jwks: Option<Vec<Value>>) {
        *self.jwks.lock().unwrap() = jwks;
    }

    fn describe(&self, description: Value) {
        *self.description.lock().unwrap() = description;
    }

    fn looks(&self) -> u64 {
        self.looks.load(Ordering::SeqCst)
    }
}

fn start(site: &Arc<Site>) -> Issuers {
    let documents: Arc<dyn Documents> = site.clone();
    Issuers::start(
        vec![issuer(options())],
        &documents,
        Arc::new(DeniedTokens::default()),
    )
}

fn token(signer: &Signer, kid: &str) -> String {
    signer.token(&signer.header(kid), &claims())
}

async fn verdict(issuers: &Issuers, token: &str) -> Option<Denied> {
    issuers.verify(token, NOW_MS).await.err()
}

#[tokio::test(start_paused = true)]
async fn the_first_token_waits_for_the_first_keys() {
    let signer = Signer::new(Algorithm::Es256);
    let site = Site::with(Some(vec![signer.jwk("a")]));
    *site.delay.lock().unwrap() = Duration::from_secs(1);
    let issuers = start(&site);
    let caller = issuers.verify(&token(&signer, "a"), NOW_MS).await.unwrap();
    assert_eq!(&**caller.actor(), "user:ann");
    assert_eq!(site.looks(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_new_key_is_found_when_a_token_names_it() {
    let (old, new) = (Signer::new(Algorithm::EdDsa), Signer::new(Algorithm::EdDsa));
    let site = Site::with(Some(vec![old.jwk("old")]));
    let issuers = start(&site);
    assert_eq!(verdict(&issuers, &token(&old, "old")).await, None);
    sleep(REST).await;
    site.publish(Some(vec![old.jwk("old"), new.jwk("new")]));
    assert_eq!(verdict(&issuers, &token(&new, "new")).await, None);
    assert_eq!(verdict(&issuers, &token(&old, "old")).await, None);
    // A key that is gone is gone with the next look.
    site.publish(Some(vec![new.jwk("new")]));
    sleep(REFRESH + REST).await;
    assert_eq!(
        verdict(&issuers, &token(&old, "old")).await,
        Some(Denied::UnknownKey)
    );
    assert_eq!(verdict(&issuers, &token(&new, "new")).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_replaced_key_is_found_for_tokens_that_name_none() {
    let (old, new) = (Signer::new(Algorithm::EdDsa), Signer::new(Algorithm::EdDsa));
    let site = Site::with(Some(vec![old.jwk("a")]));
    let issuers = start(&site);
    sleep(REST).await;
    site.publish(Some(vec![new.jwk("a")]));
    let header = json!({"alg": "EdDSA", "typ": "JWT"});
    assert_eq!(
        verdict(&issuers, &new.token(&header, &claims())).await,
        None
    );
}

#[tokio::test(start_paused = true)]
async fn strangers_cannot_make_the_server_call_the_issuer_often() {
    let signer = Signer::new(Algorithm::EdDsa);
    let site = Site::with(Some(vec![signer.jwk("a")]));
    let issuers = start(&site);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(300) {
        for kid in ["b", "c", "d"] {
            let verdict = verdict(&issuers, &token(&signer, kid)).await;
            assert_eq!(verdict, Some(Denied::UnknownKey));
        }
        sleep(Duration::from_millis(100)).await;
    }
    assert!((2..=31).contains(&site.looks()), "{} looks", site.looks());
}

#[tokio::test(start_paused = true)]
async fn keys_are_kept_for_a_day_while_the_issuer_is_away() {
    let signer = Signer::new(Algorithm::EdDsa);
    let site = Site::with(Some(vec![signer.jwk("a")]));
    let issuers = start(&site);
    let token = token(&signer, "a");
    assert_eq!(verdict(&issuers, &token).await, None);
    for away in [
        None,
        Some(vec![]),
        Some(vec![json!({"kty": "oct", "k": "AAAA"})]),
    ] {
        site.publish(away);
        sleep(Duration::from_secs(7 * 3600)).await;
        assert_eq!(verdict(&issuers, &token).await, None);
    }
    sleep(Duration::from_secs(3 * 3600 + 60)).await;
    let refusal = verdict(&issuers, &token).await.unwrap();
    assert_eq!(refusal, Denied::KeysUnavailable);
    assert!(refusal.is_unavailable());
    site.publish(Some(vec![signer.jwk("a")]));
    sleep(Duration::from_secs(31)).await;
    assert_eq!(verdict(&issuers, &token).await, None);
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_never_answers_holds_nobody_up_for_long() {
    let signer = Signer::new(Algorithm::EdDsa);
    let site = Site::with(None);
    *site.delay.lock().unwrap() = Duration::from_secs(3600);
    let issuers = start(&site);
    let begin = Instant::now();
    let refusal = verdict(&issuers, &token(&signer, "a")).await;
    assert_eq!(refusal, Some(Denied::KeysUnavailable));
    assert!(
        begin.elapsed() <= Duration::from_secs(4),
        "{:?}",
        begin.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_description_of_another_issuer_or_of_open_keys_is_refused() {
    let signer = Signer::new(Algorithm::EdDsa);
    let token = token(&signer, "a");
    for bad in [
        json!({"issuer": "https://other.example", "jwks_uri": "https://login.example/keys"}),
        json!({"issuer": ISSUER, "jwks_uri": "http://login.example/keys"}),
        json!({"issuer": ISSUER, "jwks_uri": "http://127.0.0.1/keys"}),
        json!({"issuer": ISSUER, "jwks_uri": "file:///keys"}),
        json!({"issuer": ISSUER}),
        json!([]),
    ] {
        let site = Site::with(Some(vec![signer.jwk("a")]));
        site.describe(bad.clone());
        let issuers = start(&site);
        let refusal = verdict(&issuers, &token).await;
        assert_eq!(refusal, Some(Denied::KeysUnavailable), "{bad}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_of_an_issuer_that_is_not_trusted_makes_nobody_look() {
    let signer = Signer::new(Algorithm::EdDsa);
    let site = Site::with(Some(vec![signer.jwk("a")]));
    let issuers = start(&site);
    sleep(REST).await;
    let claims = crate::issuing::claims_with(json!({"iss": "https://evil.example"}));
    let token = signer.token(&signer.header("x"), &claims);
    assert_eq!(verdict(&issuers, &token).await, Some(Denied::UnknownIssuer));
    assert_eq!(site.looks(), 1);
}

#[tokio::test(start_paused = true)]
async fn tokens_and_subjects_on_the_deny_list_are_refused() {
    let signer = Signer::new(Algorithm::EdDsa);
    let site = Site::with(Some(vec![signer.jwk("a")]));
    let token = token(&signer, "a");
    let documents: Arc<dyn Documents> = site.clone();
    for by_subject in [false, true] {
        let list = Arc::new(DeniedTokens::default());
        let issuers = Issuers::start(vec![issuer(options())], &documents, list.clone());
        list.deny_id("https://other.example", "t-1");
        list.deny_subject("https://other.example", "ann", i64::MAX);
        assert_eq!(verdict(&issuers, &token).await, None);
        if by_subject {
            list.deny_subject(ISSUER, "ann", 0);
            assert_eq!(verdict(&issuers, &token).await, None, "it was issued later");
            list.deny_subject(ISSUER, "ann", i64::MAX);
        } else {
            list.deny_id(ISSUER, "t-1");
        }
        assert_eq!(verdict(&issuers, &token).await, Some(Denied::Revoked));
    }
}

/// A list that cannot be asked.
#[derive(Debug)]
struct Away;

#[async_trait]
impl DenyList for Away {
    async fn denies(&self, _: &Revocable<'_>) -> Result<bool, DenyListUnavailable> {
        Err(DenyListUnavailable)
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_deny_list_nobody_is_let_in() {
    let signer = Signer::new(Algorithm::EdDsa);
    let site = Site::with(Some(vec![signer.jwk("a")]));
    let documents: Arc<dyn Documents> = site;
    let issuers = Issuers::start(vec![issuer(options())], &documents, Arc::new(Away));
    let refusal = verdict(&issuers, &token(&signer, "a")).await.unwrap();
    assert!(refusal.is_unavailable());
    // A bad token is not worth a question.
    let bad = token(&Signer::new(Algorithm::EdDsa), "a");
    assert_eq!(verdict(&issuers, &bad).await, Some(Denied::BadSignature));
}
