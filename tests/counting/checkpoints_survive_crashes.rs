//! The checkpoint keeps what it acknowledged and rejects everything that is damaged.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::crashing_disk::CrashingDisk;

use nqueens::board::{Piece, Problem, Square};
use nqueens::checkpoint::{Checkpoint, CheckpointError, Corruption, EnterError, FinishedUnit};
use nqueens::decomposition::{Job, Scheme};
use nqueens::engine::{CountError, CountEvent, CountOptions, CountTask};
use nqueens::kernel::KernelKind;
use nqueens::tally::{Residues, Tally};
use sha2::{Digest, Sha256};

const UNITS: u64 = 6;

fn job() -> Job {
    Job::new(Problem::empty(Piece::Queen, 9), Scheme::CentreCross, None, 100)
        .expect("a small board")
}

fn finished(unit: u64) -> FinishedUnit {
    let completions = 1000 + unit;
    let mut tally = Tally::default();
    tally.add(3, completions, Residues::of(completions.into()), 7).expect("fits");
    FinishedUnit { unit, tally, elapsed_s: 0.25, kernel: "scalar".into() }
}

fn open(bytes: &[u8]) -> Result<Checkpoint<CrashingDisk>, CheckpointError> {
    Checkpoint::open_in(Path::new("run"), CrashingDisk::holding(bytes))
}

/// Returns units in the order in which the count appends them, some in one batch.
fn batches() -> Vec<Vec<FinishedUnit>> {
    vec![vec![finished(2)], vec![finished(0), finished(1), finished(5)], vec![finished(4)]]
}

