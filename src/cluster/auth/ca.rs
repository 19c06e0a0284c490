//! The certificate authority: it creates tokens, issues certificates for them, and identifies their
//! holders.

use std::fmt;
use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{Issuer, KeyPair, PublicKeyData, SubjectPublicKeyInfo};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use subtle::ConstantTimeEq;

use super::certificates::{self, CertificateError};
use super::files::{self, FileError};
use super::fingerprint::Fingerprint;
use super::name::Name;
use super::owner::Owner;
use super::registry::{CertificateEntry, Content, Register, RegisterError, TokenEntry, TokenId};
use super::role::{Action, Role};
use super::token::Token;
use crate::atomic_file;

const KEY: &str = "authority.key";
const CERTIFICATE: &str = "authority.crt";

/// Keys and certificates are far smaller.
const MOST_PEM_BYTES: u64 = 64 << 10;

/// A certificate authority with its register, in a directory. Threads may share the value, and
/// processes the directory.
///
/// Every method that writes waits for the disk: in async code, call it where blocking is allowed.
pub struct Authority {
    certificate_pem: String,
    certificate: CertificateDer<'static>,
    fingerprint: Fingerprint,
    issuer: Issuer<'static, KeyPair>,
    register: Register,
}

/// The reason why an authority cannot be created or used.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The directory is not empty.
    #[error("there is something in {path} already, and it is kept; name another folder", path = .0.display())]
    Exists(PathBuf),
    /// There is no authority in the directory.
    #[error("there is no authority in {path}; nqueens coordinator init makes one", path = .0.display())]
    Missing(PathBuf),
    /// The key or the certificate is damaged, or they do not belong together.
    #[error("{path} is not as it was written, or belongs to another authority: restore a copy of it", path = .0.display())]
    Damaged(PathBuf),
    /// Others can access the key, so it may be compromised.
    #[error("{path} has mode {mode:o}, open to everybody on this machine; chmod 600 closes it", path = path.display())]
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The register cannot be used.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// A certificate cannot be made, or a server name is invalid.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The name has no live certificate or session.
    #[error(
        "nobody named {0} holds a certificate or a session that could be revoked; nqueens token list shows who does"
    )]
    NoSuchName(Name),
    /// There is no token with this ID.
    #[error("there is no token {0}; nqueens token list shows which there are")]
    NoSuchToken(TokenId),
}

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
    #[error("no client certificate was shown; enrol with a token")]
    NoCertificate,
    /// The certificate was issued by another authority, replaced by a newer one, or forgotten.
    #[error(
        "the client certificate is not one of this coordinator's, or was replaced; enrol with a new token"
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
    /// The register cannot be used, so every call is refused. The message is for the coordinator's
    /// log.
    #[error(transparent)]
    Register(#[from] RegisterError),
}

/// The reason why a certificate is not issued.
#[derive(Debug, thiserror::Error)]
pub enum EnrollError {
    /// The token is for another coordinator.
    #[error("the token is for another coordinator; create one on this one")]
    AnotherAuthority,
    /// The token is unknown.
    #[error("the token is not known here; create one with nqueens token create")]
    UnknownToken,
    /// The token has expired.
    #[error("the token has expired; create one with nqueens token create")]
    TokenExpired,
    /// The token has no uses left.
    #[error("the token has been used; create one with nqueens token create")]
    TokenUsed,
    /// The name is already in use.
    #[error("the name {0} is in use; take another, or revoke it first with nqueens revoke {0}")]
    NameInUse(Name),
    /// A worker's token was used to sign in to the dashboard.
    #[error(
        "the token is a worker's and opens no dashboard; create one with nqueens token create --role viewer or operator"
    )]
    NotForPeople,
    /// The certificate request is invalid, or the certificate cannot be made.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The certificate to be renewed is not accepted.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The register cannot be used, so every call is refused. The message is for the coordinator's
    /// log.
    #[error(transparent)]
    Register(#[from] RegisterError),
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

/// The effects of a revocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoked {
    /// The number of live certificates that were revoked.
    pub certificates: usize,
    /// The number of live browser sessions that were revoked.
    pub sessions: usize,
    /// The tokens with which the name was enrolled and that can still be used.
    pub tokens: Vec<TokenId>,
}

