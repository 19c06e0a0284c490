//! The checkpoint keeps the partial results of units, and rejects those that cannot be true.

use std::fs;
use std::path::Path;

use crate::crashing_disk::CrashingDisk;
use crate::support::Scratch;

use nqueens::board::{Piece, Problem};
use nqueens::checkpoint::{
    Checkpoint, CheckpointError, Corruption, EnterError, FinishedUnit, PartialUnit, PartialUnits,
};
use nqueens::decomposition::{Decomposition, Job, Scheme};
use nqueens::tally::{Residues, Tally};
use sha2::{Digest, Sha256};

const UNITS: u64 = 4;
/// The subproblems of a unit.
const SIZE: u64 = 100;

fn job() -> Job {
    Job::new(Problem::empty(Piece::Queen, 9), Scheme::CentreCross, None, SIZE)
        .expect("a small board")
}

fn tally(completions: u64) -> Tally {
    let mut tally = Tally::default();
    tally.add(3, completions, Residues::of(completions.into()), 7).expect("fits");
    tally
}

fn finished(unit: u64) -> FinishedUnit {
    let kernel = "scalar".into();
    FinishedUnit { unit, tally: tally(1000 + unit), elapsed_s: 0.25, kernel }
}

fn partial(unit: u64, counted: u64) -> PartialUnit {
    let tally = tally(10 * counted + unit);
    PartialUnit { unit, counted, tally, elapsed_s: counted as f64, kernel: "scalar".into() }
}

fn by(kernel: &str, partial: PartialUnit) -> PartialUnit {
    PartialUnit { kernel: kernel.into(), ..partial }
}

fn open(bytes: &[u8]) -> Result<Checkpoint<CrashingDisk>, CheckpointError> {
    Checkpoint::open_in(Path::new("run"), CrashingDisk::holding(bytes))
}

fn begun(disk: &CrashingDisk) -> Checkpoint<CrashingDisk> {
    let mut file = Checkpoint::open_in(Path::new("run"), disk.clone()).expect("an empty disk");
    file.begin(&job(), UNITS).expect("writable");
    file
}

fn written(disk: &CrashingDisk) -> Vec<u8> {
    disk.0.borrow().written.clone()
}

/// Returns how much of each unit is counted, and [`SIZE`] for finished ones.
fn content(file: &Checkpoint<CrashingDisk>) -> [u64; UNITS as usize] {
    [0, 1, 2, 3].map(|unit| match file.partial().get(unit) {
        _ if file.completed().has(unit) => SIZE,
        Some(partial) => partial.counted,
        None => 0,
    })
}

/// A write to the checkpoint.
enum Step {
    Partial(Vec<PartialUnit>),
    Finished(Vec<FinishedUnit>),
    Void(Vec<u64>),
    Compact,
}

/// Returns writes as a count makes them.
fn steps() -> Vec<Step> {
    vec![
        Step::Partial(vec![partial(0, 10), partial(1, 20)]),
        Step::Partial(vec![partial(1, 40)]),
        Step::Finished(vec![finished(1), finished(2)]),
        Step::Compact,
        Step::Partial(vec![partial(0, 50)]),
        Step::Void(vec![0, 2]),
        Step::Partial(vec![partial(2, 5), partial(0, 30)]),
        Step::Compact,
        Step::Finished(vec![finished(2)]),
        Step::Partial(vec![by("generic", partial(0, 7)), partial(3, 1)]),
    ]
}

fn write(file: &mut Checkpoint<CrashingDisk>, step: &Step) -> Result<(), CheckpointError> {
    match step {
        Step::Partial(units) => file.append_partial(units),
        Step::Finished(units) => file.append(units),
        Step::Void(units) => file.void(units),
        Step::Compact => file.compact(),
    }
}

/// Asserts that every result in the file is one that was written.
fn assert_written(file: &Checkpoint<CrashingDisk>, case: &str) {
    for known in file.partial().iter() {
        let was_written = |step: &Step| matches!(step, Step::Partial(p) if p.contains(known));
        assert!(steps().iter().any(was_written), "{case}: {known:?}");
    }
    for (unit, known) in file.completed().finished() {
        assert_eq!(*known, finished(unit).tally, "{case}");
    }
}

