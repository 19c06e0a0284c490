//! The seeds of randomised tests.

/// Returns the seed that `NQUEENS_SEED` names, or as many as `NQUEENS_CAMPAIGNS` says, or as many
/// as usual.
pub fn seeds(usual: u64) -> Vec<u64> {
    let variable = |name| std::env::var(name).ok().and_then(|value| value.parse().ok());
    match (variable("NQUEENS_SEED"), variable("NQUEENS_CAMPAIGNS")) {
        (Some(seed), _) => vec![seed],
        (None, count) => (0..count.unwrap_or(usual)).collect(),
    }
}
