//! How much of the registry one principal may fill.

use super::*;
use taskledger_domain::testing::START;

fn asks(
    known: &mut Known,
    (principal, worker): (&str, &str),
    methods: &[&str],
) -> Result<bool, AskRefusal> {
    let methods: Vec<Arc<str>> = methods.iter().map(|name| Arc::from(*name)).collect();
    let asks = Asks {
        worker,
        principal,
        owner: None,
        methods: &methods,
        connection: Connection::Poll,
    };
    known.asked(&asks, None, START)
}

#[test]
fn one_principal_leaves_room_for_the_workers_of_others() {
    let mut known = Known::default();
    for n in 0..WORKERS_MAX / 2 {
        let worker = format!("worker {n}");
        assert!(asks(&mut known, ("ann", &worker), &["a"]).is_ok(), "{n}");
    }
    let refused = asks(&mut known, ("ann", "one more"), &["a"]);
    let TooMany { what, max } = refusal(refused);
    assert_eq!((what, max), ("workers of one principal", WORKERS_MAX / 2));
    assert!(
        asks(&mut known, ("ann", "worker 0"), &["a"]).is_ok(),
        "it is known"
    );
    assert!(asks(&mut known, ("bob", "worker"), &["a"]).is_ok());
}

#[test]
fn one_principal_leaves_room_for_the_methods_of_others() {
    let mut known = Known::default();
    for n in 0..ASKED_METHODS_MAX / 2 {
        let method = format!("method {n}");
        assert!(asks(&mut known, ("ann", "w"), &[&method]).is_ok(), "{n}");
    }
    let refused = asks(&mut known, ("ann", "w"), &["one more"]);
    let TooMany { what, max } = refusal(refused);
    assert_eq!(
        (what, max),
        ("methods of one principal", ASKED_METHODS_MAX / 2)
    );
    assert!(
        asks(&mut known, ("ann", "w"), &["method 0"]).is_ok(),
        "it is known"
    );
    assert!(asks(&mut known, ("bob", "w"), &["another"]).is_ok());
    // What nobody asks for any more makes room.
    known.sweep(START.plus_ms(LAST_ASKED_KEPT_MS));
    assert!(asks(&mut known, ("ann", "w"), &["one more"]).is_ok());
}

struct TooMany {
    what: &'static str,
    max: usize,
}

#[track_caller]
fn refusal(refused: Result<bool, AskRefusal>) -> TooMany {
    match refused {
        Err(AskRefusal::TooMany { what, max }) => TooMany { what, max },
        other => panic!("{other:?}"),
    }
}
