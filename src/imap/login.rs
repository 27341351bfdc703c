//! From a connection to one that is logged in (RFC 3501 §6.2, RFC 4616, RFC 7628).
//!
//! A password goes over nothing but TLS, unless the server is on this machine and that was asked for. A server that says
//! it knows us already before STARTTLS is refused: it could be anybody between.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::account::{Account, Mechanism, Security};
use super::command::ImapCommand;
use super::exchange::Exchange;
use super::failure::ImapFailure;
use super::response::Condition;
use super::wire::{Traffic, Wire, trust};
use crate::mailbox::Stop;

/// Connects and logs in.
///
/// # Errors
/// [`ImapFailure::Connect`], [`ImapFailure::Tls`], [`ImapFailure::Login`], and whatever ends a connection.
pub(super) fn logged_in(
    account: &Account,
    traffic: &Arc<Traffic>,
    stop: &Stop,
) -> Result<Exchange, ImapFailure> {
    let mut wire = Wire::connect(&account.host, account.port, account.silence, traffic, stop)?;
    if account.security == Security::Tls {
        wire.start_tls(&account.host, &trust(account.ca_file.as_deref())?)?;
    }
    let mut exchange = Exchange::over(wire);
    let is_known = greeting(&mut exchange, account)?;
    if account.security == Security::StartTls {
        start_tls(&mut exchange, account, is_known)?;
    }
    if !is_known {
        exchange.ask_capabilities()?;
        // What a server can do may be more for those it knows.
        exchange.doubt_capabilities();
        authenticate(&mut exchange, account)?;
    }
    exchange.ask_capabilities()?;
    if exchange.has("ID") {
        let name = format!(
            "ID (\"name\" \"embody\" \"version\" \"{}\")",
            env!("CARGO_PKG_VERSION")
        );
        exchange.run(ImapCommand::new("ID", &name), &mut |_| Ok(false))?;
    }
    Ok(exchange)
}

/// Whether the server knows us already.
fn greeting(exchange: &mut Exchange, account: &Account) -> Result<bool, ImapFailure> {
    let (condition, said) = exchange.greeting()?;
    match condition {
        Condition::Ok => Ok(false),
        Condition::PreAuth => Ok(true),
        Condition::Bye => Err(ImapFailure::Bye(said)),
        Condition::No | Condition::Bad => Err(ImapFailure::Login {
            host: account.host.clone(),
            why: said,
        }),
    }
}

fn start_tls(
    exchange: &mut Exchange,
    account: &Account,
    is_known: bool,
) -> Result<(), ImapFailure> {
    let refused = |why: &str| ImapFailure::Tls {
        host: account.host.clone(),
        why: why.to_owned(),
    };
    if is_known {
        return Err(refused(
            "it says that it knows us before TLS, which nobody can believe",
        ));
    }
    match exchange.run(ImapCommand::new("STARTTLS", "STARTTLS"), &mut |_| Ok(false)) {
        Err(ImapFailure::Refused { text, .. }) => Err(refused(&format!(
            "it has no STARTTLS ({text}); imaps: connects by TLS from the start"
        ))),
        done => {
            done?;
            exchange.start_tls(&account.host, &trust(account.ca_file.as_deref())?)
        }
    }
}

fn authenticate(exchange: &mut Exchange, account: &Account) -> Result<(), ImapFailure> {
    let whose = account.whose();
    let secret = account.secret.reveal(&whose)?;
    let first = attempt(exchange, account, &secret);
    let is_token = account.mechanism != Mechanism::Password;
    match first {
        // It expired, perhaps: a command gives another one.
        Err(ImapFailure::Login { .. }) if is_token && account.secret.renew(&secret, &whose)? => {
            attempt(exchange, account, &account.secret.reveal(&whose)?)
        }
        done => done,
    }
}

fn attempt(exchange: &mut Exchange, account: &Account, secret: &str) -> Result<(), ImapFailure> {
    let refused = |why: String| ImapFailure::Login {
        host: account.host.clone(),
        why,
    };
    let user = &account.user;
    let has = |mechanism: &str| exchange.has(&format!("AUTH={mechanism}"));
    let done = match account.mechanism {
        Mechanism::Password if has("PLAIN") => {
            if secret.contains('\0') {
                return Err(refused("the password has a NUL in it".to_owned()));
            }
            sasl(exchange, "PLAIN", &format!("\0{user}\0{secret}"))
        }
        Mechanism::Password if !exchange.has("LOGINDISABLED") => {
            let command = ImapCommand::new("LOGIN", "LOGIN ")
                .string(user)
                .text(" ")
                .string(secret);
            exchange.run(command, &mut |_| Ok(false)).map(|_| ())
        }
        Mechanism::Password => {
            return Err(refused(
                "it takes no password; name what it takes: imaps://USER;AUTH=XOAUTH2@HOST/"
                    .to_owned(),
            ));
        }
        Mechanism::XOauth2 if has("XOAUTH2") => sasl(
            exchange,
            "XOAUTH2",
            &format!("user={user}\x01auth=Bearer {secret}\x01\x01"),
        ),
        Mechanism::OauthBearer if has("OAUTHBEARER") => {
            let name = user.replace('=', "=3D").replace(',', "=2C");
            sasl(
                exchange,
                "OAUTHBEARER",
                &format!(
                    "n,a={name},\x01host={}\x01port={}\x01auth=Bearer {secret}\x01\x01",
                    account.host, account.port
                ),
            )
        }
        Mechanism::XOauth2 | Mechanism::OauthBearer => {
            return Err(refused(format!(
                "it does not offer {}",
                match account.mechanism {
                    Mechanism::XOauth2 => "XOAUTH2",
                    _ => "OAUTHBEARER",
                }
            )));
        }
    };
    match done {
        Err(ImapFailure::Refused { code, text, .. })
            if !matches!(code.as_deref(), Some("UNAVAILABLE" | "INUSE" | "LIMIT")) =>
        {
            Err(refused(text))
        }
        done => done,
    }
}

/// One message to the server, with the command where it takes it so (SASL-IR, RFC 4959).
fn sasl(exchange: &mut Exchange, mechanism: &str, message: &str) -> Result<(), ImapFailure> {
    let coded = STANDARD.encode(message);
    let is_initial = exchange.has("SASL-IR");
    let command = match is_initial {
        true => format!("AUTHENTICATE {mechanism} {coded}"),
        false => format!("AUTHENTICATE {mechanism}"),
    };
    let pending = exchange.send(ImapCommand::new("AUTHENTICATE", &command))?;
    let mut next = match is_initial {
        true => None,
        false => Some(coded),
    };
    loop {
        // What comes behind our message says why it was refused, and wants an empty line.
        match exchange.next_of(&pending)? {
            None => exchange.send_line(&next.take().unwrap_or_default())?,
            Some(_) => return Ok(()),
        }
    }
}
