//! The table of proofs for VeriPB.

use std::collections::BTreeMap;
use std::fs;

use nqueens::proof::{Kind, Meter, open, veripb};

use super::{
    Row, assert_sound, check_origin, check_seconds, check_sha256, path, read, rows, sha256,
};

pub(super) const NAME: &str = "records/veripb.csv";
pub(super) const HEADER: &str = "kind,n,certificate_sha256,lines,bytes,sha256,translation_s,veripb_s,veripb_kib,\
                                 elaborated_bytes,machine,commit,date";

/// Proofs with more bytes than this are not written again.
const REPRODUCED: u64 = 1_000_000;

fn check_row(row: &Row) -> Result<(), String> {
    let kind = row.required("kind")?;
    if ![Kind::First, Kind::Beautiful].into_iter().any(|of| of.name() == kind) {
        return Err(format!("'{kind}' is no kind of certificate"));
    }
    check_sha256(row, "certificate_sha256", &[64])?;
    check_sha256(row, "sha256", &[64])?;
    let (lines, bytes) = (row.number::<u64>("lines")?, row.number::<u64>("bytes")?);
    if lines == 0 || bytes < lines {
        return Err(format!("{lines} lines cannot have {bytes} bytes"));
    }
    check_seconds(row, "translation_s")?;
    if row.cell("veripb_s").is_some() {
        check_seconds(row, "veripb_s")?;
        row.number::<u64>("veripb_kib")?;
    } else if row.cell("veripb_kib").or(row.cell("elaborated_bytes")).is_some() {
        return Err("VeriPB has not verified it".into());
    }
    if row.cell("elaborated_bytes").is_some() {
        row.number::<u64>("elaborated_bytes")?;
    }
    row.required("commit")?;
    check_origin(row)
}

#[test]
fn every_proof_for_veripb_has_its_size_and_hash() {
    assert_sound(NAME, HEADER, check_row);
}

#[test]
fn the_proofs_of_stored_certificates_are_those_of_the_records() {
    let table = rows(&read(NAME), HEADER).expect("a table");
    let by_certificate: BTreeMap<&str, &Row> = table
        .iter()
        .map(|row| (row.required("certificate_sha256").expect("a hash"), row))
        .collect();
    let (mut found, mut reproduced) = (0, 0);
    for entry in fs::read_dir(path("tests/certificates")).expect("a readable folder") {
        let file = entry.expect("an entry").path();
        let certificate = fs::read(&file).expect("a file");
        let row = by_certificate.get(&sha256(&certificate)[..]);
        let row = row.unwrap_or_else(|| panic!("{} has no record", file.display()));
        found += 1;
        let (kind, n, _) = open(&certificate).expect("a certificate");
        assert_eq!((row.required("kind"), row.number("n")), (Ok(kind.name()), Ok(n)), "{row}");
        let bytes: u64 = row.number("bytes").expect("a size");
        if bytes > REPRODUCED {
            continue;
        }
        let (mut formula, mut proof) = (Vec::new(), Vec::new());
        let meter = &mut Meter::default();
        let size =
            veripb::translate(&certificate, veripb::MOST_LINES, meter, &mut formula, &mut proof)
                .expect("a proof");
        assert_eq!((Ok(size.lines), size.bytes), (row.number("lines"), bytes), "{row}");
        assert_eq!(Ok(&sha256(&proof)[..]), row.required("sha256"), "{row}");
        reproduced += 1;
    }
    assert!(found > 15 && reproduced > 3, "{found}, {reproduced}");
}

#[test]
fn a_wrong_row_is_detected() {
    let hash = "0123456789abcdef".repeat(4);
    let right = format!("first,8,{hash},9,99,{hash},0.01,0.02,3000,500,epyc,333e33b,2026-11-23\n");
    let faults_of = |rows: &str| super::faults(&format!("{HEADER}\n{rows}"), HEADER, check_row);
    assert_eq!(faults_of(&right), Vec::<String>::new());
    for (from, to) in [
        ("first", "last"),
        (",9,99,", ",99,9,"),
        (",9,99,", ",0,99,"),
        ("ef,9", "e,9"),
        ("ef,0.01", "eg,0.01"),
        ("0.01", ""),
        ("0.02", ""),
        ("3000", ""),
        ("500", "x"),
        ("epyc", "pdp11"),
        ("333e33b", ""),
        ("2026-11-23", "2026-11-31"),
    ] {
        let row = right.replace(from, to);
        assert!(row != right && !faults_of(&row).is_empty(), "{row}");
    }
    let unchecked = right.replace("0.02,3000,500", ",,");
    assert_eq!(faults_of(&unchecked), Vec::<String>::new());
    assert!(!faults_of(&format!("{right}{right}")).is_empty(), "a certificate occurs twice");
}
