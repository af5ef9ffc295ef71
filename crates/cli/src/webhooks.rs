//! `taskledger webhooks`: the endpoints that a server tells what happens.
//!
//! Owns: the calls `webhooks.*`, one command each, and how answers are shown. Secrets are read from files,
//! never from arguments, which others on the machine can see.

mod create;
pub(super) mod deliveries;
mod headers;
pub(super) mod list;
mod one;
mod options;
mod resend;
mod rotate;
mod secret;
mod update;
mod verify;

use super::local::Either;
use super::nothing::shown_or_said;
use super::output::{Output, members};
use super::request::{Params, Request};
use super::when::When;
use super::{Api, CliError, Remote, ids};
use clap::Subcommand;
use serde_json::Value;
use std::process::ExitCode;

/// Send notices to other programs: webhooks, their secrets and deliveries
#[derive(Debug, clap::Args)]
// `--header` of `create` and `update` is sent by the server, to the receiver.
#[command(mut_arg("access_header", |header| header.long("request-header")))]
pub struct Args<Local: Subcommand> {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Either<Command, Local>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(Box<create::Args>),
    /// Show a webhook
    Get(one::Args),
    List(list::Args),
    Update(Box<update::Args>),
    /// Delete a webhook; its waiting deliveries are cancelled
    Delete(one::Args),
    RotateSecret(rotate::Args),
    /// Show the secrets of a webhook; the server logs who asked
    Secret(one::Args),
    /// Send a `webhook.test` message once, and show the result; exit code 1 unless it was delivered
    Test(one::Args),
    Deliveries(deliveries::Args),
    Redeliver(resend::Redeliver),
    Recover(resend::Recover),
    /// Enable a webhook that was disabled
    Enable(one::Args),
    /// Disable a webhook; its messages wait
    Disable(one::Args),
    Verify(verify::Args),
}

/// What a command needs.
enum Work {
    /// A call to a server.
    Call(Request),
    /// A call whose command fails unless the message has arrived.
    Test(Request),
    Verify(verify::Args),
}

impl Command {
    fn work(self) -> Result<Work, CliError> {
        let request = match self {
            Self::Create(args) => args.request()?,
            Self::Get(args) => args.request("webhooks.get", one::show),
            Self::List(args) => args.request(),
            Self::Update(args) => args.request()?,
            Self::Delete(args) => args.request("webhooks.delete", one::deleted),
            Self::RotateSecret(args) => args.request()?,
            Self::Secret(args) => args.request("webhooks.secret", one::secret),
            Self::Test(args) => {
                return Ok(Work::Test(args.request("webhooks.test", one::tested)));
            }
            Self::Deliveries(args) => args.request(),
            Self::Redeliver(args) => args.request(),
            Self::Recover(args) => args.request(),
            Self::Enable(args) => args.request("webhooks.enable", one::show),
            Self::Disable(args) => args.request("webhooks.disable", one::show),
            Self::Verify(args) => return Ok(Work::Verify(args)),
        };
        Ok(Work::Call(request))
    }
}

/// Does what was asked and shows the result. `locally` does what needs no server.
pub async fn webhooks<Local: Subcommand>(
    args: Args<Local>,
    when: &When,
    out: &mut Output,
    locally: impl AsyncFnOnce(Local, &mut Output) -> Result<ExitCode, CliError>,
) -> Result<ExitCode, CliError> {
    match args.command {
        Either::Remote(command) => remotely(command, &args.remote, when, out).await,
        Either::Local(command) => locally(command, out).await,
    }
}

async fn remotely(
    command: Command,
    remote: &Remote,
    when: &When,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    let (mut request, ended) = match command.work()? {
        Work::Call(request) => (request, (|_| ExitCode::SUCCESS) as fn(&Value) -> ExitCode),
        Work::Test(request) => (request, one::exit_of_test as _),
        Work::Verify(args) => return verify::verify(&args, out),
    };
    let api = remote.api()?;
    out.calls_with(api.options().to_owned());
    let asked = request.params.clone();
    when.resolve_in(&mut request.params, &["since", "until"])?;
    ids::resolve_in(&api, &mut request.params).await?;
    ids::resolve_webhook(&api, &mut request.params).await?;
    let meant = request.params.clone();
    let result = api.call(request.method, request.params).await?;
    shown_or_said(request.method, (&asked, &meant), &result, request.show, out)?;
    Ok(ended(&result))
}

#[cfg(test)]
mod tests;
