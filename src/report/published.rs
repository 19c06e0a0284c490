//! The comparison of a count with the published value.

use crate::oeis::{Sequence, lookup};

/// The comparison of a count with the published value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Published {
    /// The count is the published value.
    Agrees,
    /// The count is another value: at least one of the two is wrong.
    Differs,
    /// There is no published value.
    Unknown,
}

impl Published {
    /// Compares `value` with `sequence` at n.
    pub fn compare(sequence: Sequence, n: usize, value: u128) -> Self {
        match lookup(sequence, n) {
            None => Self::Unknown,
            Some(published) if published == value => Self::Agrees,
            Some(_) => Self::Differs,
        }
    }

    /// Returns the comparison in words, with the number of the sequence.
    pub fn sentence(self, sequence: Sequence) -> String {
        let oeis = sequence.oeis();
        match self {
            Self::Agrees => format!("agrees with OEIS {oeis}"),
            Self::Differs => format!("DIFFERS from OEIS {oeis}: one of the two is wrong"),
            Self::Unknown => format!("no published value to compare with (OEIS {oeis})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_compared_with_the_published_value() {
        let compare = |n, value| Published::compare(Sequence::Total, n, value);
        assert_eq!(compare(8, 92), Published::Agrees);
        assert_eq!(compare(8, 93), Published::Differs);
        assert_eq!(compare(28, 1), Published::Unknown);
    }
}
