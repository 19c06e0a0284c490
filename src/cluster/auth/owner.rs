//! Owners: the parties behind workers. A check that needs several independent workers needs workers
//! of several owners.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::name::Name;
use super::text::string_conversions;
use super::token::TokenId;

/// The party that enrolled a certificate holder. Holders whose certificates were obtained with the
/// same token have the same owner, and so do those with tokens that were created for the same
/// owner.
///
/// The text form is the name that the token was created with (`nqueens token create --owner NAME`);
/// otherwise `token:ID`, after the token; otherwise, for a certificate whose token an older
/// registry no longer records, `certificate:NAME`, after its holder. Names contain no ':', so
/// choosing a name never makes anyone the owner of another's token or certificate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Owner(String);

/// The error for a text that is not an owner.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an owner; write a name, token:ID or certificate:NAME")]
pub struct OwnerError(String);

const TOKEN: &str = "token:";
const CERTIFICATE: &str = "certificate:";

impl Owner {
    /// Returns the owner as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the owner of the certificates obtained with token `id`, which was created for
    /// `owner`, if for one.
    pub fn of(owner: Option<&Name>, id: TokenId) -> Self {
        owner.cloned().map_or_else(|| Self::of_token(id), Self::from)
    }

    /// Returns the owner of the certificates obtained with a token that was created without an
    /// owner.
    pub(super) fn of_token(id: TokenId) -> Self {
        Self(format!("{TOKEN}{id}"))
    }

    /// Returns the owner of a single certificate about which nothing else is known.
    pub(super) fn of_certificate(name: &Name) -> Self {
        Self(format!("{CERTIFICATE}{name}"))
    }
}

impl From<Name> for Owner {
    fn from(name: Name) -> Self {
        Self(name.into())
    }
}

impl FromStr for Owner {
    type Err = OwnerError;

    fn from_str(text: &str) -> Result<Self, OwnerError> {
        let read = if let Some(id) = text.strip_prefix(TOKEN) {
            id.parse().ok().map(Self::of_token)
        } else if let Some(name) = text.strip_prefix(CERTIFICATE) {
            name.parse().ok().map(|name| Self::of_certificate(&name))
        } else {
            text.parse::<Name>().ok().map(Self::from)
        };
        // Limits the length of the message, whatever the length of the text.
        read.ok_or_else(|| OwnerError(text.chars().take(100).collect()))
    }
}

string_conversions!(Owner, OwnerError);

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_round_trip_through_text_and_other_texts_are_refused() {
        let longest = format!("certificate:{}", "a".repeat(63));
        for good in
            ["anna", "lab-3.example.org", "token", "token-abcdefgh", "token:abcdefgh", &longest]
        {
            let owner: Owner = good.parse().expect(good);
            assert_eq!((owner.as_str(), owner.to_string()), (good, good.to_owned()));
            let json = serde_json::to_string(&owner).expect("a string");
            assert_eq!(serde_json::from_str::<Owner>(&json).expect("reads back"), owner);
        }
        for bad in
            ["", ":", "token:", "token:abc", "token:anna bob", "certificate:", "other:anna", "Anna"]
        {
            let error = bad.parse::<Owner>().expect_err(bad).to_string();
            assert!(
                error.lines().count() == 1 && error.contains("is not an owner; write"),
                "{error}"
            );
        }
        assert!(
            "x".repeat(1 << 20).parse::<Owner>().expect_err("too long").to_string().len() < 200
        );
    }

    #[test]
    fn no_name_equals_the_owner_of_a_token_or_certificate() {
        let id: TokenId = "abcdefgh".parse().expect("an id");
        let name: Name = "anna".parse().expect("a name");
        for taken in [Owner::of_token(id), Owner::of_certificate(&name)] {
            assert!(taken.as_str().parse::<Name>().is_err(), "{taken}");
        }
        // IDs have a single text form, although they are parsed in either case.
        assert_eq!("token:ABCDEFGH".parse(), Ok(Owner::of_token(id)));
    }
}