#[test]
fn acknowledged_results_survive_a_power_loss_at_any_byte() {
    let whole = CrashingDisk::default();
    let mut file = begun(&whole);
    let mut contents = vec![content(&file)];
    for step in steps() {
        write(&mut file, &step).expect("the disk works");
        contents.push(content(&file));
    }
    assert_eq!(contents.last(), Some(&[7, SIZE, SIZE, 1]));
    let mut lost = 0;
    // What survives may end at any byte that was written before.
    for left in (0..).step_by(3) {
        let disk = CrashingDisk::default();
        let mut file = begun(&disk);
        disk.0.borrow_mut().left = Some(left);
        let done = steps().iter().take_while(|step| write(&mut file, step).is_ok()).count();
        if done == steps().len() {
            break;
        }
        lost += 1;
        // After a failed write nothing more is written.
        assert!(matches!(file.compact(), Err(CheckpointError::FailedBefore(_))));
        let refused = file.append_partial(&[partial(3, 99)]);
        assert!(matches!(refused, Err(CheckpointError::FailedBefore(_))));
        let disk = disk.0.borrow().clone();
        for bytes in disk.survivors() {
            let case = format!("step {done}, left {left}, {} bytes survive", bytes.len());
            let mut file = open(&bytes).unwrap_or_else(|error| panic!("{case}: {error}"));
            assert_written(&file, &case);
            // Some of the records of the interrupted write may be there as well.
            let (before, after) = (contents[done], contents[done + 1]);
            for (unit, now) in content(&file).into_iter().enumerate() {
                assert!([before[unit], after[unit]].contains(&now), "{case}: unit {unit}, {now}");
            }
            // It can be continued.
            write(&mut file, &steps()[done]).unwrap_or_else(|error| panic!("{case}: {error}"));
            assert_eq!(content(&file), after, "{case}");
        }
    }
    assert!(lost > 300, "{lost}");
}

#[test]
fn a_flipped_bit_anywhere_is_rejected_or_costs_no_more_than_the_last_record() {
    let disk = CrashingDisk::default();
    let mut file = begun(&disk);
    steps().iter().for_each(|step| write(&mut file, step).expect("the disk works"));
    let bytes = written(&disk);
    for position in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[position] ^= 1 << bit;
            let case = format!("byte {position}, bit {bit}");
            match open(&damaged) {
                Err(CheckpointError::Damaged { .. }) => {}
                Err(other) => panic!("{case}: {other}"),
                Ok(file) => {
                    assert_eq!(position, bytes.len() - 1, "{case} was accepted");
                    assert_eq!(content(&file), [7, SIZE, SIZE, 0], "{case}");
                }
            }
        }
    }
}

#[test]
fn a_file_without_partial_results_is_one_of_earlier_versions() {
    let (plain, compacted) = (CrashingDisk::default(), CrashingDisk::default());
    begun(&plain).append(&[finished(1), finished(2)]).expect("writable");
    let mut file = begun(&compacted);
    file.append_partial(&[partial(1, 4), partial(2, 4)]).expect("writable");
    file.append(&[finished(1), finished(2)]).expect("writable");
    // A result of a finished unit is late.
    file.append_partial(&[partial(1, 5)]).expect("writable");
    assert_ne!(written(&plain), written(&compacted));
    file.compact().expect("writable");
    assert_eq!(written(&plain), written(&compacted));
    file.append(&[finished(0)]).expect("writable");
    assert_eq!(content(&open(&written(&compacted)).expect("valid")), [SIZE, SIZE, SIZE, 0]);
}

#[test]
fn a_superseded_result_is_not_written() {
    let disk = CrashingDisk::default();
    let mut file = begun(&disk);
    file.append_partial(&[partial(0, 10), partial(0, 9), partial(0, 11)]).expect("writable");
    let before = written(&disk);
    assert_eq!(before.iter().filter(|&&byte| byte == b'\n').count(), 3);
    for late in [partial(0, 11), partial(0, 2)] {
        file.append_partial(&[late]).expect("nothing to write");
        assert_eq!(written(&disk), before);
    }
    file.append_partial(&[by("generic", partial(0, 2))]).expect("writable");
    file.append_partial(&[partial(0, 1)]).expect("writable");
    assert_eq!(open(&written(&disk)).expect("valid").partial().get(0), Some(&partial(0, 1)));
}

