//! Converts agent cards to protobuf messages.

use super::bounds::free;
use crate::card::{
    AgentCard, AgentCardSignature, AgentExtension, AgentSkill, OAuthFlow, SecurityRequirement,
    SecurityScheme,
};
use crate::grpc::pb;

/// Converts an agent card to its protobuf message.
#[must_use]
pub fn card(it: AgentCard) -> pb::AgentCard {
    let interfaces = it.supported_interfaces.into_iter();
    let schemes = it.security_schemes.into_iter();
    let capabilities = it.capabilities;
    pb::AgentCard {
        name: it.name,
        description: it.description,
        supported_interfaces: interfaces
            .map(|it| pb::AgentInterface {
                url: it.url,
                protocol_binding: it.protocol_binding,
                tenant: it.tenant.unwrap_or_default(),
                protocol_version: it.protocol_version,
            })
            .collect(),
        provider: it.provider.map(|it| pb::AgentProvider {
            url: it.url,
            organization: it.organization,
        }),
        version: it.version,
        documentation_url: it.documentation_url,
        capabilities: Some(pb::AgentCapabilities {
            streaming: Some(capabilities.streaming),
            push_notifications: Some(capabilities.push_notifications),
            extensions: (capabilities.extensions.into_iter())
                .map(extension)
                .collect(),
            extended_agent_card: Some(capabilities.extended_agent_card),
        }),
        security_schemes: schemes.map(|(name, it)| (name, scheme(it))).collect(),
        security_requirements: requirements(it.security_requirements),
        default_input_modes: it.default_input_modes,
        default_output_modes: it.default_output_modes,
        skills: it.skills.into_iter().map(skill).collect(),
        signatures: it.signatures.into_iter().map(signature).collect(),
        icon_url: it.icon_url,
    }
}

fn extension(it: AgentExtension) -> pb::AgentExtension {
    pb::AgentExtension {
        uri: it.uri,
        description: it.description,
        required: it.required,
        params: it.params.map(free),
    }
}

fn skill(it: AgentSkill) -> pb::AgentSkill {
    pb::AgentSkill {
        id: it.id,
        name: it.name,
        description: it.description,
        tags: it.tags,
        examples: it.examples,
        input_modes: it.input_modes,
        output_modes: it.output_modes,
        security_requirements: requirements(it.security_requirements),
    }
}

fn signature(it: AgentCardSignature) -> pb::AgentCardSignature {
    pb::AgentCardSignature {
        protected: it.protected,
        signature: it.signature,
        header: it.header.map(free),
    }
}

fn requirements(list: Vec<SecurityRequirement>) -> Vec<pb::SecurityRequirement> {
    let one = |it: SecurityRequirement| pb::SecurityRequirement {
        schemes: (it.schemes.into_iter())
            .map(|(name, list)| (name, pb::StringList { list }))
            .collect(),
    };
    list.into_iter().map(one).collect()
}

fn scheme(it: SecurityScheme) -> pb::SecurityScheme {
    use pb::security_scheme::Scheme;
    let scheme = match it {
        SecurityScheme::ApiKey {
            description,
            location,
            name,
        } => Scheme::ApiKeySecurityScheme(pb::ApiKeySecurityScheme {
            description,
            location,
            name,
        }),
        SecurityScheme::Http {
            description,
            scheme,
            bearer_format,
        } => Scheme::HttpAuthSecurityScheme(pb::HttpAuthSecurityScheme {
            description,
            scheme,
            bearer_format,
        }),
        SecurityScheme::OAuth2 {
            description,
            flow,
            metadata_url,
        } => Scheme::Oauth2SecurityScheme(pb::OAuth2SecurityScheme {
            description,
            flows: Some(flows(flow)),
            oauth2_metadata_url: metadata_url,
        }),
        SecurityScheme::OpenIdConnect { description, url } => {
            Scheme::OpenIdConnectSecurityScheme(pb::OpenIdConnectSecurityScheme {
                description,
                open_id_connect_url: url,
            })
        }
        SecurityScheme::MutualTls { description } => {
            Scheme::MtlsSecurityScheme(pb::MutualTlsSecurityScheme { description })
        }
    };
    pb::SecurityScheme {
        scheme: Some(scheme),
    }
}

fn flows(it: OAuthFlow) -> pb::OAuthFlows {
    use pb::o_auth_flows::Flow;
    let flow = match it {
        OAuthFlow::AuthorizationCode {
            authorization_url,
            token_url,
            refresh_url,
            scopes,
            pkce_required,
        } => Flow::AuthorizationCode(pb::AuthorizationCodeOAuthFlow {
            authorization_url,
            token_url,
            refresh_url,
            scopes: scopes.into_iter().collect(),
            pkce_required,
        }),
        OAuthFlow::ClientCredentials {
            token_url,
            refresh_url,
            scopes,
        } => Flow::ClientCredentials(pb::ClientCredentialsOAuthFlow {
            token_url,
            refresh_url,
            scopes: scopes.into_iter().collect(),
        }),
        OAuthFlow::DeviceCode {
            device_authorization_url,
            token_url,
            refresh_url,
            scopes,
        } => Flow::DeviceCode(pb::DeviceCodeOAuthFlow {
            device_authorization_url,
            token_url,
            refresh_url,
            scopes: scopes.into_iter().collect(),
        }),
    };
    pb::OAuthFlows { flow: Some(flow) }
}
