//! Authentication and authorisation: a coordinator's own certificate authority, tokens with which
//! newcomers enrol, short-lived client certificates that are renewed, browser sessions, roles and
//! revocation.
//!
//! # The authority's directory
//! | file | content |
//! |---|---|
//! | `authority.key` | the private key that signs every certificate; its possessor can act as the authority |
//! | `authority.crt` | its certificate, which is public; its SHA-256 is the authority's *fingerprint* |
//! | `register` | the registry: tokens and sessions (hashes only), issued certificates, revocations, the server's names |
//! | `lock` | held while the registry is written |
//!
//! The server's own key and certificate live in memory only: [`ServerIdentity`] creates them when a
//! coordinator starts, and replaces them before they expire. Clients trust the authority, not them.
//!
//! # Guarantees
//! - Only a certificate that is in the registry, byte for byte, is accepted; what it allows is what
//!   the registry says.
//! - A token's use is on disk, together with the certificate that it was redeemed for, before the
//!   certificate is handed out. If the answer is lost, the client repeats the request with the same
//!   key, which does not count as a second use.
//! - Each certificate has an owner, the one of the token that it was obtained with, and keeps it
//!   when it is renewed. Choosing a name never makes anyone another's owner.
//! - The registry is replaced as a whole: a crash leaves the old version or the new one. If it is
//!   damaged, it is refused, and then so is every caller.
//! - Other processes may create tokens and revoke while a coordinator serves: it sees each change
//!   at the next call.
//! - A clock that is set back locks no client out for long: a certificate that is in the registry
//!   and not valid yet is accepted for its renewal only; the coordinator replaces its own.
//! - No clock is read in this module: `now_ms`, in ms since 1970, is always a parameter.
//!
//! An older copy of the directory that is restored lacks the uses and revocations made since; no
//! file can reveal that.

mod access;
mod ca;
mod certificates;
mod credentials;
mod enrolment;
mod files;
mod fingerprint;
mod name;
mod owner;
mod page_sessions;
mod registry;
mod renewal;
mod role;
mod server;
mod sessions;
mod signing;
#[cfg(test)]
mod testing;
mod text;
mod tls;
mod token;

pub use access::{AccessError, Identity};
pub use ca::{Authority, AuthorityError, Revoked};
pub use certificates::CertificateError;
pub use credentials::{Credentials, CredentialsError, KeyRequest};
pub use enrolment::{EnrollError, Issued};
pub use files::FileError;
pub(crate) use files::{read_at_most as read_private, replace as write_private};
pub use fingerprint::{Fingerprint, FingerprintError};
pub use name::{Name, NameError};
pub use owner::{Owner, OwnerError};
pub use registry::{CertificateEntry, RegistryError, TokenEntry};
pub use renewal::Renewal;
pub use role::{Action, Role, RoleError};
pub use server::ServerIdentity;
pub use sessions::{
    InProcessCaller, InProcessWorker, SessionEntry, SessionError, SessionSecret, SessionSecretError,
};
pub use signing::{SigningKey, SigningKeyError};
pub use tls::{PinnedAuthority, client_config};
pub use token::{Token, TokenError, TokenId, TokenIdError};
