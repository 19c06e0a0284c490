//! The routes of the dashboard.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Extension, FromRequest, Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response, Sse};
use axum::routing::{get, post};
use data_encoding::BASE64;
use serde::Deserialize;
use serde_json::json;
use tokio_stream::StreamExt;
use tonic::Status;
use tonic::service::Routes;

use super::authenticator::{Authenticator, Refusal, User};
use super::live::{self, Live, Source};
use super::model::{Update, job_report, proof_report};
use super::play::PlayFiles;
use crate::cluster::auth::{Action, Name, Token};
use crate::cluster::net::replies::{
    ErrorResponse, error_response, file, json_response, with_headers, with_time_limit,
};
use crate::cluster::net::{KeyedQuota, Overflow, PeerAddress, check_change};
use crate::cluster::protocol::v1::operations_client::OperationsClient;
use crate::cluster::protocol::{now_ms, v1};
use crate::report::job_name;

/// The maximum number of open event streams.
const MOST_STREAMS: usize = 256;
/// The maximum number of event streams of a session.
const MOST_STREAMS_OF_A_SESSION: usize = 8;
/// The maximum number of certificate downloads, each of which is in memory until it is read; and of
/// those of one session.
const MOST_DOWNLOADS: usize = 16;
const MOST_DOWNLOADS_OF_A_SESSION: usize = 2;
/// The interval between two polls of the coordinator.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The route of the event stream, which has no time limit.
const LIVE: &str = "/api/live";
/// The maximum size of a request's body: a token and a name.
const MOST_BODY_BYTES: usize = 4096;

/// A session: the holder's name and the end of its validity, which is 0 where no sign-in is needed.
type Session = (Name, u64);

/// The state shared by the routes.
pub(super) struct App {
    operations: OperationsClient<Routes>,
    authenticator: Authenticator,
    pub(super) live: Arc<Live>,
    streams: Arc<KeyedQuota<Session>>,
    downloads: Arc<KeyedQuota<Session>>,
}

impl App {
    pub(super) fn new(operations: OperationsClient<Routes>, authenticator: Authenticator) -> Self {
        let quota = |most, of_a_session| {
            // Without sessions, users cannot be distinguished.
            let per_key = if authenticator.has_sessions() { of_a_session } else { most };
            KeyedQuota::new(most, per_key, Overflow::Refuse)
        };
        let streams = quota(MOST_STREAMS, MOST_STREAMS_OF_A_SESSION);
        let downloads = quota(MOST_DOWNLOADS, MOST_DOWNLOADS_OF_A_SESSION);
        Self { operations, authenticator, live: Arc::new(Live::new()), streams, downloads }
    }

    /// Returns a client for a call.
    fn operations(&self) -> OperationsClient<Routes> {
        self.operations.clone()
    }
}

impl Source for App {
    async fn poll(&self, after: u64) -> Result<Update, Status> {
        let user = User::dashboard();
        let mut operations = self.operations();
        let status =
            operations.status(request_for(v1::StatusRequest::default(), &user)).await?.into_inner();
        let workers =
            operations.workers(request_for(v1::WorkersRequest {}, &user)).await?.into_inner();
        let events =
            operations.events(request_for(v1::EventsRequest { after }, &user)).await?.into_inner();
        Ok(Update::new(status, workers, events.events))
    }

