//! The output of `--version`.

use crate::board::Piece;
use crate::kernel::KernelKind;

/// Returns the version, the commit, the features and the kernels that this processor runs, each on
/// a line.
pub(super) fn long() -> String {
    let kernels: Vec<&str> =
        KernelKind::ALL.into_iter().filter(|kind| kind.runs_here()).map(KernelKind::name).collect();
    let features: Vec<&str> = [
        ("cli", cfg!(feature = "cli")),
        ("cluster", cfg!(feature = "cluster")),
        ("gpu", cfg!(feature = "gpu")),
        ("highs", cfg!(feature = "highs")),
    ]
    .into_iter()
    .filter_map(|(name, is_enabled)| is_enabled.then_some(name))
    .collect();
    let fastest = [KernelKind::fastest(Piece::Queen), KernelKind::fastest_for_sets()];
    format!(
        "{}\ncommit    {}\nfeatures  {}\nkernels   {}\nfastest   {} for prefixes, {} for column sets",
        env!("CARGO_PKG_VERSION"),
        option_env!("NQUEENS_COMMIT").unwrap_or("unknown"),
        features.join(" "),
        kernels.join(" "),
        fastest[0].name(),
        fastest[1].name(),
    )
}
