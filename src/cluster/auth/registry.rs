//! The registry: tokens, issued certificates, sessions and revocations, in one file that is
//! replaced as a whole.
//!
//! The file is one line: the SHA-256 of a JSON object in base 32, a space, the object, a line feed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use serde::{Deserialize, Serialize};

use super::files::{self, FileError, FileVersion};
use super::fingerprint::Fingerprint;
use super::name::Name;
use super::owner::Owner;
use super::role::Role;
use super::sessions::SessionEntry;
use super::token::TokenId;

const FORMAT: &str = "nqueens-register/1";

/// Expired entries are listed for another week, and then removed.
const KEPT_AFTER_END_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// Enough for more than a million certificates.
const MOST_BYTES: u64 = 512 << 20;

/// A token without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenEntry {
    /// The role of the certificates that the token is redeemed for.
    pub role: Role,
    /// The number of uses when the token was created.
    pub uses: u32,
    /// The number of uses left.
    pub uses_left: u32,
    /// The time of creation, in ms since 1970.
    pub created_ms: u64,
    /// The time of expiry, in ms since 1970.
    pub expires_ms: u64,
    /// The hash of the secret.
    pub(super) hash: Fingerprint,
    /// The owner that the token was created for, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<Name>,
}

impl TokenEntry {
    /// Returns the owner of the certificates that the token is redeemed for; `id` is the token's
    /// ID.
    pub fn owner(&self, id: TokenId) -> Owner {
        Owner::of(self.owner.as_ref(), id)
    }
}

/// An issued certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertificateEntry {
    /// The serial number, in hexadecimal digits.
    pub serial: String,
    /// The holder's name.
    pub name: Name,
    /// The holder's role.
    pub role: Role,
    /// The start of the validity, in ms since 1970.
    pub not_before_ms: u64,
    /// The end of the validity, in ms since 1970.
    pub not_after_ms: u64,
    /// The time of revocation, in ms since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_ms: Option<u64>,
    /// The fingerprint of the public key.
    pub(super) key: Fingerprint,
    /// The token that the certificate was obtained with; `None` if it was issued as a renewal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
    /// The owner that enrolled the holder, recorded here because tokens are removed. `None` in
    /// entries of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<Owner>,
}

impl CertificateEntry {
    /// Returns the owner that enrolled the holder.
    pub fn owner(&self) -> Owner {
        let of_token = || self.token.map(Owner::of_token);
        self.owner.clone().or_else(of_token).unwrap_or_else(|| Owner::of_certificate(&self.name))
    }

    /// Returns whether the certificate is neither revoked nor expired. It may be not valid yet.
    pub fn is_live(&self, now_ms: u64) -> bool {
        self.revoked_ms.is_none() && now_ms <= self.not_after_ms
    }
}

/// The content of the registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Content {
    pub(super) format: String,
    /// The fingerprint of the authority's certificate.
    pub(super) authority: Fingerprint,
    /// The server's DNS names and IP addresses, without the loopback names.
    pub(super) server_names: Vec<String>,
    pub(super) tokens: BTreeMap<TokenId, TokenEntry>,
    /// By the fingerprint of the whole certificate.
    pub(super) certificates: BTreeMap<Fingerprint, CertificateEntry>,
    /// By the hash of the secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) sessions: BTreeMap<Fingerprint, SessionEntry>,
}

/// The field that every version of the registry has.
#[derive(Debug, Deserialize)]
struct Format {
    format: String,
}

/// The reason why the registry cannot be used. All variants concern this machine, and must not be
/// shown to remote callers.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is damaged.
    #[error("{path} is damaged, so every caller is refused; restore it from a backup", path = .0.display())]
    Damaged(PathBuf),
    /// The file was written by another version.
    #[error("{path} was written by another version ({found}; this version writes {FORMAT})", path = path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version that it names, or the parser's error.
        found: String,
    },
    /// Every user of this machine may access the file.
    #[error("{path} has mode {mode:o}, so every user of this machine can access it; run chmod 600 on it", path = path.display())]
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
}

impl Content {
    pub(super) fn new(authority: Fingerprint, server_names: Vec<String>) -> Self {
        let (tokens, certificates, sessions) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { format: FORMAT.into(), authority, server_names, tokens, certificates, sessions }
    }

    /// Removes entries that ended long ago. They are still refused, as unknown.
    fn remove_old(&mut self, now_ms: u64) {
        let is_recent = |end_ms: u64| now_ms <= end_ms.saturating_add(KEPT_AFTER_END_MS);
        self.tokens.retain(|_, token| is_recent(token.expires_ms));
        self.certificates.retain(|_, certificate| is_recent(certificate.not_after_ms));
        self.sessions
            .retain(|_, session| is_recent(session.revoked_ms.unwrap_or(session.not_after_ms)));
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let json = serde_json::to_vec(self).expect("numbers and strings serialise");
        [Fingerprint::of(&json).to_string().as_bytes(), b" ", &json, b"\n"].concat()
    }

    fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self, RegistryError> {
        let json = verified(bytes).ok_or_else(|| RegistryError::Damaged(path.to_owned()))?;
        let unknown = |found: String| RegistryError::Version { path: path.to_owned(), found };
        let Format { format } =
            serde_json::from_slice(json).map_err(|error| unknown(error.to_string()))?;
        if format != FORMAT {
            return Err(unknown(format));
        }
        serde_json::from_slice(json).map_err(|error| unknown(error.to_string()))
    }
}

/// Returns the JSON of a line if its checksum matches.
fn verified(line: &[u8]) -> Option<&[u8]> {
    let (sum, rest) = line.split_at_checked(52)?;
    let json = rest.strip_prefix(b" ")?.strip_suffix(b"\n")?;
    (Fingerprint::of(json).to_string().as_bytes() == sum).then_some(json)
}

/// An open registry, which other processes may use at the same time.
#[derive(Debug)]
pub(super) struct Registry {
    path: PathBuf,
    lock: PathBuf,
    loaded: RwLock<Loaded>,
    /// Serialises the changes made by threads of this process.
    writing: Mutex<()>,
    #[cfg(test)]
    pub(super) fault: Mutex<Option<Fault>>,
}

/// A version of the file.
#[derive(Debug)]
struct Loaded {
    content: Arc<Content>,
    version: FileVersion,
    /// Kept open, so that no other version gets the same inode.
    _file: File,
}

/// The point at which a test makes the disk fail.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// Before the new version is written.
    BeforeWriting,
    /// After it is written, before the caller is answered.
    AfterWriting,
}

impl Registry {
    pub(super) const FILE: &'static str = "register";
    const LOCK: &'static str = "lock";

    /// Opens the registry in `folder`.
    pub(super) fn open(folder: &Path) -> Result<Self, RegistryError> {
        let path = folder.join(Self::FILE);
        let loaded = RwLock::new(load(&path)?);
        Ok(Self {
            path,
            lock: folder.join(Self::LOCK),
            loaded,
            writing: Mutex::new(()),
            #[cfg(test)]
            fault: Mutex::new(None),
        })
    }

    /// Returns the current content, including changes by other processes.
    pub(super) fn read(&self) -> Result<Arc<Content>, RegistryError> {
        let metadata = fs::metadata(&self.path).map_err(FileError::at(&self.path, "read"))?;
        let version = FileVersion::of(&metadata);
        {
            let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
            if loaded.version == version {
                return Ok(Arc::clone(&loaded.content));
            }
        }
        let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        if loaded.version != version {
            *loaded = load(&self.path)?;
        }
        Ok(Arc::clone(&loaded.content))
    }

    /// Changes the registry. Returns the result of `change` once the new version is on disk; fails
    /// if `change` or the disk fails.
    pub(super) fn change<T, E: From<RegistryError>>(
        &self,
        now_ms: u64,
        change: impl FnOnce(&mut Content) -> Result<T, E>,
    ) -> Result<T, E> {
        let _one_thread = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let _one_process = files::lock(&self.lock).map_err(RegistryError::File)?;
        let mut content = Content::clone(&*self.read()?);
        let result = change(&mut content)?;
        content.remove_old(now_ms);
        self.write(content)?;
        Ok(result)
    }

    fn write(&self, content: Content) -> Result<(), RegistryError> {
        #[cfg(test)]
        self.fail_if(|fault| matches!(fault, Fault::BeforeWriting))?;
        let file = files::replace(&self.path, &content.to_bytes())?;
        #[cfg(test)]
        self.fail_if(|fault| matches!(fault, Fault::AfterWriting))?;
        let version = FileVersion::of(&file.metadata().map_err(FileError::at(&self.path, "read"))?);
        let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        *loaded = Loaded { content: Arc::new(content), version, _file: file };
        Ok(())
    }

    #[cfg(test)]
    fn fail_if(&self, here: impl FnOnce(Fault) -> bool) -> Result<(), RegistryError> {
        let fault = *self.fault.lock().expect("no test panics with it");
        if !fault.is_some_and(here) {
            return Ok(());
        }
        Err(FileError::at(&self.path, "written")(std::io::Error::other("an injected fault")).into())
    }
}

fn load(path: &Path) -> Result<Loaded, RegistryError> {
    let exposed = |path, mode| RegistryError::OpenToOthers { path, mode };
    let (file, bytes) = files::read_private(path, MOST_BYTES, exposed)?;
    let version = FileVersion::of(&file.metadata().map_err(FileError::at(path, "read"))?);
    let content = Arc::new(Content::from_bytes(path, &bytes)?);
    Ok(Loaded { content, version, _file: file })
}
