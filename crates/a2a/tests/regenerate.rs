//! The generated code is what the definitions in `proto/` say, and these are the ones that were published.
//!
//! After another version was put there, write the code anew:
//!
//! ```sh
//! UPDATE=1 cargo test -p taskledger-a2a --test regenerate
//! ```

use prost::Message;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

/// A definition of which code is generated.
struct Defined {
    proto: &'static str,
    package: &'static str,
    code: &'static str,
    descriptors: &'static str,
}

const DEFINED: [Defined; 2] = [
    Defined {
        proto: "a2a.proto",
        package: "lf.a2a.v1",
        code: "src/generated/a2a.rs",
        descriptors: "src/generated/descriptor_set.bin",
    },
    Defined {
        proto: "a2a_v0_3.proto",
        package: "a2a.v1",
        code: "src/generated/a2a_v03.rs",
        descriptors: "src/generated/descriptor_set_v03.bin",
    },
];

fn header(defined: &Defined) -> String {
    let Defined { proto, package, .. } = defined;
    format!(
        "\
//! Messages, client and server of `{package}.A2AService`, generated from `proto/{proto}`.
//! Do not edit: `tests/regenerate.rs` writes this file and checks it.

"
    )
}

/// The files of others, and their hashes.
const VENDORED: [(&str, &str); 7] = [
    (
        "a2a.proto",
        "4b74c0baa923ae0acb55474e548f1d6e5d3f83b80d757b65f8bf3e99a3c2257f",
    ),
    (
        "a2a_v0_3.proto",
        "814b0dbeca10624344db9668d3a390f43410050995fa42b5f6ee473143680f6e",
    ),
    (
        "google/api/annotations.proto",
        "e79ea741cb605a65e78ca322174764a4af9fde1962c1631e12b84c4934ba9a6c",
    ),
    (
        "google/api/client.proto",
        "5e9fc117290fe7d3472791543c979bec7cf4497f3fe6ffaf9de9ae99cc4f1804",
    ),
    (
        "google/api/field_behavior.proto",
        "e2a1ac88c49909d4579bacbb18519085e82da32c2c7bb15c31037f3be19f667f",
    ),
    (
        "google/api/http.proto",
        "ead99129aa15dd5f6233942030c72eec33bc0d7b1c7c260dc143293ef66c5b78",
    ),
    (
        "google/api/launch_stage.proto",
        "68e22c9821227b4e84c7029569fce1055c21e6ccab991e0986bc75f12ef4dd82",
    ),
];

#[test]
fn the_definitions_of_others_are_not_changed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let attribution = fs::read_to_string(folder.join("README.md")).expect("it is there");
    for (name, published) in VENDORED {
        let content = fs::read(folder.join(name)).expect("it is there");
        let hash: String = Sha256::digest(&content)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(hash, published, "{name}");
        assert!(attribution.contains(published), "{name} is attributed");
    }
}

#[test]
fn the_generated_files_are_what_the_proto_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let update = std::env::var_os("UPDATE").is_some_and(|value| value == "1");
    let made = DEFINED.iter().flat_map(|defined| {
        let described = describe(&root.join("proto"), defined.proto);
        let code = format!(
            "{}{}",
            header(defined),
            generate(described.clone(), defined.package)
        );
        [
            (defined.code, code.into_bytes()),
            (
                defined.descriptors,
                without_comments(described).encode_to_vec(),
            ),
        ]
    });
    let stale: Vec<_> = made
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
        "{stale:?} differ from the definitions in proto/; \
         run `UPDATE=1 cargo test -p taskledger-a2a --test regenerate`"
    );
}

/// A .proto and what it imports, compiled.
fn describe(folder: &Path, proto: &str) -> prost_types::FileDescriptorSet {
    let mut compiler = protox::Compiler::new([folder]).expect("the folder exists");
    compiler.include_imports(true).include_source_info(true);
    compiler.open_file(proto).expect("the .proto compiles");
    compiler.file_descriptor_set()
}

/// The Rust code of the package. Its comments are those of the specification and stay there.
fn generate(described: prost_types::FileDescriptorSet, package: &str) -> String {
    let service_generator = tonic_prost_build::configure()
        .build_transport(false)
        .service_generator();
    let package = prost_build::Module::from_protobuf_package_name(package);
    let files = described.file.into_iter().map(|mut file| {
        let module = prost_build::Module::from_protobuf_package_name(file.package());
        file.source_code_info = None;
        (module, file)
    });
    prost_build::Config::new()
        .service_generator(service_generator)
        .generate(files.collect())
        .expect("Rust code can be generated")
        .remove(&package)
        .expect("the package has code")
}

fn without_comments(
    mut described: prost_types::FileDescriptorSet,
) -> prost_types::FileDescriptorSet {
    for file in &mut described.file {
        file.source_code_info = None;
    }
    described
}
