//! Sessions: what a browser has in place of a certificate. A token buys one, as it buys a certificate: its use and the session
//! are on disk in one atomic write. The register has a hash of the session's secret, so that sessions survive a restart of the
//! coordinator, end by revocation at the next look, and are of no use to whoever reads the file.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::ca::{Authority, EnrollError, known_token};
use super::fingerprint::{Fingerprint, base32, from_base32};
use super::name::Name;
use super::registry::{Content, RegisterError, TokenId};
use super::role::Role;
use super::token::Token;

const HOUR_MS: u64 = 60 * 60 * 1000;

/// Who may change things signs in anew each day; a screen that only shows them may hang on a wall for a month.
const fn life_ms(role: Role) -> u64 {
    match role {
        Role::Operator | Role::Worker => 12 * HOUR_MS,
        Role::Viewer => 30 * 24 * HOUR_MS,
    }
}

/// A session, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionEntry {
    /// Whose it is.
    pub name: Name,
    /// What the holder is: operator or viewer.
    pub role: Role,
    /// From when on it is valid, in ms since 1970.
    pub not_before_ms: u64,
    /// Until when it is valid, in ms since 1970.
    pub not_after_ms: u64,
    /// When it was revoked, in ms since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_ms: Option<u64>,
    /// The token that bought it.
    pub token: TokenId,
}

impl SessionEntry {
    /// Whether it is good for anything.
    pub fn is_live(&self, now_ms: u64) -> bool {
        self.revoked_ms.is_none() && now_ms <= self.not_after_ms
    }
}

/// The secret of a session, 256 random bits: what the cookie holds.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionSecret([u8; 32]);

/// A text that is no secret of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no session")]
pub struct SessionSecretError;

impl SessionSecret {
    fn random() -> Result<Self, getrandom::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Self(secret))
    }

    fn hash(&self) -> Fingerprint {
        Fingerprint::of(&[b"nqueens-session/1 ".as_slice(), &self.0].concat())
    }
}

impl FromStr for SessionSecret {
    type Err = SessionSecretError;

    fn from_str(text: &str) -> Result<Self, SessionSecretError> {
        from_base32(text).map(Self).ok_or(SessionSecretError)
    }
}

/// The secret itself: for a cookie, and in no log.
impl fmt::Display for SessionSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&base32(&self.0))
    }
}

/// Without the secret.
impl fmt::Debug for SessionSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionSecret").finish_non_exhaustive()
    }
}

/// Who calls, as a part of this process says that has asked for credentials itself. It goes with a request as an extension,
/// which nothing that comes over the network can set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InProcessCaller {
    /// The caller.
    pub name: Name,
    /// What it is.
    pub role: Role,
}

/// Why a session is not one. None of it is told to the browser but that it is to sign in again.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Never bought, or forgotten.
    #[error("there is no such session; sign in")]
    Unknown,
    /// Too late, or too early, after a clock was set back.
    #[error("the session is over; sign in again")]
    Over,
    /// Revoked, or signed out.
    #[error("the session was ended; sign in again")]
    Revoked,
    /// Nobody is let in. What it says is for the log of the coordinator.
    #[error(transparent)]
    Register(#[from] RegisterError),
}

impl Authority {
    /// Buys a session with a token for operators or viewers: 12 hours for an operator, 30 days for a viewer. Without a name
    /// it has that of role and token. One token may buy several under the same name; a name that another holds is refused.
    ///
    /// # Errors
    /// The token is wrong, expired, used or a worker's; the name is in use; the register cannot be used.
    pub fn sign_in(
        &self,
        token: &Token,
        name: Option<&Name>,
        now_ms: u64,
    ) -> Result<(SessionSecret, SessionEntry), EnrollError> {
        if token.authority() != self.fingerprint() {
            return Err(EnrollError::AnotherAuthority);
        }
        let buys = |content: &Content| match known_token(content, token, now_ms)? {
            (_, Role::Worker) => Err(EnrollError::NotForPeople),
            known => Ok(known),
        };
        // Without a token nobody gets as far as the disk.
        let (id, role) = buys(&*self.register().read()?)?;
        let own: Result<Name, _> = format!("{role}-{id}").parse();
        // Letters, digits and '-'.
        let own = own.map_err(|_| EnrollError::UnknownToken)?;
        let name = name.unwrap_or(&own);
        let secret = SessionSecret::random().map_err(|error| EnrollError::Certificate(error.into()))?;
        self.register().change(now_ms, |content| {
            let (id, role) = buys(content)?;
            let others = |session: &SessionEntry| {
                session.name == *name && session.is_live(now_ms) && session.token != id
            };
            let has_certificate = content.certificates.values().any(|c| c.name == *name && c.is_live(now_ms));
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
            };
            content.sessions.insert(secret.hash(), session.clone());
            Ok((secret, session))
        })
    }

    /// Whose session this is.
    ///
    /// # Errors
    /// It is none that is valid at `now_ms`, or the register cannot be used.
    pub fn session(&self, secret: &SessionSecret, now_ms: u64) -> Result<SessionEntry, SessionError> {
        let content = self.register().read()?;
        let session = content.sessions.get(&secret.hash()).ok_or(SessionError::Unknown)?;
        if session.revoked_ms.is_some() {
            Err(SessionError::Revoked)
        } else if !(session.not_before_ms..=session.not_after_ms).contains(&now_ms) {
            Err(SessionError::Over)
        } else {
            Ok(session.clone())
        }
    }

    /// Ends a session. What is none is none afterwards, too.
    ///
    /// # Errors
    /// The register cannot be used.
    pub fn sign_out(&self, secret: &SessionSecret, now_ms: u64) -> Result<(), RegisterError> {
        self.register().change(now_ms, |content| {
            if let Some(session) = content.sessions.get_mut(&secret.hash()) {
                session.revoked_ms.get_or_insert(now_ms);
            }
            Ok(())
        })
    }

    /// Every session that is remembered, ended ones for a week.
    ///
    /// # Errors
    /// The register cannot be used.
    pub fn sessions(&self) -> Result<Vec<SessionEntry>, RegisterError> {
        Ok(self.register().read()?.sessions.values().cloned().collect())
    }
}
