//! The run file keeps what it acknowledged and believes nothing that is not as it was written.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nqueens::board::{Piece, Problem, Square};
use nqueens::engine::{CountError, CountOptions, CountTask};
use nqueens::kernel::KernelKind;
use nqueens::ledger::{FinishedUnit, RunFile, RunFileError, Storage};
use nqueens::preplacement::{Job, Scheme};
use nqueens::tally::{Residues, Tally};

const UNITS: u64 = 6;

fn job() -> Job {
    Job::new(Problem::empty(Piece::Queen, 9), Scheme::CentreCross, None, 100).expect("a small board")
}

fn finished(unit: u64) -> FinishedUnit {
    let completions = 1000 + unit;
    let mut tally = Tally::default();
    tally.add(3, completions, Residues::of(completions.into()), 7).expect("fits");
    FinishedUnit { unit, tally, elapsed_s: 0.25, kernel: "scalar".into() }
}

/// A disk that loses power after a given number of bytes, and may keep any part of what was not yet synced.
#[derive(Clone, Default)]
struct CrashingDisk(Rc<RefCell<Disk>>);

#[derive(Clone, Default)]
struct Disk {
    synced: Vec<u8>,
    written: Vec<u8>,
    /// Bytes and syncs (a sync counts as one) until the power goes.
    left: Option<usize>,
}

impl CrashingDisk {
    fn holding(bytes: &[u8]) -> Self {
        Self(Rc::new(RefCell::new(Disk { synced: bytes.to_vec(), written: bytes.to_vec(), left: None })))
    }
}

fn power_loss() -> io::Error {
    io::Error::other("the power is gone")
}

impl Storage for CrashingDisk {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.0.borrow().written.clone())
    }

    fn write_at_end(&mut self, len: u64, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.0.borrow_mut();
        disk.written.truncate(len as usize);
        for &byte in bytes {
            match &mut disk.left {
                Some(0) => return Err(power_loss()),
                Some(left) => *left -= 1,
                None => {}
            }
            disk.written.push(byte);
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut disk = self.0.borrow_mut();
        match &mut disk.left {
            Some(0) => return Err(power_loss()),
            Some(left) => *left -= 1,
            None => {}
        }
        disk.synced = disk.written.clone();
        Ok(())
    }
}

fn open(bytes: &[u8]) -> Result<RunFile<CrashingDisk>, RunFileError> {
    RunFile::open_in(Path::new("run"), CrashingDisk::holding(bytes))
}

/// Units in the order in which the count hands them over, some together.
fn batches() -> Vec<Vec<FinishedUnit>> {
    vec![vec![finished(2)], vec![finished(0), finished(1), finished(5)], vec![finished(4)]]
}

/// Writes everything; returns the units acknowledged before the power went.
fn write_all(disk: &CrashingDisk) -> Vec<u64> {
    let mut acknowledged = Vec::new();
    let mut file = RunFile::open_in(Path::new("run"), disk.clone()).expect("an empty disk");
    if file.begin(&job(), UNITS).is_err() {
        return acknowledged;
    }
    for batch in batches() {
        if file.append(&batch).is_err() {
            assert!(matches!(file.append(&batch), Err(RunFileError::FailedBefore(_))));
            break;
        }
        acknowledged.extend(batch.iter().map(|f| f.unit));
    }
    acknowledged
}

fn whole_file() -> Vec<u8> {
    let disk = CrashingDisk::default();
    assert_eq!(write_all(&disk).len(), 5);
    disk.0.borrow().synced.clone()
}

/// The thirds of units, as the books must have them.
fn thirds(units: impl IntoIterator<Item = u64>) -> u128 {
    units.into_iter().map(|unit| finished(unit).tally.thirds()).sum()
}

#[test]
fn an_acknowledged_unit_survives_a_power_loss_at_any_byte() {
    let operations = whole_file().len() + 4;
    for left in 0..=operations {
        let disk = CrashingDisk::default();
        disk.0.borrow_mut().left = Some(left);
        let acknowledged = write_all(&disk);
        let Disk { synced, written, .. } = disk.0.borrow().clone();
        // What was written but not synced survives up to any byte, or as zeros.
        for kept in synced.len()..=written.len() {
            let zeros = vec![0; 7];
            for tail in [&[][..], &zeros] {
                let bytes = [&written[..kept], tail].concat();
                let mut file = open(&bytes).unwrap_or_else(|e| panic!("left {left}, kept {kept}: {e}"));
                for &unit in &acknowledged {
                    assert!(file.book().has(unit), "left {left}, kept {kept}: unit {unit} is lost");
                }
                let present: Vec<u64> = (0..UNITS).filter(|&unit| file.book().has(unit)).collect();
                assert_eq!(
                    file.book().so_far().thirds(),
                    thirds(present.clone()),
                    "left {left}, kept {kept}"
                );
                // The count goes on from there and loses and repeats nothing.
                if file.job().is_none() {
                    file.begin(&job(), UNITS).expect("a torn header of this job is written anew");
                }
                let missing: Vec<FinishedUnit> =
                    (0..UNITS).filter(|unit| !present.contains(unit)).map(finished).collect();
                file.append(&missing).expect("the disk works");
                drop(file);
            }
        }
    }
}