    async fn wait(&self) {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

type Shared = State<Arc<App>>;

/// Returns the routes, and those of the page to play with if its files are given.
pub(super) fn router(app: Arc<App>, play: Option<PlayFiles>) -> Router {
    const HTML: &str = "text/html; charset=utf-8";
    const SCRIPT: &str = "text/javascript; charset=utf-8";
    let has_play = play.is_some();
    let sign_in_page = || async { file(HTML, include_str!("page/sign-in.html")) };
    let public = Router::new()
        .route("/sign-in", get(sign_in_page).post(sign_in))
        .route("/sign-in/known", get(has_session))
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
        .route("/elements.js", get(|| async { file(SCRIPT, include_str!("page/elements.js")) }))
        .route("/format.js", get(|| async { file(SCRIPT, include_str!("page/format.js")) }))
        .route("/pictures.js", get(|| async { file(SCRIPT, include_str!("page/pictures.js")) }))
        .route("/api/me", get(move |user| me(user, has_play)))
        .route(LIVE, get(events))
        .route("/api/jobs/{job}", get(report))
        .route("/api/jobs/{job}/map/{version}", get(map))
        .route("/api/jobs/{job}/history/{after_ms}", get(history))
        .route("/api/jobs/{job}/certificate", get(certificate))
        .route("/api/jobs/{job}/{action}", post(change_job_state))
        .route("/api/workers/{worker}/drain", post(drain))
        .route("/api/workers/{worker}/release", post(release))
        .route("/sign-out", post(sign_out))
        .fallback(|| async { error_response(StatusCode::NOT_FOUND, "not found") })
        .layer(from_fn_with_state(Arc::clone(&app), require_session));
    public
        .merge(play.map_or_else(Router::new, PlayFiles::router))
        .merge(viewers)
        .layer(from_fn_with_state(Arc::clone(&app), check_origin))
        .layer(from_fn(limit_time))
        .layer(DefaultBodyLimit::max(MOST_BODY_BYTES))
        .layer(from_fn(with_headers))
        .with_state(app)
}

/// Returns a request of the protocol on behalf of a user.
fn request_for<T>(message: T, user: &User) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    request.extensions_mut().insert(user.caller());
    request
}

/// Refuses requests for another host, and changes that are not JSON from this origin.
async fn check_origin(
    State(app): Shared,
    request: Request,
    next: Next,
) -> Result<Response, ErrorResponse> {
    if !app.authenticator.knows_host(request.headers()) {
        let why = "the host is not a name of the coordinator; use its address or a name given to nqueens coordinator init --name";
        return Err(ErrorResponse::new(StatusCode::MISDIRECTED_REQUEST, why));
    }
    check_change(&request, app.authenticator.scheme())?;
    Ok(next.run(request).await)
}

/// Ends requests that take too long, except for the event stream.
async fn limit_time(request: Request, next: Next) -> Response {
    match request.uri().path() {
        LIVE => next.run(request).await,
        _ => with_time_limit(request, next).await,
    }
}

/// Requires a session.
async fn require_session(State(app): Shared, mut request: Request, next: Next) -> Response {
    match app.authenticator.user(request.headers(), now_ms()) {
        Ok(user) => {
            request.extensions_mut().insert(user);
            next.run(request).await
        }
        Err(Refusal::NoSession) if request.uri().path() == "/" => {
            Redirect::to("/sign-in").into_response()
        }
        Err(Refusal::NoSession) => error_response(StatusCode::UNAUTHORIZED, "sign in first"),
        Err(Refusal::Unavailable) => {
            error_response(StatusCode::SERVICE_UNAVAILABLE, "try again later")
        }
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

async fn sign_in(
    State(app): Shared,
    Extension(PeerAddress(address)): Extension<PeerAddress>,
    request: Request,
) -> Response {
    if !app.authenticator.may_attempt(address) {
        return error_response(StatusCode::TOO_MANY_REQUESTS, "too many attempts; wait a minute");
    }
    // Read the body only now, since it may arrive slowly.
    let body = match Bytes::from_request(request, &()).await {
        Ok(body) => body,
        Err(rejection) => return rejection.into_response(),
    };
    let Ok(SignIn { token, name }) = serde_json::from_slice(&body) else {
        return error_response(
            StatusCode::BAD_REQUEST,
            "the body must be a JSON object with a token",
        );
    };
    let token: Token = match token.parse() {
        Ok(token) => token,
        Err(error) => return error_response(StatusCode::UNAUTHORIZED, &format!("{error}")),
    };
    let name: Option<Name> = match name.trim() {
        "" => None,
        name => match name.parse() {
            Ok(name) => Some(name),
            Err(error) => return error_response(StatusCode::BAD_REQUEST, &format!("{error}")),
        },
    };
    let redeem = move || app.authenticator.sign_in(&token, name.as_ref(), now_ms());
    match tokio::task::spawn_blocking(redeem).await {
        Ok(Ok((cookie, user))) => {
            tracing::info!(name = %user.name, role = %user.role, %address, "a user signed in");
            (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response()
        }
        Ok(Err(crate::cluster::auth::EnrollError::Registry(error))) => {
            tracing::error!("every sign-in is refused: {error}");
            error_response(StatusCode::SERVICE_UNAVAILABLE, "try again later")
        }
        Ok(Err(error)) => error_response(StatusCode::UNAUTHORIZED, &error.to_string()),
        Err(_) => error_response(StatusCode::SERVICE_UNAVAILABLE, "try again later"),
    }
}

async fn sign_out(State(app): Shared, headers: HeaderMap) -> Response {
    let end = move || app.authenticator.sign_out(&headers, now_ms());
    match tokio::task::spawn_blocking(end).await {
        Ok(Ok(cookie)) => (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response(),
        _ => error_response(
            StatusCode::SERVICE_UNAVAILABLE,
            "the session could not be ended; try again",
        ),
    }
}

/// Returns whether the browser has a session. After a link from another site, the browser sends the
/// cookie only with the page's own requests.
async fn has_session(State(app): Shared, headers: HeaderMap) -> Response {
    json_response(&json!({ "known": app.authenticator.user(&headers, now_ms()).is_ok() }))
}

/// Returns the user, and whether there is a page to play with.
async fn me(Extension(user): Extension<User>, has_play: bool) -> Response {
    let operator = user.may(Action::Control);
    json_response(&json!({
        "name": user.name, "role": user.role, "may_control": operator, "until_ms": user.until_ms,
        "has_play": has_play,
    }))
}

async fn events(
    State(app): Shared,
    Extension(user): Extension<User>,
    headers: HeaderMap,
) -> Response {
    let Some(guard) = app.streams.acquire(session(&user)) else {
        return error_response(
            StatusCode::TOO_MANY_REQUESTS,
            "too many event streams are open; try again later",
        );
    };
    let live = Arc::clone(&app.live);
    // The guard is held as long as the stream.
    let is_authorized = move || {
        let _guard = &guard;
        app.authenticator.user(&headers, now_ms()).is_ok_and(|user| user.may(Action::Watch))
    };
    Sse::new(live::events(live, is_authorized)).into_response()
}

/// Returns the session of a user.
fn session(user: &User) -> Session {
    (user.name.clone(), user.until_ms.unwrap_or(0))
}

/// Checks that a text is the full name of a job.
fn checked_name(text: &str) -> Result<String, ErrorResponse> {
    let is_name =
        text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_name {
        Ok(text.to_owned())
    } else {
        Err(ErrorResponse::new(StatusCode::NOT_FOUND, "a job's name has 32 hexadecimal digits"))
    }
}

async fn report(
    State(app): Shared,
    Extension(user): Extension<User>,
    Path(job): Path<String>,
) -> Result<Response, ErrorResponse> {
    let request = request_for(v1::StatusRequest { job: checked_name(&job)? }, &user);
    let mut status = app.operations().status(request).await?.into_inner();
    let report = match (status.jobs.pop(), status.proofs.pop()) {
        (Some(job), _) => job_report(job, status.now_ms),
        (None, Some(proof)) => proof_report(proof, status.now_ms),
        (None, None) => {
            return Err(ErrorResponse::new(StatusCode::NOT_FOUND, "there is no such job"));
        }
    };
    Ok(json_response(&report))
}

async fn map(
    State(app): Shared,
    Extension(user): Extension<User>,
    Path((job, version)): Path<(String, u64)>,
) -> Result<Response, ErrorResponse> {
    let request = request_for(v1::UnitMapRequest { job: checked_name(&job)?, version }, &user);
    let map = app.operations().unit_map(request).await?.into_inner();
    Ok(json_response(&json!({
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

async fn history(
    State(app): Shared,
    Extension(user): Extension<User>,
    Path((job, after_ms)): Path<(String, u64)>,
) -> Result<Response, ErrorResponse> {
    let request = request_for(v1::HistoryRequest { job: checked_name(&job)?, after_ms }, &user);
    let history = app.operations().history(request).await?.into_inner();
    let points = history.points.into_iter().map(|point| [point.at_ms, point.done, point.verified]);
    Ok(json_response(&json!({ "points": points.collect::<Vec<_>>() })))
}

/// Returns the certificate of a finished proof, as a file.
async fn certificate(
    State(app): Shared,
    Extension(user): Extension<User>,
    Path(job): Path<String>,
) -> Result<Response, ErrorResponse> {
    let job = checked_name(&job)?;
    let Some(guard) = app.downloads.acquire(session(&user)) else {
        return Err(ErrorResponse::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too many downloads are in progress; try again later",
        ));
    };
    let request = v1::StatusRequest { job: job.clone() };
    let status = app.operations().status(request_for(request, &user)).await?.into_inner();
    let Some(name) = status.proofs.first().and_then(file_name) else {
        return Err(ErrorResponse::new(StatusCode::NOT_FOUND, "a count has no certificate"));
    };
    let request = request_for(v1::CertificateRequest { job }, &user);
    let chunks = app.operations().certificate(request).await?.into_inner();
    // The guard is held as long as the body.
    let bytes = chunks.map(move |chunk| {
        let _guard = &guard;
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

/// Checks that the user may make changes; the coordinator checks it again.
fn require_operator(user: &User) -> Result<(), ErrorResponse> {
    if user.may(Action::Control) {
        Ok(())
    } else {
        Err(ErrorResponse::new(
            StatusCode::FORBIDDEN,
            "this requires the role operator; yours is read-only",
        ))
    }
}

async fn change_job_state(
    State(app): Shared,
    Extension(user): Extension<User>,
    Path((job, action)): Path<(String, String)>,
) -> Result<Response, ErrorResponse> {
    require_operator(&user)?;
    let state = match &action[..] {
        "pause" => v1::JobState::Paused,
        "resume" => v1::JobState::Running,
        "cancel" => v1::JobState::Cancelled,
        _ => return Err(ErrorResponse::new(StatusCode::NOT_FOUND, "not found")),
    };
    let request = v1::SetJobStateRequest { job: checked_name(&job)?, state: state.into() };
    let changed = app.operations().set_job_state(request_for(request, &user)).await?.into_inner();
    Ok(json_response(&json!({ "job": job_name(&changed.job) })))
}

async fn drain(
    State(app): Shared,
    Extension(user): Extension<User>,
    Path(worker): Path<String>,
) -> Result<Response, ErrorResponse> {
    require_operator(&user)?;
    let request = request_for(v1::DrainRequest { worker: worker.clone() }, &user);
    app.operations().drain(request).await?;
    Ok(json_response(&json!({ "worker": worker })))
}

async fn release(
    State(app): Shared,
    Extension(user): Extension<User>,
    Path(worker): Path<String>,
) -> Result<Response, ErrorResponse> {
    require_operator(&user)?;
    let request = request_for(v1::ReleaseRequest { worker: worker.clone() }, &user);
    app.operations().release(request).await?;
    Ok(json_response(&json!({ "worker": worker })))
}
