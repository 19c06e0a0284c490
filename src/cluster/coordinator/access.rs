//! Authentication, authorization and rate limits of callers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;

use governor::clock::DefaultClock;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use tonic::{Code, Request, Status};

use super::connection::PeerInfo;
use super::now_ms;
use crate::cluster::auth::{
    AccessError, Action, Authority, Identity, InProcessCaller, InProcessWorker, Name, Role,
};
use crate::cluster::net::network;
use crate::cluster::protocol::not_valid_yet;

type Limiter<K> = RateLimiter<K, HashMapStateStore<K>, DefaultClock>;

const fn quota(per_s: u32, burst: u32) -> Quota {
    let (Some(per_s), Some(burst)) = (NonZeroU32::new(per_s), NonZeroU32::new(burst)) else {
        panic!("the quota must be positive")
    };
    Quota::per_second(per_s).allow_burst(burst)
}

/// The rate limit of a known caller. A worker with short units makes several calls per second.
const CALLS: Quota = quota(100, 400);
/// The rate limit per network address of calls that enrol or lack valid credentials.
const ANONYMOUS_CALLS: Quota = quota(5, 100);

/// The caller of an RPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) name: String,
    /// The owner who enrolled the caller. Without an authority, each caller is its own owner.
    pub(super) owner: String,
}

impl Caller {
    /// Creates a caller that was not enrolled and is its own owner.
    fn self_owned(name: String) -> Self {
        Self { owner: name.clone(), name }
    }
}

/// The admission control for callers.
pub(super) struct Access {
    /// `None` if callers need no credentials.
    authority: Option<Arc<Authority>>,
    calls: Limiter<String>,
    anonymous_calls: Limiter<IpAddr>,
}

/// Returns the peer of the connection, or `None` for a call from within the process.
pub(super) fn peer<T>(request: &Request<T>) -> Option<&PeerInfo> {
    request.extensions().get::<PeerInfo>()
}

/// Returns the address and port of the peer.
pub(super) fn remote<T>(request: &Request<T>) -> Option<SocketAddr> {
    peer(request).map(|peer| peer.address)
}

/// Returns the IP address of a worker, which may be one on whose behalf a request is made within
/// the process.
pub(super) fn worker_address<T>(request: &Request<T>) -> Option<IpAddr> {
    let within = request.extensions().get::<InProcessWorker>();
    within.map(|worker| worker.address).or_else(|| remote(request).map(|address| address.ip()))
}

/// Returns the IP address of the peer, or 0.0.0.0 for a call from within the process.
pub(super) fn address<T>(request: &Request<T>) -> IpAddr {
    remote(request).map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| address.ip())
}

/// Returns the certificate (DER) that the peer presented.
pub(super) fn presented_certificate<T>(request: &Request<T>) -> Option<Arc<[u8]>> {
    peer(request)?.certificate.clone()
}

impl Access {
    pub(super) fn new(authority: Option<Arc<Authority>>) -> Self {
        Self {
            authority,
            calls: RateLimiter::hashmap(CALLS),
            anonymous_calls: RateLimiter::hashmap(ANONYMOUS_CALLS),
        }
    }

    pub(super) const fn authority(&self) -> Option<&Arc<Authority>> {
        self.authority.as_ref()
    }

    /// Returns the caller if it may perform `action` and is within its rate limit. A caller from
    /// within this process is trusted to name the client. Without an authority, the claimed name is
    /// trusted.
    pub(super) fn admit<T>(
        &self,
        request: &Request<T>,
        action: Action,
        claimed: &str,
    ) -> Result<Caller, Status> {
        let extensions = request.extensions();
        let worker =
            extensions.get::<InProcessWorker>().map(|InProcessWorker { name, owner, .. }| {
                (Caller { name: name.clone(), owner: owner.clone() }, Role::Worker)
            });
        let user = extensions
            .get::<InProcessCaller>()
            .map(|InProcessCaller { name, role }| (Caller::self_owned(name.to_string()), *role));
        if let Some((caller, role)) = worker.or(user) {
            let forbidden = AccessError::Forbidden { role, action };
            return match role.may(action) {
                true => self.check_quota(caller),
                false => Err(Status::permission_denied(forbidden.to_string())),
            };
        }
        if self.authority.is_none() {
            let claimed = if claimed.is_empty() { "operator" } else { claimed };
            let name: Name =
                claimed.parse().map_err(|error| Status::invalid_argument(format!("{error}")))?;
            return self.check_quota(Caller::self_owned(name.to_string()));
        }
        match self.authorize(presented_certificate(request).as_deref(), action) {
            Ok(caller) => self.check_quota(caller),
            Err(status) if status.code() == Code::Unauthenticated => {
                self.check_anonymous_quota(request)?;
                Err(status)
            }
            Err(status) => Err(status),
        }
    }

