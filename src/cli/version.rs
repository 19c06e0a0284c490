//! The output of `--version`.

use serde::Serialize;

use crate::board::Piece;
use crate::kernel::KernelKind;

/// The output of `--version --json`.
#[derive(Debug, Serialize)]
pub(super) struct Version {
    version: &'static str,
    commit: &'static str,
    features: Vec<&'static str>,
    /// The kernels that this processor runs.
    kernels: Vec<&'static str>,
    fastest_for_prefixes: &'static str,
    fastest_for_column_sets: &'static str,
}

/// Returns the version, the commit, the features and the kernels that this processor runs.
pub(super) fn version() -> Version {
    let kernels =
        KernelKind::ALL.into_iter().filter(|kind| kind.runs_here()).map(KernelKind::name).collect();
    let features = [
        ("cli", cfg!(feature = "cli")),
        ("cluster", cfg!(feature = "cluster")),
        ("gpu", cfg!(feature = "gpu")),
        ("highs", cfg!(feature = "highs")),
        ("object-store", cfg!(feature = "object-store")),
    ]
    .into_iter()
    .filter_map(|(name, is_enabled)| is_enabled.then_some(name))
    .collect();
    Version {
        version: env!("CARGO_PKG_VERSION"),
        commit: option_env!("NQUEENS_COMMIT").unwrap_or("unknown"),
        features,
        kernels,
        fastest_for_prefixes: KernelKind::fastest(Piece::Queen).name(),
        fastest_for_column_sets: KernelKind::fastest_for_sets().name(),
    }
}

/// Returns the same as text, each on a line.
pub(super) fn long() -> String {
    let Version {
        version,
        commit,
        features,
        kernels,
        fastest_for_prefixes,
        fastest_for_column_sets,
    } = version();
    format!(
        "{version}\ncommit    {commit}\nfeatures  {}\nkernels   {}\nfastest   \
         {fastest_for_prefixes} for prefixes, {fastest_for_column_sets} for column sets",
        features.join(" "),
        kernels.join(" "),
    )
}
