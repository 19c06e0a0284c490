//! Browser sessions, which take the place of certificates. A token is redeemed for a session as for
//! a certificate: its use and the session are written to disk atomically. The registry stores a
//! hash of the session's secret, so that sessions survive a restart of the coordinator, revocation
//! takes effect at the next check, and the file is of no use to a reader.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::ca::Authority;
use super::enrolment::{EnrollError, known_token};
use super::fingerprint::Fingerprint;
use super::name::Name;
use super::owner::Owner;
use super::registry::{Content, RegistryError};
use super::role::Role;
use super::text::base32_text;
use super::token::{Token, TokenId};

const HOUR_MS: u64 = 60 * 60 * 1000;

/// Returns the lifetime of a session. Those who may change things sign in every day; a wall screen
/// that only displays may run for a month. A page that counts has a session for as long as a worker
/// has a certificate.
pub(super) const fn life_ms(role: Role) -> u64 {
    match role {
        Role::Operator => 12 * HOUR_MS,
        Role::Worker => 7 * 24 * HOUR_MS,
        Role::Viewer => 30 * 24 * HOUR_MS,
    }
}

/// A session without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionEntry {
    /// The holder's name.
    pub name: Name,
    /// The holder's role: operator or viewer, or worker for a page that counts.
    pub role: Role,
    /// The start of the validity, in ms since 1970.
    pub not_before_ms: u64,
    /// The end of the validity, in ms since 1970.
    pub not_after_ms: u64,
    /// The time of revocation, in ms since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_ms: Option<u64>,
    /// The token that the session was obtained with.
    pub token: TokenId,
    /// The owner, for the session of a page that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
}

impl SessionEntry {
    /// Returns whether the session is neither revoked nor expired. It may be not valid yet.
    pub fn is_live(&self, now_ms: u64) -> bool {
        self.revoked_ms.is_none() && now_ms <= self.not_after_ms
    }
}

/// The secret of a session, 256 random bits: the content of the cookie.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionSecret([u8; 32]);

/// The error for a text that is not a session secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a session secret")]
pub struct SessionSecretError;

impl SessionSecret {
    pub(super) fn random() -> Result<Self, getrandom::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Self(secret))
    }

    pub(super) fn hash(&self) -> Fingerprint {
        Fingerprint::of(&[b"nqueens-session/1 ".as_slice(), &self.0].concat())
    }
}

// The text is the secret itself: for a cookie only, never for a log.
base32_text!(SessionSecret, SessionSecretError);

/// Omits the secret.
impl fmt::Debug for SessionSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionSecret").finish_non_exhaustive()
    }
}

/// The caller of an in-process request, as authenticated by the component that makes the request.
/// It is attached to the request as an extension, which cannot be set over the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InProcessCaller {
    /// The caller's name.
    pub name: Name,
    /// The caller's role.
    pub role: Role,
}

/// The worker on whose behalf a request is made within the process, as authenticated by the
/// component that makes the request. It is attached to the request as an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InProcessWorker {
    /// The worker's name: that of an enrolled worker, or of a guest.
    pub name: String,
    /// Its owner.
    pub owner: String,
    /// The address that it calls from.
    pub address: IpAddr,
}

/// The reason why a session is refused. The browser is only told to sign in again.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The session was never created, or was removed.
    #[error("there is no such session; sign in")]
    Unknown,
    /// The session has expired, or is not valid yet because a clock was set back.
    #[error("the session has expired; sign in again")]
    Expired,
    /// The session was revoked or signed out.
    #[error("the session was ended; sign in again")]
    Revoked,
    /// The registry cannot be used, so every session is refused. The message is for the
    /// coordinator's log.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

impl Authority {
    /// Redeems an operator's or viewer's token for a session: 12 hours for an operator, 30 days for
    /// a viewer. Without a name, the session is named after the role and the token. One token may
    /// be redeemed for several sessions of the same name; a name that another holder uses is
    /// refused.
    ///
    /// # Errors
    /// The token is unknown, expired, used up or a worker's; the name is in use; the registry
    /// cannot be used.
    pub fn sign_in(
        &self,
        token: &Token,
        name: Option<&Name>,
        now_ms: u64,
    ) -> Result<(SessionSecret, SessionEntry), EnrollError> {
        if token.authority() != self.fingerprint() {
            return Err(EnrollError::AnotherAuthority);
        }
        let redeemable = |content: &Content| match known_token(content, token, now_ms)? {
            (_, Role::Worker) => Err(EnrollError::NotForPeople),
            known => Ok(known),
        };
        // Without a valid token, no caller gets as far as the disk.
        let (id, role) = redeemable(&*self.registry().read()?)?;
        let default_name: Result<Name, _> = format!("{role}-{id}").parse();
        // The name consists of letters, digits and '-'.
        let default_name = default_name.map_err(|_| EnrollError::UnknownToken)?;
        let name = name.unwrap_or(&default_name);
        let secret =
            SessionSecret::random().map_err(|error| EnrollError::Certificate(error.into()))?;
        self.registry().change(now_ms, |content| {
            let (id, role) = redeemable(content)?;
            let others = |session: &SessionEntry| {
                session.name == *name && session.is_live(now_ms) && session.token != id
            };
            let has_certificate =
                content.certificates.values().any(|c| c.name == *name && c.is_live(now_ms));
            if has_certificate || content.sessions.values().any(others) {
                return Err(EnrollError::NameInUse(name.clone()));
            }
            let entry = content.tokens.get_mut(&id).ok_or(EnrollError::UnknownToken)?;
            entry.uses_left = entry.uses_left.checked_sub(1).ok_or(EnrollError::TokenUsed)?;
            let session = SessionEntry {
                name: name.clone(),
                role,
                not_before_ms: now_ms,
                not_after_ms: now_ms.saturating_add(life_ms(role)),
                revoked_ms: None,
                token: id,
                owner: None,
            };
            content.sessions.insert(secret.hash(), session.clone());
            Ok((secret, session))
        })
    }

    /// Returns the session with this secret.
    ///
    /// # Errors
    /// There is no such session that is valid at `now_ms`, or the registry cannot be used.
    pub fn session(
        &self,
        secret: &SessionSecret,
        now_ms: u64,
    ) -> Result<SessionEntry, SessionError> {
        let content = self.registry().read()?;
        let session = content.sessions.get(&secret.hash()).ok_or(SessionError::Unknown)?;
        if session.revoked_ms.is_some() {
            Err(SessionError::Revoked)
        } else if !(session.not_before_ms..=session.not_after_ms).contains(&now_ms) {
            Err(SessionError::Expired)
        } else {
            Ok(session.clone())
        }
    }

    /// Ends a session. Does nothing if there is none.
    ///
    /// # Errors
    /// The registry cannot be used.
    pub fn sign_out(&self, secret: &SessionSecret, now_ms: u64) -> Result<(), RegistryError> {
        self.registry().change(now_ms, |content| {
            if let Some(session) = content.sessions.get_mut(&secret.hash()) {
                session.revoked_ms.get_or_insert(now_ms);
            }
            Ok(())
        })
    }

    /// Returns all recorded sessions; ended ones are kept for a week.
    ///
    /// # Errors
    /// The registry cannot be used.
    pub fn sessions(&self) -> Result<Vec<SessionEntry>, RegistryError> {
        Ok(self.registry().read()?.sessions.values().cloned().collect())
    }
}
