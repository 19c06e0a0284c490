//! The files of the page, which are compiled in.

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// The paths, content types and texts.
const FILES: [(&str, &str, &str); 13] = [
    ("/", HTML, include_str!("page/index.html")),
    ("/style.css", "text/css; charset=utf-8", include_str!("page/style.css")),
    ("/icon.svg", "image/svg+xml", include_str!("../dashboard/page/icon.svg")),
    ("/theme.js", SCRIPT, include_str!("../dashboard/page/theme.js")),
    ("/join.js", SCRIPT, include_str!("page/join.js")),
    ("/driver.js", SCRIPT, include_str!("page/driver.js")),
    ("/gpu.js", SCRIPT, include_str!("page/gpu.js")),
    ("/protocol.js", SCRIPT, include_str!("page/protocol.js")),
    ("/benchmark.js", SCRIPT, include_str!("page/benchmark.js")),
    ("/picture.js", SCRIPT, include_str!("page/picture.js")),
    ("/shaders/schedule.wgsl", TEXT, include_str!("../../../shaders/schedule.wgsl")),
    ("/shaders/expand.wgsl", TEXT, include_str!("../../../shaders/expand.wgsl")),
    ("/shaders/search.wgsl", TEXT, include_str!("../../../shaders/search.wgsl")),
];

/// The content security policy of the page: scripts, workers, styles and connections of this
/// origin, nothing inline, no framing.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' blob:; worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; \
     form-action 'none'",
);

fn response(kind: &'static str, text: &'static str) -> Response {
    let headers = [(header::CONTENT_TYPE, HeaderValue::from_static(kind))];
    ([(header::CONTENT_SECURITY_POLICY, POLICY)], headers, text).into_response()
}

/// Returns the routes of the files.
pub(super) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.into_iter().fold(Router::new(), |router, (path, kind, text)| {
        router.route(path, get(move || async move { response(kind, text) }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_at_most_150_kb() {
        let bytes: usize = FILES.iter().map(|(_, _, text)| text.len()).sum();
        assert!(bytes < 150_000, "{bytes}");
    }

    #[test]
    fn the_page_names_no_other_origin_and_has_nothing_inline() {
        for (path, _, text) in FILES {
            let page = path == "/" || path.ends_with(".js") || path.ends_with(".css");
            let links = text.matches("://").count();
            assert!(!page || links == text.matches("http://www.w3.org/").count(), "{path}");
        }
        let (_, _, html) = FILES[0];
        assert!(!html.contains("style=") && !html.contains("onclick") && !html.contains("<style"));
        let scripts = html.matches("<script").count();
        assert_eq!(html.matches("></script>").count(), scripts);
    }
}
