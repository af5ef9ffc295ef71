//! The generated code and the descriptor set are what `proto/eventbus.proto` says.
//!
//! After an edit of the .proto, write them anew:
//!
//! ```sh
//! UPDATE=1 cargo test -p taskledger-eventbus --test regenerate
//! ```

use prost::Message;
use std::fs;
use std::path::Path;

const HEADER: &str = "\
//! Messages, client and server of `eventbus.EventBus`, generated from `proto/eventbus.proto`.
//! Do not edit: `tests/regenerate.rs` writes this file and checks it.

";

#[test]
fn the_generated_files_are_what_the_proto_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let described = describe(&root.join("proto"));
    let code = format!("{HEADER}{}", generate(described.clone()));
    let update = std::env::var_os("UPDATE").is_some_and(|value| value == "1");
    let stale: Vec<_> = [
        ("src/generated/eventbus.rs", code.into_bytes()),
        (
            "src/generated/descriptor_set.bin",
            without_comments(described).encode_to_vec(),
        ),
    ]
    .into_iter()
    .filter(|(name, content)| {
        let path = root.join(name);
        let differs = fs::read(&path).ok().as_ref() != Some(content);
        if differs && update {
            fs::write(&path, content).expect("generated files can be written");
        }
        differs && !update
    })
    .map(|(name, _)| name)
    .collect();
    assert!(
        stale.is_empty(),
        "{stale:?} differ from proto/eventbus.proto; \
         run `UPDATE=1 cargo test -p taskledger-eventbus --test regenerate`"
    );
}

/// The .proto and what it imports, compiled.
fn describe(folder: &Path) -> prost_types::FileDescriptorSet {
    let mut compiler = protox::Compiler::new([folder]).expect("the folder exists");
    compiler.include_imports(true).include_source_info(true);
    compiler
        .open_file("eventbus.proto")
        .expect("the .proto compiles");
    compiler.file_descriptor_set()
}

/// The Rust code of the package `eventbus`.
fn generate(described: prost_types::FileDescriptorSet) -> String {
    let service_generator = tonic_prost_build::configure()
        .build_transport(false)
        .service_generator();
    let package = prost_build::Module::from_protobuf_package_name("eventbus");
    let files = described.file.into_iter().map(|file| {
        let package = prost_build::Module::from_protobuf_package_name(file.package());
        (package, file)
    });
    prost_build::Config::new()
        .service_generator(service_generator)
        .generate(files.collect())
        .expect("Rust code can be generated")
        .remove(&package)
        .expect("the package has code")
}

/// Comments and places of the source are of no use to reflection and would be most of the bytes.
fn without_comments(
    mut described: prost_types::FileDescriptorSet,
) -> prost_types::FileDescriptorSet {
    for file in &mut described.file {
        file.source_code_info = None;
    }
    described
}
