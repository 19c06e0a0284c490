//! Versions: of the protocol, and of the program.

use super::v1::Peer;

/// The version of what the protocol's fields cannot say.
pub const PROTOCOL: u32 = 1;

/// The program's version.
pub const BUILD: &str = env!("CARGO_PKG_VERSION");

/// Who speaks here.
pub fn peer() -> Option<Peer> {
    Some(Peer { protocol: PROTOCOL, build: BUILD.to_owned() })
}

/// A peer of another version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this coordinator speaks version {PROTOCOL} of the protocol (nqueens {BUILD}), the caller version {protocol} \
     (nqueens {build}): install nqueens {BUILD} there"
)]
pub struct AnotherProtocol {
    /// Its protocol.
    pub protocol: u32,
    /// Its build.
    pub build: String,
}

/// The caller's build, if it speaks the protocol of this program.
///
/// # Errors
/// It speaks another.
pub fn check(peer: Option<&Peer>) -> Result<String, AnotherProtocol> {
    /// More is no version.
    const MOST_LETTERS: usize = 64;
    let (protocol, build) = peer.map_or((0, "of unknown version"), |peer| (peer.protocol, &peer.build[..]));
    let build: String = build.chars().filter(|letter| !letter.is_control()).take(MOST_LETTERS).collect();
    if protocol == PROTOCOL { Ok(build) } else { Err(AnotherProtocol { protocol, build }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_of_another_version_is_told_what_to_install() {
        assert_eq!(check(peer().as_ref()), Ok(BUILD.to_owned()));
        let newer = Peer { protocol: PROTOCOL + 1, build: "9.0.0\u{7}".into() };
        let said = check(Some(&newer)).expect_err("another version").to_string();
        assert!(said.contains(&format!("install nqueens {BUILD}")) && said.contains("9.0.0)"), "{said}");
        assert!(check(None).is_err());
    }
}
