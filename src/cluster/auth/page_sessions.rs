//! Sessions of web pages that count: they take the place of a worker's certificate, which a page
//! cannot have. A worker's token is redeemed for a session as for a certificate; its use is on disk
//! before the session is valid. The registry stores a hash of the session's secret, so that a
//! session survives a restart of the coordinator and ends when its holder is revoked.
//!
//! A session is valid for as long as a certificate, and is extended while it is used. Its secret
//! gives the permissions of a worker, and none on the dashboard.

use super::ca::Authority;
use super::enrolment::{EnrollError, known_token};
use super::name::Name;
use super::registry::Content;
use super::role::Role;
use super::sessions::{SessionEntry, SessionError, SessionSecret, life_ms};
use super::token::{Token, TokenId};

/// Returns the token's ID if it is a worker's.
fn worker_token(content: &Content, token: &Token, now_ms: u64) -> Result<TokenId, EnrollError> {
    match known_token(content, token, now_ms)? {
        (id, Role::Worker) => Ok(id),
        _ => Err(EnrollError::NotForWorkers),
    }
}

impl Authority {
    /// Redeems a worker's token for the session of a page. The page's name is derived from the
    /// token, and no other holder has it.
    ///
    /// # Errors
    /// The token is unknown, expired, used up or not a worker's; the registry cannot be used.
    pub fn open_page(
        &self,
        token: &Token,
        now_ms: u64,
    ) -> Result<(SessionSecret, SessionEntry), EnrollError> {
        if token.authority() != self.fingerprint() {
            return Err(EnrollError::AnotherAuthority);
        }
        // Without a valid token, no caller gets as far as the disk.
        let id = worker_token(&*self.registry().read()?, token, now_ms)?;
        let secret =
            SessionSecret::random().map_err(|error| EnrollError::Certificate(error.into()))?;
        let hash = secret.hash();
        let short: String = hash.to_string().chars().take(8).collect();
        // The name consists of letters, digits and '-'.
        let name: Name = format!("page-{id}-{}", short.to_ascii_lowercase())
            .parse()
            .map_err(|_| EnrollError::UnknownToken)?;
        self.registry().change(now_ms, |content| {
            let id = worker_token(content, token, now_ms)?;
            let is_taken = content.sessions.values().any(|session| session.name == name)
                || content.certificates.values().any(|certificate| certificate.name == name);
            if is_taken {
                return Err(EnrollError::NameInUse(name.clone()));
            }
            let entry = content.tokens.get_mut(&id).ok_or(EnrollError::UnknownToken)?;
            entry.uses_left = entry.uses_left.checked_sub(1).ok_or(EnrollError::TokenUsed)?;
            let session = SessionEntry {
                name: name.clone(),
                role: Role::Worker,
                not_before_ms: now_ms,
                not_after_ms: now_ms.saturating_add(life_ms(Role::Worker)),
                revoked_ms: None,
                token: id,
                owner: Some(entry.owner(id)),
            };
            content.sessions.insert(hash, session.clone());
            Ok((secret, session))
        })
    }

    /// Returns the session of a page with this secret.
    ///
    /// # Errors
    /// There is no such session of a worker that is valid at `now_ms`, or the registry cannot be
    /// used.
    pub fn page(&self, secret: &SessionSecret, now_ms: u64) -> Result<SessionEntry, SessionError> {
        let session = self.session(secret, now_ms)?;
        if session.role == Role::Worker { Ok(session) } else { Err(SessionError::Unknown) }
    }

    /// Extends the session of a page if less than half of its life is left. Returns the session.
    ///
    /// # Errors
    /// There is no such session of a worker that is valid at `now_ms`, or the registry cannot be
    /// used.
    pub fn extend_page(
        &self,
        secret: &SessionSecret,
        now_ms: u64,
    ) -> Result<SessionEntry, SessionError> {
        let session = self.page(secret, now_ms)?;
        let life_ms = life_ms(Role::Worker);
        if session.not_after_ms.saturating_sub(now_ms) > life_ms / 2 {
            return Ok(session);
        }
        self.registry().change(now_ms, |content| {
            let session = content.sessions.get_mut(&secret.hash()).ok_or(SessionError::Unknown)?;
            if session.revoked_ms.is_some() {
                return Err(SessionError::Revoked);
            }
            session.not_after_ms = now_ms.saturating_add(life_ms);
            Ok(session.clone())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::cluster::auth::testing::{HOUR_MS, NOW_MS, authority, name};

    #[test]
    fn a_workers_token_is_redeemed_for_pages_with_names_of_their_own_and_one_owner() {
        let (_scratch, _, authority) = authority();
        let uses = NonZeroU32::new(2).expect("two");
        let token = authority
            .create_token_for(Some(&name("anna")), Role::Worker, uses, HOUR_MS, NOW_MS)
            .expect("a token");
        let (one, first) = authority.open_page(&token, NOW_MS).expect("a use");
        let (_, second) = authority.open_page(&token, NOW_MS).expect("another use");
        assert!(matches!(authority.open_page(&token, NOW_MS), Err(EnrollError::TokenUsed)));
        assert_ne!(first.name, second.name);
        assert_eq!(first.owner, second.owner);
        assert_eq!(first.owner.expect("an owner").to_string(), "anna");
        assert_eq!(authority.page(&one, NOW_MS).expect("valid").name, first.name);

        // Half of its life later it is extended, and it ends when its holder is revoked.
        let later = NOW_MS + life_ms(Role::Worker) * 3 / 4;
        let extended = authority.extend_page(&one, later).expect("valid");
        assert_eq!(extended.not_after_ms, later + life_ms(Role::Worker));
        authority.revoke(&first.name, later).expect("written");
        assert!(matches!(authority.page(&one, later), Err(SessionError::Revoked)));
        assert!(matches!(authority.extend_page(&one, later), Err(SessionError::Revoked)));
    }

    #[test]
    fn sessions_of_people_are_no_pages_and_their_tokens_open_none() {
        let (_scratch, _, authority) = authority();
        for role in [Role::Operator, Role::Viewer] {
            let uses = NonZeroU32::new(2).expect("two");
            let token = authority.create_token(role, uses, HOUR_MS, NOW_MS).expect("a token");
            assert!(matches!(authority.open_page(&token, NOW_MS), Err(EnrollError::NotForWorkers)));
            let (secret, _) = authority.sign_in(&token, None, NOW_MS).expect("a use");
            assert!(matches!(authority.page(&secret, NOW_MS), Err(SessionError::Unknown)));
        }
    }
}
