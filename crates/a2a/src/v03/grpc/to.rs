//! Converts answers to protobuf messages of 0.3.

use super::pb as old;
use crate::card::AgentCard;
use crate::event::{SendMessageResponse, StreamResponse};
use crate::grpc::values::struct_of;
use crate::grpc::{pb, to};
use crate::request::{ListTaskPushNotificationConfigsResponse, TaskPushNotificationConfig};
use crate::task::Task;
use crate::v03::answer::config_name;
use crate::v03::card::PROTOCOL_VERSION;
use crate::v03::request::{VALUE, WRAPPED};
use crate::v03::{Answering, SERVED};
use prost_types::value::Kind;
use prost_types::{Struct, Value};

/// Converts a task to the protobuf message of version 0.3.
#[must_use]
pub fn task(it: Task) -> old::Task {
    let it = to::task(it);
    old::Task {
        id: it.id,
        context_id: it.context_id,
        status: it.status.map(status),
        artifacts: it.artifacts.into_iter().map(artifact).collect(),
        history: it.history.into_iter().map(message).collect(),
        metadata: it.metadata,
    }
}

fn status(it: pb::TaskStatus) -> old::TaskStatus {
    old::TaskStatus {
        // The states have the same numbers.
        state: it.state,
        update: it.message.map(message),
        timestamp: it.timestamp,
    }
}

fn message(it: pb::Message) -> old::Message {
    old::Message {
        message_id: it.message_id,
        context_id: it.context_id,
        task_id: it.task_id,
        role: it.role,
        content: it.parts.into_iter().map(part).collect(),
        metadata: it.metadata,
        extensions: it.extensions,
    }
}

fn artifact(it: pb::Artifact) -> old::Artifact {
    old::Artifact {
        artifact_id: it.artifact_id,
        name: it.name,
        description: it.description,
        parts: it.parts.into_iter().map(part).collect(),
        metadata: it.metadata,
        extensions: it.extensions,
    }
}

fn part(it: pb::Part) -> old::Part {
    use old::file_part::File;
    use old::part::Part;
    use pb::part::Content;
    let mut metadata = it.metadata;
    let file = |file| {
        Part::File(old::FilePart {
            mime_type: it.media_type,
            name: it.filename,
            file: Some(file),
        })
    };
    let content = it.content.map(|content| match content {
        Content::Text(text) => Part::Text(text),
        Content::Raw(raw) => file(File::FileWithBytes(raw)),
        Content::Url(url) => file(File::FileWithUri(url)),
        Content::Data(data) => {
            let data = match data.kind {
                Some(Kind::StructValue(data)) => data,
                // Only objects are data in 0.3.
                other @ (None
                | Some(
                    Kind::NullValue(_)
                    | Kind::NumberValue(_)
                    | Kind::StringValue(_)
                    | Kind::BoolValue(_)
                    | Kind::ListValue(_),
                )) => {
                    let free = metadata.get_or_insert_default();
                    let yes = Some(Kind::BoolValue(true));
                    free.fields.insert(WRAPPED.to_owned(), Value { kind: yes });
                    let fields = [(VALUE.to_owned(), Value { kind: other })];
                    Struct {
                        fields: fields.into_iter().collect(),
                    }
                }
            };
            Part::Data(old::DataPart { data: Some(data) })
        }
    });
    old::Part {
        metadata,
        part: content,
    }
}

/// The answer to a message.
#[must_use]
pub fn sent(it: SendMessageResponse) -> old::SendMessageResponse {
    use old::send_message_response::Payload;
    old::SendMessageResponse {
        payload: Some(match it {
            SendMessageResponse::Task(it) => Payload::Task(task(it)),
            SendMessageResponse::Message(it) => Payload::Msg(message(to::message(it))),
        }),
    }
}

/// An item of a stream.
#[must_use]
pub fn item(it: StreamResponse, answering: Answering) -> old::StreamResponse {
    use old::stream_response::Payload;
    let payload = match it {
        StreamResponse::Task(it) => Payload::Task(task(it)),
        StreamResponse::Message(it) => Payload::Msg(message(to::message(it))),
        StreamResponse::StatusUpdate(it) => Payload::StatusUpdate(old::TaskStatusUpdateEvent {
            r#final: answering.is_final(it.status.state),
            task_id: it.task_id,
            context_id: it.context_id,
            status: Some(status(to::status(it.status))),
            metadata: it.metadata.map(struct_of),
        }),
        StreamResponse::ArtifactUpdate(it) => {
            Payload::ArtifactUpdate(old::TaskArtifactUpdateEvent {
                task_id: it.task_id,
                context_id: it.context_id,
                artifact: Some(artifact(to::artifact(it.artifact))),
                append: it.append,
                last_chunk: it.last_chunk,
                metadata: it.metadata.map(struct_of),
            })
        }
    };
    old::StreamResponse {
        payload: Some(payload),
    }
}

/// Where changes of a task are reported.
#[must_use]
pub fn push_config(it: TaskPushNotificationConfig) -> old::TaskPushNotificationConfig {
    old::TaskPushNotificationConfig {
        name: config_name(&it),
        push_notification_config: Some(old::PushNotificationConfig {
            id: it.id.unwrap_or_default(),
            url: it.url,
            token: it.token.unwrap_or_default(),
            authentication: it.authentication.map(|it| old::AuthenticationInfo {
                schemes: vec![it.scheme],
                credentials: it.credentials.unwrap_or_default(),
            }),
        }),
    }
}

