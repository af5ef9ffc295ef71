//! `taskledger webhooks verify`: checks a signature as a receiver does, without a server.

use super::secret;
use crate::output::Output;
use crate::{CliError, clock};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, SigningKey, VerifyingKey};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;
use std::io::{self, Read};
use std::process::ExitCode;

/// Bytes of a body; messages have a tenth of it.
const BODY_BYTES_MAX: u64 = 4 << 20;
/// How far the time of a message may be from now before receivers should refuse it.
const TOLERANCE_SECONDS: i64 = 300;

/// Check the signature of a message by hand; the body is read from standard input
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger webhooks verify --secret-file secret --id 2b0c... --timestamp 1769860800 \\
      --signature 'v1,K5oZ...' < body.json

The values are those of the headers `webhook-id`, `webhook-timestamp` and `webhook-signature`. The secret
begins with `whsec_`, or is a public key that begins with `whpk_`. Exit code 1: the signature is not valid.")]
pub(super) struct Args {
    /// File with the secret, or with the public key
    #[arg(long, value_name = "FILE")]
    secret_file: String,
    /// The header `webhook-id`
    #[arg(long, value_name = "TEXT")]
    id: String,
    /// The header `webhook-timestamp`
    #[arg(long, value_name = "SECONDS")]
    timestamp: i64,
    /// The header `webhook-signature`
    #[arg(long, value_name = "TEXT")]
    signature: String,
}

/// What checks.
enum Verifier {
    Shared(Hmac<Sha256>),
    Public(VerifyingKey),
}

/// Reads the body and says whether the signature is good.
pub(super) fn verify(args: &Args, out: &mut Output) -> Result<ExitCode, CliError> {
    if args.secret_file == "-" {
        let text = "--secret-file: standard input is the body, expected a file";
        return Err(CliError::Usage(text.to_owned()));
    }
    let verifier = Verifier::parse(&secret::read(&args.secret_file)?)?;
    let mut body = Vec::new();
    let input = io::stdin().take(BODY_BYTES_MAX + 1);
    let wrong = |reason: String| CliError::Usage(format!("the body: {reason}"));
    { input }
        .read_to_end(&mut body)
        .map_err(|error| wrong(error.to_string()))?;
    if body.len() as u64 > BODY_BYTES_MAX {
        return Err(wrong(format!("larger than {BODY_BYTES_MAX} bytes")));
    }
    let signed = [format!("{}.{}.", args.id, args.timestamp).as_bytes(), &body].concat();
    let good = verifier.any(&args.signature, &signed);
    let age = clock().now().0 / 1_000_000 - args.timestamp;
    let fresh = age.abs() <= TOLERANCE_SECONDS;
    if out.is_json() {
        out.value(&json!({"good": good, "fresh": fresh, "age_seconds": age}))?;
    } else if good {
        out.line("the signature is good")?;
    } else {
        out.line("the signature is NOT good: another secret, another body, id or time")?;
    }
    if good && !fresh && !out.is_json() {
        out.line(format!(
            "but the message is {age} s old: a receiver should refuse it, it may be a repetition"
        ))?;
    }
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

impl Verifier {
    /// Reads the written form of a secret or a public key.
    fn parse(text: &str) -> Result<Self, CliError> {
        const EXPECTED: &str = "--secret-file: expected `whsec_`, `whsk_` or `whpk_` and base64";
        let wrong = || CliError::Usage(EXPECTED.to_owned());
        let (kind, written) = text.split_once('_').ok_or_else(wrong)?;
        let bytes = STANDARD.decode(written).map_err(|_| wrong())?;
        match kind {
            "whsec" if !bytes.is_empty() => Hmac::new_from_slice(&bytes)
                .map(Self::Shared)
                .map_err(|_| wrong()),
            "whpk" => {
                let bytes: [u8; 32] = bytes.try_into().map_err(|_| wrong())?;
                VerifyingKey::from_bytes(&bytes)
                    .map(Self::Public)
                    .map_err(|_| wrong())
            }
            "whsk" => {
                // The seed; a longer form repeats the public key behind it.
                let seed = bytes.get(..32).ok_or_else(wrong)?;
                let seed: [u8; 32] = seed.try_into().map_err(|_| wrong())?;
                Ok(Self::Public(SigningKey::from_bytes(&seed).verifying_key()))
            }
            _ => Err(wrong()),
        }
    }

    /// Whether one of the signatures, which have spaces between them, is good.
    fn any(&self, signatures: &str, signed: &[u8]) -> bool {
        signatures.split_ascii_whitespace().any(|signature| {
            let Some((version, written)) = signature.split_once(',') else {
                return false;
            };
            let Ok(bytes) = STANDARD.decode(written) else {
                return false;
            };
            match self {
                Self::Shared(key) if version == "v1" => key
                    .clone()
                    .chain_update(signed)
                    .verify_slice(&bytes)
                    .is_ok(),
                Self::Public(key) if version == "v1a" => Signature::from_slice(&bytes)
                    .is_ok_and(|parsed| key.verify_strict(signed, &parsed).is_ok()),
                Self::Shared(_) | Self::Public(_) => false,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_dalek::Signer;

    #[test]
    fn the_example_of_the_standard_is_good_and_nothing_near_it() {
        let secret = Verifier::parse("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD").unwrap();
        let signed = br#"msg_27UH4WbU6Z5A5EzD8u03UvzRbpk.1649367553.{"email":"test@example.com","username":"test_user"}"#;
        let good = "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=";
        assert!(secret.any(good, signed));
        assert!(
            secret.any(&format!("v1,AAAA v2,x {good}"), signed),
            "one of many"
        );
        assert!(!secret.any(good, &signed[1..]));
        for bad in [
            "",
            "v1",
            &good[3..],
            &good.replace("v1", "v1a"),
            &good[..20],
        ] {
            assert!(!secret.any(bad, signed), "{bad}");
        }
    }

    #[test]
    fn a_public_key_checks_what_its_private_key_signs() {
        let private = SigningKey::from_bytes(&[7; 32]);
        let public = STANDARD.encode(private.verifying_key().to_bytes());
        let signature = STANDARD.encode(private.sign(b"m.1.x").to_bytes());
        for key in [
            format!("whpk_{public}"),
            format!("whsk_{}", STANDARD.encode([7; 32])),
        ] {
            let verifier = Verifier::parse(&key).unwrap();
            assert!(verifier.any(&format!("v1a,{signature}"), b"m.1.x"), "{key}");
            assert!(!verifier.any(&format!("v1a,{signature}"), b"m.2.x"));
            assert!(!verifier.any(&format!("v1,{signature}"), b"m.1.x"));
        }
    }

    #[test]
    fn what_is_no_secret_is_refused_without_being_shown() {
        for bad in [
            "",
            "text",
            "whsec_",
            "whsec_*",
            "whpk_AAAA",
            "whsk_AAAA",
            "key_AAAA",
        ] {
            let error = Verifier::parse(bad).err().unwrap().to_string();
            assert!(!error.contains("AAAA"), "{error}");
        }
    }
}
