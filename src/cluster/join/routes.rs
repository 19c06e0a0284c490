//! The requests of pages.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Extension, FromRequest, Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use data_encoding::HEXLOWER;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::Semaphore;
use tonic::service::Routes;

use super::benchmark::Benchmarks;
use super::campaign::CampaignView;
use super::files;
use super::guards::{Address, check_origin, limit_requests, refused, require_session};
use super::limits::Limits;
use super::messages::{
    FailRequest, Invalid, Lease, LeaveRequest, MOST_LEASES, OpenRequest, ResultRequest,
    SyncRequest, UnitRequest, number, plain,
};
use super::pages::Pages;
use super::public_url::PublicUrl;
use super::sessions::{Refused, Sessions, Visitor};
use super::units::{PageJob, PageJobs, SHADERS, batch_head, batches_frame, unit_result};
use crate::cluster::net::is_own_host;
use crate::cluster::net::replies::{
    ErrorResponse, error_response, json_response, with_headers, with_time_limit,
};
use crate::cluster::protocol::v1::work_client::WorkClient;
use crate::cluster::protocol::{now_ms, peer, v1};
use crate::kernel::gpu::{Fault, RemoteResult};

/// The maximum size of a request's body, and of that with a result.
const MOST_BODY_BYTES: usize = 128 << 10;
const MOST_RESULT_BYTES: usize = 1 << 20;
/// The time after which an idle guest asks again, in ms.
const IDLE_GUEST_MS: u32 = 3_000;

/// The state shared by the routes.
pub(super) struct App {
    work: WorkClient<Routes>,
    view: CampaignView,
    pub(super) sessions: Sessions,
    pub(super) limits: Limits,
    pub(super) pages: Pages,
    jobs: PageJobs,
    benchmarks: Benchmarks,
    /// The URL at which a reverse proxy on this machine serves the page.
    url: Option<PublicUrl>,
    /// Permits one preparation at a time, so that pages cannot take more than one core.
    preparing: Semaphore,
}

impl App {
    pub(super) fn new(
        work: WorkClient<Routes>,
        view: CampaignView,
        sessions: Sessions,
        url: Option<PublicUrl>,
    ) -> Self {
        let limits = Limits::new(sessions.most_guests());
        let (pages, jobs, benchmarks) = Default::default();
        let preparing = Semaphore::new(1);
        Self { work, view, sessions, limits, pages, jobs, benchmarks, url, preparing }
    }

    pub(super) const fn scheme(&self) -> &'static str {
        match self.url.is_some() || self.sessions.authority().is_some() {
            true => "https",
            false => "http",
        }
    }

    pub(super) fn is_own_host(&self, headers: &HeaderMap) -> bool {
        let names = || self.sessions.authority()?.server_names().ok();
        is_own_host(headers, |name| {
            self.url.as_ref().is_some_and(|url| url.host == name)
                || names().is_some_and(|names| names.iter().any(|n| n.eq_ignore_ascii_case(name)))
        })
    }

    /// Returns the address of the visitor. A reverse proxy on this machine appends it to
    /// `X-Forwarded-For`; without a proxy the header is ignored.
    pub(super) fn address(&self, headers: &HeaderMap, peer: IpAddr) -> IpAddr {
        if self.url.is_none() || !peer.is_loopback() {
            return peer;
        }
        let forwarded = headers.get_all("x-forwarded-for").iter().next_back();
        let last = forwarded.and_then(|value| value.to_str().ok()?.rsplit(',').next());
        last.and_then(|last| last.trim().parse().ok()).unwrap_or(peer)
    }

    /// Runs work that takes a core for some time.
    async fn prepare<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, ErrorResponse> + Send + 'static,
    ) -> Result<T, ErrorResponse> {
        let unavailable = || ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, "try again later");
        let app = Arc::clone(self);
        let _permit = self.preparing.acquire().await.map_err(|_| unavailable())?;
        let done = tokio::task::spawn_blocking(move || work(&app)).await;
        done.map_err(|_| unavailable())?
    }

    /// Returns the lease under which a page holds a unit, and the number of the unit.
    fn lease(
        &self,
        visitor: &Visitor,
        (attempt, unit): (&str, &str),
    ) -> Result<(v1::Lease, u64), ErrorResponse> {
        let (attempt, unit) = (number(attempt).map_err(invalid)?, number(unit).map_err(invalid)?);
        let lease = self.pages.lease(&visitor.worker.name, attempt, unit).ok_or_else(|| {
            let why = "this page does not hold the unit; sync first";
            ErrorResponse::new(StatusCode::CONFLICT, why)
        })?;
        Ok((lease, unit))
    }
}

