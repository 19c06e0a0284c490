//! Which host a request of a browser is for, and which page it comes from.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::uri::Authority as HostAndPort;
use axum::http::{HeaderMap, Method, StatusCode, header};

use super::replies::ErrorResponse;

/// Returns the Host header, or `None` if there is none, or none that a browser would send.
fn host(headers: &HeaderMap) -> Option<HostAndPort> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return None };
    // The parser would accept user information, which no Host header has.
    host.to_str().ok().filter(|host| !host.contains('@'))?.parse().ok()
}

/// Returns whether the Host header is an IP address, localhost or a name for which `is_own` returns
/// true. Any other name may have been bound to this address by an attacker (DNS rebinding), whose
/// page would then have the same origin.
pub(crate) fn is_own_host(headers: &HeaderMap, is_own: impl Fn(&str) -> bool) -> bool {
    let Some(host) = host(headers) else { return false };
    let name = host.host().to_ascii_lowercase();
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(&name);
    bare.parse::<IpAddr>().is_ok() || name == "localhost" || is_own(&name)
}

/// Refuses a request that may change something, unless it is JSON from a page of this origin.
pub(crate) fn check_change(request: &Request, scheme: &str) -> Result<(), ErrorResponse> {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return Ok(());
    }
    if !is_same_origin(request.headers(), scheme) {
        let why = "the request does not come from this origin";
        return Err(ErrorResponse::new(StatusCode::FORBIDDEN, why));
    }
    match request.headers().get(header::CONTENT_TYPE) {
        Some(kind) if kind == "application/json" => Ok(()),
        _ => Err(ErrorResponse::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send application/json")),
    }
}

/// Returns whether the browser reports that the request comes from a page of this origin: of this
/// scheme and of the request's host. Every current browser reports it.
fn is_same_origin(headers: &HeaderMap, scheme: &str) -> bool {
    let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let own = format!("{scheme}://{}", header("host").unwrap_or_default());
    match (header("sec-fetch-site"), header("origin")) {
        (None, None) => false,
        (site, origin) => {
            site.is_none_or(|site| site == "same-origin")
                && origin.is_none_or(|origin| origin.eq_ignore_ascii_case(&own))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|&(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")))
            .collect()
    }

    #[test]
    fn a_host_is_an_address_or_a_known_name() {
        let is_own = |headers: &HeaderMap| is_own_host(headers, |name| name == "count.example");
        for good in [
            "127.0.0.1",
            "127.0.0.1:8080",
            "[::1]:8080",
            "localhost:8080",
            "LOCALHOST",
            "10.0.0.7",
            "Count.example:443",
        ] {
            assert!(is_own(&headers(&[("host", good)])), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "a@localhost",
            "x y",
        ] {
            assert!(!is_own(&headers(&[("host", bad)])), "{bad}");
        }
        assert!(!is_own(&headers(&[])));
        assert!(!is_own(&headers(&[("host", "localhost"), ("host", "evil.example")])));
    }

    #[test]
    fn only_the_same_origin_is_accepted() {
        let own = ("host", "localhost:8080");
        for good in [
            vec![own, ("origin", "http://localhost:8080")],
            vec![own, ("sec-fetch-site", "same-origin")],
            vec![own, ("origin", "http://localhost:8080"), ("sec-fetch-site", "same-origin")],
        ] {
            assert!(is_same_origin(&headers(&good), "http"), "{good:?}");
        }
        for bad in [
            vec![own],
            vec![own, ("origin", "null")],
            vec![own, ("origin", "http://evil.example")],
            vec![own, ("origin", "http://localhost:8081")],
            vec![own, ("origin", "https://localhost:8080")],
            vec![own, ("sec-fetch-site", "cross-site")],
            vec![own, ("sec-fetch-site", "same-site"), ("origin", "http://localhost:8080")],
            vec![own, ("sec-fetch-site", "none")],
            vec![own, ("sec-fetch-site", "same-origin"), ("origin", "http://evil.example")],
        ] {
            assert!(!is_same_origin(&headers(&bad), "http"), "{bad:?}");
        }
    }
}
