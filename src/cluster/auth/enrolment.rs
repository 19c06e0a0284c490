//! Enrolment and renewal: the issue of client certificates.

use rcgen::{PublicKeyData, SubjectPublicKeyInfo};
use subtle::ConstantTimeEq;

use super::access::{AccessError, Identity, identify_for_renewal};
use super::ca::Authority;
use super::certificates::{self, CertificateError};
use super::fingerprint::Fingerprint;
use super::name::Name;
use super::owner::Owner;
use super::registry::{CertificateEntry, Content, RegistryError};
use super::role::Role;
use super::token::{Token, TokenId};

/// The reason why a certificate is not issued.
#[derive(Debug, thiserror::Error)]
pub enum EnrollError {
    /// The token is for another coordinator.
    #[error("the token is for another coordinator; create one on this coordinator")]
    AnotherAuthority,
    /// The token is unknown.
    #[error("the token is unknown to this coordinator; create one with nqueens token create")]
    UnknownToken,
    /// The token has expired.
    #[error("the token has expired; create one with nqueens token create")]
    TokenExpired,
    /// The token has no uses left.
    #[error("the token has been used; create one with nqueens token create")]
    TokenUsed,
    /// The name is already in use.
    #[error("the name '{0}' is in use; choose another, or revoke it first with nqueens revoke {0}")]
    NameInUse(Name),
    /// A worker's token was used to sign in to the dashboard.
    #[error(
        "a worker's token cannot be used to sign in; create one with nqueens token create --role viewer or operator"
    )]
    NotForPeople,
    /// Another token than a worker's was used for a page that counts.
    #[error(
        "this token is not a worker's, so no page can count with it; create one with nqueens token create"
    )]
    NotForWorkers,
    /// The certificate request is invalid, or the certificate cannot be issued.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The certificate to be renewed is not accepted.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The registry cannot be used, so every call is refused. The message is for the coordinator's
    /// log.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

/// A newly issued certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    /// The holder.
    pub identity: Identity,
    /// The certificate.
    pub certificate_pem: String,
    /// The authority's certificate.
    pub authority_pem: String,
}

impl Authority {
    /// Issues a first certificate for `token` to the holder of the key that signed `request` (PKCS
    /// #10 in DER); nothing but the public key is taken from the request. The token's use is on
    /// disk before this returns. A repeated call with the same token, name and key counts as the
    /// same use: the answer was lost, and a new certificate replaces the first one.
    ///
    /// # Errors
    /// The token is unknown, expired or used up; the name is in use; the request is invalid; the
    /// registry cannot be used.
    pub fn enroll(
        &self,
        token: &Token,
        name: &Name,
        request: &[u8],
        now_ms: u64,
    ) -> Result<Issued, EnrollError> {
        if token.authority() != self.fingerprint() {
            return Err(EnrollError::AnotherAuthority);
        }
        // Without a valid token, no caller gets as far as the disk.
        known_token(&*self.registry().read()?, token, now_ms)?;
        let key = certificates::requested_key(request)?;
        let key_fingerprint = Fingerprint::of(&key.subject_public_key_info());
        self.registry().change(now_ms, |content| {
            let (id, role) = known_token(content, token, now_ms)?;
            let is_holder = |entry: &CertificateEntry| entry.name == *name && entry.is_live(now_ms);
            let is_same_use =
                |entry: &CertificateEntry| entry.token == Some(id) && entry.key == key_fingerprint;
            let has_session =
                content.sessions.values().any(|s| s.name == *name && s.is_live(now_ms));
            if has_session {
                return Err(EnrollError::NameInUse(name.clone()));
            }
            let mut holders =
                content.certificates.values().filter(|entry| is_holder(entry)).peekable();
            if holders.peek().is_some() {
                if !holders.all(is_same_use) {
                    return Err(EnrollError::NameInUse(name.clone()));
                }
                content.certificates.retain(|_, entry| !is_holder(entry));
            } else {
                let entry = content.tokens.get_mut(&id).ok_or(EnrollError::UnknownToken)?;
                entry.uses_left = entry.uses_left.checked_sub(1).ok_or(EnrollError::TokenUsed)?;
            }
            let owner = content.tokens.get(&id).ok_or(EnrollError::UnknownToken)?.owner(id);
            self.issue(content, (name, role, owner), &key, Some(id), now_ms)
        })
    }

    /// Issues the next certificate to the holder of `presented` (DER), with the same name, role and
    /// owner, for the key of `request`. Both certificates are then valid; all others of that name
    /// are not.
    ///
    /// # Errors
    /// The certificate is not accepted, even for renewal; the request is invalid; the registry
    /// cannot be used.
    pub fn renew(
        &self,
        presented: &[u8],
        request: &[u8],
        now_ms: u64,
    ) -> Result<Issued, EnrollError> {
        let content = self.registry().read().map_err(AccessError::Registry)?;
        identify_for_renewal(&content, presented, now_ms)?;
        let key = certificates::requested_key(request)?;
        self.registry().change(now_ms, |content| {
            let Identity { name, role, owner, .. } =
                identify_for_renewal(content, presented, now_ms)?;
            let presented = Fingerprint::of(presented);
            content.certificates.retain(|fingerprint, entry| {
                *fingerprint == presented || entry.name != name || !entry.is_live(now_ms)
            });
            self.issue(content, (&name, role, owner), &key, None, now_ms)
        })
    }