pub(super) type Shared = State<Arc<App>>;

/// Returns the routes.
pub(super) fn router(app: Arc<App>) -> Router {
    let results = Router::new()
        .route("/api/result", post(result))
        .layer(DefaultBodyLimit::max(MOST_RESULT_BYTES));
    let pages = Router::new()
        .route("/api/sync", post(sync))
        .route("/api/tables", post(tables))
        .route("/api/unit", post(unit))
        .route("/api/fail", post(fail))
        .layer(DefaultBodyLimit::max(MOST_BODY_BYTES))
        .merge(results)
        .layer(from_fn_with_state(Arc::clone(&app), require_session));
    let public = Router::new()
        .route("/api/campaign", get(campaign))
        .route("/api/benchmark/{n}", get(benchmark))
        .route("/api/session", post(open))
        .route("/api/leave", post(leave))
        .layer(DefaultBodyLimit::max(MOST_BODY_BYTES))
        .merge(files::router())
        .fallback(|| async { error_response(StatusCode::NOT_FOUND, "not found") })
        .layer(from_fn_with_state(Arc::clone(&app), limit_requests));
    public
        .merge(pages)
        .layer(from_fn_with_state(Arc::clone(&app), check_origin))
        .layer(from_fn(with_time_limit))
        .layer(from_fn(with_headers))
        .with_state(app)
}

/// Reads the JSON body of a request.
async fn body<T: DeserializeOwned>(request: Request) -> Result<T, ErrorResponse> {
    match Bytes::from_request(request, &()).await {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| ErrorResponse::new(StatusCode::BAD_REQUEST, error.to_string())),
        Err(refused) => Err(ErrorResponse::new(refused.status(), refused.body_text())),
    }
}

fn invalid(error: Invalid) -> ErrorResponse {
    ErrorResponse::new(StatusCode::BAD_REQUEST, error.to_string())
}

/// Returns a request of the protocol on behalf of a page.
fn request_for<T>(message: T, visitor: &Visitor) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    request.extensions_mut().insert(visitor.worker.clone());
    request
}

async fn campaign(State(app): Shared) -> Result<Response, ErrorResponse> {
    let snapshot = app.view.snapshot().await?;
    Ok(json_response(&json!({
        "jobs": snapshot.jobs,
        "guests": app.sessions.guests_here(),
        "most_guests": app.sessions.most_guests(),
        "tokens": app.sessions.authority().is_some(),
        "version": env!("CARGO_PKG_VERSION"),
    })))
}

async fn benchmark(State(app): Shared, Path(n): Path<String>) -> Result<Response, ErrorResponse> {
    let unknown = || ErrorResponse::new(StatusCode::NOT_FOUND, "there is no such board");
    let n: usize = n.parse().map_err(|_| unknown())?;
    let board = app.prepare(move |app| app.benchmarks.get(n).ok_or_else(unknown)).await?;
    Ok(binary(board))
}

fn binary(bytes: impl Into<Bytes>) -> Response {
    ([(header::CONTENT_TYPE, "application/octet-stream")], bytes.into()).into_response()
}

async fn open(
    State(app): Shared,
    Extension(Address(address)): Extension<Address>,
    request: Request,
) -> Result<Response, ErrorResponse> {
    if !app.limits.may_open(address) {
        let why = "too many attempts; wait a minute";
        return Err(ErrorResponse::new(StatusCode::TOO_MANY_REQUESTS, why));
    }
    let OpenRequest { token } = body(request).await?;
    let opened = match token {
        None => app.sessions.open_guest(address, &app.limits, now_ms()),
        Some(token) => {
            let app = Arc::clone(&app);
            let open = move || app.sessions.open_worker(&token, address, now_ms());
            tokio::task::spawn_blocking(open).await.unwrap_or(Err(Refused::Unavailable))
        }
    };
    let (session, visitor) = opened.map_err(|error| refused(&error))?;
    Ok(json_response(&json!({
        "session": session,
        "worker": visitor.worker.name,
        "owner": visitor.worker.owner,
        "guest": visitor.is_guest,
    })))
}

