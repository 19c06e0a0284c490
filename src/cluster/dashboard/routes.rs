//! The routes of the dashboard.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Extension, FromRequest, Path, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response, Sse};
use axum::routing::{get, post};
use data_encoding::BASE64;
use serde::Deserialize;
use serde_json::json;
use tokio_stream::StreamExt;
use tonic::Status;

use super::authenticator::{Authenticator, Refusal, User};
use super::live::{self, Live, Source};
use super::model::{Look, hex, job_report, proof_report};
use super::replies::{Refused, file, json_of, refused, with_headers};
use crate::cluster::auth::{Action, Name, Token};
use crate::cluster::net::{KeyedQuota, Overflow, PeerAddress};
use crate::cluster::protocol::v1::operations_server::Operations;
use crate::cluster::protocol::{now_ms, v1};

/// The maximum number of open event streams.
const MOST_STREAMS: usize = 256;
/// The maximum number of event streams of a session.
const MOST_STREAMS_OF_A_SESSION: usize = 8;
/// The maximum number of certificate downloads, each of which is in memory until it is read; and of
/// those of one session.
const MOST_DOWNLOADS: usize = 16;
const MOST_DOWNLOADS_OF_A_SESSION: usize = 2;
/// The interval between two polls of the coordinator.
const EVERY: Duration = Duration::from_secs(1);
/// The time limit for receiving a request and starting the response.
const PATIENCE: Duration = Duration::from_secs(10);
/// The route of the event stream, which has no time limit.
const LIVE: &str = "/api/live";
/// The maximum size of a request's body: a token and a name.
const MOST_BODY_BYTES: usize = 4096;

/// A session: the holder's name and the end of its validity, which is 0 where no sign-in is needed.
type Session = (Name, u64);

/// The state shared by the routes.
pub(super) struct App<O> {
    pub(super) operations: O,
    pub(super) door: Authenticator,
    pub(super) live: Arc<Live>,
    streams: Arc<KeyedQuota<Session>>,
    downloads: Arc<KeyedQuota<Session>>,
}

impl<O: Operations> App<O> {
    pub(super) fn new(operations: O, door: Authenticator) -> Self {
        let quota = |most, of_a_session| {
            // Without sessions, visitors cannot be distinguished.
            let per_key = if door.has_sessions() { of_a_session } else { most };
            KeyedQuota::new(most, per_key, Overflow::Refuse)
        };
        let streams = quota(MOST_STREAMS, MOST_STREAMS_OF_A_SESSION);
        let downloads = quota(MOST_DOWNLOADS, MOST_DOWNLOADS_OF_A_SESSION);
        Self { operations, door, live: Arc::new(Live::new()), streams, downloads }
    }
}

impl<O: Operations> Source for App<O> {
    async fn look(&self, after: u64) -> Result<Look, Status> {
        let visitor = User::dashboard();
        let operations = &self.operations;
        let status =
            operations.status(asked(v1::StatusRequest::default(), &visitor)).await?.into_inner();
        let workers =
            operations.workers(asked(v1::WorkersRequest {}, &visitor)).await?.into_inner().workers;
        let events =
            operations.events(asked(v1::EventsRequest { after }, &visitor)).await?.into_inner();
        Ok(Look::new(status, workers, events.events))
    }

    async fn pause(&self) {
        tokio::time::sleep(EVERY).await;
    }
}

type Shared<O> = State<Arc<App<O>>>;

