//! Enrolment tokens: a newcomer redeems one for a certificate, and authenticates the coordinator
//! with it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::fingerprint::{Fingerprint, base32, from_base32};
use super::text::{base32_text, string_conversions};

/// A token: the fingerprint of the authority, with which a newcomer authenticates the coordinator
/// on first contact, and a secret of 200 random bits, with which the coordinator authenticates the
/// newcomer.
///
/// The text form is `nqt1.FINGERPRINT.SECRET`, both in base 32.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    authority: Fingerprint,
    secret: [u8; SECRET_BYTES],
}

const VERSION: &str = "nqt1";

/// A multiple of 5, so that its base 32 has no spare bits.
const SECRET_BYTES: usize = 25;

/// An error in the text of a token. The text itself is secret and appears in no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The text does not begin like a token.
    #[error(
        "this is not a token; a token begins with nqt1. and is printed by nqueens token create"
    )]
    NoToken,
    /// The text does not have three parts.
    #[error("the token is incomplete; copy all of nqt1.FINGERPRINT.SECRET")]
    Incomplete,
    /// The second part is damaged.
    #[error("the token's fingerprint is damaged; copy its 52 letters of a-z and 2-7")]
    Fingerprint,
    /// The third part is damaged.
    #[error("the token's secret is damaged; copy its 40 letters of a-z and 2-7")]
    Secret,
}

impl Token {
    /// Creates a random token for the authority with this fingerprint.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(super) fn random(authority: Fingerprint) -> Result<Self, getrandom::Error> {
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut secret)?;
        Ok(Self { authority, secret })
    }

    /// Returns the fingerprint of the authority that accepts the token, which the coordinator has
    /// to present.
    pub const fn authority(&self) -> Fingerprint {
        self.authority
    }

    /// Returns the hash that the registry stores, from which 200 random bits cannot be found.
    pub(super) fn hash(&self) -> Fingerprint {
        Fingerprint::of(&[b"nqueens-token/1 ".as_slice(), &self.secret].concat())
    }

    /// Returns the token's ID, which is not secret.
    pub fn id(&self) -> TokenId {
        TokenId::of(self.hash().as_bytes())
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let mut parts = text.trim().split('.');
        if parts.next() != Some(VERSION) {
            return Err(TokenError::NoToken);
        }
        let (Some(fingerprint), Some(secret), None) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(TokenError::Incomplete);
        };
        let authority = fingerprint.parse().map_err(|_| TokenError::Fingerprint)?;
        let secret = from_base32(secret).ok_or(TokenError::Secret)?;
        Ok(Self { authority, secret })
    }
}

/// Writes the text with the secret: it is shown once, and in no log.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION}.{}.{}", self.authority, base32(&self.secret))
    }
}

/// Omits the secret.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("authority", &self.authority)
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}

/// A token's public ID: the first 40 bits of its hash, in base 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenId([u8; 5]);

/// The error for a text that is not a token ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token ID has 8 letters of a-z and 2-7; nqueens token list shows the IDs")]
pub struct TokenIdError;

impl TokenId {
    pub(super) fn of(hash: &[u8; 32]) -> Self {
        let [a, b, c, d, e, ..] = *hash;
        Self([a, b, c, d, e])
    }
}

base32_text!(TokenId, TokenIdError);
string_conversions!(TokenId, TokenIdError);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn token() -> impl Strategy<Value = Token> {
        let parts = (any::<[u8; 32]>(), any::<[u8; SECRET_BYTES]>());
        parts.prop_map(|(seed, secret)| Token { authority: Fingerprint::of(&seed), secret })
    }

    proptest! {
        #[test]
        fn tokens_round_trip_through_text(token in token()) {
            let text = token.to_string();
            prop_assert_eq!(text.len(), 5 + 52 + 1 + 40);
            prop_assert_eq!(text.parse(), Ok(token.clone()));
            prop_assert_eq!(format!(" {text}\n").parse(), Ok(token.clone()));
            let shown = format!("{token:?}");
            prop_assert!(!shown.contains(&text[5 + 53..]));
        }

        #[test]
        fn no_other_text_is_read_as_the_same_token(token in token(), at in 0..98usize, with in "[ -~]") {
            let text = token.to_string();
            let changed = [&text[..at], &with, &text[at + 1..]].concat();
            let same = changed.trim().eq_ignore_ascii_case(&text) && changed.starts_with(VERSION);
            prop_assert_eq!(changed.parse().is_ok_and(|read: Token| read == token), same);
        }

        #[test]
        fn any_text_is_a_token_or_a_one_line_error(text in "(nqt1\\.)?[ -~]{0,99}") {
            if let Err(error) = text.parse::<Token>() {
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
        }
    }

    #[test]
    fn errors_name_the_missing_or_damaged_part() {
        let (fingerprint, secret) = ("a".repeat(52), "b".repeat(40));
        assert!(format!("nqt1.{fingerprint}.{secret}").parse::<Token>().is_ok());
        for (text, error) in [
            (String::new(), TokenError::NoToken),
            (format!("nqt2.{fingerprint}.{secret}"), TokenError::NoToken),
            ("nqt1".into(), TokenError::Incomplete),
            (format!("nqt1.{fingerprint}"), TokenError::Incomplete),
            (format!("nqt1.{fingerprint}.{secret}.x"), TokenError::Incomplete),
            (format!("nqt1.{}.{secret}", "a".repeat(51)), TokenError::Fingerprint),
            // The last letter encodes bits beyond the 256th.
            (format!("nqt1.{}b.{secret}", "a".repeat(51)), TokenError::Fingerprint),
            (format!("nqt1.{fingerprint}.{}", "b".repeat(39)), TokenError::Secret),
            (format!("nqt1.{fingerprint}.{}1", "b".repeat(39)), TokenError::Secret),
        ] {
            assert_eq!(text.parse::<Token>(), Err(error), "{text}");
        }
    }
}