    /// Returns the caller with this certificate (DER) if it may perform `action` now. Without an
    /// authority every caller may, and has no name.
    pub(super) fn authorize(
        &self,
        certificate: Option<&[u8]>,
        action: Action,
    ) -> Result<Caller, Status> {
        let Some(authority) = &self.authority else { return Ok(Caller::self_owned(String::new())) };
        match authority.authorize(certificate, action, now_ms()) {
            Ok(Identity { name, owner, .. }) => {
                Ok(Caller { name: name.into(), owner: owner.into() })
            }
            Err(AccessError::Registry(error)) => {
                tracing::error!("no caller is admitted: {error}");
                Err(Status::unavailable("try again later"))
            }
            // The clock was set back: the caller should renew, not give up.
            Err(error @ AccessError::NotYetValid) => Err(not_valid_yet(error.to_string())),
            Err(error @ AccessError::Forbidden { .. }) => {
                Err(Status::permission_denied(error.to_string()))
            }
            Err(error) => Err(Status::unauthenticated(error.to_string())),
        }
    }

    /// Checks the rate limit of callers without credentials.
    pub(super) fn check_anonymous_quota<T>(&self, request: &Request<T>) -> Result<(), Status> {
        let within = self.anonymous_calls.check_key(&network(address(request)));
        within.map_err(|_| {
            Status::resource_exhausted("too many calls without credentials; try again later")
        })
    }

    fn check_quota(&self, caller: Caller) -> Result<Caller, Status> {
        match self.calls.check_key(&caller.name) {
            Ok(()) => Ok(caller),
            Err(_) => Err(Status::resource_exhausted("too many calls; try again later")),
        }
    }

    /// Forgets callers that have not called recently.
    pub(super) fn forget_idle(&self) {
        self.calls.retain_recent();
        self.anonymous_calls.retain_recent();
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    use super::*;
    use crate::cluster::auth::{KeyRequest, Role};

    #[test]
    fn the_owner_of_a_caller_comes_from_its_token_or_is_the_caller_itself_without_an_authority() {
        let open = Access::new(None);
        let caller = open.admit(&Request::new(()), Action::Sync, "w1").expect("trusted");
        assert_eq!((&caller.name[..], &caller.owner[..]), ("w1", "w1"));
        let mut inside = Request::new(());
        let name: Name = "anna".parse().expect("a name");
        inside
            .extensions_mut()
            .insert(InProcessCaller { name: name.clone(), role: Role::Operator });
        let caller = open.admit(&inside, Action::Submit, "").expect("authorised");
        assert_eq!((&caller.name[..], &caller.owner[..]), ("anna", "anna"));

        let folder = std::env::temp_dir().join(format!("nqueens-access-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let authority = Arc::new(Authority::init(&folder, &[], now_ms()).expect("an authority"));
        let access = Access::new(Some(Arc::clone(&authority)));
        for owner in [Some(&name), None] {
            let token =
                authority.create_token_for(owner, Role::Worker, NonZeroU32::MIN, 60_000, now_ms());
            let token = token.expect("a token");
            let worker: Name = format!("w-{}", token.id()).parse().expect("a name");
            let key = KeyRequest::new(&worker).expect("a key");
            let issued =
                authority.enroll(&token, &worker, key.request(), now_ms()).expect("enrolled");
            let der =
                CertificateDer::from_pem_slice(issued.certificate_pem.as_bytes()).expect("PEM");
            let caller = access.authorize(Some(&der), Action::Sync).expect("authorised");
            let expected = owner.map_or(format!("token:{}", token.id()), ToString::to_string);
            assert_eq!((caller.name, caller.owner), (worker.to_string(), expected));
        }
        let _ = std::fs::remove_dir_all(&folder);
    }
}
