//! Known answers, tested on a device at each start: every unit's count is compared with that of the
//! fastest CPU kernel.

use super::backend::Shape;
use super::device_job::DeviceJob;
use super::device_kernel::DeviceKernel;
use super::fault::Fault;
use crate::board::{Piece, Problem, Square};
use crate::decomposition::{Decomposition, Job, Scheme};
use crate::kernel::{KernelKind, count_range};
use crate::tally::Tally;

/// A board whose units are counted on the device and on the CPU.
struct Case {
    problem: Problem,
    unit_prefixes: u64,
    /// The number of units to count.
    most_units: u64,
    /// True to run on one workgroup with the longest searches, so that each lane makes nearly as
    /// many turns in one search as the limit of loop iterations of a software driver (65,535), and
    /// far more over all searches.
    long_running: bool,
}

fn case(
    n: usize,
    placed: &[(usize, usize)],
    blocked: &[(usize, usize)],
    unit_prefixes: u64,
) -> Option<Case> {
    let squares =
        |list: &[(usize, usize)]| list.iter().map(|&(row, col)| Square::new(row, col)).collect();
    let problem = Problem::new(Piece::Queen, n, squares(placed), squares(blocked)).ok()?;
    Some(Case { problem, unit_prefixes, most_units: u64::MAX, long_running: false })
}

/// Counts boards with known answers on the device: plain and masked rows, gaps, several units and
/// weights, and searches that continue over many dispatches. With `long`, also larger boards that
/// fill the device.
///
/// # Errors
/// The device fails, or a count differs from that of the CPU.
pub fn self_test(kernel: &mut DeviceKernel, long: bool) -> Result<(), Fault> {
    let mut cases = vec![
        case(9, &[], &[], 1),
        case(10, &[], &[], 7),
        case(11, &[(1, 3), (6, 0)], &[(0, 0), (9, 9), (4, 5)], 5),
        case(15, &[], &[], 300).map(|case| Case { long_running: true, ..case }),
    ];
    if long {
        cases.extend([
            case(14, &[], &[(2, 2), (7, 11)], 100),
            case(16, &[], &[], 200),
            case(17, &[], &[], 100),
        ]);
    }
    cases
        .into_iter()
        .flatten()
        .try_for_each(|case| check(kernel, &case, Scheme::best(&case.problem), DeviceKernel::open))
}

/// The most columns of a board in the self-test of column sets.
pub(super) const MOST_TESTED_COLUMNS: usize = 20;

/// Counts column sets with known answers on the device: all families and rules, boards without
/// symmetry, and rows that filter the lists. The number of columns that the shader is compiled for
/// must be set in the kernel, to at least [`MOST_TESTED_COLUMNS`].
///
/// # Errors
/// The device fails, or a count differs from that of the CPU.
pub(super) fn self_test_sets(kernel: &mut DeviceKernel) -> Result<(), Fault> {
    let cases = [
        case(12, &[], &[], 40),
        case(13, &[], &[], 60),
        case(11, &[(1, 3), (6, 0)], &[(0, 0), (9, 9), (4, 5)], 20),
        // More rows than are counted by planes.
        case(MOST_TESTED_COLUMNS, &[], &[], 4).map(|case| Case { most_units: 2, ..case }),
    ];
    cases.into_iter().flatten().try_for_each(|case| {
        check(kernel, &case, Scheme::ColumnSets, |kernel, decomposition| {
            DeviceJob::of_self_test(kernel, decomposition)
        })
    })
}

/// Counts a board on the device, which `open` prepares, and compares it with the CPU.
fn check(
    kernel: &mut DeviceKernel,
    case: &Case,
    scheme: Scheme,
    open: for<'a> fn(&'a mut DeviceKernel, &'a Decomposition) -> Result<DeviceJob<'a>, Fault>,
) -> Result<(), Fault> {
    let n = case.problem.n();
    let job = Job::new(case.problem.clone(), scheme, None, case.unit_prefixes);
    let job = job.map_err(|error| Fault::Refused(error.to_string()))?;
    let decomposition = Decomposition::new(job);
    let units: Vec<u64> = (0..decomposition.units().min(case.most_units)).collect();
    let counted = if case.long_running {
        let one_workgroup = Shape { lanes: 64, chunk: 256, ring: 1 << 14, prefixes: 1 << 14 };
        kernel.with_longest_searches(one_workgroup, |kernel| {
            open(kernel, &decomposition)?.count(&units, &|| true)
        })
    } else {
        open(kernel, &decomposition)?.count(&units, &|| true)
    }?;
    let mut reference = KernelKind::fastest(Piece::Queen)
        .build(Piece::Queen)
        .map_err(|error| Fault::Refused(error.to_string()))?;
    for (unit, found) in units.into_iter().zip(counted) {
        let expected: Tally =
            count_range(&mut *reference, &decomposition, decomposition.unit(unit))?;
        if found.thirds() != expected.thirds() {
            let (found, expected) = (found.thirds(), expected.thirds());
            return Err(Fault::Miscounts(format!(
                "self-test, n = {n}, unit {unit}: {found} thirds; the CPU counts {expected}"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::gpu::Mirror;

    #[test]
    fn the_mirror_passes_the_self_test() {
        let shape = Shape { lanes: 256, chunk: 128, ring: 1 << 14, prefixes: 5000 };
        assert_eq!(
            self_test(&mut DeviceKernel::new(Box::new(Mirror::default()), shape, false), false),
            Ok(())
        );
    }
}
