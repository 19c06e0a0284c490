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

pub(super) use string_conversions;
