//! Decisions of the guard that need no connection.

use super::policy::Wanted;
use super::{AddressError, HostPattern, Policy, Target, without_secrets};
use std::net::IpAddr;

const HTTPS: Wanted<'_> = Wanted {
    host: "example.com",
    port: 443,
    plain: false,
};

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn pattern(text: &str) -> HostPattern {
    text.parse().unwrap()
}

#[test]
fn the_servers_own_address_is_refused_in_words_of_its_own() {
    let policy = Policy {
        allow_nets: vec!["127.0.0.0/8".parse().unwrap()],
        own: vec!["127.0.0.1:8000".parse().unwrap()],
        ..Policy::default()
    };
    for (url, refused) in [
        ("http://127.0.0.1:8000/", Some(AddressError::Own)),
        ("http://[::ffff:127.0.0.1]:8000/", Some(AddressError::Own)),
        ("http://127.0.0.1:8001/", None),
        ("http://127.0.0.2:8000/", None),
    ] {
        assert_eq!(Target::parse(url, &policy).err(), refused, "{url}");
    }
    // It is said although nothing there would be allowed anyway.
    let strict = Policy {
        allow_nets: Vec::new(),
        ..policy
    };
    let own = Target::parse("http://127.0.0.1:8000/", &strict);
    assert_eq!(own, Err(AddressError::Own));
}

#[test]
fn a_url_is_shown_without_credentials_and_query() {
    for (url, shown) in [
        ("https://a.example/x", "https://a.example/x"),
        (
            "https://me:pw@a.example/x?key=1#f",
            "https://***@a.example/x?***",
        ),
        ("https://a.example/#token", "https://a.example/"),
        ("me:pw@a.example", "***@a.example"),
        ("no url", "no url"),
        ("", ""),
    ] {
        assert_eq!(without_secrets(url), shown);
    }
}

#[test]
fn only_public_addresses_are_allowed_by_default() {
    let policy = Policy::default();
    for forbidden in [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.0.0.2",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.7",
        "203.0.113.9",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::10.0.0.1",
        "::8.8.8.8",
        "::ffff:10.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::a00:1",
        "64:ff9b::808:808",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:1ff::1",
        "2001:db8::1",
        "2002:a00:1::",
        "2002:808:808::1",
        "3fff::1",
        "3fff:fff::1",
        "5f00::1",
        "4000::1",
        "fc00::1",
        "fd00::1",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "ff02::1",
        "::ffff:0:10.0.0.1",
    ] {
        assert!(!policy.allows(HTTPS, address(forbidden)), "{forbidden}");
    }
    for public in [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.1",
        "100.63.255.255",
        "100.128.0.1",
        "126.255.255.255",
        "128.0.0.1",
        "172.15.255.255",
        "172.32.0.1",
        "192.0.1.1",
        "192.167.1.1",
        "198.17.255.255",
        "198.20.0.1",
        "223.255.255.255",
        "::ffff:8.8.8.8",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2606:4700::1111",
        "2a00::1",
        "3ffe::1",
    ] {
        assert!(policy.allows(HTTPS, address(public)), "{public}");
    }
}

#[test]
fn a_network_is_allowed_exactly() {
    let policy = Policy {
        allow_nets: vec!["127.0.0.1/32".parse().unwrap()],
        ..Policy::default()
    };
    let plain = Wanted {
        plain: true,
        ..HTTPS
    };
    assert!(policy.allows(plain, address("127.0.0.1")));
    assert!(policy.allows(plain, address("::ffff:127.0.0.1")));
    assert!(!policy.allows(plain, address("127.0.0.2")));
    assert!(!policy.allows(plain, address("8.8.8.8")), "plain http");
    assert!(policy.allows(HTTPS, address("8.8.8.8")));
}

#[test]
fn an_allowed_name_may_be_private_but_never_link_local() {
    let policy = Policy {
        allow_hosts: vec![pattern("*.internal")],
        ..Policy::default()
    };
    let inside = Wanted {
        host: "db.internal",
        port: 80,
        plain: true,
    };
    for allowed in ["10.0.0.1", "127.0.0.1", "192.168.0.1", "fd00::1", "::1"] {
        assert!(policy.allows(inside, address(allowed)), "{allowed}");
        assert!(!policy.allows(HTTPS, address(allowed)), "{allowed}");
    }
    for never in [
        "169.254.169.254",
        "fe80::1",
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
    ] {
        assert!(!policy.allows(inside, address(never)), "{never}");
    }
}

#[test]
fn a_denied_name_is_denied_whatever_else_allows_it() {
    let policy = Policy {
        allow_nets: vec!["0.0.0.0/0".parse().unwrap()],
        allow_hosts: vec![pattern("*.example.com")],
        deny_hosts: vec![pattern("bad.example.com"), pattern("8.8.8.8")],
        allow_http: true,
        ..Policy::default()
    };
    assert!(Target::parse("https://good.example.com/", &policy).is_ok());
    for denied in [
        "https://bad.example.com/",
        "https://BAD.example.com./",
        "http://8.8.8.8/",
    ] {
        let refused = Target::parse(denied, &policy);
        assert_eq!(refused, Err(AddressError::Blocked), "{denied}");
    }
}

