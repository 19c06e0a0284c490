//! The claim: the first bytes of a proof, which say what it is to prove.

use super::refused;
use crate::board::{Norm, Piece, Placement, Problem};
use crate::bytes::{Reader, Writer};
use crate::{Beauty, ProofError};

/// Writes the claim: the first bytes of a proof. `solution` is the 0-based column of the queen in
/// each row, or `None` if there is no solution. With `turning`, only solutions invariant under
/// quarter turns are considered.
pub fn claim(norm: Norm, turning: bool, solution: Option<&[usize]>) -> Writer {
    let mut writer = Writer::new();
    writer.byte(norm as u8);
    writer.byte(turning.into());
    writer.byte(solution.is_some().into());
    for &column in solution.unwrap_or_default() {
        writer.size(column);
    }
    writer
}

/// The statement that a proof claims.
pub(crate) struct Claim {
    pub(crate) beauty: Beauty,
    pub(crate) solution: Option<Vec<usize>>,
}

/// Reads the claim for the board of size `n`, and checks that its solution is one.
pub(super) fn read_claim(n: usize, reader: &mut Reader<'_>) -> Result<Claim, ProofError> {
    let code = reader.byte()?;
    let norm = Norm::ALL.into_iter().find(|&norm| norm as u8 == code);
    let norm = norm.ok_or(ProofError::Damaged("it names an unknown norm"))?;
    let turning = flag(reader)?;
    let solution = if flag(reader)? {
        let columns: Vec<usize> = (0..n).map(|_| reader.size(n)).collect::<Result<_, _>>()?;
        Placement::check_solution(&Problem::empty(Piece::Queen, n), &columns).map_err(refused)?;
        if turning && (0..n).any(|row| columns[columns[row]] != n - 1 - row) {
            return Err(refused("the solution changes under quarter turns"));
        }
        Some(columns)
    } else if n == 0 {
        return Err(refused("the board without squares has a solution"));
    } else {
        None
    };
    Ok(Claim { beauty: Beauty { norm, turning }, solution })
}

/// Reads a byte that is 0 or 1.
pub(super) fn flag(reader: &mut Reader<'_>) -> Result<bool, ProofError> {
    match reader.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(ProofError::Damaged("a flag is neither 0 nor 1")),
    }
}
