//! An OIDC issuer with one key, as a receiver that servers fetch its keys from.

use crate::receiver::{Answer, Receiver};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{KeyPair, PKCS_ED25519, SigningKey as _};
use serde_json::json;
use taskledger_clock::{Clock as _, SystemClock};

/// What servers are called in `aud`.
const AUDIENCE: &str = "taskledger";
/// The name of the key.
const KEY: &str = "a";
/// Seconds for which tokens are good.
const LIFETIME_S: i64 = 3_600;

/// The issuer. Its users are in the groups `ledger`, which may read and run tasks, and `ledger-users`.
pub struct OidcIssuer {
    receiver: Receiver,
    key: KeyPair,
}

impl OidcIssuer {
    /// One with a key of its own.
    pub async fn start() -> Self {
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let receiver = Receiver::start().await;
        let description =
            json!({"issuer": receiver.url("/realm"), "jwks_uri": receiver.url("/keys")});
        let path = "/realm/.well-known/openid-configuration";
        receiver.answer_at(path, Answer::status(200).body(description.to_string()));
        let keys = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": encoded(key.public_key_raw()),
            "kid": KEY, "alg": "EdDSA", "use": "sig"}]});
        receiver.answer_at("/keys", Answer::status(200).body(keys.to_string()));
        Self { receiver, key }
    }

    /// As tokens name it.
    pub fn url(&self) -> String {
        self.receiver.url("/realm")
    }

    /// The arguments that make a server trust this issuer.
    pub fn arguments(&self) -> Vec<String> {
        let url = self.url();
        let arguments = [
            "--oidc-issuer",
            &url,
            "--oidc-audience",
            AUDIENCE,
            "--oidc-scopes",
            "groups:ledger=tasks:read tasks:write tasks:run",
            "--oidc-loopback-http",
            "--egress-allow-net",
            "127.0.0.1/32",
        ];
        arguments.map(str::to_owned).to_vec()
    }

    /// A token of this subject, which was issued ten seconds ago.
    pub fn token(&self, subject: &str, id: &str) -> String {
        let now = SystemClock::default().now().0 / 1_000_000;
        let header = json!({"typ": "at+jwt", "alg": "EdDSA", "kid": KEY});
        let claims = json!({"iss": self.url(), "aud": AUDIENCE, "sub": subject, "jti": id,
            "iat": now - 10, "exp": now + LIFETIME_S, "groups": ["ledger", "ledger-users"]});
        let message = format!(
            "{}.{}",
            encoded(header.to_string()),
            encoded(claims.to_string())
        );
        let signature = self.key.sign(message.as_bytes()).unwrap();
        format!("{message}.{}", encoded(signature))
    }
}

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
