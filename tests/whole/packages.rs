//! What packages say of themselves is true. (`packaging/try.sh` installs one and uses it; it needs a release build.)

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

#[test]
fn the_bill_of_materials_names_what_is_compiled_with_checksums() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = Command::new("python3")
        .arg(root.join("packaging/sbom.py"))
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let bill: Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!(
        (&bill["bomFormat"], &bill["specVersion"]),
        (&"CycloneDX".into(), &"1.5".into())
    );
    let program = &bill["metadata"]["component"];
    assert_eq!(program["name"], "taskledger");
    assert_eq!(program["version"], env!("CARGO_PKG_VERSION"));

    let components = bill["components"].as_array().unwrap();
    let by_name: BTreeMap<&str, &Value> = components
        .iter()
        .map(|c| (c["name"].as_str().unwrap(), c))
        .collect();
    for used in ["tokio", "rusqlite", "libsqlite3-sys", "taskledger-domain"] {
        assert!(by_name.contains_key(used), "`{used}` is compiled");
    }
    for of_tests in ["proptest", "taskledger-testkit"] {
        assert!(!by_name.contains_key(of_tests), "`{of_tests}` is of tests");
    }
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).unwrap();
    for component in components {
        let name = component["name"].as_str().unwrap();
        let checksum = component["hashes"][0]["content"].as_str();
        assert!(
            name.starts_with("taskledger-") || checksum.is_some_and(|sum| lock.contains(sum)),
            "{component}"
        );
        assert!(
            component["licenses"][0]["expression"].is_string(),
            "{component}"
        );
    }

    let known: BTreeSet<&str> = components
        .iter()
        .chain([program])
        .filter_map(|c| c["bom-ref"].as_str())
        .collect();
    for dependency in bill["dependencies"].as_array().unwrap() {
        let used = dependency["dependsOn"].as_array().unwrap();
        assert!(
            std::iter::once(&dependency["ref"])
                .chain(used)
                .all(|name| name.as_str().is_some_and(|name| known.contains(name))),
            "{dependency}"
        );
    }
}
