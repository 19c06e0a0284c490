//! The names of certificate holders.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::text::string_conversions;

/// The name of a worker, an operator or a viewer: 1 to 63 of a-z, 0-9, '.' and '-', the first a
/// letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// The error for a text that is not a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a name; write up to 63 of a-z, 0-9, '.' and '-', the first a letter or digit"
)]
pub struct NameError(String);

impl Name {
    const MOST_LETTERS: usize = 63;

    /// Returns the name as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = text.as_bytes();
        let good = bytes.len() <= Self::MOST_LETTERS
            && bytes.first().is_some_and(plain)
            && bytes.iter().all(|byte| plain(byte) || matches!(byte, b'.' | b'-'));
        // Limits the length of the message, whatever the length of the text.
        let shown = || text.chars().take(Self::MOST_LETTERS + 1).collect();
        if good { Ok(Self(text.to_owned())) } else { Err(NameError(shown())) }
    }
}

string_conversions!(Name, NameError);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_short() {
        let longest = "a".repeat(63);
        for good in ["a", "7", "worker-1", "gpu.lab-3.example.org", longest.as_str()] {
            assert_eq!(good.parse::<Name>().expect(good).as_str(), good);
        }
        let too_long = "a".repeat(64);
        for bad in ["", "-a", ".a", "A", "a b", "a_b", "a/b", "ä", "a\n", "a\0", too_long.as_str()]
        {
            let error = bad.parse::<Name>().expect_err(bad).to_string();
            assert!(
                error.lines().count() == 1 && error.contains("is not a name; write"),
                "{error}"
            );
        }
        assert!("x".repeat(1 << 20).parse::<Name>().expect_err("too long").to_string().len() < 200);
    }
}
