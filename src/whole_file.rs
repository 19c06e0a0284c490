//! Files that appear whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that is being written beside its place. Without [`Self::finish`] it leaves no trace.
#[derive(Debug)]
pub(crate) struct WholeFile {
    place: PathBuf,
    beside: PathBuf,
    file: File,
}

impl WholeFile {
    /// Begins the file that is to stand at `place`.
    ///
    /// # Errors
    /// It cannot be written there, or something else than a file is there.
    pub(crate) fn begin(place: &Path) -> io::Result<Self> {
        let no_file = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
        let name = place.file_name().ok_or_else(no_file)?;
        if fs::metadata(place).is_ok_and(|found| !found.is_file()) {
            return Err(no_file());
        }
        let mut beside = OsString::from(".");
        beside.push(name);
        beside.push(format!(".{}.part", std::process::id()));
        let beside = place.with_file_name(beside);
        // Left behind by a process of this number that was killed.
        let _ = fs::remove_file(&beside);
        let file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
        Ok(Self { place: place.to_owned(), beside, file })
    }

    /// Writes `text` as all of the file and puts it in its place, over one that was there.
    ///
    /// # Errors
    /// It cannot be written; what was there is there still.
    pub(crate) fn finish(self, text: &str) -> io::Result<()> {
        self.finish_with(|out| out.write_all(text.as_bytes()))
    }

    /// The same with what `write` writes.
    ///
    /// # Errors
    /// It cannot be written; what was there is there still.
    pub(crate) fn finish_with(
        self,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut out = BufWriter::new(&self.file);
        write(&mut out)?;
        out.flush()?;
        drop(out);
        self.file.sync_all()?;
        fs::rename(&self.beside, &self.place)
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        // After `finish` it is gone; if it cannot be removed, nothing depends on it.
        let _ = fs::remove_file(&self.beside);
    }
}