#[test]
fn a_result_that_the_file_would_refuse_on_reading_is_never_written() {
    let disk = CrashingDisk::default();
    let mut file = begun(&disk);
    let before = written(&disk);
    let size = |counted| EnterError::Subproblems { unit: 0, counted, subproblems: SIZE };
    for (wrong, because) in [
        (partial(UNITS, 1), EnterError::NoSuchUnit { unit: UNITS, units: UNITS }),
        (partial(0, 0), size(0)),
        (partial(0, SIZE), size(SIZE)),
        (partial(0, u64::MAX), size(u64::MAX)),
        (PartialUnit { elapsed_s: f64::NAN, ..partial(0, 1) }, EnterError::Elapsed(0)),
        (PartialUnit { elapsed_s: -1.0, ..partial(0, 1) }, EnterError::Elapsed(0)),
    ] {
        let wrong = PartialUnit { tally: tally(1), ..wrong };
        let refused = file.append_partial(&[partial(1, 1), wrong]).expect_err("may not be kept");
        assert!(
            matches!(&refused, CheckpointError::Refused { source, .. } if *source == because),
            "{refused}"
        );
    }
    let lying = Tally::from_parts(276, Residues::of(277), 0);
    let refused = file.append_partial(&[PartialUnit { tally: lying, ..partial(3, 1) }]);
    assert!(matches!(
        refused,
        Err(CheckpointError::Refused { source: EnterError::Tally { unit: 3, .. }, .. })
    ));
    assert_eq!((written(&disk), content(&file)), (before, [0; 4]));
}

/// Returns `json` as a line with a valid checksum.
fn line(json: &str) -> String {
    let digits: String =
        Sha256::digest(json)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{digits} {json}\n")
}