async fn sync(
    State(app): Shared,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Result<Response, ErrorResponse> {
    let SyncRequest { boot, wants, held, rates, device } = body(request).await?;
    if held.len() > MOST_LEASES {
        return Err(invalid(Invalid("the number of leases")));
    }
    let held = held.iter().map(|held| {
        let lease = Some(v1::Lease::try_from(&held.lease)?);
        Ok(v1::Held { lease, left: held.left, unstarted: held.unstarted })
    });
    // What guests say of their speed is not used.
    let rates = rates.iter().take(if visitor.is_guest { 0 } else { MOST_LEASES }).map(|rate| {
        let job = HEXLOWER.decode(rate.job.as_bytes()).map_err(|_| Invalid("a job"))?;
        Ok(v1::Rate { job, units_per_s: rate.units_per_s })
    });
    let device = v1::Device {
        id: DEVICE.to_owned(),
        name: if visitor.is_guest { String::new() } else { plain(&device) },
        kernel: SHADERS.to_owned(),
        capacity: 1,
        ..v1::Device::default()
    };
    let request = v1::SyncRequest {
        peer: peer(),
        worker: visitor.worker.name.clone(),
        boot: number(&boot).map_err(invalid)?,
        capacity: wants.into(),
        kernels: vec![SHADERS.to_owned()],
        rates: rates.collect::<Result<_, _>>().map_err(invalid)?,
        held: held.collect::<Result<_, _>>().map_err(invalid)?,
        devices: vec![device],
        ..v1::SyncRequest::default()
    };
    let response = app.work.clone().sync(request_for(request, &visitor)).await?.into_inner();
    let v1::SyncResponse { desired, cancel, next_sync_ms, jobs, quarantined, .. } = response;
    app.jobs.set_texts(jobs);
    app.pages.set(&visitor.worker.name, &desired);
    let is_idle = desired.is_empty() && visitor.is_guest;
    let next_sync_ms = if is_idle { next_sync_ms.min(IDLE_GUEST_MS) } else { next_sync_ms };
    let record = app.view.snapshot().await?.record(&visitor.worker.name);
    Ok(json_response(&json!({
        "leases": desired.iter().map(Lease::from).collect::<Vec<_>>(),
        "cancel": cancel.iter().map(u64::to_string).collect::<Vec<_>>(),
        "next_sync_ms": next_sync_ms,
        "quarantined": quarantined,
        "units": record.units,
        "confirmed": record.proven,
    })))
}

/// The name of the device of a page in results.
const DEVICE: &str = "webgpu";

/// Returns the job of a lease, or gives the unit back if no page can count it.
async fn job_of(
    app: &Arc<App>,
    visitor: &Visitor,
    lease: &v1::Lease,
    unit: u64,
) -> Result<Arc<PageJob>, ErrorResponse> {
    let of_lease = lease.clone();
    let job = app
        .prepare(move |app| {
            let failed = |why: String| ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, why);
            app.jobs.get(&of_lease).map_err(failed)
        })
        .await?;
    if job.suits() {
        return Ok(job);
    }
    let detail = "pages count prefixes only".to_owned();
    report_failure(app, visitor, lease, unit, (v1::FailReason::Unsuited, detail)).await?;
    Err(ErrorResponse::new(StatusCode::GONE, "no page can count this unit"))
}

/// Reports that a page cannot count a unit.
async fn report_failure(
    app: &App,
    visitor: &Visitor,
    lease: &v1::Lease,
    unit: u64,
    (reason, detail): (v1::FailReason, String),
) -> Result<(), ErrorResponse> {
    let request = v1::FailRequest {
        peer: peer(),
        worker: visitor.worker.name.clone(),
        attempt: lease.attempt,
        job: lease.job.clone(),
        unit,
        reason: reason.into(),
        detail,
    };
    app.work.clone().fail(request_for(request, visitor)).await?;
    Ok(())
}

