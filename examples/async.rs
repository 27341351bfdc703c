//! Fills one mail in an asynchronous program: `cargo run --example async < mail.eml > whole.eml`
//!
//! The engine returns a list of the content that it needs. This program retrieves the content with tokio and hyper, and calls
//! the engine again with the content, until the engine needs no more content. Everything runs in one thread, except that tokio
//! looks up host names in other threads.
//!
//! `cargo run --example async 127.0.0.1/32 8080 < mail.eml` also allows requests to this network and to this port. Without
//! these arguments, the policy refuses private addresses, and all ports except the default ports of http and https.
//!
//! A mail is untrusted input, so the policy judges each step: the URL, the addresses of its host, each redirect, and the number
//! of bytes. If a retrieval fails, the program gives the engine the reason instead of the content. The engine then leaves the
//! part unchanged, and the report contains the reason.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use embody::engine::{Answers, Content, Context, Engine, EngineOutcome, Need, Needs};
use embody::policy::{Embed, Policy, Scheme, Target};
use embody::report::{self, Reason, Refusal};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response, Uri, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut policy = Policy::default().with_fetch([Scheme::Http, Scheme::Https]);
    policy = policy.with_embed(Embed {
        data: true,
        remote: true,
        ..Embed::default()
    });
    if let (Some(network), Some(port)) = (std::env::args().nth(1), std::env::args().nth(2)) {
        policy = policy.with_allow_nets([network.parse()?]);
        policy = policy.with_allow_ports([port.parse()?]);
    }
    let mut mail = Vec::new();
    std::io::stdin().read_to_end(&mut mail)?;

    let engine = Engine::new(policy);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(fill(&engine, &mail));
    // The program does not wait for the end of lookups of host names, because their results are not needed any more.
    runtime.shutdown_background();
    for row in &outcome.report.rows {
        if row.outcome == report::Outcome::Left {
            eprintln!("part {} was left unchanged: {}", row.part, row.detail);
        }
    }
    std::io::stdout().write_all(&outcome.output().into_bytes())?;
    Ok(())
}

/// Calls the engine until it needs no more content, and returns the outcome of the last call.
async fn fill<'m>(engine: &Engine, mail: &'m [u8]) -> EngineOutcome<'m> {
    let deadline = Instant::now() + engine.policy().limits().deadline;
    // The engine may work for 5 s after the deadline, so that it can insert content that arrived shortly before.
    let end = deadline + Duration::from_secs(5);
    let context =
        Context::new("standard input", SystemTime::now()).until(move || Instant::now() >= end);
    let client = Client::new(engine.policy().clone(), deadline);
    let mut answers = Answers::new();
    let mut work = 0;
    loop {
        let mut outcome = engine.run(mail, &context, answers);
        let Some(needs) = outcome.needs.take() else {
            return outcome;
        };
        answers = outcome.answers;
        // Each call of the engine processes the message again, so the limit applies to the work of all calls together.
        work += outcome.work;
        match engine.judge_rounds(mail, work) {
            Ok(()) => client.retrieve(needs, &mut answers).await,
            Err(refusal) => {
                for need in needs.batch {
                    answers.insert(need, Err(refusal.clone()));
                }
            }
        }
    }
}

/// A client that retrieves the content for one mail. Each task uses its own clone.
#[derive(Clone)]
struct Client {
    policy: Arc<Policy>,
    tls: TlsConnector,
    /// Time at which all retrievals for the mail must be complete.
    deadline: Instant,
}

