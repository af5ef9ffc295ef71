//! Claims about the registry.

use super::*;
use crate::engine::executor::{ExecutorError, Job};
use async_trait::async_trait;
use serde_json::json;

struct Named(Description);

#[async_trait]
impl Executor for Named {
    fn describe(&self) -> Description {
        self.0.clone()
    }
    async fn execute(&self, _job: Job) -> Result<Value, ExecutorError> {
        Ok(json!({}))
    }
}

fn named(name: &str, aliases: &[&str], concurrency: Concurrency) -> Arc<Named> {
    Arc::new(Named(Description {
        name: name.into(),
        aliases: aliases.iter().map(|&a| a.into()).collect(),
        summary: "for tests".into(),
        idempotent: true,
        pure: false,
        input_schema: None,
        concurrency,
    }))
}

#[test]
fn executors_are_found_by_name_and_alias_and_listed_in_order() {
    let registry = Registry::builder()
        .register(named("zeta", &["z", "zeta"], Concurrency::Waiting))
        .and_then(|b| b.register(named("alpha", &[], Concurrency::Fixed(3))))
        .and_then(RegistryBuilder::build)
        .unwrap();
    assert_eq!(registry.get("z").unwrap().name(), "zeta");
    assert_eq!(registry.get("zeta").unwrap().name(), "zeta");
    assert!(registry.get("Z").is_none());
    let names: Vec<_> = registry.iter().map(Registered::name).collect();
    assert_eq!(names, ["alpha", "zeta"]);
}

#[test]
fn a_name_belongs_to_one_executor() {
    let builder = || {
        Registry::builder()
            .register(named("a", &["b"], Concurrency::Waiting))
            .unwrap()
    };
    for (name, aliases, taken) in [
        ("a", [].as_slice(), "a"),
        ("b", &[], "b"),
        ("c", &["b"], "b"),
    ] {
        let error = builder()
            .register(named(name, aliases, Concurrency::Waiting))
            .unwrap_err();
        assert_eq!(
            error,
            RegistryError::NameTaken {
                name: taken.into(),
                holder: "a".into()
            }
        );
    }
}

#[test]
fn names_have_one_to_255_characters() {
    let longest = "ä".repeat(255);
    assert!(
        Registry::builder()
            .register(named(&longest, &[], Concurrency::Waiting))
            .is_ok()
    );
    for bad in ["", "  ", &"ä".repeat(256)] {
        assert!(matches!(
            Registry::builder().register(named("a", &[bad], Concurrency::Waiting)),
            Err(RegistryError::InvalidName { .. })
        ));
    }
}

#[test]
fn bounds_come_from_the_configuration_or_the_description() {
    let registry = Registry::builder()
        .concurrency("f", 2)
        .register(named("waits", &[], Concurrency::Waiting))
        .and_then(|b| b.register(named("computes", &[], Concurrency::Cores)))
        .and_then(|b| b.register(named("fixed", &["f"], Concurrency::Fixed(7))))
        .and_then(RegistryBuilder::build)
        .unwrap();
    assert_eq!(registry.effective_limit("waits"), Some(256));
    assert_eq!(
        registry.effective_limit("computes"),
        Some(std::thread::available_parallelism().unwrap().get())
    );
    assert_eq!(registry.effective_limit("fixed"), Some(2));
    assert_eq!(registry.effective_limit("absent"), None);
}

#[test]
fn bounds_of_zero_or_for_nobody_are_refused() {
    let fixed = |limit| Registry::builder().register(named("a", &[], Concurrency::Fixed(limit)));
    assert_eq!(
        fixed(0).unwrap_err(),
        RegistryError::NoConcurrency { name: "a".into() }
    );
    assert_eq!(
        fixed(1).unwrap().concurrency("a", 0).build().unwrap_err(),
        RegistryError::NoConcurrency { name: "a".into() }
    );
    let error = fixed(1).unwrap().concurrency("b", 1).build().unwrap_err();
    assert!(
        error
            .to_string()
            .contains("`b`, which is not registered; there are `a`")
    );
}

#[test]
fn an_executors_own_schema_is_compiled_and_used() {
    let with = |schema: Value| {
        let mut description = named("a", &[], Concurrency::Waiting).0.clone();
        description.input_schema = Some(schema);
        Registry::builder().register(Arc::new(Named(description)))
    };
    let registry = with(json!({"required": ["x"]}))
        .and_then(RegistryBuilder::build)
        .unwrap();
    let executor = registry.get("a").unwrap();
    assert!(executor.check_inputs(&json!({"x": 1})).is_ok());
    assert_eq!(executor.check_inputs(&json!({})).unwrap_err()[0].field, "x");
    let error = with(json!({"properties": {"x": {"type": "strin"}}})).unwrap_err();
    assert!(error.to_string().contains("executor `a`"), "{error}");
    assert!(error.to_string().contains("properties.x.type"), "{error}");
}

/// Declares the members of `params` that it reads.
struct Declaring;

#[async_trait]
impl Executor for Declaring {
    fn describe(&self) -> Description {
        named("declaring", &["d"], Concurrency::Waiting).0.clone()
    }
    fn params(&self) -> Option<Vec<String>> {
        Some(vec!["user_agent".to_owned()])
    }
    async fn execute(&self, _job: Job) -> Result<Value, ExecutorError> {
        Ok(json!({}))
    }
}

#[test]
fn an_executor_may_declare_the_params_that_it_reads() {
    let registry = Registry::builder()
        .register(Arc::new(Declaring))
        .and_then(|b| b.register(named("open", &[], Concurrency::Waiting)))
        .and_then(RegistryBuilder::build)
        .unwrap();
    let declared = |name: &str| registry.get(name).unwrap().params().cloned();
    assert_eq!(
        declared("d").as_deref(),
        Some(&["user_agent".to_owned()][..])
    );
    assert_eq!(declared("open"), None);
}
