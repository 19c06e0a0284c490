//! Files that commands write beside their output: certificates, pictures, charts, models.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use super::atomic_file::AtomicFile;
use super::{Exit, Failure};

/// A file that appears at its path, complete, at the end of a command. It is begun before the work,
/// so that a path that cannot be written is an error before the work, not after it.
#[derive(Debug)]
pub(super) struct OutputFile<'a> {
    /// The contents, for messages.
    what: &'static str,
    path: &'a Path,
    file: AtomicFile,
}

impl<'a> OutputFile<'a> {
    /// Begins the file for `what`, for example "chart".
    pub(super) fn begin(what: &'static str, path: &'a Path) -> Result<Self, Failure> {
        let file = AtomicFile::begin(path).map_err(|error| cannot_write(what, path, &error))?;
        Ok(Self { what, path, file })
    }

    /// Begins the file for `what`, if a flag gives its path.
    pub(super) fn begin_if_given(
        what: &'static str,
        path: Option<&'a Path>,
    ) -> Result<Option<Self>, Failure> {
        path.map(|path| Self::begin(what, path)).transpose()
    }

    /// Writes the content and moves the file to its path.
    pub(super) fn finish(self, content: &[u8]) -> Result<(), Failure> {
        self.finish_with(|out| out.write_all(content))
    }

    /// Writes the content with `write` and moves the file to its path.
    pub(super) fn finish_with(
        self,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let Self { what, path, file } = self;
        file.finish_with(write).map_err(|error| cannot_write(what, path, &error))
    }
}

fn cannot_write(what: &str, path: &Path, error: &io::Error) -> Failure {
    let message = format!("the {what} {} cannot be written: {error}", path.display());
    Failure::new(Exit::File, message)
}
