//! The URL at which a reverse proxy serves the page.

use std::fmt;
use std::str::FromStr;

use axum::http::Uri;

/// The origin at which browsers reach the page through a reverse proxy: `https://HOST[:PORT]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    /// The host, in lower case, without the port.
    pub(super) host: String,
    text: String,
}

/// The error for a text that is not such a URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not the URL of a page; use https://HOST or https://HOST:PORT, without a path")]
pub struct PublicUrlError(String);

impl FromStr for PublicUrl {
    type Err = PublicUrlError;

    fn from_str(text: &str) -> Result<Self, PublicUrlError> {
        let error = || PublicUrlError(text.chars().take(200).collect());
        let uri: Uri = text.parse().map_err(|_| error())?;
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'));
        let host = authority.ok_or_else(error)?.host().to_ascii_lowercase();
        let is_bare = matches!(uri.path(), "" | "/") && uri.query().is_none();
        if uri.scheme_str() != Some("https") || !is_bare || host.is_empty() {
            return Err(error());
        }
        Ok(Self { host, text: format!("https://{}/", uri.authority().ok_or_else(error)?) })
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_url_is_an_https_origin() {
        for (text, host) in [
            ("https://count.example.org", "count.example.org"),
            ("https://Count.example.org:8443/", "count.example.org"),
        ] {
            assert_eq!(text.parse::<PublicUrl>().expect(text).host, host);
        }
        for bad in [
            "",
            "count.example.org",
            "http://x.org",
            "https://",
            "https://x.org/page",
            "https://a@b",
        ] {
            assert!(bad.parse::<PublicUrl>().is_err(), "{bad}");
        }
    }
}
