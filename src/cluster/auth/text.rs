//! Conversions for types with a text form.

/// Implements the conversions from and to `String` with which serde reads and writes a type in its
/// text form (`FromStr` and `Display`).
macro_rules! string_conversions {
    ($type:ty, $error:ty) => {
        impl TryFrom<String> for $type {
            type Error = $error;

            fn try_from(text: String) -> Result<Self, $error> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }
    };
}

/// Implements the text form (`FromStr` and `Display`) of a tuple struct of bytes: base 32, read in
/// either case.
macro_rules! base32_text {
    ($type:ident, $error:ident) => {
        impl std::str::FromStr for $type {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, $error> {
                $crate::cluster::auth::fingerprint::from_base32(text).map(Self).ok_or($error)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&$crate::cluster::auth::fingerprint::base32(&self.0))
            }
        }
    };
}

pub(super) use {base32_text, string_conversions};
