//! Files that are written and read in full or not at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};

/// Reads the regular file at `path`, if it has at most `most` bytes.
///
/// # Errors
/// Returns an error if the file cannot be read, is larger, or is not a regular file but a
/// directory, a pipe or a device, which may have no end.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Opening a pipe would block until there is a writer.
    must_be_file(&fs::metadata(path)?)?;
    read_open(&File::open(path)?, most)
}

/// Reads the rest of a regular file, if the file has at most `most` bytes.
///
/// # Errors
/// Returns an error in the same cases as [`read`].
pub(crate) fn read_open(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let metadata = file.metadata()?;
    must_be_file(&metadata)?;
    let too_large = || {
        io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is larger than {most} bytes, the limit for this file"),
        )
    };
    if metadata.len() > most {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // The file may grow in the meantime, and some files with content report a size of 0.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large()) } else { Ok(bytes) }
}

/// Reads the regular file at `path` as text, if it has at most `most` bytes.
///
/// # Errors
/// Returns an error in the same cases as [`read`], or if the content is not UTF-8.
#[cfg(any(feature = "cluster", test))]
pub(crate) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let no_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text");
    String::from_utf8(read(path, most)?).map_err(no_text)
}

/// Returns the path of a file beside another one, which has the same name with an ending.
#[cfg(feature = "cluster")]
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn must_be_file(metadata: &fs::Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let what = if metadata.is_dir() {
        "it is a directory, not a file"
    } else {
        "it is not a regular file"
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// A file that is being written under a temporary name beside its final path. It is removed unless
/// [`Self::finish`] is called.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    path: PathBuf,
    temporary: PathBuf,
    file: File,
}

impl AtomicFile {
    /// Creates the temporary file for `path`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created, or if `path` exists and is not a regular
    /// file.
    pub(crate) fn begin(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        Self::begin_with(path, options.write(true).create_new(true))
    }

    /// Like [`Self::begin`], for a file that no other user may read or write.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Self::begin`].
    #[cfg(feature = "cluster")]
    pub(crate) fn begin_private(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        Self::begin_with(path, options.read(true).write(true).create_new(true))
    }

    /// Like [`Self::begin`], for a file that is read and written after it is finished.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Self::begin`].
    pub(crate) fn begin_open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        Self::begin_with(path, options.read(true).write(true).create_new(true))
    }

    /// Returns the file, which is still under its temporary name.
    pub(crate) const fn file(&self) -> &File {
        &self.file
    }

    fn begin_with(path: &Path, options: &OpenOptions) -> io::Result<Self> {
        let no_file = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
        let name = path.file_name().ok_or_else(no_file)?;
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(no_file());
        }
        let mut temporary = OsString::from(".");
        temporary.push(name);
        // Tasks in containers and on other machines that share the directory may have the same
        // process id.
        temporary.push(format!(".{}-{:016x}.part", std::process::id(), fastrand::u64(..)));
        let temporary = path.with_file_name(temporary);
        let file = options.open(&temporary)?;
        Ok(Self { path: path.to_owned(), temporary, file })
    }

    /// Writes `text` as the content of the file and moves it to its final path, replacing any file
    /// there.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written; an existing file is then unchanged.
    #[cfg(feature = "cluster")]
    pub(crate) fn finish(self, text: &str) -> io::Result<()> {
        self.finish_with(|out| out.write_all(text.as_bytes()))
    }

    /// Writes `bytes` as the content of the file and moves it to its final path, replacing any file
    /// there. Once this has returned, the replacement survives a power loss. Returns the open file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written; an existing file is then unchanged. Also
    /// returns an error if the directory entry cannot be made durable.
    #[cfg(feature = "cluster")]
    pub(crate) fn finish_durably(self, bytes: &[u8]) -> io::Result<File> {
        let (file, path) = (self.file.try_clone()?, self.path.clone());
        self.finish_with(|out| out.write_all(bytes))?;
        sync_directory_of(&path)?;
        Ok(file)
    }

    /// Like [`Self::finish_durably`], but replaces no file. Returns false if there is one. On a
    /// file system without hard links, a file that appears at the same moment is replaced.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    #[cfg(feature = "cluster")]
    pub(crate) fn finish_new(self, bytes: &[u8]) -> io::Result<bool> {
        (&self.file).write_all(bytes)?;
        self.file.sync_all()?;
        if let Err(error) = fs::hard_link(&self.temporary, &self.path) {
            if error.kind() == io::ErrorKind::AlreadyExists
                || fs::symlink_metadata(&self.path).is_ok()
            {
                return Ok(false);
            }
            fs::rename(&self.temporary, &self.path)?;
        }
        sync_directory_of(&self.path)?;
        Ok(true)
    }

    /// Writes the content with `write` and moves the file to its final path, replacing any file
    /// there.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written; an existing file is then unchanged.
    pub(crate) fn finish_with(
        self,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut out = BufWriter::new(&self.file);
        write(&mut out)?;
        out.flush()?;
        drop(out);
        self.file.sync_all()?;
        fs::rename(&self.temporary, &self.path)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // After `finish` it no longer exists. A failure to remove it is harmless.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Makes the directory entry of a file durable.
#[cfg(unix)]
pub(crate) fn sync_directory_of(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

/// Does nothing: on other systems directories cannot be opened, and the system writes their entries
/// by itself.
#[cfg(not(unix))]
pub(crate) fn sync_directory_of(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "cluster")]
    #[test]
    fn a_new_file_replaces_none() {
        let folder = std::env::temp_dir().join(format!("nqueens-new-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("file");
        // Two processes write it at the same time.
        let [first, second] = [(), ()].map(|()| AtomicFile::begin(&path).expect("begun"));
        assert!(second.finish_new(b"second").expect("written"));
        assert!(!first.finish_new(b"first").expect("not written"));
        assert_eq!(fs::read(&path).expect("it exists"), b"second");
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
        fs::remove_dir_all(&folder).expect("it exists");
    }

    #[test]
    fn only_complete_regular_files_are_read() {
        let folder = std::env::temp_dir().join(format!("nqueens-whole-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("file");
        fs::write(&path, "queens").expect("a file");
        assert_eq!(read(&path, 6).expect("it has six bytes"), b"queens");
        assert_eq!(read_text(&path, 7).expect("text"), "queens");
        let refused = |path: &Path| {
            let error = read(path, 5).expect_err("not readable");
            assert_eq!(error.to_string().lines().count(), 1);
            error.kind()
        };
        assert_eq!(refused(&path), io::ErrorKind::FileTooLarge);
        assert_eq!(refused(&folder), io::ErrorKind::InvalidInput);
        assert_eq!(refused(&folder.join("none")), io::ErrorKind::NotFound);
        // The file has this size, but is not read.
        let sparse = folder.join("sparse");
        File::create(&sparse).and_then(|file| file.set_len(2 << 30)).expect("a sparse file");
        assert_eq!(refused(&sparse), io::ErrorKind::FileTooLarge);
        fs::write(&path, [0xff, 0xfe]).expect("a file");
        assert_eq!(read_text(&path, 5).expect_err("no text").kind(), io::ErrorKind::InvalidData);
        if cfg!(target_os = "linux") {
            assert_eq!(refused(Path::new("/dev/zero")), io::ErrorKind::InvalidInput);
            let pipe = folder.join("pipe");
            let made = std::process::Command::new("mkfifo").arg(&pipe).status();
            // There is no writer.
            assert!(made.is_ok_and(|made| made.success()));
            assert_eq!(refused(&pipe), io::ErrorKind::InvalidInput);
        }
        fs::remove_dir_all(&folder).expect("it exists");
    }
}
