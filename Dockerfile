# taskledger as an image: built from source, run as a user of its own.
FROM rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
RUN cargo build --release --locked && strip target/release/taskledger

FROM debian:bookworm-slim
# Certificates of public authorities, for databases behind TLS.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --create-home --home-dir /var/lib/taskledger taskledger
COPY --from=build /source/target/release/taskledger /usr/local/bin/taskledger
USER taskledger
WORKDIR /var/lib/taskledger
# The data folder, unless there is a database: ./taskledger-data.
# Other machines can reach this address, so callers need a token: the first start writes one to
# taskledger-data/admin.token, with a database it comes from TASKLEDGER_ADMIN_TOKEN_FILE or `taskledger tokens create`.
# TASKLEDGER_AUTH=off lets everybody in.
ENV TASKLEDGER_LISTEN=0.0.0.0:8000
EXPOSE 8000
# SIGTERM answers the calls that are under way and hands the work over to the other nodes.
STOPSIGNAL SIGTERM
ENTRYPOINT ["taskledger"]
CMD ["serve"]
