//! Key pairs for signatures (Ed25519, RFC 8032), kept in private files.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};

use super::files::{FileError, create, read_private};

/// A key pair that signs messages.
pub struct SigningKey(Ed25519KeyPair);

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(…)")
    }
}

/// The reason that a signing key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SigningKeyError {
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Other users of this machine may read the file.
    #[error("{path} can be read by other users (mode {1:o}); run chmod 600 on it", path = .0.display())]
    Exposed(PathBuf, u32),
    /// The file is not a key.
    #[error("{path} is damaged: it is not a PKCS #8 key for Ed25519", path = .0.display())]
    Damaged(PathBuf),
    /// The system has no random bytes.
    #[error("the system has no random bytes for a new key")]
    Random,
}

impl SigningKey {
    /// Creates a key pair.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn generate() -> Result<Self, SigningKeyError> {
        let (key, _) = generate()?;
        Ok(key)
    }

    /// Returns the key pair in the file at `path` (PKCS #8), and creates it if there is none. If
    /// several processes do this at the same time, all get the same key pair (on a file system
    /// without hard links, not always).
    ///
    /// # Errors
    /// The file cannot be read or written, is damaged, or is open to other users.
    pub fn load_or_create(path: &Path) -> Result<Self, SigningKeyError> {
        /// Far more than a key has.
        const MOST_BYTES: u64 = 4096;
        let load = || {
            let (_, bytes) = read_private(path, MOST_BYTES, SigningKeyError::Exposed)?;
            let pair = Ed25519KeyPair::from_pkcs8(&bytes);
            pair.map(Self).map_err(|_| SigningKeyError::Damaged(path.to_owned()))
        };
        match load() {
            Err(SigningKeyError::File(error)) if error.source.kind() == io::ErrorKind::NotFound => {
                // Another process may have created it in the meantime.
                create(path, &generate()?.1)?;
                load()
            }
            loaded => loaded,
        }
    }

    /// Returns the public key.
    pub fn public(&self) -> [u8; 32] {
        self.0.public_key().as_ref().try_into().expect("a public key has 32 bytes")
    }

    /// Returns the signature of a message. The same message has the same signature.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).as_ref().try_into().expect("a signature has 64 bytes")
    }
}

/// Creates a key pair. Returns it with its encoding.
fn generate() -> Result<(SigningKey, Vec<u8>), SigningKeyError> {
    let encoded = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
        .map_err(|_| SigningKeyError::Random)?;
    let pair = Ed25519KeyPair::from_pkcs8(encoded.as_ref()).map_err(|_| SigningKeyError::Random)?;
    Ok((SigningKey(pair), encoded.as_ref().to_vec()))
}

#[cfg(test)]
mod tests {
    use ring::signature::{ED25519, UnparsedPublicKey};

    use super::*;

    #[test]
    fn a_key_is_created_once_and_its_signatures_can_be_verified() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("result.key");
        let key = SigningKey::load_or_create(&path).expect("created");
        let again = SigningKey::load_or_create(&path).expect("loaded");
        assert_eq!(key.public(), again.public());
        assert_ne!(key.public(), SigningKey::generate().expect("random").public());
        let signature = key.sign(b"message");
        assert_eq!(signature, again.sign(b"message"));
        let public = UnparsedPublicKey::new(&ED25519, key.public());
        assert!(public.verify(b"message", &signature).is_ok());
        assert!(public.verify(b"another", &signature).is_err());
    }

    #[test]
    fn whoever_creates_a_key_at_the_same_time_gets_the_same_one() {
        let folder = tempfile::tempdir().expect("a folder");
        for round in 0..20 {
            let path = folder.path().join(format!("{round}.key"));
            let start = std::sync::Barrier::new(8);
            let load = || {
                start.wait();
                SigningKey::load_or_create(&path).expect("created or loaded").public()
            };
            let keys: Vec<[u8; 32]> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(load)).collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
            });
            assert!(keys.iter().all(|key| *key == keys[0]));
        }
    }

    #[test]
    fn damaged_and_exposed_files_are_refused_and_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("result.key");
        std::fs::write(&path, "no key").expect("written");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let set = |mode| {
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))
                    .expect("it is ours");
            };
            set(0o644);
            let refused = SigningKey::load_or_create(&path).expect_err("others may read it");
            assert!(matches!(refused, SigningKeyError::Exposed(..)), "{refused}");
            set(0o600);
        }
        let refused = SigningKey::load_or_create(&path).expect_err("damaged");
        assert!(matches!(refused, SigningKeyError::Damaged(_)), "{refused}");
        assert_eq!(std::fs::read(&path).expect("it is there"), b"no key");
    }
}
