//! Compiles `proto/` to Rust, without protoc.

#[cfg(feature = "cluster")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
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
fn main() {}
