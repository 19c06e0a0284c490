//! Reading a log from a folder or from a web server.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::tile::{MOST_ENTRY_BYTES, WIDTH};
use crate::atomic_file;

/// The largest size of a bundle, in bytes.
pub const MOST_BUNDLE_BYTES: u64 = WIDTH * (MOST_ENTRY_BYTES as u64 + 2);

/// A place where a log is published.
#[derive(Debug)]
pub enum LogSource {
    /// A folder.
    Folder(PathBuf),
    /// A web server.
    Web {
        /// The address of the folder, which ends with a slash.
        base: String,
        /// The client.
        agent: ureq::Agent,
    },
}

/// The reason why a file of a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// There is no such file.
    #[error("{0} does not exist")]
    Missing(String),
    /// The file cannot be read.
    #[error("{0} cannot be read: {1}")]
    File(String, io::Error),
    /// The server does not answer as expected.
    #[error("{0} cannot be read: {1}")]
    Web(String, Box<ureq::Error>),
}

impl LogSource {
    /// Returns the source with this address: a URL, or the path of a folder.
    pub fn new(address: &str) -> Self {
        /// The time limit of a request.
        const TIMEOUT: Duration = Duration::from_secs(60);
        if !Self::is_url(address) {
            return Self::Folder(address.into());
        }
        let config = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).build();
        let base = format!("{}/", address.trim_end_matches('/'));
        Self::Web { base, agent: ureq::Agent::new_with_config(config) }
    }

    /// Returns whether an address is that of a web server.
    pub fn is_url(address: &str) -> bool {
        address.starts_with("http://") || address.starts_with("https://")
    }

    /// Returns the address of a file, for messages.
    pub fn address(&self, path: &str) -> String {
        match self {
            Self::Folder(folder) => folder.join(path).display().to_string(),
            Self::Web { base, .. } => format!("{base}{path}"),
        }
    }

    /// Reads a file of at most `most` bytes.
    ///
    /// # Errors
    /// There is no such file, it is larger, or it cannot be read.
    pub fn read(&self, path: &str, most: u64) -> Result<Vec<u8>, SourceError> {
        let address = || self.address(path);
        match self {
            Self::Folder(folder) => {
                let read = atomic_file::read(&folder.join(path), most);
                read.map_err(|error| match error.kind() {
                    io::ErrorKind::NotFound => SourceError::Missing(address()),
                    _ => SourceError::File(address(), error),
                })
            }
            Self::Web { agent, .. } => get(agent, &address(), most),
        }
    }

    /// Reads a text file of at most `most` bytes.
    ///
    /// # Errors
    /// As [`Self::read`]; also if it is not text.
    pub fn read_text(&self, path: &str, most: u64) -> Result<String, SourceError> {
        String::from_utf8(self.read(path, most)?).map_err(|_| {
            let error = io::Error::new(io::ErrorKind::InvalidData, "it is not text");
            SourceError::File(self.address(path), error)
        })
    }

    /// Returns whether the folder exists; always true for a web server.
    pub fn exists(&self) -> bool {
        match self {
            Self::Folder(folder) => fs::metadata(folder).is_ok(),
            Self::Web { .. } => true,
        }
    }
}

fn get(agent: &ureq::Agent, address: &str, most: u64) -> Result<Vec<u8>, SourceError> {
    /// The number of attempts: a server may be unavailable for a moment.
    const TRIES: u32 = 3;
    let mut tries = 1;
    loop {
        // The limit of the library is above the largest size.
        let read = agent.get(address).call().and_then(|mut response| {
            response.body_mut().with_config().limit(most + 1).read_to_vec()
        });
        match read {
            Ok(bytes) => return Ok(bytes),
            Err(ureq::Error::StatusCode(404)) => {
                return Err(SourceError::Missing(address.to_owned()));
            }
            Err(error @ (ureq::Error::StatusCode(400..500) | ureq::Error::BodyExceedsLimit(_))) => {
                return Err(SourceError::Web(address.to_owned(), Box::new(error)));
            }
            Err(error) if tries == TRIES => {
                return Err(SourceError::Web(address.to_owned(), Box::new(error)));
            }
            Err(_) => std::thread::sleep(Duration::from_secs(1 << tries)),
        }
        tries += 1;
    }
}
