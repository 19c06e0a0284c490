//! The files of a translation.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::{ProofSize, TranslationError, translate, write_solution};
use crate::{Meter, ProvedStatement};

/// The extensions of the files: the claim and its proof, then the solution and its proof.
const EXTENSIONS: [&str; 4] = ["opb", "pbp", "sat.opb", "sat.pbp"];

/// The extension of compressed files.
const GZIP: &str = "gz";

/// The content of a file while it is written.
enum Content {
    Plain(BufWriter<File>),
    #[cfg(feature = "gzip")]
    Compressed(Box<flate2::write::GzEncoder<BufWriter<File>>>),
}

impl Content {
    fn create(path: &Path, compressed: bool) -> io::Result<Self> {
        if compressed && !cfg!(feature = "gzip") {
            let message = "this program was compiled without the feature gzip";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        let file = BufWriter::new(File::create(path)?);
        #[cfg(feature = "gzip")]
        if compressed {
            let encoder = flate2::write::GzEncoder::new(file, flate2::Compression::default());
            return Ok(Self::Compressed(Box::new(encoder)));
        }
        Ok(Self::Plain(file))
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Plain(file) => file,
            #[cfg(feature = "gzip")]
            Self::Compressed(encoder) => encoder,
        }
    }

    /// Writes what is still in buffers.
    fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            #[cfg(feature = "gzip")]
            Self::Compressed(encoder) => {
                encoder.try_finish()?;
                encoder.get_mut().flush()
            }
        }
    }
}

/// A file that gets its name when it is complete, and is removed otherwise.
struct PartialFile {
    to: PathBuf,
    part: PathBuf,
    content: Content,
}

impl PartialFile {
    /// Creates the file `base`.`extension`; if `base` ends in `.gz`, so does the name of the file,
    /// which is compressed.
    fn create(base: &Path, extension: &str) -> io::Result<Self> {
        let compressed = base.extension().is_some_and(|last| last == GZIP);
        let mut name = if compressed { base.with_extension("") } else { base.to_owned() };
        let mut append = |extension: &str| {
            name.as_mut_os_string().push(".");
            name.as_mut_os_string().push(extension);
            name.clone()
        };
        let mut to = append(extension);
        if compressed {
            to = append(GZIP);
        }
        let part = append("part");
        let content = Content::create(&part, compressed)?;
        Ok(Self { to, part, content })
    }

    fn rename(self) -> io::Result<()> {
        fs::rename(&self.part, &self.to)
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        // After it got its name, there is nothing to remove.
        let _ = fs::remove_file(&self.part);
    }
}

/// Translates the certificate of a statement that [`check_within`](crate::check_within) has proved,
/// and writes the files `base`.opb (the claim), `base`.pbp (its proof), and if there is a solution
/// `base`.sat.opb and `base`.sat.pbp (the columns are a solution). If `base` ends in `.gz`, the
/// files are compressed, and this ending follows the others (`8.gz`: `8.opb.gz`); that requires the
/// feature `gzip`. A file with such a name appears only if all are complete. The size that is
/// returned is that of the proof before it is compressed.
///
/// # Errors
/// Returns an error if the certificate is not accepted, if the proof has more than `most_lines`
/// lines, or if a file cannot be written.
pub fn write_files(
    certificate: &[u8],
    statement: &ProvedStatement,
    base: &Path,
    most_lines: u64,
) -> Result<ProofSize, TranslationError> {
    let io = TranslationError::Io;
    let create = |extension| PartialFile::create(base, extension).map_err(io);
    let [claim, proof, solution_claim, solution_proof] = EXTENSIONS;
    let (mut claim, mut proof) = (create(claim)?, create(proof)?);
    let meter = &mut Meter::new(None);
    let (formula, steps) = (claim.content.writer(), proof.content.writer());
    let size = translate(certificate, most_lines, meter, formula, steps)?;
    let mut files = vec![claim, proof];
    if let Some(columns) = &statement.solution {
        let (mut claim, mut proof) = (create(solution_claim)?, create(solution_proof)?);
        let beauty = statement.beauty.unwrap_or_default();
        let (formula, steps) = (claim.content.writer(), proof.content.writer());
        write_solution(columns, beauty, formula, steps).map_err(io)?;
        files.extend([claim, proof]);
    }
    files.iter_mut().try_for_each(|file| file.content.finish()).map_err(io)?;
    files.into_iter().try_for_each(PartialFile::rename).map_err(io)?;
    Ok(size)
}
