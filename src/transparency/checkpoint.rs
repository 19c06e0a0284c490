//! Checkpoints: the size and the root of a log, signed by its key (C2SP tlog-checkpoint, in the
//! form of signed-note).

use std::fmt;
use std::str::FromStr;

use data_encoding::{BASE64, HEXLOWER};
use sha2::{Digest, Sha256};

use super::merkle::Hash;
use crate::cluster::auth::SigningKey;
use crate::cluster::campaign::ResultKey;
use crate::decomposition::JobHash;

/// The largest size of a note with a checkpoint, in bytes.
pub const MOST_CHECKPOINT_BYTES: u64 = 4096;
/// The number of Ed25519 among the algorithms of signed notes.
const ED25519: u8 = 1;
/// The names of logs of jobs begin with this.
const JOBS: &str = "nqueens/";
/// A line with a signature begins with this.
const SIGNATURE: &str = "\u{2014} ";

/// The public key of a log, as text `NAME+HASH+KEY`: the name, the first four bytes of a hash of
/// name and key in hexadecimal digits, and the algorithm and the key in base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogKey {
    name: String,
    key: ResultKey,
}

impl LogKey {
    /// Creates the key of the log of this name.
    pub const fn new(name: String, key: ResultKey) -> Self {
        Self { name, key }
    }

    /// Creates the key of the log of a job, whose name is "nqueens/" and the job.
    pub fn of_job(job: JobHash, key: ResultKey) -> Self {
        Self::new(format!("{JOBS}{job}"), key)
    }

    /// Returns the job that the log is about, if its name is that of the log of a job.
    pub fn job(&self) -> Option<JobHash> {
        self.name.strip_prefix(JOBS)?.to_owned().try_into().ok()
    }

    /// Returns the name of the log.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn encoded(&self) -> Vec<u8> {
        [&[ED25519][..], &self.key.to_bytes()].concat()
    }

    /// Returns the identifier of the key: the first bytes of a hash.
    fn id(&self) -> [u8; 4] {
        let digest = Sha256::new().chain_update(&self.name).chain_update(b"\n");
        let [a, b, c, d, ..]: [u8; 32] = digest.chain_update(self.encoded()).finalize().into();
        [a, b, c, d]
    }

    /// Returns the note with this text, which ends with a line feed, signed.
    pub fn sign(&self, text: &str, signer: &SigningKey) -> String {
        let signature = [&self.id()[..], &signer.sign(text.as_bytes())].concat();
        format!("{text}\n{SIGNATURE}{} {}\n", self.name, BASE64.encode(&signature))
    }

    /// Returns the text of a note that is signed by this key, or `None` if it is not.
    pub fn open<'a>(&self, note: &'a str) -> Option<&'a str> {
        let (text, signatures) = note.rsplit_once("\n\n")?;
        let text = note.get(..=text.len())?;
        let by_this = |line: &str| {
            let (name, signature) = line.strip_prefix(SIGNATURE)?.rsplit_once(' ')?;
            let bytes: [u8; 68] = BASE64.decode(signature.as_bytes()).ok()?.try_into().ok()?;
            let (id, signature) = bytes.split_first_chunk::<4>()?;
            let signature: &[u8; 64] = signature.try_into().ok()?;
            let is_own = name == self.name && *id == self.id();
            (is_own && self.key.verifies(text.as_bytes(), signature)).then_some(())
        };
        signatures.lines().any(|line| by_this(line).is_some()).then_some(text)
    }
}

impl fmt::Display for LogKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, key) = (HEXLOWER.encode(&self.id()), BASE64.encode(&self.encoded()));
        write!(f, "{}+{id}+{key}", self.name)
    }
}

impl FromStr for LogKey {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "the key of a log is NAME+HASH+KEY, as in its file 'key'";
        let mut parts = text.trim_end().splitn(3, '+');
        let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(FORM);
        };
        let key = BASE64.decode(key.as_bytes()).map_err(|_| FORM)?;
        let key = key.strip_prefix(&[ED25519]).and_then(|key| key.try_into().ok()).ok_or(FORM)?;
        let is_name = |name: &str| !name.is_empty() && !name.chars().any(char::is_whitespace);
        let parsed = Self { name: name.to_owned(), key: ResultKey::from_bytes(key) };
        if is_name(name) && HEXLOWER.encode(&parsed.id()) == id {
            Ok(parsed)
        } else {
            Err("the key of the log is damaged: its hash does not match")
        }
    }
}

