//! Decides which function answers a request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use hyper::body::Incoming;
use hyper::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_TYPE, EXPECT, HeaderMap, HeaderName, HeaderValue,
    TRANSFER_ENCODING,
};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use percent_encoding::percent_decode_str;

use super::access::check_origin;
use super::backend::Verb;
use super::body::{RequestBody, Response, drain, refusal};
use super::connection::Unread;
use super::problem::Problem;
use super::shared::ServeState;
use super::{mailbox, message, objects};

/// The contract, as JSON. docs/serve/openapi.yaml has the same content.
const OPENAPI: &str = include_str!("../../docs/serve/openapi.json");

const OBJECTS: &str = "/v1/objects/";

const NO_SNIFF: HeaderName = HeaderName::from_static("x-content-type-options");

/// Returns the response to a request. If the body of a refused request was not read, the connection is closed after the
/// response.
pub(super) async fn answer(
    shared: &Arc<ServeState>,
    at: Option<&(String, SocketAddr)>,
    unread: &Unread,
    request: Request<Incoming>,
) -> Response {
    let begun = Instant::now();
    let (parts, mut body) = request.into_parts();
    let route = Route::of(parts.uri.path());
    let mut closes = false;
    let mut response = match respond(shared, at, (&route, &parts), &mut body).await {
        Ok(response) => response,
        Err(problem) => {
            // A client that waits for `100 Continue` has not sent the body, and may never send it.
            let waits = parts.headers.contains_key(EXPECT);
            if waits || !drain(&mut body).await {
                unread.set();
                closes = true;
            }
            refusal(&problem)
        }
    };
    let fields = response.headers_mut();
    fields.insert(NO_SNIFF, HeaderValue::from_static("nosniff"));
    fields
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    if closes || shared.is_stopping() {
        fields.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let status = response.status().as_u16();
    shared.counters.answered(route.name(), status);
    shared.backend.requested(&|| {
        let elapsed = begun.elapsed().as_millis();
        format!(
            "{} {}: {status}, {elapsed} ms",
            parts.method,
            parts.uri.path()
        )
    });
    response
}

enum Route<'p> {
    Health,
    Metrics,
    OpenApi,
    Message(Verb),
    Mailbox,
    Object(&'p str),
    Unknown,
}

impl<'p> Route<'p> {
    fn of(path: &'p str) -> Self {
        match path {
            "/healthz" => return Self::Health,
            "/metrics" => return Self::Metrics,
            "/v1/openapi.json" => return Self::OpenApi,
            "/v1/messages" => return Self::Mailbox,
            _ => {}
        }
        if let Some(name) = path.strip_prefix(OBJECTS) {
            return Self::Object(name);
        }
        let name = path.strip_prefix("/v1/").unwrap_or_default();
        let verb = Verb::ALL.into_iter().find(|verb| verb.as_str() == name);
        verb.map_or(Self::Unknown, Self::Message)
    }

    /// Returns the label of the route in the metrics. It is a constant: clients must not be able to create new labels.
    fn name(&self) -> &'static str {
        match self {
            Self::Health => "/healthz",
            Self::Metrics => "/metrics",
            Self::OpenApi => "/v1/openapi.json",
            Self::Message(verb) => match verb {
                Verb::Filter => "/v1/filter",
                Verb::Embed => "/v1/embed",
                Verb::Recover => "/v1/recover",
                Verb::Detach => "/v1/detach",
                Verb::Restore => "/v1/restore",
                Verb::Inspect => "/v1/inspect",
            },
            Self::Mailbox => "/v1/messages",
            Self::Object(_) => "/v1/objects",
            Self::Unknown => "other",
        }
    }
}

async fn respond(
    shared: &Arc<ServeState>,
    at: Option<&(String, SocketAddr)>,
    (route, parts): (&Route<'_>, &Parts),
    body: &mut Incoming,
) -> Result<Response, Problem> {
    if shared.is_stopping() {
        return Err(Problem::stopping());
    }
    if let Route::Health = route {
        check_read(parts)?;
        return Ok(json("{\"status\":\"ok\"}\n"));
    }
    check_origin(
        (&parts.uri, parts.version, &parts.headers),
        at,
        &shared.names,
    )?;
    if let Some(token) = &shared.token {
        token.check(&parts.headers)?;
    }
    match route {
        Route::Health | Route::Metrics | Route::OpenApi | Route::Object(_) => check_read(parts)?,
        Route::Message(_) | Route::Mailbox if parts.method != Method::POST => {
            return Err(Problem::method("POST"));
        }
        Route::Message(_) | Route::Mailbox => {
            check_expectation(&parts.headers)?;
            check_coding(&parts.headers)?;
        }
        Route::Unknown => {
            let detail = "this path does not exist; GET /v1/openapi.json lists the paths";
            return Err(Problem::new(StatusCode::NOT_FOUND, detail));
        }
    }
    let parameters = parameters(parts.uri.query().unwrap_or_default())?;
    if !matches!(route, Route::Message(_) | Route::Mailbox)
        && let Some((name, _)) = parameters.first()
    {
        let detail = format!("this path has no parameter '{name}'; leave it out");
        return Err(Problem::of_parameter(name, detail));
    }
    match route {
        Route::Message(verb) => message::answer(shared, (*verb, parameters), parts, body).await,
        Route::Mailbox => mailbox::answer(shared, parameters, parts, body).await,
        Route::Object(name) => objects::answer(shared, name, parts).await,
        Route::OpenApi => Ok(json(OPENAPI)),
        Route::Metrics | Route::Health | Route::Unknown => {
            let mut response = Response::new(RequestBody::of(shared.counters.text()));
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            let fields = response.headers_mut();
            fields.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            Ok(response)
        }
    }
}

fn json(text: &'static str) -> Response {
    let mut response = Response::new(RequestBody::of(text));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn check_read(parts: &Parts) -> Result<(), Problem> {
    if parts.method == Method::GET || parts.method == Method::HEAD {
        Ok(())
    } else {
        Err(Problem::method("GET, HEAD"))
    }
}

fn check_expectation(fields: &HeaderMap) -> Result<(), Problem> {
    let is_known = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if fields.get_all(EXPECT).iter().all(is_known) {
        return Ok(());
    }
    let detail =
        "the only supported value of the field Expect is 100-continue; leave the field out";
    Err(Problem::new(StatusCode::EXPECTATION_FAILED, detail))
}

/// Refuses a body with a further transfer coding, such as `gzip, chunked`: only `chunked` is removed before the content is
/// processed.
fn check_coding(fields: &HeaderMap) -> Result<(), Problem> {
    let mut codings = fields.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    if codings.next().is_none_or(is_chunked) && codings.next().is_none() {
        return Ok(());
    }
    let detail =
        "the only supported Transfer-Encoding is chunked; send the body without another one";
    Err(Problem::new(StatusCode::BAD_REQUEST, detail))
}

/// Decodes the query of a URL.
fn parameters(query: &str) -> Result<Vec<(String, String)>, Problem> {
    let decoded = |text: &str| {
        let text = text.replace('+', " ");
        let decoded = percent_decode_str(&text).decode_utf8().ok()?.into_owned();
        (!decoded.contains('\0')).then_some(decoded)
    };
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            decoded(name).zip(decoded(value)).ok_or_else(|| {
                let detail = "a query parameter is not UTF-8, or contains NUL; encode it again";
                Problem::of_parameter(name, detail)
            })
        })
        .collect()
}
