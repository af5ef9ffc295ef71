//! Signatures by `ring`, as the back end of `jsonwebtoken`. The library has two back ends of its own, and
//! this program takes neither (decision 0077). It signs nothing.

use super::Algorithm;
use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{Error as BadSignature, Verifier};
use jsonwebtoken::{DecodingKey, DecodingKeyKind};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey,
};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(Error::from(ErrorKind::UnsupportedAlgorithm)),
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(), // for making JWKs, which is not done here
};

/// Makes the library use `ring`. To be called before it checks anything, as often as one likes.
pub(super) fn install() {
    // Refused from the second call on, which changes nothing.
    _ = PROVIDER.install_default();
}

fn verifier(
    algorithm: &jsonwebtoken::Algorithm,
    key: &DecodingKey,
) -> Result<Box<dyn JwtVerifier>, Error> {
    let known = |known: &Algorithm| known.for_library() == *algorithm;
    let Some(algorithm) = Algorithm::ALL.into_iter().find(known) else {
        return Err(ErrorKind::UnsupportedAlgorithm.into());
    };
    if key.family() != algorithm.for_library().family() {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    let key = key.clone();
    Ok(Box::new(RingVerifier { algorithm, key }))
}

/// One key with one algorithm.
struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> jsonwebtoken::Algorithm {
        self.algorithm.for_library()
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), BadSignature> {
        let valid = match self.algorithm {
            Algorithm::Rs256 => self.rsa(&RSA_PKCS1_2048_8192_SHA256, message, signature),
            Algorithm::Ps256 => self.rsa(&RSA_PSS_2048_8192_SHA256, message, signature),
            Algorithm::Es256 => self.raw(&ECDSA_P256_SHA256_FIXED, message, signature),
            Algorithm::EdDsa => self.raw(&ED25519, message, signature),
        };
        valid.map_err(|_| BadSignature::new())
    }
}

impl RingVerifier {
    fn rsa(
        &self,
        parameters: &RsaParameters,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), ring::error::Unspecified> {
        match self.key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            DecodingKeyKind::SecretOrDer(_) => Err(ring::error::Unspecified),
        }
    }

    /// A key that is a point: uncompressed on P-256, 32 bytes for Ed25519.
    fn raw(
        &self,
        algorithm: &'static dyn ring::signature::VerificationAlgorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), ring::error::Unspecified> {
        match self.key.kind() {
            DecodingKeyKind::SecretOrDer(point) => {
                UnparsedPublicKey::new(algorithm, point).verify(message, signature)
            }
            DecodingKeyKind::RsaModulusExponent { .. } => Err(ring::error::Unspecified),
        }
    }
}

#[cfg(test)]
mod tests {
    //! The vectors of RFC 7515 (appendices A.2 and A.3) and RFC 8037 (appendix A.4).

    use super::install;
    use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, crypto};

    const CLAIMS: &str = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    const RSA_N: &str = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
    const RSA_SIGNATURE: &str = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
    const EC_X: &str = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
    const EC_Y: &str = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";
    const EC_SIGNATURE: &str =
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    const ED_X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    const ED_SIGNATURE: &str =
        "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";

    fn valid(signature: &str, message: &str, key: &DecodingKey, algorithm: Algorithm) -> bool {
        install();
        crypto::verify(signature, message.as_bytes(), key, algorithm).unwrap_or(false)
    }

    #[test]
    fn the_vectors_of_the_standards_are_valid_and_no_others() {
        let rsa = DecodingKey::from_rsa_components(RSA_N, "AQAB").unwrap();
        let ec = DecodingKey::from_ec_components(EC_X, EC_Y).unwrap();
        let ed = DecodingKey::from_ed_components(ED_X).unwrap();
        let vectors = [
            (
                &rsa,
                Algorithm::RS256,
                format!("eyJhbGciOiJSUzI1NiJ9.{CLAIMS}"),
                RSA_SIGNATURE,
            ),
            (
                &ec,
                Algorithm::ES256,
                format!("eyJhbGciOiJFUzI1NiJ9.{CLAIMS}"),
                EC_SIGNATURE,
            ),
            (
                &ed,
                Algorithm::EdDSA,
                "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc".to_owned(),
                ED_SIGNATURE,
            ),
        ];
        for (key, algorithm, message, signature) in &vectors {
            assert!(valid(signature, message, key, *algorithm), "{algorithm:?}");
            let other = format!("{message}x");
            assert!(!valid(signature, &other, key, *algorithm), "{algorithm:?}");
            for (other, ..) in &vectors {
                let same = other.family() == key.family();
                assert_eq!(valid(signature, message, other, *algorithm), same);
            }
        }
        let (_, _, message, signature) = &vectors[0];
        assert!(!valid(signature, message, &rsa, Algorithm::PS256));
        assert!(!valid(signature, message, &rsa, Algorithm::RS384));
    }

    #[test]
    fn there_is_no_shared_secret_and_nothing_is_signed() {
        install();
        let secret = DecodingKey::from_secret(b"0123456789abcdef0123456789abcdef");
        assert!(crypto::verify("AA", b"x", &secret, Algorithm::HS256).is_err());
        let secret = EncodingKey::from_secret(b"0123456789abcdef0123456789abcdef");
        assert!(crypto::sign(b"x", &secret, Algorithm::HS256).is_err());
    }
}
