//! The versions of the protocol and the program.

use super::v1::Peer;

/// The version of those parts of the protocol that its fields cannot express.
pub const PROTOCOL: u32 = 1;

/// The program's version.
pub const BUILD: &str = env!("CARGO_PKG_VERSION");

/// Returns this program's versions, which are sent with each request.
pub fn peer() -> Option<Peer> {
    Some(Peer { protocol: PROTOCOL, build: BUILD.to_owned() })
}

/// The error for a peer with another version of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this coordinator uses protocol version {PROTOCOL} (nqueens {BUILD}), and the caller uses version {protocol} \
     (nqueens {build}); install nqueens {BUILD} there"
)]
pub struct AnotherProtocol {
    /// The peer's protocol version.
    pub protocol: u32,
    /// The peer's build.
    pub build: String,
}

/// Returns the caller's build if it uses this program's version of the protocol.
///
/// # Errors
/// It uses another version.
pub fn check(peer: Option<&Peer>) -> Result<String, AnotherProtocol> {
    /// A longer text is not a version.
    const MOST_LETTERS: usize = 64;
    let (protocol, build) =
        peer.map_or((0, "of unknown version"), |peer| (peer.protocol, &peer.build[..]));
    let build: String =
        build.chars().filter(|letter| !letter.is_control()).take(MOST_LETTERS).collect();
    if protocol == PROTOCOL { Ok(build) } else { Err(AnotherProtocol { protocol, build }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_another_version_names_the_version_to_install() {
        assert_eq!(check(peer().as_ref()), Ok(BUILD.to_owned()));
        let newer = Peer { protocol: PROTOCOL + 1, build: "9.0.0\u{7}".into() };
        let message = check(Some(&newer)).expect_err("another version").to_string();
        assert!(
            message.contains(&format!("install nqueens {BUILD}")) && message.contains("9.0.0)"),
            "{message}"
        );
        assert!(check(None).is_err());
    }
}