/// Writes everything. Returns the units that were acknowledged before the power loss.
fn write_all(disk: &CrashingDisk) -> Vec<u64> {
    let mut acknowledged = Vec::new();
    let mut file = Checkpoint::open_in(Path::new("run"), disk.clone()).expect("an empty disk");
    if file.begin(&job(), UNITS).is_err() {
        return acknowledged;
    }
    for batch in batches() {
        if file.append(&batch).is_err() {
            assert!(matches!(file.append(&batch), Err(CheckpointError::FailedBefore(_))));
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

/// Returns the sum of the thirds of these units.
fn thirds(units: impl IntoIterator<Item = u64>) -> u128 {
    units.into_iter().map(|unit| finished(unit).tally.thirds()).sum()
}

#[test]
fn an_acknowledged_unit_survives_a_power_loss_at_any_byte() {
    let steps = whole_file().len() + 4;
    for left in 0..=steps {
        let disk = CrashingDisk::default();
        disk.0.borrow_mut().left = Some(left);
        let acknowledged = write_all(&disk);
        let disk = disk.0.borrow().clone();
        for bytes in disk.survivors() {
            assert_resumes(
                &bytes,
                &acknowledged,
                &format!("left {left}, {} bytes survive", bytes.len()),
            );
        }
    }
}

/// Asserts that a crashed file has every acknowledged unit once, and that a count can resume from
/// it.
fn assert_resumes(bytes: &[u8], acknowledged: &[u64], case: &str) {
    let disk = CrashingDisk::holding(bytes);
    let mut file = Checkpoint::open_in(Path::new("run"), disk.clone())
        .unwrap_or_else(|e| panic!("{case}: {e}"));
    for &unit in acknowledged {
        assert!(file.completed().has(unit), "{case}: unit {unit} is lost");
    }
    let present: Vec<u64> = (0..UNITS).filter(|&unit| file.completed().has(unit)).collect();
    assert_eq!(file.completed().so_far().thirds(), thirds(present.clone()), "{case}");
    if file.job().is_none() {
        file.begin(&job(), UNITS).unwrap_or_else(|e| panic!("{case}: {e}"));
    }
    let missing: Vec<u64> = file.completed().missing().collect();
    file.append(&missing.into_iter().map(finished).collect::<Vec<_>>()).expect("the disk works");
    let again = open(&disk.0.borrow().synced).unwrap_or_else(|e| panic!("{case}, once more: {e}"));
    assert_eq!(again.completed().total().map(Tally::thirds), Ok(thirds(0..UNITS)), "{case}");
}

#[test]
fn a_second_crash_while_a_torn_line_is_overwritten_loses_nothing_either() {
    let whole = whole_file();
    let last_line =
        whole[..whole.len() - 1].iter().rposition(|&byte| byte == b'\n').expect("lines") + 1;
    // Every seventh length is enough to tear each field.
    for torn_at in (last_line + 1..whole.len()).step_by(7) {
        for left in 0..whole.len() - last_line + 3 {
            let disk = CrashingDisk::holding(&whole[..torn_at]);
            let mut file =
                Checkpoint::open_in(Path::new("run"), disk.clone()).expect("a torn last line");
            disk.0.borrow_mut().left = Some(left);
            let mut acknowledged = vec![0, 1, 2, 5];
            // This time another unit than the torn one comes first.
            if file.append(&[finished(3)]).is_ok() {
                acknowledged.push(3);
            }
            let disk = disk.0.borrow().clone();
            let survivors = disk.survivors();
            for bytes in
                [&survivors[0], &survivors[survivors.len() / 2], &survivors[survivors.len() - 1]]
            {
                assert_resumes(bytes, &acknowledged, &format!("torn at {torn_at}, left {left}"));
            }
        }
    }
}

#[test]
fn a_torn_header_of_other_units_is_overwritten() {
    let of = |unit_prefixes| {
        Job::new(Problem::empty(Piece::Queen, 9), Scheme::CentreCross, None, unit_prefixes)
            .expect("small")
    };
    let disk = CrashingDisk::default();
    Checkpoint::open_in(Path::new("run"), disk.clone())
        .and_then(|mut f| f.begin(&of(7), 50))
        .expect("works");
    let header = disk.0.borrow().synced.clone();
    let disk = CrashingDisk::holding(&header[..header.len() - 1]);
    let mut file = Checkpoint::open_in(Path::new("run"), disk.clone()).expect("a torn header");
    file.begin(&of(100), UNITS).expect("no unit was acknowledged under it");
    assert_eq!(open(&disk.0.borrow().synced).expect("a complete file").job(), Some(&of(100)));
}

#[test]
fn a_unit_that_the_file_would_refuse_on_reading_is_never_written() {
    let disk = CrashingDisk::holding(&whole_file());
    let mut file = Checkpoint::open_in(Path::new("run"), disk.clone()).expect("a complete file");
    let mut lying = Tally::default();
    lying.add(3, 92u64, Residues::of(93), 0).expect("fits");
    let other = FinishedUnit { tally: finished(9).tally, ..finished(0) };
    for (wrong, because) in [
        (finished(UNITS), EnterError::NoSuchUnit { unit: UNITS, units: UNITS }),
        (other, EnterError::Conflict(0)),
        (FinishedUnit { elapsed_s: f64::NAN, ..finished(3) }, EnterError::Elapsed(3)),
    ] {
        let refused = file.append(&[finished(3), wrong]).expect_err("may not be kept");
        assert!(
            matches!(&refused, CheckpointError::Refused { source, .. } if *source == because),
            "{refused}"
        );
    }
    let lying = file.append(&[FinishedUnit { tally: lying, ..finished(3) }]);
    assert!(matches!(
        lying,
        Err(CheckpointError::Refused { source: EnterError::Tally { unit: 3, .. }, .. })
    ));
    assert_eq!(disk.0.borrow().written, whole_file());
    // The file remains usable, and a unit is written once however often it is appended.
    file.append(&[finished(3), finished(3), finished(0)]).expect("valid entries");
    file.append(&[finished(3)]).expect("kept already");
    let bytes = disk.0.borrow().synced.clone();
    assert_eq!(bytes.iter().filter(|&&byte| byte == b'\n').count() as u64, 1 + UNITS);
    assert_eq!(
        open(&bytes).expect("a complete file").completed().total().map(Tally::thirds),
        Ok(thirds(0..UNITS))
    );
}

/// Returns `json` as a line with a valid checksum.
fn line(json: &str) -> String {
    let digits: String =
        Sha256::digest(json)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{digits} {json}\n")
}

#[test]
fn a_line_with_a_valid_checksum_is_still_validated() {
    let (text, hash) = (job().to_string(), job().hash());
    let header = |format: &str, job: &str, hash: &str, units: u64| {
        line(&format!(
            r#"{{"format":"{format}","job":"{job}","job_hash":"{hash}","units":{units}}}"#
        ))
    };
    let hash = hash.to_string();
    let good = header("nqueens-run/1", &text, &hash, UNITS);
    let unit = |unit, thirds: u64, residue: u64| {
        let tally =
            format!(r#"{{"thirds":"{thirds}","residues":[{residue},{residue}],"nodes":"1"}}"#);
        line(&format!(r#"{{"unit":{unit},"tally":{tally},"elapsed_s":0.5,"kernel":"scalar"}}"#))
    };
    let damage = |text: &str| {
        let disk = CrashingDisk::holding(text.as_bytes());
        match Checkpoint::open_in(Path::new("some/file"), disk.clone()) {
            Err(error @ CheckpointError::Damaged { .. }) => {
                assert_eq!(disk.0.borrow().written, text.as_bytes());
                let message = error.to_string();
                assert!(
                    message.contains("some/file, line ") && !message.contains('\n'),
                    "{message}"
                );
                let CheckpointError::Damaged { line, damage, .. } = error else { unreachable!() };
                (line, damage)
            }
            other => panic!("{other:?}"),
        }
    };
    assert!(open(format!("{good}{}{}", unit(1, 9, 9), unit(1, 9, 9)).as_bytes()).is_ok());
    let (at, of) = damage(&format!("{good}{}{}", unit(1, 9, 9), unit(1, 12, 12)));
    assert!(at == 3 && matches!(of, Corruption::Unit(EnterError::Conflict(1))));
    let (at, of) = damage(&format!("{good}{}", unit(1, 9, 12)));
    assert!(at == 2 && matches!(of, Corruption::Unit(EnterError::Tally { unit: 1, .. })));
    let (at, of) = damage(&format!("{good}{}", unit(UNITS, 9, 9)));
    assert!(at == 2 && matches!(of, Corruption::Unit(EnterError::NoSuchUnit { .. })));
    assert!(matches!(damage(&format!("{good}{good}")), (2, Corruption::Unknown(_))));
    assert!(matches!(damage(&format!("{good}{}", line("{"))), (2, Corruption::Unknown(_))));
    let (_, of) = damage(&line(r#"{"format":"nqueens-run/2","more":1}"#));
    assert!(of.to_string().contains("nqueens-run/2"), "{of}");
    assert!(matches!(damage(&header("nqueens-run/1", "x", &hash, 6)), (1, Corruption::Unknown(_))));
    let zeros = "0".repeat(32);
    assert!(matches!(
        damage(&header("nqueens-run/1", &text, &zeros, 6)),
        (1, Corruption::JobHash(_))
    ));
    // A number of units that does not fit in memory must not cause a panic.
    let endless =
        open(header("nqueens-run/1", &text, &hash, u64::MAX).as_bytes()).expect("a header");
    assert_eq!((endless.completed().units(), endless.completed().done()), (u64::MAX, 0));
}

#[test]
fn a_torn_line_is_overwritten_and_the_file_reads_back_completely() {
    let bytes = whole_file();
    let disk = CrashingDisk::holding(&bytes[..bytes.len() - 3]);
    let mut file = Checkpoint::open_in(Path::new("run"), disk.clone()).expect("a torn last line");
    assert!(file.torn_bytes() > 0 && !file.completed().has(4));
    file.append(&[finished(4), finished(3)]).expect("the disk works");
    drop(file);
    let again = open(&disk.0.borrow().synced).expect("a complete file");
    assert_eq!(
        (again.torn_bytes(), again.completed().total().map(Tally::thirds)),
        (0, Ok(thirds(0..UNITS)))
    );
}

#[test]
fn a_file_cut_at_any_length_yields_only_units_as_they_were_written() {
    let bytes = whole_file();
    for length in 0..bytes.len() {
        let file = open(&bytes[..length]).unwrap_or_else(|e| panic!("length {length}: {e}"));
        let present: Vec<u64> = (0..UNITS).filter(|&unit| file.completed().has(unit)).collect();
        assert_eq!(file.completed().so_far().thirds(), thirds(present), "length {length}");
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
                Err(CheckpointError::Damaged { .. }) => {}
                Err(other) => panic!("byte {position}, bit {bit}: {other}"),
                Ok(file) => {
                    assert_eq!(
                        position,
                        bytes.len() - 1,
                        "byte {position}, bit {bit} was accepted"
                    );
                    assert_eq!(file.completed().so_far().thirds(), thirds([0, 1, 2, 5]));
                }
            }
        }
    }
}

#[test]
fn a_file_that_is_not_a_checkpoint_is_refused_and_left_unchanged() {
    let texts: [&[u8]; 6] = [
        b"hello\n",
        b"\n",
        b"{\"unit\":0}\n",
        &[0xff; 40],
        b"deadbeef",
        b"0123456789abcdef {\"a\":1}",
    ];
    for bytes in texts {
        let disk = CrashingDisk::holding(bytes);
        let opened = Checkpoint::open_in(Path::new("run"), disk.clone())
            .and_then(|mut file| file.begin(&job(), UNITS));
        assert!(matches!(opened, Err(CheckpointError::Damaged { line: 1, .. })), "{bytes:?}");
        assert_eq!(disk.0.borrow().written, bytes);
    }
}

/// A temporary folder with one file, removed when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("nqueens-test-{}-{name}", std::process::id()));
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
    CountOptions { kernel: Some(KernelKind::Scalar), ..CountOptions::default() }
}

#[test]
fn a_disputed_unit_is_counted_again_in_the_next_session() {
    let scratch = Scratch::new("dispute");
    let whole = {
        let mut file = Checkpoint::open(&scratch.file()).expect("a new file");
        file.begin(&job(), 5).expect("writable");
        file.append(&[finished(0), finished(3)]).expect("writable");
        let mut other = finished(3);
        other.tally = finished(4).tally;
        assert!(matches!(file.append(&[other]), Err(CheckpointError::Refused { .. })));
        file.void(&[3]).expect("writable");
        assert!(file.completed().has(0) && !file.completed().has(3));
        *file.completed().so_far()
    };
    let mut file = Checkpoint::open(&scratch.file()).expect("reads back");
    assert!(file.completed().has(0) && !file.completed().has(3));
    assert_eq!(*file.completed().so_far(), whole);
    // The next result of the unit is accepted.
    file.append(&[finished(3)]).expect("writable");
    assert!(file.completed().has(3));
}

#[test]
fn a_stopped_count_resumes_where_it_ended() {
    let scratch = Scratch::new("resume");
    let problem = Problem::empty(Piece::Queen, 12);
    let mut sessions = 0;
    let outcome = loop {
        sessions += 1;
        let task = CountTask::resume(&problem, &options(), &scratch.file()).expect("resumes");
        let before = task.resumed().0;
        // Each session is stopped after some units.
        let stop_at = before + 9;
        let outcome = task.run(|event| {
            let enough =
                matches!(event, CountEvent::Progress(progress) if progress.units_done >= stop_at);
            if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match outcome {
            Ok(outcome) => break outcome,
            Err(CountError::Stopped { units_done, .. }) => assert!(units_done >= stop_at),
            Err(other) => panic!("{other}"),
        }
    };
    assert!(sessions > 1);
    assert_eq!(outcome.solutions, 14_200);
    // A complete file gives the same result without counting.
    let again = CountTask::resume(&problem, &options(), &scratch.file()).expect("resumes");
    assert_eq!(again.resumed().0, outcome.units);
    assert_eq!(again.run(|_| ControlFlow::Continue(())).expect("nothing to do").solutions, 14_200);
}

#[test]
fn a_checkpoint_of_another_job_is_refused_and_left_unchanged() {
    let scratch = Scratch::new("another-job");
    let resume = |problem: &Problem, kernel| {
        let options = CountOptions { kernel: Some(kernel), ..CountOptions::default() };
        CountTask::resume(problem, &options, &scratch.file())
    };
    let eight = Problem::empty(Piece::Queen, 8);
    resume(&eight, KernelKind::Scalar)
        .and_then(|t| t.run(|_| ControlFlow::Continue(())))
        .expect("counts");
    let before = fs::read(scratch.file()).expect("the file is there");
    let placed =
        Problem::new(Piece::Queen, 8, vec![Square::new(0, 0)], vec![]).expect("on the board");
    for (problem, kernel) in [
        (Problem::empty(Piece::Queen, 9), KernelKind::Scalar),
        (placed, KernelKind::Scalar),
        (Problem::empty(Piece::Superqueen, 8), KernelKind::Generic),
        (eight.clone(), KernelKind::Textbook),
    ] {
        let refused = resume(&problem, kernel).expect_err("another job");
        assert!(
            matches!(refused, CountError::Checkpoint(CheckpointError::AnotherJob { .. })),
            "{refused}"
        );
    }
    assert_eq!(fs::read(scratch.file()).expect("the file is there"), before);
    // Another kernel with the same scheme can resume it.
    resume(&eight, KernelKind::Generic).expect("the same units");
}

#[test]
fn a_checkpoint_in_use_or_inaccessible_is_refused() {
    let scratch = Scratch::new("in-use");
    let first = Checkpoint::open(&scratch.file()).expect("a new file");
    assert!(matches!(Checkpoint::open(&scratch.file()), Err(CheckpointError::InUse(_))));
    drop(first);
    Checkpoint::open(&scratch.file()).expect("free again");
    let mut out_of_reach = vec![scratch.0.clone(), scratch.0.join("no/such/folder/run")];
    if cfg!(target_os = "linux") {
        // Readable without end, writable without effect.
        out_of_reach.push("/dev/zero".into());
    }
    for path in out_of_reach {
        assert!(
            matches!(Checkpoint::open(&path), Err(CheckpointError::Io { .. })),
            "{}",
            path.display()
        );
    }
}
