//! The page to play with, which `crates/play/build.sh` builds as a folder. The dashboard serves the
//! files of that folder to everyone, because they are the same for all and contain no data of a
//! campaign.

use std::io;
use std::path::{Path, PathBuf};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Redirect};
use axum::routing::get;

use crate::atomic_file;

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The names of the files and their content types. No other file of the folder is read.
const FILES: [(&str, &str); 12] = [
    ("index.html", "text/html; charset=utf-8"),
    ("style.css", "text/css; charset=utf-8"),
    ("icon.svg", "image/svg+xml"),
    ("nqueens-play.wasm", "application/wasm"),
    ("main.js", SCRIPT),
    ("board.js", SCRIPT),
    ("board-view.js", SCRIPT),
    ("compute.js", SCRIPT),
    ("gallery.js", SCRIPT),
    ("theme.js", SCRIPT),
    ("watch.js", SCRIPT),
    ("worker.js", SCRIPT),
];

/// Limit on the size of a file. The largest has 0.6 MB.
const MOST_BYTES: u64 = 8 << 20;

/// The content security policy of the page: as for the dashboard, but it may compile WebAssembly.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; \
     img-src 'self'; worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);

/// The files of the page, in memory.
#[derive(Clone, Debug)]
pub struct PlayFiles(Vec<(&'static str, &'static str, Bytes)>);

/// The error returned when a file of the page cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {error}; build the folder with crates/play/build.sh", path.display())]
pub struct PlayFilesError {
    path: PathBuf,
    error: io::Error,
}

impl PlayFiles {
    /// Reads the files of the page from `folder`.
    ///
    /// # Errors
    /// A file is missing, is not a regular file, or has more than 8 MiB.
    pub fn read(folder: &Path) -> Result<Self, PlayFilesError> {
        let read = |(name, kind): (&'static str, &'static str)| {
            let path = folder.join(name);
            match atomic_file::read(&path, MOST_BYTES) {
                Ok(bytes) => Ok((name, kind, Bytes::from(bytes))),
                Err(error) => Err(PlayFilesError { path, error }),
            }
        };
        Ok(Self(FILES.into_iter().map(read).collect::<Result<_, _>>()?))
    }

    /// Returns the routes of the page: `/play/` and one for each file.
    pub(super) fn router<S: Clone + Send + Sync + 'static>(self) -> Router<S> {
        // The page names its files relative to this address.
        let router = Router::new().route("/play", get(|| async { Redirect::to("/play/") }));
        self.0.into_iter().fold(router, |router, (name, kind, bytes)| {
            let path = if name == "index.html" { "" } else { name };
            let answer = move || async move {
                let headers = [(header::CONTENT_TYPE, HeaderValue::from_static(kind))];
                ([(header::CONTENT_SECURITY_POLICY, POLICY)], headers, bytes).into_response()
            };
            router.route(&format!("/play/{path}"), get(answer))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    #[test]
    fn the_served_files_are_those_that_the_build_script_writes() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = fs::read_dir(root.join("crates/play/page")).expect("a readable folder");
        let mut written: BTreeSet<String> = page
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
        written.extend(["nqueens-play.wasm", "theme.js", "icon.svg"].map(str::to_owned));
        let served: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(served, written);
    }
}