#[test]
fn the_server_itself_is_not_a_receiver() {
    let policy = Policy {
        allow_nets: vec!["127.0.0.0/8".parse().unwrap()],
        own: vec![
            "127.0.0.1:8000".parse().unwrap(),
            "0.0.0.0:9000".parse().unwrap(),
        ],
        ..Policy::default()
    };
    for own in [
        "http://127.0.0.1:8000/",
        "http://127.0.0.1:9000",
        "http://127.5.5.5:9000",
    ] {
        assert_eq!(Target::parse(own, &policy), Err(AddressError::Own), "{own}");
    }
    for other in [
        "http://127.0.0.1:8001/",
        "http://127.0.0.2:8000/",
        "https://8.8.8.8:9000/",
    ] {
        assert!(Target::parse(other, &policy).is_ok(), "{other}");
    }
}

#[test]
fn plain_http_needs_an_allowance() {
    let listed = Policy {
        allow_nets: vec!["10.0.0.0/8".parse().unwrap()],
        allow_hosts: vec![pattern("*.internal")],
        ..Policy::default()
    };
    let proxied = Policy {
        proxy: Some("http://proxy:3128".parse().unwrap()),
        ..listed.clone()
    };
    for (url, listed_takes, proxied_takes) in [
        ("http://10.1.2.3/", true, true),
        ("http://a.internal/", true, true),
        // The lookup decides, if there is one.
        ("http://example.com/", true, false),
        ("http://8.8.8.8/", false, false),
    ] {
        assert_eq!(Target::parse(url, &listed).is_ok(), listed_takes, "{url}");
        assert_eq!(Target::parse(url, &proxied).is_ok(), proxied_takes, "{url}");
        let refused = Target::parse(url, &Policy::default());
        assert!(matches!(refused, Err(AddressError::Scheme { .. })), "{url}");
    }
}

#[test]
fn patterns_name_one_host_or_everything_below() {
    assert!(pattern("Example.COM").matches("example.com"));
    assert!(pattern("example.com.").matches("example.com."));
    assert!(!pattern("example.com").matches("a.example.com"));
    let below = pattern("*.example.com");
    assert!(below.matches("a.example.com") && below.matches("a.b.example.com."));
    for other in [
        "example.com",
        ".example.com",
        "badexample.com",
        "example.com.evil",
    ] {
        assert!(!below.matches(other), "{other}");
    }
    assert!(pattern("bücher.example").matches("xn--bcher-kva.example"));
    for bad in [
        "",
        "*",
        "*.",
        "a.*.b",
        "a b",
        "*.10.0.0.1",
        "http://x",
        "x:80",
        "*.*.x",
    ] {
        assert!(bad.parse::<HostPattern>().is_err(), "{bad}");
    }
}

#[test]
fn a_literal_address_is_forbidden_in_every_spelling() {
    let policy = Policy::default();
    for spelling in [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "0x7f.1",
        "0177.0.0.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "127.0.0.1.",
        "127。0。0。1",
        "①②⑦.⓪.⓪.①",
        "１２７.0.0.1",
        "%31%32%37.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:7f00:0001]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "0",
        "0.0.0.0",
        "[::]",
        "169.254.169.254",
        "0xa9fea9fe",
        "2852039166",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "10.0.0.1",
        "167772161",
        "[::ffff:0a00:0001]",
    ] {
        let refused = Target::parse(&format!("https://{spelling}/"), &policy);
        assert_eq!(refused, Err(AddressError::Blocked), "{spelling}");
    }
    for nonsense in [
        "[fe80::1%25eth0]",
        "127.0.0.1%00",
        "256.256.256.256",
        "1.2.3.4.5",
    ] {
        let refused = Target::parse(&format!("https://{nonsense}/"), &policy);
        assert!(
            matches!(refused, Err(AddressError::NotAUrl { .. })),
            "{nonsense}: {refused:?}"
        );
    }
}

#[test]
fn what_is_no_address_of_a_receiver_is_refused_with_what_is_expected() {
    let policy = Policy::default();
    let long = format!("https://example.com/{}", "a".repeat(2030));
    for (text, told) in [
        ("", "is not a URL"),
        ("example.com/hook", "is not a URL"),
        ("https://", "is not a URL"),
        ("http://example.com/", "expected `https`"),
        ("ftp://example.com/", "expected `https`"),
        ("file:///etc/passwd", "expected `https`"),
        ("gopher://example.com/", "expected `https`"),
        (
            "https://user:secret@example.com/",
            "expected them in a header",
        ),
        ("https://user@example.com/", "expected them in a header"),
        ("https://example.com:0/", "port 0 is not allowed"),
        ("https://example.com:22/", "port 22 is not allowed"),
        (
            "https://example.com:1023/",
            "expected 80, 443, or 1024 to 65535",
        ),
        (long.as_str(), "expected at most 2048"),
    ] {
        let told_so = Target::parse(text, &policy).unwrap_err().to_string();
        assert!(told_so.contains(told), "{text}: {told_so}");
        assert!(!told_so.contains("secret"), "{told_so}");
    }
}

#[test]
fn an_accepted_address_has_a_host_a_port_and_no_fragment() {
    let policy = Policy::default();
    let target = Target::parse("https://Example.COM./a?key=1#part", &policy).unwrap();
    assert_eq!(target.url().as_str(), "https://example.com./a?key=1");
    assert_eq!((target.host(), target.port()), ("example.com", 443));
    assert_eq!(target.to_string(), "https://example.com./a");
    assert_eq!(format!("{target:?}"), "Target(https://example.com./a)");
    for port in [80, 443, 1024, 65_535] {
        let text = format!("https://example.com:{port}/");
        assert_eq!(Target::parse(&text, &policy).unwrap().port(), port);
    }
    let longest = format!("https://example.com/{}", "a".repeat(2028));
    assert!(Target::parse(&longest, &policy).is_ok());
}