pub(super) fn router<O: Operations>(app: Arc<App<O>>) -> Router {
    const HTML: &str = "text/html; charset=utf-8";
    const SCRIPT: &str = "text/javascript; charset=utf-8";
    let sign_in_page = || async { file(HTML, include_str!("page/sign-in.html")) };
    let everybody = Router::new()
        .route("/sign-in", get(sign_in_page).post(sign_in::<O>))
        .route("/sign-in/known", get(is_known::<O>))
        .route("/sign-in.js", get(|| async { file(SCRIPT, include_str!("page/sign-in.js")) }))
        .route("/theme.js", get(|| async { file(SCRIPT, include_str!("page/theme.js")) }))
        .route(
            "/style.css",
            get(|| async { file("text/css; charset=utf-8", include_str!("page/style.css")) }),
        )
        .route("/icon.svg", get(|| async { file("image/svg+xml", include_str!("page/icon.svg")) }));
    let viewers = Router::new()
        .route("/", get(|| async { file(HTML, include_str!("page/index.html")) }))
        .route("/app.js", get(|| async { file(SCRIPT, include_str!("page/app.js")) }))
        .route("/pictures.js", get(|| async { file(SCRIPT, include_str!("page/pictures.js")) }))
        .route("/api/me", get(me))
        .route(LIVE, get(events::<O>))
        .route("/api/jobs/{job}", get(report::<O>))
        .route("/api/jobs/{job}/map/{version}", get(map::<O>))
        .route("/api/jobs/{job}/history/{after_ms}", get(history::<O>))
        .route("/api/jobs/{job}/certificate", get(certificate::<O>))
        .route("/api/jobs/{job}/{action}", post(steer::<O>))
        .route("/api/workers/{worker}/drain", post(drain::<O>))
        .route("/api/workers/{worker}/release", post(release::<O>))
        .route("/sign-out", post(sign_out::<O>))
        .fallback(|| async { refused(StatusCode::NOT_FOUND, "there is nothing here") })
        .layer(from_fn_with_state(Arc::clone(&app), known::<O>));
    everybody
        .merge(viewers)
        .layer(from_fn_with_state(Arc::clone(&app), civil::<O>))
        .layer(from_fn(in_time))
        .layer(DefaultBodyLimit::max(MOST_BODY_BYTES))
        .layer(from_fn(with_headers))
        .with_state(app)
}

/// Returns a request of the protocol on behalf of a user.
fn asked<T>(message: T, visitor: &User) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    request.extensions_mut().insert(visitor.vouched());
    request
}

/// Refuses requests for another host, and changes that are not JSON from this origin.
async fn civil<O: Operations>(State(app): Shared<O>, request: Request, next: Next) -> Response {
    if !app.door.knows_host(request.headers()) {
        let why = "this is no name of the coordinator; use its address, or one of nqueens coordinator init --name";
        return refused(StatusCode::MISDIRECTED_REQUEST, why);
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !app.door.is_same_origin(request.headers()) {
            return refused(StatusCode::FORBIDDEN, "the request does not come from this page");
        }
        if kind != Some("application/json") {
            return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send application/json");
        }
    }
    next.run(request).await
}

/// Ends requests that take too long, except for the event stream.
async fn in_time(request: Request, next: Next) -> Response {
    if request.uri().path() == LIVE {
        return next.run(request).await;
    }
    match tokio::time::timeout(PATIENCE, next.run(request)).await {
        Ok(response) => response,
        Err(_) => refused(StatusCode::REQUEST_TIMEOUT, "the request took too long"),
    }
}

/// Requires a session.
async fn known<O: Operations>(State(app): Shared<O>, mut request: Request, next: Next) -> Response {
    match app.door.visitor(request.headers(), now_ms()) {
        Ok(visitor) => {
            request.extensions_mut().insert(visitor);
            next.run(request).await
        }
        Err(Refusal::NoSession) if request.uri().path() == "/" => {
            Redirect::to("/sign-in").into_response()
        }
        Err(Refusal::NoSession) => refused(StatusCode::UNAUTHORIZED, "sign in first"),
        Err(Refusal::Unavailable) => refused(StatusCode::SERVICE_UNAVAILABLE, "try again later"),
    }
}

/// The body of a sign-in request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignIn {
    token: String,
    #[serde(default)]
    name: String,
}

