//! The header in `include` is the one that cbindgen writes for the sources.

use std::fs;
use std::path::Path;

#[test]
fn the_header_describes_the_functions_of_the_library() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let settings = package.join("cbindgen.toml");
    let config = cbindgen::Config::from_file(&settings).expect("the settings can be read");
    let bindings = cbindgen::Builder::new().with_crate(package).with_config(config).generate();
    let mut written = Vec::new();
    bindings.expect("the sources can be read").write(&mut written);
    let written = String::from_utf8(written).expect("a header is text");
    let header = package.join("include/nqueens.h");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&header, &written).expect("the header can be written");
    }
    let found = fs::read_to_string(&header).unwrap_or_default();
    assert!(
        found == written,
        "include/nqueens.h is not current; write it again with UPDATE_EXPECT=1 cargo test --release -p nqueens-c"
    );
}
