//! Opens a connection and logs in (RFC 3501 §6.2, RFC 4616, RFC 7628).
//!
//! A password is sent only over TLS, except to a server on the same computer if the user allowed that. A greeting with PREAUTH
//! before STARTTLS is rejected: the client could not start TLS any more, so an attacker could use this greeting to prevent
//! encryption.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::account::{Account, Mechanism, Security};
use super::command::ImapCommand;
use super::exchange::Exchange;
use super::failure::ImapFailure;
use super::response::Condition;
use super::wire::{Wire, trust};
use crate::mailbox::Stop;

/// Connects and logs in.
///
/// # Errors
/// [`ImapFailure::Connect`], [`ImapFailure::Tls`], [`ImapFailure::Login`], and any failure of the connection.
pub(super) fn logged_in(account: &Account, stop: &Stop) -> Result<Exchange, ImapFailure> {
    let mut wire = Wire::connect(&account.host, account.port, account.silence, stop)?;
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
        // The capabilities may change with the login, so they are requested again after it.
        exchange.doubt_capabilities();
        authenticate(&mut exchange, account)?;
    }
    exchange.ask_capabilities()?;
    if exchange.has("ID") {
        let name = format!(
            "ID (\"name\" \"embody\" \"version\" \"{}\")",
            env!("CARGO_PKG_VERSION")
        );
        // A refusal is ignored: some servers announce ID and refuse it, and the result of ID must not affect the
        // session (RFC 2971).
        match exchange.run(ImapCommand::new("ID", &name), &mut |_| Ok(false)) {
            Ok(_) | Err(ImapFailure::Refused { .. }) => {}
            Err(why) => return Err(why),
        }
    }
    Ok(exchange)
}

/// Reads the greeting. Returns whether the connection is already authenticated (PREAUTH).
fn greeting(exchange: &mut Exchange, account: &Account) -> Result<bool, ImapFailure> {
    let (condition, said) = exchange.greeting()?;
    match condition {
        Condition::Ok => Ok(false),
        Condition::PreAuth => Ok(true),
        Condition::Bye => Err(ImapFailure::TurnedAway(said)),
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
            "the server reported a login (PREAUTH) before the connection was encrypted, which may be an attack",
        ));
    }
    match exchange.run(ImapCommand::new("STARTTLS", "STARTTLS"), &mut |_| Ok(false)) {
        Err(ImapFailure::Refused { text, .. }) => Err(ImapFailure::NoStartTls {
            host: account.host.clone(),
            text,
        }),
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
    let is_token = matches!(
        account.mechanism,
        Mechanism::XOauth2 | Mechanism::OauthBearer
    );
    match first {
        // The token may have expired. If the user configured a command, it may print a new token.
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
    let takes_login = has("LOGIN") || !exchange.has("LOGINDISABLED");
    let done = match account.mechanism {
        Mechanism::Password | Mechanism::Plain if has("PLAIN") => {
            if secret.contains('\0') {
                return Err(refused("the password contains a NUL byte".to_owned()));
            }
            let plain = format!("\0{user}\0{secret}");
            match sasl(exchange, "PLAIN", &[&plain]) {
                // LOGIN is tried only if the server does not support PLAIN. After a wrong password, a second attempt could lock
                // the account.
                Err(why)
                    if account.mechanism == Mechanism::Password
                        && takes_login
                        && is_unsupported(&why) =>
                {
                    login(exchange, user, secret)
                }
                done => done,
            }
        }
        Mechanism::Password | Mechanism::Login if takes_login => login(exchange, user, secret),
        Mechanism::Password => {
            return Err(refused(
                "the server does not accept passwords; name a login method that it accepts in the URL, for example imaps://USER;AUTH=XOAUTH2@HOST/"
                    .to_owned(),
            ));
        }
        Mechanism::Plain => {
            return Err(refused(
                "the server does not offer the login method PLAIN".to_owned(),
            ));
        }
        Mechanism::Login => {
            return Err(refused(
                "the server does not offer the login method LOGIN".to_owned(),
            ));
        }
        Mechanism::XOauth2 if has("XOAUTH2") => sasl(
            exchange,
            "XOAUTH2",
            &[&format!("user={user}\x01auth=Bearer {secret}\x01\x01")],
        ),
        Mechanism::OauthBearer if has("OAUTHBEARER") => {
            let name = user.replace('=', "=3D").replace(',', "=2C");
            sasl(
                exchange,
                "OAUTHBEARER",
                &[&format!(
                    "n,a={name},\x01host={}\x01port={}\x01auth=Bearer {secret}\x01\x01",
                    account.host, account.port
                )],
            )
        }
        Mechanism::XOauth2 | Mechanism::OauthBearer => {
            return Err(refused(format!(
                "the server does not offer the login method {}",
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

/// Returns whether the server refused PLAIN because it does not support this mechanism. Any other refusal is
/// treated as a wrong password.
fn is_unsupported(why: &ImapFailure) -> bool {
    let ImapFailure::Refused {
        code, text, is_bad, ..
    } = why
    else {
        return false;
    };
    let text = text.to_ascii_lowercase();
    *is_bad || code.is_none() && (text.contains("support") || text.contains("mechanism"))
}

/// Logs in with a user name and a password in clear text, over TLS. Uses the command LOGIN, or AUTHENTICATE LOGIN if the server
/// disabled that command.
fn login(exchange: &mut Exchange, user: &str, secret: &str) -> Result<(), ImapFailure> {
    if exchange.has("AUTH=LOGIN") && exchange.has("LOGINDISABLED") {
        return sasl(exchange, "LOGIN", &[user, secret]);
    }
    let command = ImapCommand::new("LOGIN", "LOGIN ")
        .string(user)
        .text(" ")
        .string(secret);
    exchange.run(command, &mut |_| Ok(false)).map(|_| ())
}

/// Sends the messages of a SASL mechanism. The first message is part of the command if the server supports that (SASL-IR, RFC
/// 4959). The mechanism LOGIN has no initial message.
fn sasl(exchange: &mut Exchange, mechanism: &str, messages: &[&str]) -> Result<(), ImapFailure> {
    /// Maximum number of continuation requests after the last message, each of which is answered with an empty line. A server
    /// sends one to explain why it rejects a token.
    const MORE: usize = 2;
    let mut messages = messages.iter().map(|message| STANDARD.encode(message));
    let initial = if exchange.has("SASL-IR") && mechanism != "LOGIN" {
        messages.next()
    } else {
        None
    };
    let command = match &initial {
        Some(coded) => format!("AUTHENTICATE {mechanism} {coded}"),
        None => format!("AUTHENTICATE {mechanism}"),
    };
    let pending = exchange.send(ImapCommand::new("AUTHENTICATE", &command))?;
    let mut more = 0;
    while exchange.next_of(&pending)?.is_none() {
        let message = messages.next();
        more += usize::from(message.is_none());
        if more > MORE {
            return Err(ImapFailure::Protocol(
                "the server requested data too often during the login",
            ));
        }
        exchange.send_line(&message.unwrap_or_default())?;
    }
    Ok(())
}
