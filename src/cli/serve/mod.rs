//! `embody serve`: processes the mail of other programs over HTTP (docs/serve.md). The protocol is in `crate::serve`.
//!
//! The policy, the store and all paths are set when the service starts. `options` defines which parameters a request
//! may have.

mod answers;
mod expanders;
mod mailbox;
mod options;
mod store;
mod work;

use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use self::work::Service;
use super::args::{OutputVolume, ServeArgs};
use super::exit::{ProgramStatus, limits_on_files_are_failed_writes};
use super::say;
use crate::error::Error;
use crate::mailbox::{spool_in, sweep_temporary};
use crate::platform;
use crate::serve::{AccessToken, HostNames, Listener, ServeAddress, Server};

pub(super) type Failure = Box<dyn std::error::Error>;

pub(super) fn run(args: ServeArgs) -> Result<ProgramStatus, Failure> {
    if args.check {
        return check(&args.addresses()).map_err(cannot("check the service"));
    }
    limits_on_files_are_failed_writes();
    let read = args.token_file.as_deref().map(|path| {
        let what = format!("the token file {}", path.display());
        let content = fs::read(path).map_err(unreadable_token(&what))?;
        AccessToken::of_file(&content).map_err(|why| {
            let what = format!("--token-file {}: {why}", path.display());
            Failure::from(Error::Usage(what.into()))
        })
    });
    let token = read.transpose()?;
    if let Some(spool) = args.is_spool_given().filter(|spool| !spool.is_dir()) {
        let what = format!(
            "--spool {}: the directory does not exist; create it first",
            spool.display()
        );
        return Err(Error::Usage(what.into()).into());
    }
    sweep_temporary(&args.spool());
    spool_in(&args.spool());
    let (limits, names) = (args.limits(), HostNames::new(&args.allow_host_header));
    let (addresses, group) = (args.addresses(), args.socket_group);
    let volume = args.common.saying.volume();
    let (spool, store) = (args.spool(), args.common.policy.store());
    let store = store.map(|(store, _)| store);
    let service = Arc::new(Service::new(args)?);
    // Signal handlers are set before the first connection is accepted. Otherwise, a signal could end the process before
    // it has finished its requests.
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(cannot("watch signals"))?;
    let mut listeners = Vec::new();
    let mut places = Vec::new();
    for address in &addresses {
        let listener =
            Listener::bind(address, group).map_err(cannot(&format!("listen on {address}")))?;
        if token.is_none() && !listener.is_local() {
            let what = format!(
                "--listen {address}: other machines can reach this address, and could read and change mail; add --token-file FILE, or listen on 127.0.0.1"
            );
            return Err(Error::Usage(what.into()).into());
        }
        places.push(listener.address(address).to_string());
        listeners.push(listener);
    }
    let server = Server::start(service.clone(), listeners, (token, names), limits)
        .map_err(cannot("start"))?;
    let event = |line: &str| {
        if volume >= OutputVolume::Normal {
            say::tell(line);
        }
    };
    let version = env!("CARGO_PKG_VERSION");
    event(&format!(
        "version {version} listens on {}",
        places.join(", ")
    ));
    store::warnings(store.as_deref(), &spool)
        .iter()
        .for_each(|line| say::tell(line));
    let stopped_by = match signals.forever().next() {
        Some(SIGINT) => "SIGINT",
        _ => "SIGTERM",
    };
    // A second signal ends the process immediately.
    for signal in [SIGTERM, SIGINT] {
        let _ = signal_hook::flag::register_conditional_default(signal, Arc::new(true.into()));
    }
    match server.stop(service.deadline().min(LONGEST)) {
        0 => event(&format!("stopped by {stopped_by}")),
        open => say::tell(&format!(
            "stopped by {stopped_by}; {open} connections were still open"
        )),
    }
    service.finish();
    Ok(ProgramStatus::Success)
}

/// Health check: asks a running service whether it accepts requests.
fn check(addresses: &[ServeAddress]) -> io::Result<ProgramStatus> {
    for address in addresses {
        address.check(CHECKED)?;
    }
    Ok(ProgramStatus::Success)
}

/// Time limit for the response to a health check.
const CHECKED: Duration = Duration::from_secs(5);

/// Time limit for finishing requests after a signal, if `--deadline` sets none.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Converts an error about the token file. If permission is denied, the message contains the user id, because in
/// containers the file often belongs to another user.
fn unreadable_token(what: &str) -> impl FnOnce(io::Error) -> Failure {
    move |why| match why.kind() {
        io::ErrorKind::PermissionDenied => {
            let user = platform::user();
            format!("cannot read {what}: {why}; make it readable for the user id {user}").into()
        }
        _ => Error::cannot_read(what)(why).into(),
    }
}

fn cannot(what: &str) -> impl FnOnce(io::Error) -> Failure {
    move |source| io::Error::new(source.kind(), format!("cannot {what}: {source}")).into()
}
