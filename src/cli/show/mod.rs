//! `nqueens show`.

mod sections;

use std::path::PathBuf;

use serde::Serialize;

use sections::{Attacks, Cliques, Costs, Matrix};

use super::args::{DecidedSquares, from_one};
use super::candidate::{self, Candidate, Verdict};
use super::picture_args::PictureArgs;
use super::{Exit, Failure, json_line, print};
use crate::board::{Norm, Piece, Problem};
use crate::render::{Look, MAX_ATTACKS, Picture};

/// Draw a placement, also a partial one, with its attacks, costs and constraints.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The column in each row (2 4 1 3, '2 4 1 3' or 2413), with - for a row without a piece; a
    /// file with one placement; or - for stdin.
    #[arg(
        required_unless_present = "board",
        conflicts_with = "board",
        value_name = "SOLUTION|FILE",
        allow_negative_numbers = true
    )]
    solution: Vec<String>,
    /// Show the board in FILE, or from stdin if that is -, in place of a solution: JSON of count or
    /// solve, a FEN, a file of CSPLib's problems 079 or 080, or lines of Q, . and x (blocked).
    #[arg(long, value_name = "FILE")]
    board: Option<PathBuf>,
    /// Show how many pieces attack each square, and which pieces attack each other. For n up to
    /// 256.
    #[arg(long)]
    attacks: bool,
    /// Show the cost of each square and the rings of equal cost. A solution is most beautiful
    /// if the costs of its squares, the largest first, are lexicographically smallest. For n up
    /// to 256.
    #[arg(long)]
    costs: bool,
    /// The cost of a square for --costs: euclidean (u² + v²), manhattan (u + v) or chebyshev (the
    /// larger of u and v). u and v are its vertical and horizontal distances from the centre of the
    /// board, in half squares.
    #[arg(long, default_value_t = Norm::Euclidean)]
    norm: Norm,
    /// Show the cliques of the 0-1 program, each of which holds at most one piece: the lines of the
    /// board, and the families (3) to (5) of Fischetti and Salvagnin. For queens and rooks, n up to
    /// 64.
    #[arg(long)]
    cliques: bool,
    /// Show the constraint matrix of the 0-1 program. For queens and rooks, n up to 10.
    #[arg(long)]
    matrix: bool,
    /// The piece: queen, rook, superqueen (queen plus knight) or toroidal (a queen on a board whose
    /// opposite edges are joined). Default: the piece of --board, or queen.
    #[arg(long)]
    piece: Option<Piece>,
    #[command(flatten)]
    squares: DecidedSquares,
    #[command(flatten)]
    pictures: PictureArgs,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The largest board that is drawn as text.
const LARGEST_DIAGRAM: usize = 1000;
/// The largest boards of the sections.
const LARGEST_CLIQUES: usize = 64;
const LARGEST_MATRIX: usize = 10;

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    verdict: candidate::Report,
    /// The squares of the pieces, counted from 1.
    squares: Vec<[usize; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attacks: Option<Attacks>,
    #[serde(skip_serializing_if = "Option::is_none")]
    costs: Option<Costs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cliques: Option<Cliques>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matrix: Option<Matrix>,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let (found, problem) = read(args)?;
    let (n, piece) = (found.n, problem.piece());
    check_limits(args, piece, n)?;
    let verdict = Verdict::of(&found, &problem);
    if let Some(square) = found.off_board() {
        let message =
            format!("the piece on {square} is off the board; rows and columns go from 1 to {n}");
        return Err(Failure::usage(message));
    }
    let pictures = args.pictures.begin(n, n)?;
    let attacks = args.attacks.then(|| Attacks::of(piece, &found));
    let costs = args.costs.then(|| Costs::of(args.norm, &found));
    let cliques = args.cliques.then(|| Cliques::of(piece, &found));
    let matrix = args.matrix.then(|| Matrix::of(piece, &found));
    print(&if args.json {
        let squares = from_one(&found.squares);
        let report = Report { verdict: verdict.report(), squares, attacks, costs, cliques, matrix };
        json_line(&report)
    } else {
        let sections = [
            Some(sections::board(&problem, &found) + &verdict.words() + "\n"),
            attacks.map(|attacks| attacks.text(&found)),
            costs.map(|costs| costs.text(&found)),
            cliques.map(|cliques| cliques.text()),
            matrix.map(|matrix| matrix.text()),
        ];
        sections.into_iter().flatten().collect::<Vec<_>>().join("\n")
    })?;
    let picture = match verdict.placement() {
        Some(placement) => Picture::of(placement),
        None => Picture::of_squares(piece, n, n, &found.squares),
    };
    let look = if args.costs {
        Look::Rings(args.norm)
    } else if args.attacks {
        Look::Attacks
    } else {
        Look::Chequered
    };
    pictures.finish(&picture.deciding(&problem).with_look(look))?;
    Ok(Exit::Done)
}

/// Returns the placement, and the problem with the decided squares.
fn read(args: &Args) -> Result<(Candidate, Problem), Failure> {
    let Some(board) = &args.board else {
        if let Some(hint) = candidate::size_hint(&args.solution) {
            return Err(Failure::usage(hint));
        }
        let found = candidate::only(&args.solution, "show")?;
        let n = found.n;
        check_limits(args, args.piece.unwrap_or(Piece::Queen), n)?;
        return Ok((found, args.squares.problem(args.piece, Some(n), None)?));
    };
    let problem = args.squares.problem(args.piece, None, Some(board))?;
    let mut squares = problem.placed().to_vec();
    squares.sort_unstable();
    squares.dedup();
    Ok((Candidate { line: 1, n: problem.n(), squares }, problem))
}

/// Checks that the placement is not too large for what is shown.
fn check_limits(args: &Args, piece: Piece, n: usize) -> Result<(), Failure> {
    let limits = [
        ("--matrix", args.matrix, LARGEST_MATRIX),
        ("--cliques", args.cliques, LARGEST_CLIQUES),
        ("--attacks", args.attacks, MAX_ATTACKS),
        ("--costs", args.costs, MAX_ATTACKS),
        ("show", true, LARGEST_DIAGRAM),
    ];
    if let Some((what, _, most)) = limits.into_iter().find(|&(_, given, most)| given && n > most) {
        return Err(Failure::usage(format!("{what} is for boards up to n = {most}, not n = {n}")));
    }
    let has_program = matches!(piece, Piece::Queen | Piece::Rook);
    if (args.cliques || args.matrix) && !has_program {
        return Err(Failure::usage("--cliques and --matrix are for queens and rooks"));
    }
    if args.attacks
        && args.costs
        && let Some(flag) = args.pictures.given()
    {
        let message = format!("{flag} draws either --attacks or --costs; give one of them");
        return Err(Failure::usage(message));
    }
    Ok(())
}