#[test]
fn a_torn_line_is_overwritten_and_the_file_reads_back_whole() {
    let bytes = whole_file();
    let disk = CrashingDisk::holding(&bytes[..bytes.len() - 3]);
    let mut file = RunFile::open_in(Path::new("run"), disk.clone()).expect("a torn last line");
    assert!(file.torn_bytes() > 0 && !file.book().has(4));
    file.append(&[finished(4), finished(3)]).expect("the disk works");
    drop(file);
    let again = open(&disk.0.borrow().synced).expect("nothing is torn");
    assert_eq!((again.torn_bytes(), again.book().total().map(Tally::thirds)), (0, Ok(thirds(0..UNITS))));
}

#[test]
fn a_file_cut_at_any_length_yields_only_units_as_they_were_written() {
    let bytes = whole_file();
    for length in 0..bytes.len() {
        let file = open(&bytes[..length]).unwrap_or_else(|e| panic!("length {length}: {e}"));
        let present: Vec<u64> = (0..UNITS).filter(|&unit| file.book().has(unit)).collect();
        assert_eq!(file.book().so_far().thirds(), thirds(present), "length {length}");
    }
}

#[test]
fn a_flipped_bit_anywhere_is_refused_or_costs_no_more_than_the_last_unit() {
    let bytes = whole_file();
    for position in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[position] ^= 1 << bit;
            match open(&damaged) {
                Err(RunFileError::Damaged { .. }) => {}
                Err(other) => panic!("byte {position}, bit {bit}: {other}"),
                Ok(file) => {
                    assert_eq!(position, bytes.len() - 1, "byte {position}, bit {bit} was believed");
                    assert_eq!(file.book().so_far().thirds(), thirds([0, 1, 2, 5]));
                }
            }
        }
    }
}

#[test]
fn a_file_that_is_no_run_file_is_refused_and_left_alone() {
    for bytes in [&b"hello\n"[..], b"\n", b"{\"unit\":0}\n", &[0xff; 40]] {
        let disk = CrashingDisk::holding(bytes);
        let opened =
            RunFile::open_in(Path::new("run"), disk.clone()).and_then(|mut file| file.begin(&job(), UNITS));
        assert!(matches!(opened, Err(RunFileError::Damaged { line: 1, .. })), "{bytes:?}");
        assert_eq!(disk.0.borrow().written, bytes);
    }
}

/// A path in a folder of its own.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("nqueens-test-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for temporary files");
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("run")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn options() -> CountOptions {
    CountOptions { kernel: Some(KernelKind::Scalar), threads: None }
}

#[test]
fn a_count_that_was_stopped_goes_on_where_it_was() {
    let scratch = Scratch::new("resume");
    let problem = Problem::empty(Piece::Queen, 12);
    let mut sessions = 0;
    let outcome = loop {
        sessions += 1;
        let task = CountTask::resume(&problem, &options(), &scratch.file()).expect("resumes");
        let before = task.resumed().0;
        // Each session is stopped after some units.
        let stop_at = before + 9;
        let outcome = task.run(|progress| {
            if progress.units_done >= stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match outcome {
            Ok(outcome) => break outcome,
            Err(CountError::Stopped { units_done, .. }) => assert!(units_done >= stop_at),
            Err(other) => panic!("{other}"),
        }
    };
    assert!(sessions > 1);
    assert_eq!(outcome.solutions, 14_200);
    // A finished file gives the same answer without counting.
    let again = CountTask::resume(&problem, &options(), &scratch.file()).expect("resumes");
    assert_eq!(again.resumed().0, outcome.units);
    assert_eq!(again.run(|_| ControlFlow::Continue(())).expect("nothing to do").solutions, 14_200);
}

#[test]
fn a_run_file_of_another_job_is_refused_and_left_alone() {
    let scratch = Scratch::new("another-job");
    let resume = |problem: &Problem, kernel| {
        let options = CountOptions { kernel: Some(kernel), threads: None };
        CountTask::resume(problem, &options, &scratch.file())
    };
    let eight = Problem::empty(Piece::Queen, 8);
    resume(&eight, KernelKind::Scalar).and_then(|t| t.run(|_| ControlFlow::Continue(()))).expect("counts");
    let before = fs::read(scratch.file()).expect("the file is there");
    let placed = Problem::new(Piece::Queen, 8, vec![Square::new(0, 0)], vec![]).expect("on the board");
    for (problem, kernel) in [
        (Problem::empty(Piece::Queen, 9), KernelKind::Scalar),
        (placed, KernelKind::Scalar),
        (Problem::empty(Piece::Superqueen, 8), KernelKind::Generic),
        (eight.clone(), KernelKind::Textbook),
    ] {
        let refused = resume(&problem, kernel).expect_err("another job");
        assert!(matches!(refused, CountError::RunFile(RunFileError::AnotherJob { .. })), "{refused}");
    }
    assert_eq!(fs::read(scratch.file()).expect("the file is there"), before);
    // Another kernel of the same scheme may go on with it.
    resume(&eight, KernelKind::Generic).expect("the same units");
}

#[test]
fn a_run_file_in_use_or_out_of_reach_is_refused() {
    let scratch = Scratch::new("in-use");
    let first = RunFile::open(&scratch.file()).expect("a new file");
    assert!(matches!(RunFile::open(&scratch.file()), Err(RunFileError::InUse(_))));
    drop(first);
    RunFile::open(&scratch.file()).expect("free again");
    for path in [scratch.0.clone(), scratch.0.join("no/such/folder/run")] {
        assert!(matches!(RunFile::open(&path), Err(RunFileError::Io { .. })), "{}", path.display());
    }
}