impl Client {
    fn new(policy: Policy, deadline: Instant) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let config =
            ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .expect("ring supports the default versions of TLS")
                .with_root_certificates(roots)
                .with_no_client_auth();
        Self {
            policy: Arc::new(policy),
            tls: Arc::new(config).into(),
            deadline,
        }
    }

    /// Retrieves the content for the needs that one call of the engine returned, and adds it to the answers. The needs do not
    /// depend on each other, so several retrievals run at the same time.
    async fn retrieve(&self, needs: Needs, answers: &mut Answers) {
        let mut found = vec![None; needs.batch.len()];
        let mut waiting = needs.batch.iter().cloned().enumerate();
        let mut running = JoinSet::new();
        let mut received = 0;
        loop {
            while running.len() < self.policy.limits().in_flight.max(1) && received <= needs.room {
                let Some((number, need)) = waiting.next() else {
                    break;
                };
                let client = self.clone();
                running.spawn(async move { (number, client.answer(&need).await) });
            }
            let Some(ended) = running.join_next().await else {
                break;
            };
            let (number, answer) = ended.expect("no retrieval panics");
            received += answer.as_ref().map_or(0, length);
            found[number] = Some(answer);
        }
        // The order in which the retrievals ended must not change the result, so the lengths are added in document order. The
        // first content that exceeds the limit (`Needs::room`) is refused, and so is all later content.
        let mut room = Some(needs.room);
        for (need, answer) in needs.batch.into_iter().zip(found) {
            let size = answer.iter().flatten().map(length).sum();
            room = room.and_then(|room| room.checked_sub(size));
            let answer = answer.filter(|_| room.is_some());
            let answer = answer.unwrap_or_else(|| Err(no_room()));
            answers.insert(need, answer.map(Into::into));
        }
    }

    /// Returns the content for one need. The retrieval may take until the time limit of the policy or the deadline of the mail,
    /// whichever is earlier.
    async fn answer(&self, need: &Need) -> Result<Content, Refusal> {
        let end = self
            .deadline
            .min(Instant::now() + self.policy.limits().timeout);
        match tokio::time::timeout_at(end.into(), self.follow(need)).await {
            Ok(answer) => answer,
            Err(_) => Err(Refusal::temporary(
                Reason::Timeout,
                "the retrieval took too long",
            )),
        }
    }

    /// Requests the URL of a need, follows redirects, and returns the content.
    async fn follow(&self, need: &Need) -> Result<Content, Refusal> {
        // With the policy of this example, each need is the content of a URL.
        let mut target = self.policy.judge_url(need.url().unwrap_or_default())?;
        for _ in 0..=self.policy.limits().redirects {
            let response = self
                .request(&target, need.accept().unwrap_or("*/*"))
                .await?;
            match response.status().as_u16() {
                200 => return self.content(&target, response).await,
                301 | 302 | 303 | 307 | 308 => {
                    let location = text(&response, header::LOCATION).unwrap_or_default();
                    target = self.policy.judge_redirect(&target, &location)?;
                }
                status => return Err(of_status(status)),
            }
        }
        let why = "the server sent too many redirects";
        Err(Refusal::lasting(Reason::TooManyRedirects, why))
    }

    /// Opens a connection, sends one request, and returns the response as soon as its header has arrived.
    async fn request(&self, target: &Target, accept: &str) -> Result<Response<Incoming>, Refusal> {
        // This URL contains no fragment, user name or password, so they are not sent.
        let url = target.request_url();
        let uri: Uri = url.parse().map_err(|_| bad_url())?;
        let host = uri.host().ok_or_else(bad_url)?;
        let port = target.port().ok_or_else(bad_url)?;
        let stream = self.connect(host.trim_matches(['[', ']']), port).await?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let request = Request::get(path)
            .header(header::HOST, authority)
            .header(header::ACCEPT, accept)
            .header(header::ACCEPT_ENCODING, "identity")
            .body(Empty::new())
            .map_err(|_| bad_url())?;
        if target.scheme() == Scheme::Http {
            return exchange(stream, request).await;
        }
        let name = host.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(name).map_err(|_| bad_url())?;
        let stream = self.tls.connect(name, stream).await;
        let stream = stream.map_err(|why| Refusal::lasting(Reason::TlsFailed, why.to_string()))?;
        exchange(stream, request).await
    }

    /// Connects to a host. The policy judges all addresses of the host before the first connection, because the sender of a mail
    /// can give a host both a public and a private address, to make this program connect to the private address.
    async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, Refusal> {
        let found = tokio::net::lookup_host((host, port)).await;
        let not_found =
            |why: std::io::Error| Refusal::temporary(Reason::NameServerFailed, why.to_string());
        let addresses: Vec<SocketAddr> = found.map_err(not_found)?.collect();
        for address in &addresses {
            self.policy.judge_address(address.ip())?;
        }
        TcpStream::connect(&*addresses).await.map_err(failed)
    }

    /// Returns the complete content of a response. Returns a refusal as soon as the content is larger than the policy allows.
    async fn content(
        &self,
        target: &Target,
        response: Response<Incoming>,
    ) -> Result<Content, Refusal> {
        let headers = response.headers();
        // Without both fields, the content ends when the connection ends, so a lost connection could cut the content unnoticed.
        if !headers.contains_key(header::CONTENT_LENGTH)
            && !headers.contains_key(header::TRANSFER_ENCODING)
        {
            let why = "the response does not declare the length of its content";
            return Err(Refusal::temporary(Reason::IncompleteBody, why));
        }
        if headers.contains_key(header::CONTENT_ENCODING) {
            let why = "the server sent compressed content, although the request did not allow it";
            return Err(Refusal::lasting(Reason::BadResponse, why));
        }
        let media_type = text(&response, header::CONTENT_TYPE);
        let mut body = response.into_body();
        self.policy
            .judge_size(hyper::body::Body::size_hint(&body).lower())?;
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame.map_err(failed)?.into_data() {
                bytes.extend_from_slice(&data);
                self.policy.judge_size(bytes.len() as u64)?;
            }
        }
        Ok(Content::new(target.public_url(), media_type, bytes))
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Empty<Bytes>>,
) -> Result<Response<Incoming>, Refusal> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(failed)?;
    // This task reads from the connection. It ends after the response, or when the response is dropped.
    tokio::spawn(connection);
    sender.send_request(request).await.map_err(failed)
}

fn length(content: &Content) -> u64 {
    content.bytes().len() as u64
}

fn text(response: &Response<Incoming>, name: header::HeaderName) -> Option<String> {
    let value = response.headers().get(name)?.to_str().ok()?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}

fn of_status(status: u16) -> Refusal {
    let detail = format!("the server returned status {status}");
    match status {
        408 | 429 | 500..=599 => Refusal::temporary(Reason::HttpStatus, detail),
        _ => Refusal::lasting(Reason::HttpStatus, detail),
    }
}

fn no_room() -> Refusal {
    let why = "the message would grow by more than the policy allows";
    Refusal::lasting(Reason::GrowthLimit, why)
}

fn bad_url() -> Refusal {
    Refusal::lasting(Reason::BadUrl, "the URL cannot be requested")
}

fn failed(why: impl std::error::Error) -> Refusal {
    Refusal::temporary(Reason::ConnectionFailed, why.to_string())
}