fn partial_line(unit: u64, counted: u64, kernel: &str, elapsed_s: f64, residue: u64) -> String {
    let tally = format!(r#"{{"thirds":"9","residues":[{residue},{residue}],"nodes":"1"}}"#);
    line(&format!(
        r#"{{"unit":{unit},"counted":{counted},"tally":{tally},"elapsed_s":{elapsed_s},"kernel":"{kernel}"}}"#
    ))
}

#[test]
fn a_record_with_a_valid_checksum_is_still_validated() {
    let disk = CrashingDisk::default();
    let _ = begun(&disk);
    let header = String::from_utf8(written(&disk)).expect("text");
    let scalar = |unit, counted| partial_line(unit, counted, "scalar", 0.5, 9);
    let whole = line(
        r#"{"unit":1,"tally":{"thirds":"9","residues":[9,9],"nodes":"1"},"elapsed_s":0.5,"kernel":"scalar"}"#,
    );
    let void = line(r#"{"disputed":1}"#);
    let damage = |records: &[&str]| {
        let text = header.clone() + &records.concat();
        match open(text.as_bytes()) {
            Err(CheckpointError::Damaged { line, damage, .. }) => Some((line, damage.to_string())),
            Err(other) => panic!("{other}"),
            Ok(_) => None,
        }
    };
    // A unit may be continued, finished, voided and begun again, and also by another kernel.
    let begun_again = partial_line(1, 3, "generic", 0.5, 9);
    let valid = [&scalar(1, 5), &scalar(1, 9), &begun_again, &scalar(1, 1), &whole, &void];
    let valid: Vec<&str> = valid.into_iter().map(String::as_str).collect();
    assert_eq!(damage(&valid), None);
    assert_eq!(damage(&[&valid[..], &[&scalar(1, 1)]].concat()), None);
    assert_eq!(damage(&[&scalar(1, 9), &void, &scalar(1, 5)]), None);
    let superseded = EnterError::Superseded(1).to_string();
    for records in
        [[&scalar(1, 9), &scalar(1, 5)], [&scalar(1, 9), &scalar(1, 9)], [&whole, &scalar(1, 9)]]
    {
        let (at, what) = damage(&records.map(String::as_str)).expect("it supersedes nothing");
        assert_eq!((at, &what), (3, &superseded));
    }
    for (wrong, what) in [
        (scalar(1, 0), "0 subproblems does not fit"),
        (scalar(1, SIZE), "100 subproblems does not fit"),
        (scalar(1, u64::MAX), "18446744073709551615 subproblems does not fit"),
        (scalar(UNITS, 5), "does not belong to a job"),
        (partial_line(1, 5, "scalar", -0.5, 9), "invalid time"),
        (partial_line(1, 5, "scalar", 0.5, 10), "residues"),
        (line(r#"{"unit":1,"counted":5}"#), "written by another version"),
        (line(r#"{"unit":1,"counted":-5,"tally":{}}"#), "written by another version"),
    ] {
        let (at, found) = damage(&[&wrong]).expect("it is wrong");
        assert!(at == 2 && found.contains(what) && !found.contains('\n'), "{found}");
    }
}

#[test]
fn a_result_that_is_larger_than_the_last_unit_is_rejected() {
    let disk = CrashingDisk::default();
    let decomposition = Decomposition::new(job()).with_unit_prefixes(20);
    let last = decomposition.units() - 1;
    let range = decomposition.unit(last);
    let size = range.end - range.start;
    assert!(size > 1 && size < 20);
    let mut file = Checkpoint::open_in(Path::new("run"), disk).expect("an empty disk");
    file.begin(decomposition.job(), last + 1).expect("writable");
    file.append_partial(&[partial(0, 19), partial(last, size - 1)]).expect("writable");
    file.check_units(&decomposition).expect("both are smaller than their units");
    file.append_partial(&[partial(last, size)]).expect("no more than a unit has");
    file.append(&[finished(0)]).expect("writable");
    let Err(CheckpointError::Damaged { damage: Corruption::Unit(error), .. }) =
        file.check_units(&decomposition)
    else {
        panic!("the unit would be finished");
    };
    assert_eq!(error, EnterError::Subproblems { unit: last, counted: size, subproblems: size });
}

#[test]
fn a_file_that_grows_is_compacted_and_stays_locked() {
    let scratch = Scratch::new("compacted");
    let path = scratch.file("count.run");
    let path = Path::new(&path);
    let mut file = Checkpoint::open(path).expect("a new file");
    file.begin(
        &Job::new(job().problem().clone(), Scheme::CentreCross, None, 1 << 40).expect("a job"),
        2,
    )
    .expect("writable");
    file.append(&[finished(1)]).expect("writable");
    let (mut counted, mut largest) = (0, 0);
    // Each record has over 100 bytes.
    let length = || fs::metadata(path).expect("it is there").len();
    while length() >= largest {
        largest = length();
        let next: Vec<PartialUnit> =
            (counted + 1..=counted + 5000).map(|counted| partial(0, counted)).collect();
        counted += 5000;
        assert!(counted < 400_000, "it was never compacted");
        file.append_partial(&next).expect("writable");
    }
    assert!(largest > 1 << 23 && length() < 2000, "{largest}, {}", length());
    // Only the file and no temporary one is left, and it is the locked one.
    let names = fs::read_dir(path.parent().expect("a folder")).expect("readable");
    assert_eq!(names.count(), 1);
    assert!(matches!(Checkpoint::open(path), Err(CheckpointError::InUse(_))));
    file.append_partial(&[partial(0, counted + 1)]).expect("writable");
    drop(file);
    let file = Checkpoint::open(path).expect("free again");
    assert_eq!(file.partial().get(0), Some(&partial(0, counted + 1)));
    assert!(file.completed().has(1));
}

#[test]
fn a_file_that_cannot_be_replaced_is_appended_to() {
    let scratch = Scratch::new("not-replaced");
    let path = scratch.file("count.run");
    let path = Path::new(&path);
    let mut file = Checkpoint::open(path).expect("a new file");
    file.begin(&job(), UNITS).expect("writable");
    file.append_partial(&[partial(0, 1), partial(0, 2)]).expect("writable");
    let before = fs::read(path).expect("readable");
    // Nothing can be moved to the place of a folder.
    fs::rename(path, path.with_extension("moved")).expect("it can be moved");
    fs::create_dir(path).expect("a folder");
    file.compact().expect("the file still works");
    assert_eq!(fs::read(path.with_extension("moved")).expect("readable"), before);
    file.append(&[finished(0)]).expect("writable");
    drop(file);
    let file = Checkpoint::open(&path.with_extension("moved")).expect("valid");
    assert!(file.completed().has(0) && *file.partial() == PartialUnits::default());
}