async fn sign_in<O: Operations>(
    State(app): Shared<O>,
    Extension(PeerAddress(address)): Extension<PeerAddress>,
    request: Request,
) -> Response {
    if !app.door.may_try(address) {
        return refused(StatusCode::TOO_MANY_REQUESTS, "too many tries; wait a minute");
    }
    // Read the body only now, since it may arrive slowly.
    let body = match Bytes::from_request(request, &()).await {
        Ok(body) => body,
        Err(rejection) => return rejection.into_response(),
    };
    let Ok(SignIn { token, name }) = serde_json::from_slice(&body) else {
        return refused(StatusCode::BAD_REQUEST, "send a token");
    };
    let token: Token = match token.parse() {
        Ok(token) => token,
        Err(error) => return refused(StatusCode::UNAUTHORIZED, &format!("{error}")),
    };
    let name: Option<Name> = match name.trim() {
        "" => None,
        name => match name.parse() {
            Ok(name) => Some(name),
            Err(error) => return refused(StatusCode::BAD_REQUEST, &format!("{error}")),
        },
    };
    let buy = move || app.door.sign_in(&token, name.as_ref(), now_ms());
    match tokio::task::spawn_blocking(buy).await {
        Ok(Ok((cookie, visitor))) => {
            tracing::info!(name = %visitor.name, role = %visitor.role, %address, "somebody has signed in");
            (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response()
        }
        Ok(Err(crate::cluster::auth::EnrollError::Register(error))) => {
            tracing::error!("nobody can sign in: {error}");
            refused(StatusCode::SERVICE_UNAVAILABLE, "try again later")
        }
        Ok(Err(error)) => refused(StatusCode::UNAUTHORIZED, &error.to_string()),
        Err(_) => refused(StatusCode::SERVICE_UNAVAILABLE, "try again later"),
    }
}

async fn sign_out<O: Operations>(State(app): Shared<O>, headers: HeaderMap) -> Response {
    let end = move || app.door.sign_out(&headers, now_ms());
    match tokio::task::spawn_blocking(end).await {
        Ok(Ok(cookie)) => (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response(),
        _ => refused(StatusCode::SERVICE_UNAVAILABLE, "the session could not be ended; try again"),
    }
}

/// Returns whether the browser has a session. After a link from another site, the browser sends the
/// cookie only with the page's own requests.
async fn is_known<O: Operations>(State(app): Shared<O>, headers: HeaderMap) -> Response {
    json_of(&json!({ "known": app.door.visitor(&headers, now_ms()).is_ok() }))
}

async fn me(Extension(visitor): Extension<User>) -> Response {
    let operator = visitor.may(Action::Control);
    json_of(&json!({
        "name": visitor.name, "role": visitor.role, "may_control": operator, "until_ms": visitor.until_ms,
    }))
}

async fn events<O: Operations>(
    State(app): Shared<O>,
    Extension(visitor): Extension<User>,
    headers: HeaderMap,
) -> Response {
    let Some(open) = app.streams.acquire(session(&visitor)) else {
        return refused(StatusCode::TOO_MANY_REQUESTS, "too many are watching; try again later");
    };
    let live = Arc::clone(&app.live);
    // The guard is held as long as the stream.
    let may_look = move || {
        let _open = &open;
        app.door.visitor(&headers, now_ms()).is_ok_and(|visitor| visitor.may(Action::Watch))
    };
    Sse::new(live::events(live, may_look)).into_response()
}

/// Returns the session that a visitor has.
fn session(visitor: &User) -> Session {
    (visitor.name.clone(), visitor.until_ms.unwrap_or(0))
}

/// Checks that a text is the full name of a job.
fn job_name(text: &str) -> Result<String, Refused> {
    let good =
        text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if good {
        Ok(text.to_owned())
    } else {
        Err(Refused::new(StatusCode::NOT_FOUND, "this is no job's name"))
    }
}

async fn report<O: Operations>(
    State(app): Shared<O>,
    Extension(visitor): Extension<User>,
    Path(job): Path<String>,
) -> Result<Response, Refused> {
    let request = asked(v1::StatusRequest { job: job_name(&job)? }, &visitor);
    let mut status = app.operations.status(request).await?.into_inner();
    let report = match (status.jobs.pop(), status.proofs.pop()) {
        (Some(job), _) => job_report(job, status.now_ms),
        (None, Some(proof)) => proof_report(proof, status.now_ms),
        (None, None) => return Err(Refused::new(StatusCode::NOT_FOUND, "there is no such job")),
    };
    Ok(json_of(&report))
}

async fn map<O: Operations>(
    State(app): Shared<O>,
    Extension(visitor): Extension<User>,
    Path((job, version)): Path<(String, u64)>,
) -> Result<Response, Refused> {
    let request = asked(v1::UnitMapRequest { job: job_name(&job)?, version }, &visitor);
    let map = app.operations.unit_map(request).await?.into_inner();
    Ok(json_of(&json!({
        // A JavaScript number cannot represent every version.
        "version": map.version.to_string(),
        "units": map.units,
        "units_per_cell": map.units_per_cell,
        "done": BASE64.encode(&map.done),
        "verified": BASE64.encode(&map.verified),
        "leased": BASE64.encode(&map.leased),
        "poisoned": BASE64.encode(&map.poisoned),
    })))
}

async fn history<O: Operations>(
    State(app): Shared<O>,
    Extension(visitor): Extension<User>,
    Path((job, after_ms)): Path<(String, u64)>,
) -> Result<Response, Refused> {
    let request = asked(v1::HistoryRequest { job: job_name(&job)?, after_ms }, &visitor);
    let history = app.operations.history(request).await?.into_inner();
    let points = history.points.into_iter().map(|point| [point.at_ms, point.done, point.verified]);
    Ok(json_of(&json!({ "points": points.collect::<Vec<_>>() })))
}

/// Returns the certificate of a finished proof, as a file.
async fn certificate<O: Operations>(
    State(app): Shared<O>,
    Extension(visitor): Extension<User>,
    Path(job): Path<String>,
) -> Result<Response, Refused> {
    let job = job_name(&job)?;
    let Some(place) = app.downloads.acquire(session(&visitor)) else {
        return Err(Refused::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too much is on its way; try again later",
        ));
    };
    let request = v1::StatusRequest { job: job.clone() };
    let status = app.operations.status(asked(request, &visitor)).await?.into_inner();
    let Some(name) = status.proofs.first().and_then(file_name) else {
        return Err(Refused::new(StatusCode::NOT_FOUND, "a count has no certificate"));
    };
    let request = asked(v1::CertificateRequest { job }, &visitor);
    let chunks = app.operations.certificate(request).await?.into_inner();
    // The guard is held as long as the body.
    let bytes = chunks.map(move |chunk| {
        let _place = &place;
        chunk.map(|chunk| Bytes::from(chunk.bytes))
    });
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    Ok((headers, Body::from_stream(bytes)).into_response())
}

/// Returns the file name for a proof's certificate. It is derived from the statement only and
/// contains no user input.
fn file_name(proof: &v1::ProofStatus) -> Option<String> {
    use v1::proof_status::What;
    Some(match proof.what.as_ref()? {
        What::First(v1::First { n }) => format!("first-{n}.proof"),
        What::Beautiful(v1::Beautiful { n }) => format!("beautiful-{n}.proof"),
    })
}

/// Checks that the visitor may make changes; the coordinator checks it again.
fn operator(visitor: &User) -> Result<(), Refused> {
    if visitor.may(Action::Control) {
        Ok(())
    } else {
        Err(Refused::new(StatusCode::FORBIDDEN, "this takes an operator; you may look"))
    }
}

async fn steer<O: Operations>(
    State(app): Shared<O>,
    Extension(visitor): Extension<User>,
    Path((job, action)): Path<(String, String)>,
) -> Result<Response, Refused> {
    operator(&visitor)?;
    let state = match &action[..] {
        "pause" => v1::JobState::Paused,
        "resume" => v1::JobState::Running,
        "cancel" => v1::JobState::Cancelled,
        _ => return Err(Refused::new(StatusCode::NOT_FOUND, "there is nothing here")),
    };
    let request = v1::SetJobStateRequest { job: job_name(&job)?, state: state.into() };
    let changed = app.operations.set_job_state(asked(request, &visitor)).await?.into_inner();
    Ok(json_of(&json!({ "job": hex(&changed.job) })))
}

async fn drain<O: Operations>(
    State(app): Shared<O>,
    Extension(visitor): Extension<User>,
    Path(worker): Path<String>,
) -> Result<Response, Refused> {
    operator(&visitor)?;
    let request = asked(v1::DrainRequest { worker: worker.clone() }, &visitor);
    app.operations.drain(request).await?;
    Ok(json_of(&json!({ "worker": worker })))
}

async fn release<O: Operations>(
    State(app): Shared<O>,
    Extension(visitor): Extension<User>,
    Path(worker): Path<String>,
) -> Result<Response, Refused> {
    operator(&visitor)?;
    let request = asked(v1::ReleaseRequest { worker: worker.clone() }, &visitor);
    app.operations.release(request).await?;
    Ok(json_of(&json!({ "worker": worker })))
}
