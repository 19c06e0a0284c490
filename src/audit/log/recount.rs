//! Units of a log, counted again as their mirror images.

use crate::decomposition::Decomposition;
use crate::kernel::{KernelKind, count_range};

/// A unit whose recount has another sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it states a sum of {stated} thirds of a solution, but its mirror image has {actual}, counted by {kernel}"
)]
pub struct WrongCount {
    /// The stated sum, in thirds of a solution.
    pub stated: u128,
    /// The sum of the mirror image.
    pub actual: u128,
    /// The kernel that counted it.
    pub kernel: KernelKind,
}

/// Counts the mirror image of a unit by the fastest CPU kernel, and compares it with its stated sum
/// in thirds of a solution. `image` has the mirror images of the units of the job.
///
/// # Errors
/// No kernel can count it.
pub fn recount_unit(
    image: &Decomposition,
    unit: u64,
    stated: u128,
) -> Result<Option<WrongCount>, String> {
    let job = image.job();
    let kind = KernelKind::fastest_for(job.scheme(), job.problem().piece());
    let mut kernel = kind.build(job.problem().piece()).map_err(|error| error.to_string())?;
    let tally = count_range(&mut *kernel, image, image.unit(unit));
    let actual = tally.map_err(|error| error.to_string())?.thirds();
    Ok((actual != stated).then_some(WrongCount { stated, actual, kernel: kind }))
}
