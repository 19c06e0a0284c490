//! Compiles `proto/` to Rust, without protoc, and finds the commit for `nqueens --version`.

use std::process::Command;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    find_commit();
    compile_protocol()
}

/// Passes the commit of a checkout to the compiler as NQUEENS_COMMIT, unless that is set. A package
/// without a repository has none.
fn find_commit() {
    println!("cargo:rerun-if-env-changed=NQUEENS_COMMIT");
    if std::env::var_os("NQUEENS_COMMIT").is_some() {
        return;
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    // A package that is unpacked inside another repository must not take that one's commit.
    if git(&["rev-parse", "--show-prefix"]).is_none_or(|prefix| !prefix.is_empty()) {
        return;
    }
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return };
    println!("cargo:rustc-env=NQUEENS_COMMIT={commit}");
    // The log of HEAD grows with each commit and each checkout.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]);
    if let Some(log) = log.filter(|log| std::path::Path::new(log).exists()) {
        println!("cargo:rerun-if-changed={log}");
    }
}

#[cfg(feature = "cluster")]
fn compile_protocol() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto/nqueens.proto");
    let descriptors = protox::compile(["proto/nqueens.proto"], ["proto"])?;
    let reflection = std::path::PathBuf::from(std::env::var("OUT_DIR")?).join("nqueens.bin");
    tonic_prost_build::configure()
        .file_descriptor_set_path(&reflection)
        .skip_protoc_run()
        .compile_fds(descriptors.clone())?;
    std::fs::write(&reflection, prost::Message::encode_to_vec(&descriptors))?;
    Ok(())
}

#[cfg(not(feature = "cluster"))]
fn compile_protocol() -> Result<(), Box<dyn std::error::Error>> {
    Ok(())
}