async fn tables(
    State(app): Shared,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Result<Response, ErrorResponse> {
    let UnitRequest { attempt, unit } = body(request).await?;
    let (lease, unit) = app.lease(&visitor, (&attempt, &unit))?;
    let job = job_of(&app, &visitor, &lease, unit).await?;
    Ok(binary(job.tables()))
}

async fn unit(
    State(app): Shared,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Result<Response, ErrorResponse> {
    let UnitRequest { attempt, unit } = body(request).await?;
    let (lease, unit) = app.lease(&visitor, (&attempt, &unit))?;
    let worker = visitor.worker.name.clone();
    if !app.pages.may_prepare(&worker, lease.attempt, unit) {
        let why = "this unit was sent several times; give it back";
        return Err(ErrorResponse::new(StatusCode::TOO_MANY_REQUESTS, why));
    }
    let job = job_of(&app, &visitor, &lease, unit).await?;
    let prepare = move |app: &App| {
        let unsuited = |fault: Fault| ErrorResponse::new(StatusCode::GONE, fault.to_string());
        let mut batches = job.batches(&lease, unit).map_err(unsuited)?;
        let frame = batches_frame((json!({}), Vec::new()), &batches, batch_head);
        batches.shrink();
        app.pages.prepare(&worker, (lease.attempt, unit), batches);
        Ok(frame)
    };
    Ok(binary(app.prepare(prepare).await?))
}

async fn result(
    State(app): Shared,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Result<Response, ErrorResponse> {
    let ResultRequest { attempt, unit, elapsed_s, batches } = body(request).await?;
    let (lease, unit) = app.lease(&visitor, (&attempt, &unit))?;
    let results: Vec<RemoteResult> =
        batches.iter().map(RemoteResult::try_from).collect::<Result<_, _>>().map_err(invalid)?;
    let worker = visitor.worker.name.clone();
    let Some(prepared) = app.pages.prepared(&worker, lease.attempt, unit) else {
        let why = "this unit was not sent to the page; request it first";
        return Err(ErrorResponse::new(StatusCode::CONFLICT, why));
    };
    // The page may have waited, but did not count for longer than it has had the unit.
    let most_s = prepared.at.elapsed().as_secs_f64();
    if !elapsed_s.is_finite() || elapsed_s < 0.0 {
        return Err(invalid(Invalid("the time")));
    }
    let of_device = (DEVICE, elapsed_s.min(most_s));
    let counted = unit_result((&lease, unit), &prepared.batches, &results, of_device);
    let result = match counted {
        Ok(result) => result,
        Err(error) => {
            app.pages.done(&worker, lease.attempt, unit);
            let detail = "the accounting of a page does not balance".to_owned();
            report_failure(&app, &visitor, &lease, unit, (v1::FailReason::Check, detail)).await?;
            return Err(error);
        }
    };
    let request = v1::CompleteRequest { peer: peer(), worker, results: vec![result] };
    let response = app.work.clone().complete(request_for(request, &visitor)).await?.into_inner();
    app.pages.done(&visitor.worker.name, lease.attempt, unit);
    let verdict = response.verdicts.first().copied().unwrap_or_default();
    let verdict = v1::Verdict::try_from(verdict).unwrap_or_default();
    Ok(json_response(&json!({ "verdict": verdict_name(verdict) })))
}

const fn verdict_name(verdict: v1::Verdict) -> &'static str {
    match verdict {
        v1::Verdict::Unspecified => "unknown",
        v1::Verdict::Accepted => "accepted",
        v1::Verdict::Duplicate => "duplicate",
        v1::Verdict::Conflict => "conflict",
        v1::Verdict::StaleJob => "stale",
        v1::Verdict::Refused => "refused",
        v1::Verdict::Quarantined => "quarantined",
    }
}

async fn fail(
    State(app): Shared,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Result<Response, ErrorResponse> {
    let FailRequest { attempt, unit, detail } = body(request).await?;
    let (lease, unit) = app.lease(&visitor, (&attempt, &unit))?;
    let reason = (v1::FailReason::Device, plain(&detail));
    report_failure(&app, &visitor, &lease, unit, reason).await?;
    app.pages.done(&visitor.worker.name, lease.attempt, unit);
    Ok(json_response(&json!({})))
}

/// Ends the leases of a page that is closed.
async fn leave(
    State(app): Shared,
    Extension(Address(address)): Extension<Address>,
    request: Request,
) -> Result<Response, ErrorResponse> {
    let LeaveRequest { session, boot } = body(request).await?;
    let visitor = app.sessions.visitor(&session, address, now_ms());
    let visitor = visitor.map_err(|error| refused(&error))?;
    let request = v1::SyncRequest {
        peer: peer(),
        worker: visitor.worker.name.clone(),
        boot: number(&boot).map_err(invalid)?,
        kernels: vec![SHADERS.to_owned()],
        ..v1::SyncRequest::default()
    };
    app.work.clone().sync(request_for(request, &visitor)).await?;
    app.pages.set(&visitor.worker.name, &[]);
    app.sessions.leave(&visitor);
    Ok(json_response(&json!({})))
}
