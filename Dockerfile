# taskledger as an image: built from source; contains the program and what it needs, no shell.
FROM rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
# Commit and date of what is built, for `taskledger --version`.
ARG TASKLEDGER_BUILD=""
ENV TASKLEDGER_BUILD=$TASKLEDGER_BUILD
RUN cargo build --release --locked --bin taskledger && packaging/image-root.sh target/release/taskledger /image

FROM scratch
LABEL org.opencontainers.image.title="taskledger" \
      org.opencontainers.image.description="A server that runs trees of tasks, durably" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /image/root /
# /var/lib/taskledger. A volume there gets its owner.
COPY --from=build --chown=65532:65532 /image/data /var/lib
USER 65532:65532
ENV PATH=/usr/local/bin
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
