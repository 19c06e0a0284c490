//! The files of a translation.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::{ProofSize, TranslationError, translate, write_solution};
use crate::{Meter, ProvedStatement};

/// The extensions of the files: the claim and its proof, then the solution and its proof.
const EXTENSIONS: [&str; 4] = ["opb", "pbp", "sat.opb", "sat.pbp"];

/// A file that gets its name when it is complete, and is removed otherwise.
struct PartialFile {
    to: PathBuf,
    part: PathBuf,
    file: BufWriter<File>,
}

impl PartialFile {
    fn begin(base: &Path, extension: &str) -> io::Result<Self> {
        let with = |extension: &str| {
            let mut name = OsString::from(base);
            name.push(".");
            name.push(extension);
            PathBuf::from(name)
        };
        let (to, part) = (with(extension), with(&format!("{extension}.part")));
        let file = BufWriter::new(File::create(&part)?);
        Ok(Self { to, part, file })
    }

    fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
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
/// `base`.sat.opb and `base`.sat.pbp (the columns are a solution). A file with such a name appears
/// only if all are complete.
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
    let begin = |extension| PartialFile::begin(base, extension).map_err(io);
    let [claim, proof, solution_claim, solution_proof] = EXTENSIONS;
    let (mut claim, mut proof) = (begin(claim)?, begin(proof)?);
    let meter = &mut Meter::new(None);
    let size = translate(certificate, most_lines, meter, &mut claim.file, &mut proof.file)?;
    let mut files = vec![claim, proof];
    if let Some(columns) = &statement.solution {
        let (mut claim, mut proof) = (begin(solution_claim)?, begin(solution_proof)?);
        let beauty = statement.beauty.unwrap_or_default();
        write_solution(columns, beauty, &mut claim.file, &mut proof.file).map_err(io)?;
        files.extend([claim, proof]);
    }
    files.into_iter().try_for_each(PartialFile::finish).map_err(io)?;
    Ok(size)
}
