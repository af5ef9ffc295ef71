//! The card of the agent. spec: interface / Agent Card Discovery

use crate::clauses::prelude::*;
use reqwest::Method;

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        should(
            "interface/agent-card/1-discovery",
            "`GET /.well-known/agent-card` gives the card of the agent, for A2A",
            the_card_is_json,
        )
        .same_as(&["interface/transport.a2a/4-agent-card"]),
        should(
            "interface/agent-card/2-agent",
            "the card has the texts `name`, `description`, `url` and `version`",
            the_card_describes_the_agent,
        ),
        should(
            "interface/agent-card/3-capabilities",
            "`capabilities` says of `streaming` and `push_notifications` whether they are there",
            the_card_tells_capabilities,
        ),
        should(
            "interface/agent-card/4-skills",
            "`skills` has id, name, description and tags of each skill, `tasks.execute` among them",
            the_card_lists_skills,
        ),
    ]
}

/// The card; none if the server has none.
pub(super) async fn card(probe: &Probe) -> Result<Option<Value>, Finding> {
    let path = "/.well-known/agent-card";
    let answer = probe.http(Method::GET, path, &[], "").await?;
    if answer.status != 200 {
        return Ok(None);
    }
    answer.json().map(Some)
}

async fn expect_card(probe: &Probe) -> Result<Value, Finding> {
    let none = || Finding::failed("GET /.well-known/agent-card: no card");
    card(probe).await?.ok_or_else(none)
}

pub(in super::super) async fn the_card_is_json(probe: &Probe) -> Outcome {
    let path = "/.well-known/agent-card";
    let answer = probe.http(Method::GET, path, &[], "").await?;
    ensure!(
        answer.status == 200
            && answer
                .header("content-type")
                .starts_with("application/json"),
        "{}: expected 200 and `application/json`",
        answer.story()
    );
    ensure!(
        answer.json()?.is_object(),
        "{}: expected an object",
        answer.story()
    );
    seen(answer.story())
}

async fn the_card_describes_the_agent(probe: &Probe) -> Outcome {
    let card = expect_card(probe).await?;
    for field in ["name", "description", "url", "version"] {
        ensure!(!text_of(&card, field)?.is_empty(), "an empty `{field}`");
    }
    let url = text_of(&card, "url")?;
    ensure!(
        url.starts_with("http"),
        "`url` is `{url}`: expected where calls go"
    );
    seen(format!("{} {} at {url}", card["name"], card["version"]))
}

async fn the_card_tells_capabilities(probe: &Probe) -> Outcome {
    let card = expect_card(probe).await?;
    for capability in ["streaming", "push_notifications"] {
        let told = &card["capabilities"][capability];
        ensure!(
            told.is_boolean(),
            "`{capability}` is {told}: expected true or false"
        );
    }
    seen(card["capabilities"].to_string())
}

async fn the_card_lists_skills(probe: &Probe) -> Outcome {
    let card = expect_card(probe).await?;
    let skills = card["skills"].as_array().map_or(&[][..], Vec::as_slice);
    for skill in skills {
        for field in ["id", "name", "description"] {
            ensure!(
                !text_of(skill, field)?.is_empty(),
                "an empty `{field}`: {skill}"
            );
        }
        let tags = skill["tags"].as_array();
        let texts = tags.is_some_and(|tags| tags.iter().all(Value::is_string));
        ensure!(texts, "`tags` of {skill}: expected a list of texts");
    }
    let execute = skills.iter().any(|skill| skill["id"] == "tasks.execute");
    ensure!(execute, "no skill `tasks.execute` in {}", shown(&card));
    seen(format!("{} skills", skills.len()))
}
