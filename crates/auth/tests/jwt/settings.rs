//! The settings of issuers that operators may choose.

use crate::issuing::{AUDIENCE, ISSUER, grant};
use taskledger_auth::jwt::{
    Grant, ISSUERS_MAX, InvalidGrant, InvalidIssuer, Issuer, IssuerOptions,
};

fn check(change: impl FnOnce(&mut IssuerOptions)) -> Result<(), InvalidIssuer> {
    let mut options = IssuerOptions::new(ISSUER, AUDIENCE);
    change(&mut options);
    Issuer::all(vec![options]).map(|_| ())
}

fn prefixed(url: &str, prefix: &str) -> IssuerOptions {
    IssuerOptions {
        user_prefix: prefix.to_owned(),
        ..IssuerOptions::new(url, AUDIENCE)
    }
}

#[test]
fn an_issuer_has_an_https_url() {
    for bad in [
        "",
        "login.example",
        "http://login.example",
        "http://127.0.0.1:9000",
        "https://login.example?x=1",
        "https://login.example#x",
        "https://u:hunter2@login.example",
        "file:///etc/passwd",
        "data:text/plain,x",
    ] {
        let error = check(|options| options.url = bad.to_owned()).unwrap_err();
        assert!(matches!(error, InvalidIssuer::Url { .. }), "{bad}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
    for good in [
        "https://login.example/",
        "https://login.example/realms/main",
    ] {
        assert_eq!(check(|options| options.url = good.to_owned()), Ok(()));
    }
    let local = |url: &str| {
        check(|options| {
            options.url = url.to_owned();
            options.loopback_http = true;
        })
    };
    assert_eq!(local("http://127.0.0.1:9000"), Ok(()));
    assert!(local("http://login.example").is_err());
}

#[test]
fn an_issuer_without_an_audience_is_refused() {
    let none = check(|options| options.audiences.clear());
    assert!(matches!(none, Err(InvalidIssuer::NoAudience { .. })));
    let empty = check(|options| options.audiences.push(String::new()));
    assert!(matches!(empty, Err(InvalidIssuer::NoAudience { .. })));
}

#[test]
fn a_prefix_is_the_beginning_of_a_name() {
    for bad in [" corp:", "user:", "service:", "a\nb", &"x".repeat(255)] {
        let verdict = check(|options| options.user_prefix = bad.to_owned());
        assert!(
            matches!(verdict, Err(InvalidIssuer::Prefix { .. })),
            "{bad:?}"
        );
    }
}

#[test]
fn prefixes_keep_the_users_of_issuers_apart() {
    let pair = |a: &str, b: &str| {
        let options = vec![prefixed(ISSUER, a), prefixed("https://b.example", b)];
        Issuer::all(options).map(|_| ())
    };
    assert_eq!(pair("", "b:"), Ok(()));
    assert_eq!(pair("a:", "b:"), Ok(()));
    for (a, b) in [("", ""), ("a:", "a:"), ("a:", "a:b:"), ("a:b:", "a:")] {
        let verdict = pair(a, b);
        assert!(
            matches!(verdict, Err(InvalidIssuer::NamesMeet { .. })),
            "{a} {b}"
        );
    }
    let twice = vec![prefixed(ISSUER, "a:"), prefixed(ISSUER, "b:")];
    assert!(matches!(
        Issuer::all(twice),
        Err(InvalidIssuer::Twice { .. })
    ));
    let issuer = |n: usize| prefixed(&format!("https://{n}.example"), &format!("{n}:"));
    let many = (0..=ISSUERS_MAX).map(issuer).collect();
    assert!(matches!(
        Issuer::all(many),
        Err(InvalidIssuer::TooMany { .. })
    ));
}

#[test]
fn grants_are_read_as_they_are_written() {
    for (text, claim, value) in [
        ("groups:a=tasks:read", "groups", "a"),
        ("groups:CN=Ops,OU=x:y=tasks:read", "groups", "CN=Ops,OU=x:y"),
        (
            "https://a.example/roles:ops=tasks:read",
            "https://a.example/roles",
            "ops",
        ),
        (
            "realm_access.roles:two words=tasks:read",
            "realm_access.roles",
            "two words",
        ),
    ] {
        let Grant {
            claim: c, value: v, ..
        } = grant(text);
        assert_eq!((c.as_str(), v.as_str()), (claim, value));
        assert_eq!(grant(text).to_string(), text);
    }
    for bad in [
        "",
        "a",
        "a:b",
        "a=b",
        ":a=admin",
        "a:=admin",
        "https://:a=admin",
        " a:b=admin",
    ] {
        assert_eq!(bad.parse::<Grant>(), Err(InvalidGrant::Form), "{bad}");
    }
    assert_eq!("a:b= ".parse::<Grant>(), Err(InvalidGrant::NoScope));
    assert!(matches!(
        "a:b=tasks:reed".parse::<Grant>(),
        Err(InvalidGrant::Scope(_))
    ));
}