impl Authority {
    /// Creates a new authority in `folder`, which must be empty or missing. `names` are the
    /// coordinator's DNS names and IP addresses, in addition to the loopback names. The directory
    /// appears complete or not at all.
    ///
    /// # Errors
    /// The directory is not empty, a name is invalid, or a file operation fails.
    pub fn init(folder: &Path, names: &[String], now_ms: u64) -> Result<Self, AuthorityError> {
        let names = certificates::server_names(names)?;
        if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(AuthorityError::Exists(folder.to_owned()));
        }
        let key = KeyPair::generate().map_err(CertificateError::Making)?;
        let certificate = certificates::authority(&key, now_ms)?;
        let content = Content::new(Fingerprint::of(certificate.der()), names);

        let above = files::folder_of(folder);
        fs::create_dir_all(above).map_err(FileError::at(above, "created"))?;
        let mut name = std::ffi::OsString::from(".");
        name.push(folder.file_name().unwrap_or_default());
        name.push(format!(".{}.part", std::process::id()));
        let beside = folder.with_file_name(name);
        // Left behind by a killed process with the same ID.
        let _ = fs::remove_dir_all(&beside);
        let made = || {
            files::create_private_folder(&beside).map_err(FileError::at(&beside, "created"))?;
            files::replace(&beside.join(KEY), key.serialize_pem().as_bytes())?;
            files::replace(&beside.join(CERTIFICATE), certificate.pem().as_bytes())?;
            files::replace(&beside.join(Register::FILE), &content.to_bytes())?;
            // This fails if another process was faster.
            fs::rename(&beside, folder).map_err(FileError::at(folder, "created"))?;
            atomic_file::sync_directory_of(folder).map_err(FileError::at(folder, "made durable"))
        };
        if let Err(error) = made() {
            let _ = fs::remove_dir_all(&beside);
            return Err(error.into());
        }
        Self::open(folder)
    }

    /// Opens the authority in `folder`.
    ///
    /// # Errors
    /// There is no authority, one of its files is damaged, or others may access its key.
    pub fn open(folder: &Path) -> Result<Self, AuthorityError> {
        let (key_path, certificate_path) = (folder.join(KEY), folder.join(CERTIFICATE));
        let (key_file, key) = files::read_at_most(&key_path, MOST_PEM_BYTES).map_err(|error| {
            let missing = error.source.kind() == io::ErrorKind::NotFound;
            if missing { AuthorityError::Missing(folder.to_owned()) } else { error.into() }
        })?;
        if let Some(mode) =
            files::open_to_others(&key_file).map_err(FileError::at(&key_path, "read"))?
        {
            return Err(AuthorityError::OpenToOthers { path: key_path, mode });
        }
        let register = Register::open(folder)?;
        let content = register.read()?;
        let (_, certificate_pem) = files::read_at_most(&certificate_path, MOST_PEM_BYTES)?;
        let certificate = CertificateDer::from_pem_slice(&certificate_pem).ok();
        let certificate_pem = String::from_utf8(certificate_pem).ok();
        let fits = |der: &CertificateDer<'_>| Fingerprint::of(der) == content.authority;
        let Some((certificate, certificate_pem)) = certificate.filter(fits).zip(certificate_pem)
        else {
            return Err(AuthorityError::Damaged(certificate_path));
        };
        let key = String::from_utf8(key).ok().and_then(|pem| KeyPair::from_pem(&pem).ok());
        let issuer = key.and_then(|key| certificates::issuer(&certificate, key));
        let issuer = issuer.ok_or(AuthorityError::Damaged(key_path))?;
        let fingerprint = content.authority;
        Ok(Self { certificate_pem, certificate, fingerprint, issuer, register })
    }

    /// Returns the SHA-256 of the authority's certificate, which identifies the authority.
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Returns the authority's certificate in PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Returns the authority's certificate in DER.
    pub const fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    pub(super) const fn issuer(&self) -> &Issuer<'static, KeyPair> {
        &self.issuer
    }

    /// Returns the coordinator's names, without the loopback names.
    ///
    /// # Errors
    /// The register cannot be used.
    pub fn server_names(&self) -> Result<Vec<String>, RegisterError> {
        Ok(self.register.read()?.server_names.clone())
    }

    /// Adds names of the coordinator. They take effect with its next server certificate.
    ///
    /// # Errors
    /// A name is invalid, or the register cannot be used.
    pub fn add_server_names(&self, names: &[String], now_ms: u64) -> Result<(), AuthorityError> {
        let known = self.server_names()?;
        let all = certificates::server_names(&[known.as_slice(), names].concat())?;
        if all == known {
            return Ok(());
        }
        self.register.change(now_ms, |content| {
            content.server_names = all;
            Ok(())
        })
    }

    /// Creates a token that can be redeemed for `uses` certificates of `role` within `life_ms`. It
    /// cannot be shown again: only a hash of it is stored.
    ///
    /// # Errors
    /// The register cannot be used, or there are no random numbers.
    pub fn create_token(
        &self,
        role: Role,
        uses: NonZeroU32,
        life_ms: u64,
        now_ms: u64,
    ) -> Result<Token, AuthorityError> {
        self.create_token_for(None, role, uses, life_ms, now_ms)
    }

    /// Creates a token as [`Self::create_token`] does. The certificates that it is redeemed for
    /// belong to `owner`, like those from the owner's other tokens; without an owner, the token counts
    /// as a separate one.
    ///
    /// # Errors
    /// The register cannot be used, or there are no random numbers.
    pub fn create_token_for(
        &self,
        owner: Option<&Name>,
        role: Role,
        uses: NonZeroU32,
        life_ms: u64,
        now_ms: u64,
    ) -> Result<Token, AuthorityError> {
        self.register.change(now_ms, |content| {
            let mut token = Token::random(self.fingerprint).map_err(CertificateError::Random)?;
            while content.tokens.contains_key(&token.id()) {
                token = Token::random(self.fingerprint).map_err(CertificateError::Random)?;
            }
            let (uses, expires_ms) = (uses.get(), now_ms.saturating_add(life_ms));
            let hash = token.hash();
            let owner = owner.cloned();
            let entry = TokenEntry {
                role,
                uses,
                uses_left: uses,
                created_ms: now_ms,
                expires_ms,
                hash,
                owner,
            };
            content.tokens.insert(token.id(), entry);
            Ok(token)
        })
    }

    /// Returns all recorded tokens; expired ones are kept for a week.
    ///
    /// # Errors
    /// The register cannot be used.
    pub fn tokens(&self) -> Result<Vec<(TokenId, TokenEntry)>, RegisterError> {
        Ok(self.register.read()?.tokens.iter().map(|(id, entry)| (*id, entry.clone())).collect())
    }

    /// Returns all recorded certificates; expired ones are kept for a week.
    ///
    /// # Errors
    /// The register cannot be used.
    pub fn certificates(&self) -> Result<Vec<CertificateEntry>, RegisterError> {
        Ok(self.register.read()?.certificates.values().cloned().collect())
    }

    /// Revokes a token.
    ///
    /// # Errors
    /// There is no such token, or the register cannot be used.
    pub fn revoke_token(&self, id: TokenId, now_ms: u64) -> Result<(), AuthorityError> {
        self.register.change(now_ms, |content| {
            content.tokens.remove(&id).map(drop).ok_or(AuthorityError::NoSuchToken(id))
        })
    }

    /// Revokes every live certificate and session of `name`, which is then free again.
    ///
    /// # Errors
    /// There is no such certificate or session, or the register cannot be used.
    pub fn revoke(&self, name: &Name, now_ms: u64) -> Result<Revoked, AuthorityError> {
        self.register.change(now_ms, |content| {
            let mut certificates = 0;
            for entry in content.certificates.values_mut() {
                if entry.name == *name && entry.is_live(now_ms) {
                    entry.revoked_ms = Some(now_ms);
                    certificates += 1;
                }
            }
            let mut sessions = 0;
            for session in content.sessions.values_mut() {
                if session.name == *name && session.is_live(now_ms) {
                    session.revoked_ms = Some(now_ms);
                    sessions += 1;
                }
            }
            if certificates + sessions == 0 {
                return Err(AuthorityError::NoSuchName(name.clone()));
            }
            let usable = |id: &TokenId| {
                content
                    .tokens
                    .get(id)
                    .is_some_and(|token| token.uses_left > 0 && now_ms < token.expires_ms)
            };
            let bought = content.certificates.values().filter(|entry| entry.name == *name);
            let signed_in = content.sessions.values().filter(|session| session.name == *name);
            let bought = bought
                .filter_map(|entry| entry.token)
                .chain(signed_in.map(|session| session.token));
            let mut tokens: Vec<TokenId> = bought.filter(usable).collect();
            tokens.sort_unstable();
            tokens.dedup();
            Ok(Revoked { certificates, sessions, tokens })
        })
    }

    /// Issues a first certificate for `token` to the holder of the key that signed `request` (PKCS
    /// #10 in DER); nothing but the public key is taken from the request. The token's use is on
    /// disk before this returns. A repeated call with the same token, name and key counts as the
    /// same use: the answer was lost, and a new certificate replaces the first one.
    ///
    /// # Errors
    /// The token is unknown, expired or used up; the name is in use; the request is invalid; the
    /// register cannot be used.
    pub fn enroll(
        &self,
        token: &Token,
        name: &Name,
        request: &[u8],
        now_ms: u64,
    ) -> Result<Issued, EnrollError> {
        if token.authority() != self.fingerprint {
            return Err(EnrollError::AnotherAuthority);
        }
        // Without a valid token, no caller gets as far as the disk.
        known_token(&*self.register.read()?, token, now_ms)?;
        let key = certificates::requested_key(request)?;
        let key_print = Fingerprint::of(&key.subject_public_key_info());
        self.register.change(now_ms, |content| {
            let (id, role) = known_token(content, token, now_ms)?;
            let is_holder = |entry: &CertificateEntry| entry.name == *name && entry.is_live(now_ms);
            let same = |entry: &CertificateEntry| entry.token == Some(id) && entry.key == key_print;
            if content
                .sessions
                .values()
                .any(|session| session.name == *name && session.is_live(now_ms))
            {
                return Err(EnrollError::NameInUse(name.clone()));
            }
            let mut holders =
                content.certificates.values().filter(|entry| is_holder(entry)).peekable();
            if holders.peek().is_some() {
                if !holders.all(same) {
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
    /// The certificate is not accepted, even for renewal; the request is invalid; the register
    /// cannot be used.
    pub fn renew(
        &self,
        presented: &[u8],
        request: &[u8],
        now_ms: u64,
    ) -> Result<Issued, EnrollError> {
        identify_for_renewal(
            &*self.register.read().map_err(AccessError::Register)?,
            presented,
            now_ms,
        )?;
        let key = certificates::requested_key(request)?;
        self.register.change(now_ms, |content| {
            let Identity { name, role, owner, .. } =
                identify_for_renewal(content, presented, now_ms)?;
            let presented = Fingerprint::of(presented);
            content.certificates.retain(|print, entry| {
                *print == presented || entry.name != name || !entry.is_live(now_ms)
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
        let made = certificates::client(name, role, key, &self.issuer, now_ms)?;
        let entry = CertificateEntry {
            serial: made.serial,
            name: name.clone(),
            role,
            not_before_ms: made.validity.not_before_ms,
            not_after_ms: made.validity.not_after_ms,
            revoked_ms: None,
            key: Fingerprint::of(&key.subject_public_key_info()),
            token,
            owner: Some(owner),
        };
        let identity = Identity::of(&entry);
        content.certificates.insert(Fingerprint::of(made.certificate.der()), entry);
        Ok(Issued {
            identity,
            certificate_pem: made.certificate.pem(),
            authority_pem: self.certificate_pem.clone(),
        })
    }

    /// Returns the identity of a certificate's holder (DER). TLS has verified that the caller has
    /// the private key.
    ///
    /// # Errors
    /// The certificate is not in the register, not valid at `now_ms`, or revoked; or the register
    /// cannot be used.
    pub fn identify(&self, certificate: &[u8], now_ms: u64) -> Result<Identity, AccessError> {
        let content: Arc<Content> = self.register.read()?;
        identify(&content, certificate, now_ms)
    }

    /// Returns the identity of a certificate's holder (DER) if its role allows `action`. A
    /// certificate that is not valid yet is accepted for its renewal.
    ///
    /// # Errors
    /// There is no certificate, it is not accepted, or the role does not allow the action; or the
    /// register cannot be used.
    pub fn authorize(
        &self,
        certificate: Option<&[u8]>,
        action: Action,
        now_ms: u64,
    ) -> Result<Identity, AccessError> {
        let certificate = certificate.ok_or(AccessError::NoCertificate)?;
        let content = self.register.read()?;
        let identity = match action {
            Action::Renew => identify_for_renewal(&content, certificate, now_ms)?,
            _ => identify(&content, certificate, now_ms)?,
        };
        let role = identity.role;
        if role.may(action) { Ok(identity) } else { Err(AccessError::Forbidden { role, action }) }
    }

    pub(super) const fn register(&self) -> &Register {
        &self.register
    }
}

impl Identity {
    fn of(entry: &CertificateEntry) -> Self {
        let CertificateEntry { serial, name, role, not_after_ms, .. } = entry;
        let (name, serial) = (name.clone(), serial.clone());
        Self { name, role: *role, owner: entry.owner(), serial, not_after_ms: *not_after_ms }
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
/// clock was set back after it was issued: whatever the time, the register proves that it was
/// issued and neither revoked nor replaced.
fn identify_for_renewal(
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

/// Omits the key.
impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::cluster::auth::registry::Fault;
    use crate::cluster::auth::{Fingerprint, KeyRequest};

    const NOW_MS: u64 = 1_800_000_000_000;
    const HOUR_MS: u64 = 3_600_000;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir()
                .join(format!("nqueens-authority-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn one_use(authority: &Authority) -> Token {
        authority.create_token(Role::Worker, NonZeroU32::MIN, HOUR_MS, NOW_MS).expect("a token")
    }

    fn name(text: &str) -> Name {
        text.parse().expect("a name")
    }

    #[test]
    fn a_crash_before_the_use_is_on_disk_leaves_the_token_good_and_issues_nothing() {
        let folder = Folder::new("before");
        let authority = Authority::init(&folder.0, &[], NOW_MS).expect("made");
        let token = one_use(&authority);
        let worker = KeyRequest::new(&name("a")).expect("a key");
        *authority.register().fault.lock().expect("ours") = Some(Fault::BeforeWriting);
        let refused = authority.enroll(&token, &name("a"), worker.request(), NOW_MS);
        assert!(matches!(refused, Err(EnrollError::Register(_))), "{refused:?}");
        drop(authority);

        let authority = Authority::open(&folder.0).expect("as it was");
        assert!(authority.certificates().expect("readable").is_empty());
        authority.enroll(&token, &name("a"), worker.request(), NOW_MS).expect("the use is left");
    }

    #[test]
    fn a_crash_after_the_use_is_on_disk_gives_the_certificate_to_the_same_key_alone() {
        let folder = Folder::new("after");
        let authority = Authority::init(&folder.0, &[], NOW_MS).expect("made");
        let token = one_use(&authority);
        let worker = KeyRequest::new(&name("a")).expect("a key");
        *authority.register().fault.lock().expect("ours") = Some(Fault::AfterWriting);
        assert!(authority.enroll(&token, &name("a"), worker.request(), NOW_MS).is_err());
        drop(authority);

        let authority = Authority::open(&folder.0).expect("as it was written");
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
        assert_eq!(authority.certificates().expect("readable").len(), 1, "the lost one is no more");
    }

    #[test]
    fn ten_thousand_tokens_and_certificates_stay_fast() {
        let folder = Folder::new("many");
        let authority = Authority::init(&folder.0, &[], NOW_MS).expect("made");
        let (token, worker) = (one_use(&authority), KeyRequest::new(&name("a")).expect("a key"));
        let filled = authority.register().change(NOW_MS, |content| {
            let known = content.tokens.values().next().expect("one").clone();
            for i in 0..10_000_u32 {
                let hash = Fingerprint::of(&i.to_le_bytes());
                content
                    .tokens
                    .insert(TokenId::of(hash.as_bytes()), TokenEntry { hash, ..known.clone() });
                let entry = CertificateEntry {
                    serial: "40".repeat(16),
                    name: name(&format!("worker-{i}")),
                    role: Role::Worker,
                    not_before_ms: NOW_MS,
                    not_after_ms: NOW_MS + HOUR_MS,
                    revoked_ms: None,
                    key: hash,
                    token: None,
                    owner: None,
                };
                content.certificates.insert(hash, entry);
            }
            Ok::<_, AuthorityError>(())
        });
        filled.expect("written");
        let timed = |what: &str, most_ms: u128, run: &mut dyn FnMut()| {
            let start = Instant::now();
            run();
            let took = start.elapsed();
            assert!(took.as_millis() < most_ms, "{what} took {took:?}");
            let _ = std::io::Write::write_all(
                &mut io::stdout(),
                format!("{what}: {took:?}\n").as_bytes(),
            );
        };
        // The limits are generous, since other tests share the machine and its disk.
        timed("open", 2000, &mut || drop(Authority::open(&folder.0).expect("opens")));
        let mut issued = None;
        timed("enrol", 2000, &mut || {
            issued = authority.enroll(&token, &name("a"), worker.request(), NOW_MS).ok();
        });
        let pem = issued.expect("enrolled").certificate_pem;
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM");
        timed("1000 calls identified", 1000, &mut || {
            for _ in 0..1000 {
                authority.identify(&der, NOW_MS).expect("known");
            }
        });
    }

    #[test]
    fn a_register_without_owners_opens_and_each_certificate_has_one_of_its_own() {
        let folder = Folder::new("older");
        let authority = Authority::init(&folder.0, &[], NOW_MS).expect("made");
        let (bought, renewed) = (b"a certificate".as_slice(), b"another".as_slice());
        let json = format!(
            concat!(
                r#"{{"format":"nqueens-register/1","authority":"{authority}","server_names":[],"tokens":{{"aaaaaaaa":"#,
                r#"{{"role":"worker","uses":2,"uses_left":1,"created_ms":1799999990000,"expires_ms":1800003600000,"#,
                r#""hash":"{hash}"}}}},"certificates":{{"{bought}":{{"serial":"41","name":"anna","role":"worker","#,
                r#""not_before_ms":1799999700000,"not_after_ms":1800604800000,"key":"{hash}","token":"aaaaaaaa"}},"#,
                r#""{renewed}":{{"serial":"42","name":"bert","role":"worker","not_before_ms":1799999700000,"#,
                r#""not_after_ms":1800604800000,"key":"{hash}"}}}}}}"#,
            ),
            authority = authority.fingerprint(),
            bought = Fingerprint::of(bought),
            renewed = Fingerprint::of(renewed),
            hash = "a".repeat(52),
        );
        let line = format!("{} {json}\n", Fingerprint::of(json.as_bytes()));
        fs::write(folder.0.join(Register::FILE), line).expect("written");
        drop(authority);

        let authority = Authority::open(&folder.0).expect("it opens");
        let (id, token) = authority.tokens().expect("readable").remove(0);
        assert_eq!(token.owner(id).as_str(), "token:aaaaaaaa");
        let request = KeyRequest::new(&name("a")).expect("a key");
        for (certificate, owner) in [(bought, "token:aaaaaaaa"), (renewed, "certificate:bert")] {
            let holder = authority.identify(certificate, NOW_MS).expect("known");
            assert_eq!(holder.owner.as_str(), owner);
            let issued = authority.renew(certificate, request.request(), NOW_MS).expect("renewed");
            assert_eq!(issued.identity.owner.as_str(), owner, "it is inherited");
        }
        Authority::open(&folder.0).expect("what was written in its place opens, too");
    }

    #[test]
    fn what_ended_a_week_ago_is_forgotten_and_still_refused() {
        let folder = Folder::new("forgotten");
        let authority = Authority::init(&folder.0, &[], NOW_MS).expect("made");
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
