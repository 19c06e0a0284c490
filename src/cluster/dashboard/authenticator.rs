//! Authentication and rate limits of the dashboard: hosts, origins, sessions and sign-in attempts.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use axum::http::{HeaderMap, header};
use governor::clock::DefaultClock;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::cluster::auth::{
    Action, Authority, EnrollError, InProcessCaller, Name, Role, SessionEntry, SessionError,
    SessionSecret, Token,
};
use crate::cluster::net::{is_own_host, network};

/// A user of the dashboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    pub(super) name: Name,
    pub(super) role: Role,
    /// The end of the session, in ms since 1970; `None` if no session is needed.
    pub(super) until_ms: Option<u64>,
}

impl User {
    /// Creates a user without a session. `name` is a literal and a valid name.
    fn named(name: &str, role: Role) -> Self {
        Self { name: name.parse().expect("a name"), role, until_ms: None }
    }

    /// Returns the identity of the dashboard itself, which polls the coordinator for all browsers.
    pub(super) fn dashboard() -> Self {
        Self::named("dashboard", Role::Viewer)
    }

    /// Returns whether the user's role allows `action`.
    pub(super) const fn may(&self, action: Action) -> bool {
        self.role.may(action)
    }

    /// Returns the identity to attach to the user's calls.
    pub(super) fn caller(&self) -> InProcessCaller {
        InProcessCaller { name: self.name.clone(), role: self.role }
    }
}

impl From<SessionEntry> for User {
    fn from(session: SessionEntry) -> Self {
        Self { name: session.name, role: session.role, until_ms: Some(session.not_after_ms) }
    }
}

/// The reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There is no valid session.
    NoSession,
    /// The registry cannot be used.
    Unavailable,
}

/// The rate of sign-in attempts per network: more than any person needs, and too few to keep the
/// disk busy.
const ATTEMPTS: Quota = Quota::per_minute(NonZeroU32::new(10).expect("positive"));

/// The authenticator of the dashboard.
pub(super) struct Authenticator {
    /// `None` if every user of this machine has full access.
    authority: Option<Arc<Authority>>,
    cookie: String,
    attempts: RateLimiter<IpAddr, HashMapStateStore<IpAddr>, DefaultClock>,
}

impl Authenticator {
    /// Creates an authenticator. Cookies are shared by all ports of a host, so each dashboard of a
    /// machine uses its own cookie name.
    pub(super) fn new(authority: Option<Arc<Authority>>, port: u16) -> Self {
        Self {
            authority,
            cookie: format!("__Host-nqueens-{port}"),
            attempts: RateLimiter::hashmap(ATTEMPTS),
        }
    }

    /// Returns whether users need a session.
    pub(super) const fn has_sessions(&self) -> bool {
        self.authority.is_some()
    }

    pub(super) const fn scheme(&self) -> &'static str {
        if self.authority.is_some() { "https" } else { "http" }
    }

    /// Returns whether the Host header is an IP address, localhost or a name of the coordinator.
    pub(super) fn knows_host(&self, headers: &HeaderMap) -> bool {
        let server_names = || self.authority.as_ref()?.server_names().ok();
        is_own_host(headers, |name| {
            server_names()
                .is_some_and(|names| names.iter().any(|known| known.eq_ignore_ascii_case(name)))
        })
    }

    /// Returns the secret in the request's cookie.
    fn secret(&self, headers: &HeaderMap) -> Option<SessionSecret> {
        let cookies =
            headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = cookies
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        let mut own = pairs.filter(|(name, _)| *name == self.cookie);
        own.find_map(|(_, value)| value.parse().ok())
    }

    /// Returns the user of a request at `now_ms`, in ms since 1970.
    pub(super) fn user(&self, headers: &HeaderMap, now_ms: u64) -> Result<User, Refusal> {
        let Some(authority) = &self.authority else {
            return Ok(User::named("operator", Role::Operator));
        };
        let secret = self.secret(headers).ok_or(Refusal::NoSession)?;
        match authority.session(&secret, now_ms) {
            // The session of a page that counts gives no access here.
            Ok(session) if session.role == Role::Worker => Err(Refusal::NoSession),
            Ok(session) => Ok(session.into()),
            Err(SessionError::Registry(error)) => {
                tracing::error!("every session is refused: {error}");
                Err(Refusal::Unavailable)
            }
            Err(_) => Err(Refusal::NoSession),
        }
    }

    /// Returns whether the network of an address may make another attempt to sign in.
    pub(super) fn may_attempt(&self, address: IpAddr) -> bool {
        // Remove the networks without recent attempts, so that they do not accumulate.
        if self.attempts.len() > 1024 {
            self.attempts.retain_recent();
        }
        self.attempts.check_key(&network(address)).is_ok()
    }

    /// Redeems a token for a session. Returns the cookie to set and the user. Waits for the disk.
    pub(super) fn sign_in(
        &self,
        token: &Token,
        name: Option<&Name>,
        now_ms: u64,
    ) -> Result<(String, User), EnrollError> {
        // Without an authority there are no sessions.
        let authority = self.authority.as_ref().ok_or(EnrollError::AnotherAuthority)?;
        let (secret, session) = authority.sign_in(token, name, now_ms)?;
        let seconds = session.not_after_ms.saturating_sub(now_ms) / 1000;
        Ok((self.set_cookie(&secret.to_string(), seconds), session.into()))
    }

    /// Ends the session of the request. Returns the cookie to set. Waits for the disk.
    pub(super) fn sign_out(&self, headers: &HeaderMap, now_ms: u64) -> Result<String, Refusal> {
        if let (Some(authority), Some(secret)) = (&self.authority, self.secret(headers)) {
            authority.sign_out(&secret, now_ms).map_err(|error| {
                tracing::error!("cannot end a session: {error}");
                Refusal::Unavailable
            })?;
        }
        Ok(self.set_cookie("", 0))
    }

    fn set_cookie(&self, value: &str, seconds: u64) -> String {
        let name = &self.cookie;
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; Secure; SameSite=Strict")
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn the_attempts_of_a_network_are_limited() {
        let authenticator = Authenticator::new(None, 80);
        let six = |last: u16| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, last));
        let attempts = (0..50).filter(|&last| authenticator.may_attempt(six(last))).count();
        assert_eq!(attempts, 10);
        assert!(
            authenticator.may_attempt("192.0.2.1".parse().expect("an address")),
            "another network has its own limit"
        );
    }
}
