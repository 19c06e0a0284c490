//! The identification of callers by their certificates, and the authorization of their calls.

use std::sync::Arc;

use super::ca::Authority;
use super::fingerprint::Fingerprint;
use super::name::Name;
use super::owner::Owner;
use super::registry::{CertificateEntry, Content, RegistryError};
use super::role::{Action, Role};

/// The holder of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The holder's name, which no other live certificate has.
    pub name: Name,
    /// The holder's role.
    pub role: Role,
    /// The owner that enrolled the holder.
    pub owner: Owner,
    /// The certificate's serial number, in hexadecimal digits.
    pub serial: String,
    /// The end of the certificate's validity, in ms since 1970.
    pub not_after_ms: u64,
}

/// The reason why a call is refused. All variants but the last two mean that the caller is not
/// authenticated.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// No client certificate was presented.
    #[error("no client certificate was presented; enrol with a token")]
    NoCertificate,
    /// The certificate was issued by another authority, replaced by a newer one, or forgotten.
    #[error(
        "the client certificate is unknown to this coordinator or was replaced; enrol with a new token"
    )]
    Unknown,
    /// The certificate is not valid yet.
    #[error("the client certificate is not valid yet; the coordinator's clock was set back")]
    NotYetValid,
    /// The certificate has expired.
    #[error("the client certificate has expired; enrol with a new token")]
    Expired,
    /// The certificate was revoked.
    #[error("the client certificate was revoked")]
    Revoked,
    /// The caller is authenticated, but its role does not allow the action.
    #[error("the role {role} may not {action}")]
    Forbidden {
        /// The caller's role.
        role: Role,
        /// The requested action.
        action: Action,
    },
    /// The registry cannot be used, so every call is refused. The message is for the coordinator's
    /// log.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

impl Identity {
    pub(super) fn of(entry: &CertificateEntry) -> Self {
        let CertificateEntry { serial, name, role, not_after_ms, .. } = entry;
        let (name, serial) = (name.clone(), serial.clone());
        Self { name, role: *role, owner: entry.owner(), serial, not_after_ms: *not_after_ms }
    }
}

impl Authority {
    /// Returns the identity of a certificate's holder (DER). TLS has verified that the caller has
    /// the private key.
    ///
    /// # Errors
    /// The certificate is not in the registry, not valid at `now_ms`, or revoked; or the registry
    /// cannot be used.
    pub fn identify(&self, certificate: &[u8], now_ms: u64) -> Result<Identity, AccessError> {
        let content: Arc<Content> = self.registry().read()?;
        identify(&content, certificate, now_ms)
    }

    /// Returns the identity of a certificate's holder (DER) if its role allows `action`. A
    /// certificate that is not valid yet is accepted for its renewal.
    ///
    /// # Errors
    /// There is no certificate, it is not accepted, or the role does not allow the action; or the
    /// registry cannot be used.
    pub fn authorize(
        &self,
        certificate: Option<&[u8]>,
        action: Action,
        now_ms: u64,
    ) -> Result<Identity, AccessError> {
        let certificate = certificate.ok_or(AccessError::NoCertificate)?;
        let content = self.registry().read()?;
        let identity = match action {
            Action::Renew => identify_for_renewal(&content, certificate, now_ms)?,
            _ => identify(&content, certificate, now_ms)?,
        };
        let role = identity.role;
        if role.may(action) { Ok(identity) } else { Err(AccessError::Forbidden { role, action }) }
    }
}

/// Returns the identity of a certificate's holder. The certificate is looked up by its hash, so its
/// content need not be parsed.
fn identify(content: &Content, certificate: &[u8], now_ms: u64) -> Result<Identity, AccessError> {
    let entry =
        content.certificates.get(&Fingerprint::of(certificate)).ok_or(AccessError::Unknown)?;
    if entry.revoked_ms.is_some() {
        Err(AccessError::Revoked)
    } else if now_ms < entry.not_before_ms {
        Err(AccessError::NotYetValid)
    } else if now_ms > entry.not_after_ms {
        Err(AccessError::Expired)
    } else {
        Ok(Identity::of(entry))
    }
}

/// Returns the identity for a renewal. This accepts a certificate that is not valid yet, since the
/// clock was set back after it was issued: whatever the time, the registry proves that it was
/// issued and neither revoked nor replaced.
pub(super) fn identify_for_renewal(
    content: &Content,
    certificate: &[u8],
    now_ms: u64,
) -> Result<Identity, AccessError> {
    match (
        identify(content, certificate, now_ms),
        content.certificates.get(&Fingerprint::of(certificate)),
    ) {
        (Err(AccessError::NotYetValid), Some(entry)) => Ok(Identity::of(entry)),
        (identified, _) => identified,
    }
}