/// A page of those.
#[must_use]
pub fn push_configs(
    it: ListTaskPushNotificationConfigsResponse,
) -> old::ListTaskPushNotificationConfigResponse {
    old::ListTaskPushNotificationConfigResponse {
        configs: it.configs.into_iter().map(push_config).collect(),
        next_page_token: it.next_page_token,
    }
}

/// Converts an agent card to the protobuf message of version 0.3.
#[must_use]
pub fn card(it: AgentCard) -> old::AgentCard {
    let it = to::card(it);
    let capabilities = it.capabilities.unwrap_or_default();
    let interfaces = it.supported_interfaces.into_iter();
    let interfaces: Vec<_> = interfaces
        .filter(|it| it.protocol_version == SERVED)
        .collect();
    let first = interfaces.first().cloned().unwrap_or_default();
    let schemes = it.security_schemes.into_iter();
    old::AgentCard {
        protocol_version: PROTOCOL_VERSION.to_owned(),
        name: it.name,
        description: it.description,
        url: first.url,
        preferred_transport: first.protocol_binding,
        additional_interfaces: interfaces
            .into_iter()
            .map(|it| old::AgentInterface {
                url: it.url,
                transport: it.protocol_binding,
            })
            .collect(),
        provider: it.provider.map(|it| old::AgentProvider {
            url: it.url,
            organization: it.organization,
        }),
        version: it.version,
        documentation_url: it.documentation_url.unwrap_or_default(),
        capabilities: Some(old::AgentCapabilities {
            streaming: capabilities.streaming.unwrap_or_default(),
            push_notifications: capabilities.push_notifications.unwrap_or_default(),
            extensions: (capabilities.extensions.into_iter())
                .map(|it| old::AgentExtension {
                    uri: it.uri,
                    description: it.description,
                    required: it.required,
                    params: it.params,
                })
                .collect(),
        }),
        security_schemes: schemes
            .filter_map(|(name, it)| Some((name, scheme(it)?)))
            .collect(),
        security: it.security_requirements.into_iter().map(security).collect(),
        default_input_modes: it.default_input_modes,
        default_output_modes: it.default_output_modes,
        skills: it.skills.into_iter().map(skill).collect(),
        supports_authenticated_extended_card: capabilities.extended_agent_card.unwrap_or_default(),
        signatures: (it.signatures.into_iter())
            .map(|it| old::AgentCardSignature {
                protected: it.protected,
                signature: it.signature,
                header: it.header,
            })
            .collect(),
        icon_url: it.icon_url.unwrap_or_default(),
    }
}

fn skill(it: pb::AgentSkill) -> old::AgentSkill {
    old::AgentSkill {
        id: it.id,
        name: it.name,
        description: it.description,
        tags: it.tags,
        examples: it.examples,
        input_modes: it.input_modes,
        output_modes: it.output_modes,
        security: it.security_requirements.into_iter().map(security).collect(),
    }
}

fn security(it: pb::SecurityRequirement) -> old::Security {
    let schemes = it.schemes.into_iter();
    old::Security {
        schemes: schemes
            .map(|(name, it)| (name, old::StringList { list: it.list }))
            .collect(),
    }
}

/// A scheme; `None`: 0.3 has none such.
fn scheme(it: pb::SecurityScheme) -> Option<old::SecurityScheme> {
    use old::security_scheme::Scheme as To;
    use pb::security_scheme::Scheme as From;
    let scheme = match it.scheme? {
        From::ApiKeySecurityScheme(it) => To::ApiKeySecurityScheme(old::ApiKeySecurityScheme {
            description: it.description,
            location: it.location,
            name: it.name,
        }),
        From::HttpAuthSecurityScheme(it) => {
            To::HttpAuthSecurityScheme(old::HttpAuthSecurityScheme {
                description: it.description,
                scheme: it.scheme,
                bearer_format: it.bearer_format,
            })
        }
        From::Oauth2SecurityScheme(it) => To::Oauth2SecurityScheme(old::OAuth2SecurityScheme {
            description: it.description,
            flows: Some(old::OAuthFlows {
                flow: Some(flow(it.flows?.flow?)?),
            }),
            oauth2_metadata_url: it.oauth2_metadata_url,
        }),
        From::OpenIdConnectSecurityScheme(it) => {
            To::OpenIdConnectSecurityScheme(old::OpenIdConnectSecurityScheme {
                description: it.description,
                open_id_connect_url: it.open_id_connect_url,
            })
        }
        From::MtlsSecurityScheme(it) => To::MtlsSecurityScheme(old::MutualTlsSecurityScheme {
            description: it.description,
        }),
    };
    Some(old::SecurityScheme {
        scheme: Some(scheme),
    })
}

/// A way to obtain tokens. That by a code on another device came later; those that 1.0 deprecates no card has.
#[allow(deprecated)]
fn flow(it: pb::o_auth_flows::Flow) -> Option<old::o_auth_flows::Flow> {
    use old::o_auth_flows::Flow as To;
    use pb::o_auth_flows::Flow as From;
    match it {
        From::AuthorizationCode(it) => {
            Some(To::AuthorizationCode(old::AuthorizationCodeOAuthFlow {
                authorization_url: it.authorization_url,
                token_url: it.token_url,
                refresh_url: it.refresh_url,
                scopes: it.scopes,
            }))
        }
        From::ClientCredentials(it) => {
            Some(To::ClientCredentials(old::ClientCredentialsOAuthFlow {
                token_url: it.token_url,
                refresh_url: it.refresh_url,
                scopes: it.scopes,
            }))
        }
        From::Implicit(_) | From::Password(_) | From::DeviceCode(_) => None,
    }
}
