//! The edges that are allowed.

/// Parts that are crates of their own and known in `src` by these names. Their own edges are kept by
/// their manifests.
pub(crate) const CRATES: &[&str] = &[
    "clock",
    "egress",
    "meters",
    "private",
    "sealing",
    "secret_file",
    "store",
    "subscription",
    "tls",
    "webhooks",
];

/// Who may use whom among the folders and files of `src`. `server` and `main` put everything together.
pub(crate) const EDGES: &[(&str, &[&str])] = &[
    ("clock", &[]),
    ("telemetry", &["config"]),
    ("tls", &[]),
    ("private", &[]),
    ("sealing", &[]),
    ("secret_file", &[]),
    ("egress", &[]),
    // Whose credentials they are, for all doors.
    ("auth", &["application", "clock"]),
    // Counters as plain memory; `metrics` names and shows them.
    ("meters", &[]),
    // Settings end as the options of what they configure.
    (
        "config",
        &[
            "egress",
            "engine",
            "retention",
            "store",
            "tls",
            "transport",
            "webhooks",
        ],
    ),
    ("store", &[]),
    ("subscription", &[]),
    ("runtime", &[]),
    (
        "application",
        &[
            "store",
            "subscription",
            "clock",
            "meters",
            "webhooks",
            "runtime",
            "sealing",
        ],
    ),
    (
        "engine",
        &[
            "application",
            "egress",
            "subscription",
            "store",
            "clock",
            "meters",
            "sealing",
        ],
    ),
    (
        "transport",
        &[
            "application",
            "subscription",
            "clock",
            "meters",
            "runtime",
            "tls",
        ],
    ),
    ("webhooks", &[]),
    // Flows that leave the log.
    (
        "retention",
        &["application", "clock", "private", "store", "subscription"],
    ),
    // Leases and calls between nodes, behind the ports of those who need them.
    ("nodes", &["application", "meters", "store", "tls"]),
    // Reads what everybody counts, and writes it as text. Nobody but `server` knows it.
    (
        "metrics",
        &[
            "application",
            "engine",
            "meters",
            "nodes",
            "store",
            "tls",
            "transport",
            "webhooks",
        ],
    ),
    (
        "server",
        &[
            "application",
            "auth",
            "clock",
            "config",
            "egress",
            "engine",
            "meters",
            "metrics",
            "nodes",
            "private",
            "retention",
            "sealing",
            "store",
            "subscription",
            "tls",
            "transport",
            "webhooks",
        ],
    ),
    (
        "cli",
        &[
            "application",
            "clock",
            "config",
            "egress",
            "engine",
            "private",
            "retention",
            "sealing",
            "secret_file",
            "server",
            "store",
            "subscription",
            "telemetry",
            "tls",
            "transport",
            "webhooks",
        ],
    ),
    ("main", &["cli", "telemetry", "config"]),
    ("lib", &[]),
];