    fn issue(
        &self,
        content: &mut Content,
        (name, role, owner): (&Name, Role, Owner),
        key: &SubjectPublicKeyInfo,
        token: Option<TokenId>,
        now_ms: u64,
    ) -> Result<Issued, EnrollError> {
        let issued = certificates::for_client(name, role, key, self.issuer(), now_ms)?;
        let entry = CertificateEntry {
            serial: issued.serial,
            name: name.clone(),
            role,
            not_before_ms: issued.validity.not_before_ms,
            not_after_ms: issued.validity.not_after_ms,
            revoked_ms: None,
            key: Fingerprint::of(&key.subject_public_key_info()),
            token,
            owner: Some(owner),
        };
        let identity = Identity::of(&entry);
        content.certificates.insert(Fingerprint::of(issued.certificate.der()), entry);
        Ok(Issued {
            identity,
            certificate_pem: issued.certificate.pem(),
            authority_pem: self.certificate_pem().to_owned(),
        })
    }
}

/// Returns the token's ID and role if it is known and has not expired. Does not check whether it
/// has uses left.
pub(super) fn known_token(
    content: &Content,
    token: &Token,
    now_ms: u64,
) -> Result<(TokenId, Role), EnrollError> {
    let (id, hash) = (token.id(), token.hash());
    let entry = content.tokens.get(&id).ok_or(EnrollError::UnknownToken)?;
    if !bool::from(entry.hash.as_bytes().ct_eq(hash.as_bytes())) {
        return Err(EnrollError::UnknownToken);
    }
    if now_ms >= entry.expires_ms { Err(EnrollError::TokenExpired) } else { Ok((id, entry.role)) }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    use super::*;
    use crate::cluster::auth::KeyRequest;
    use crate::cluster::auth::registry::Fault;
    use crate::cluster::auth::testing::{HOUR_MS, NOW_MS, authority, name, one_use};

    #[test]
    fn a_crash_before_the_use_is_on_disk_leaves_the_token_usable_and_issues_nothing() {
        let (_scratch, folder, authority) = authority();
        let token = one_use(&authority);
        let worker = KeyRequest::new(&name("a")).expect("a key");
        *authority.registry().fault.lock().expect("no thread panicked") =
            Some(Fault::BeforeWriting);
        let refused = authority.enroll(&token, &name("a"), worker.request(), NOW_MS);
        assert!(matches!(refused, Err(EnrollError::Registry(_))), "{refused:?}");
        drop(authority);

        let authority = Authority::open(&folder).expect("intact");
        assert!(authority.certificates().expect("readable").is_empty());
        authority.enroll(&token, &name("a"), worker.request(), NOW_MS).expect("the use is left");
    }

    #[test]
    fn a_crash_after_the_use_is_on_disk_issues_the_certificate_to_the_same_key_only() {
        let (_scratch, folder, authority) = authority();
        let token = one_use(&authority);
        let worker = KeyRequest::new(&name("a")).expect("a key");
        *authority.registry().fault.lock().expect("no thread panicked") = Some(Fault::AfterWriting);
        assert!(authority.enroll(&token, &name("a"), worker.request(), NOW_MS).is_err());
        drop(authority);

        let authority = Authority::open(&folder).expect("intact");
        assert_eq!(authority.tokens().expect("readable")[0].1.uses_left, 0);
        let thief = KeyRequest::new(&name("b")).expect("a key");
        for taken in ["a", "b"] {
            let refused = authority.enroll(&token, &name(taken), thief.request(), NOW_MS);
            assert!(
                matches!(refused, Err(EnrollError::TokenUsed | EnrollError::NameInUse(_))),
                "{refused:?}"
            );
        }
        let issued =
            authority.enroll(&token, &name("a"), worker.request(), NOW_MS).expect("the same use");
        assert_eq!((issued.identity.name, issued.identity.role), (name("a"), Role::Worker));
        assert_eq!(
            authority.certificates().expect("readable").len(),
            1,
            "the lost one was replaced"
        );
    }

    #[test]
    fn entries_that_expired_a_week_ago_are_removed_and_still_refused() {
        let (_scratch, _, authority) = authority();
        let token = one_use(&authority);
        let worker = KeyRequest::new(&name("a")).expect("a key");
        let issued =
            authority.enroll(&token, &name("a"), worker.request(), NOW_MS).expect("enrolled");
        let der = CertificateDer::from_pem_slice(issued.certificate_pem.as_bytes()).expect("PEM");
        let later_ms = NOW_MS + 15 * 24 * HOUR_MS;
        authority.create_token(Role::Viewer, NonZeroU32::MIN, HOUR_MS, later_ms).expect("a token");
        assert_eq!(authority.tokens().expect("readable").len(), 1);
        assert!(authority.certificates().expect("readable").is_empty());
        assert!(matches!(authority.identify(&der, later_ms), Err(AccessError::Unknown)));
        let refused = authority.enroll(&token, &name("a"), worker.request(), later_ms);
        assert!(matches!(refused, Err(EnrollError::UnknownToken)), "{refused:?}");
    }
}
