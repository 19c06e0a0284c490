//! `nqueens fingerprint`.

use serde::Serialize;

use super::candidate::{self, Verdict};
use super::picture_args::PictureArgs;
use super::solution_output::{columns_from_one, refused, spaced};
use super::{Exit, Failure, print_report};
use crate::board::{Norm, Piece, Placement, Problem};
use crate::render::{Look, Picture};
use crate::symmetry::Orbit;

/// Print the fingerprint of a solution, and its class under rotations and reflections.
///
/// The fingerprint is the costs of the squares, the largest first. A most beautiful solution has
/// the lexicographically smallest one. All images of a solution have the same fingerprint.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The column in each row (2 4 1 3, '2 4 1 3' or 2413), a file with one solution, or - for
    /// stdin.
    #[arg(required = true, value_name = "SOLUTION|FILE", allow_negative_numbers = true)]
    solution: Vec<String>,
    /// The piece: queen, rook, superqueen (queen plus knight) or toroidal (a queen on a board whose
    /// opposite edges are joined).
    #[arg(long, default_value = "queen")]
    piece: Piece,
    /// The cost of a square: euclidean (u² + v²), manhattan (u + v) or chebyshev (the larger of u
    /// and v). u and v are its vertical and horizontal distances from the centre of the board, in
    /// half squares.
    #[arg(long, default_value_t = Norm::Euclidean)]
    norm: Norm,
    #[command(flatten)]
    pictures: PictureArgs,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    n: usize,
    piece: &'static str,
    norm: String,
    /// The column of each row, counted from 1.
    solution: Vec<usize>,
    fingerprint: Vec<u64>,
    /// The lexicographically smallest of the images.
    canonical: Vec<usize>,
    canonical_fingerprint: Vec<u64>,
    /// The number of different images under the 8 rotations and reflections.
    images: usize,
    symmetry: &'static str,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let found = candidate::only(&args.solution, "fingerprint")?;
    let verdict = Verdict::of(&found, &Problem::empty(args.piece, found.n));
    let columns: Option<Vec<usize>> =
        verdict.solution().and_then(|solution| solution.columns().collect());
    let Some(columns) = columns else {
        let hint = candidate::size_hint(&args.solution);
        let hint = hint.map_or_else(String::new, |hint| format!(" ({hint})"));
        return Err(Failure::new(Exit::CheckFailed, verdict.words() + &hint));
    };
    let pictures = args.pictures.begin(found.n, found.n)?;
    let report = report(&columns, args.piece, args.norm)?;
    print_report(args.json, &report, || text(&report))?;
    if let Some(solution) = verdict.solution() {
        pictures.finish(&Picture::of(solution).with_look(Look::Rings(args.norm)))?;
    }
    Ok(Exit::Done)
}

fn report(columns: &[usize], piece: Piece, norm: Norm) -> Result<Report, Failure> {
    let Orbit { least: canonical, images, symmetry } = Orbit::of(columns);
    let checked = Placement::check_solution(&Problem::empty(piece, columns.len()), &canonical);
    checked.map_err(|error| refused("fingerprint", &error))?;
    Ok(Report {
        n: columns.len(),
        piece: piece.name(),
        norm: norm.to_string(),
        solution: columns_from_one(columns),
        fingerprint: norm.fingerprint(columns),
        canonical: columns_from_one(&canonical),
        canonical_fingerprint: norm.fingerprint(&canonical),
        images,
        symmetry,
    })
}

fn text(report: &Report) -> String {
    let symmetry = match report.symmetry {
        "full" => "unchanged by all rotations and reflections",
        "reflection" => "unchanged by a reflection",
        "rotation" => "unchanged by quarter turns",
        "point" => "unchanged by a half turn",
        _ => "changed by every rotation and reflection",
    };
    let images = match report.images {
        1 => "1 image".to_owned(),
        images => format!("{images} different images"),
    };
    format!(
        "solution            {}\n\
         fingerprint         {} ({})\n\
         canonical image     {}\n\
         its fingerprint     {}\n\
         symmetry class      {images}, {symmetry}\n",
        spaced(&report.solution),
        spaced(&report.fingerprint),
        report.norm,
        spaced(&report.canonical),
        spaced(&report.canonical_fingerprint),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_images_follows_from_the_symmetry() {
        for (columns, images, symmetry) in [
            (vec![0], 1, "full"),
            (vec![1, 3, 0, 2], 2, "rotation"),
            (vec![0, 2, 4, 1, 3], 8, "none"),
            (vec![0, 1, 2, 3], 2, "reflection"),
            (vec![1, 3, 5, 0, 2, 4], 4, "point"),
        ] {
            let report = report(&columns, Piece::Rook, Norm::Euclidean).expect("rooks");
            assert_eq!((report.images, report.symmetry), (images, symmetry), "{columns:?}");
            assert_eq!(report.fingerprint, report.canonical_fingerprint);
            assert!(report.canonical <= report.solution);
        }
    }
}
