#!/usr/bin/env bash
# Checks the Compose files with the Compose that is here, without a daemon: each is one that it takes, and says what it must.
#     packaging/compose.sh          `docker compose`, or `docker-compose` of version 2 or newer
# Exit code 3: there is no such Compose. Needs python3.
set -euo pipefail
cd "$(dirname "$0")/.."

compose=()
for one in "docker compose" docker-compose; do
    # shellcheck disable=SC2086 # words
    if $one version --short 2>/dev/null | grep -Eq '^v?([2-9]|[1-9][0-9]+)\.'; then
        read -ra compose <<<"$one"
        break
    fi
done
if [ ${#compose[@]} = 0 ]; then
    echo "the Compose files are not checked: there is neither \`docker compose\` nor a \`docker-compose\` of version 2 or newer" >&2
    exit 3
fi
"${compose[@]}" version
# Only what this script sets.
unset "${!TASKLEDGER_@}" POSTGRES_PASSWORD "${!COMPOSE_@}"

# Whether the file, read by Compose, is as the Python on standard input asserts; `services` is what there is.
is() {
    local file=$1 read
    shift
    read=$(env "$@" "${compose[@]}" --env-file /dev/null --file "$file" config --format json)
    python3 -c '
import json, sys
services = json.loads(sys.argv[1])["services"]
# Callers of this machine only, until whoever starts it decides otherwise.
ports = [port for service in services.values() for port in service.get("ports", [])]
assert [(p["host_ip"], p["published"], p["target"]) for p in ports] == [("127.0.0.1", "8000", 8000)], ports
exec(sys.stdin.read())
' "$read"
    echo "$file is right"
}

is deploy/compose.yaml <<'PYTHON'
assert list(services) == ["node"], list(services)
node = services["node"]
assert node["read_only"] and node["cap_drop"] == ["ALL"], node
assert [v["target"] for v in node["volumes"]] == ["/var/lib/taskledger"], node
assert "TASKLEDGER_AUTH" not in node["environment"], node
PYTHON

# A password with characters that mean something to Compose, in URLs and in YAML.
is docker-compose.yml POSTGRES_PASSWORD='a$b: @#"/' TASKLEDGER_AUTH=on <<'PYTHON'
assert sorted(services) == ["node1", "node2", "node3", "postgres", "proxy"], list(services)
# Compose writes each `$` of a value twice, so that what it wrote can be read again.
password = 'a$b: @#"/'.replace("$", "$$")
assert services["postgres"]["environment"]["POSTGRES_PASSWORD"] == password
for name in ["node1", "node2", "node3"]:
    node = services[name]
    environment = node["environment"]
    assert environment["TASKLEDGER_NODE_URL"] == f"http://{name}:8000", environment
    assert (environment["PGPASSWORD"], environment["TASKLEDGER_AUTH"]) == (password, "on"), environment
    assert node["image"] == services["node1"]["image"], node
    assert node["depends_on"]["postgres"]["condition"] == "service_healthy", node
assert sorted(services["proxy"]["depends_on"]) == ["node1", "node2", "node3"]
PYTHON
is docker-compose.yml POSTGRES_PASSWORD=something <<'PYTHON'
assert services["node1"]["environment"]["TASKLEDGER_AUTH"] == "off", services["node1"]
PYTHON

if said=$("${compose[@]}" --env-file /dev/null --file docker-compose.yml config --quiet 2>&1); then
    echo "docker-compose.yml is taken without a password for Postgres" >&2
    exit 1
fi
if ! grep -q 'POSTGRES_PASSWORD.*choose one' <<<"$said"; then
    echo "docker-compose.yml without a password for Postgres: $said" >&2
    exit 1
fi
echo "docker-compose.yml asks for a password"