/// The state of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The number of entries.
    pub size: u64,
    /// The root of their tree.
    pub root: Hash,
}

impl Checkpoint {
    /// Returns the note that the log publishes.
    pub fn sign(&self, key: &LogKey, signer: &SigningKey) -> String {
        let text = format!("{}\n{}\n{}\n", key.name, self.size, BASE64.encode(&self.root));
        key.sign(&text, signer)
    }

    /// Returns the checkpoint in a note that the log with this key has signed.
    ///
    /// # Errors
    /// The note is not a checkpoint of the log, or its signature does not match.
    pub fn open(note: &str, key: &LogKey) -> Result<Self, CheckpointError> {
        let text = key.open(note).ok_or(CheckpointError::Signature)?;
        let mut lines = text.lines();
        let (Some(origin), Some(size), Some(root)) = (lines.next(), lines.next(), lines.next())
        else {
            return Err(CheckpointError::Form);
        };
        if origin != key.name {
            return Err(CheckpointError::Origin(origin.to_owned()));
        }
        let root = BASE64.decode(root.as_bytes()).ok().and_then(|root| root.try_into().ok());
        // The canonical decimal number only, so that a checkpoint has one form.
        let size = size.parse().ok().filter(|number: &u64| number.to_string() == size);
        let (Some(size), Some(root)) = (size, root) else { return Err(CheckpointError::Form) };
        Ok(Self { size, root })
    }
}

/// The reason why a checkpoint is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// The key of the log has not signed it.
    #[error("it is not signed by the key of the log")]
    Signature,
    /// It is of another log.
    #[error("it is a checkpoint of the log {0}")]
    Origin(String),
    /// It has not the form of a checkpoint.
    #[error("it is not a checkpoint")]
    Form,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> (LogKey, SigningKey) {
        let signer = SigningKey::generate().expect("random bytes");
        let key = ResultKey::from_bytes(signer.public());
        (LogKey::new("nqueens/test".into(), key), signer)
    }

    #[test]
    fn checkpoints_round_trip_and_others_are_refused() {
        let (key, signer) = log();
        let checkpoint = Checkpoint { size: 70_000, root: [9; 32] };
        let note = checkpoint.sign(&key, &signer);
        assert_eq!(Checkpoint::open(&note, &key), Ok(checkpoint));
        let lines: Vec<&str> = note.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[1], lines[3]), (5, "nqueens/test", "70000", ""));
        let refused = |note: &str| Checkpoint::open(note, &key).expect_err("refused");
        assert_eq!(refused(&note.replace("70000", "70001")), CheckpointError::Signature);
        assert_eq!(refused(""), CheckpointError::Signature);
        let (another, stranger) = log();
        assert_eq!(refused(&checkpoint.sign(&another, &stranger)), CheckpointError::Signature);
        // A stranger that claims the identifier of the key.
        assert_eq!(refused(&checkpoint.sign(&key, &stranger)), CheckpointError::Signature);
        assert_eq!(
            refused(&key.sign("another log\n1\nAAAA\n", &signer)),
            CheckpointError::Origin("another log".into())
        );
        let root = BASE64.encode(&[9; 32]);
        for text in ["nqueens/test\n", "nqueens/test\n-1\nAAAA\n", "nqueens/test\n1\nAAAA\n"] {
            assert_eq!(refused(&key.sign(text, &signer)), CheckpointError::Form, "{text}");
        }
        let padded = format!("nqueens/test\n007\n{root}\n");
        assert_eq!(refused(&key.sign(&padded, &signer)), CheckpointError::Form);
    }

    #[test]
    fn keys_round_trip_and_damaged_ones_are_refused() {
        let (key, _) = log();
        let text = key.to_string();
        assert_eq!(text.parse(), Ok(key.clone()));
        assert_eq!(format!("{text}\n").parse(), Ok(key));
        for wrong in ["", "a+b", &text.replace("test", "tess"), &text[..text.len() - 4]] {
            wrong.parse::<LogKey>().expect_err(wrong);
        }
    }

    /// The example of the specification of signed notes (C2SP), signed by Go's package note.
    #[test]
    fn a_note_that_another_program_signed_is_accepted() {
        let key: LogKey = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
            .parse()
            .expect("a key");
        let note = "If you think cryptography is the answer to your problem,\n\
            then you don't know what your problem is.\n\n\
            \u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
        let text = key.open(note).expect("signed");
        assert!(text.ends_with("what your problem is.\n"));
        assert_eq!(key.open(&note.replace("think", "thing")), None);
    }
}
