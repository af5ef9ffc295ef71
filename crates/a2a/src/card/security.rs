//! Security schemes: how callers authenticate themselves.

use crate::read::{Object, Wire};
use crate::write::Members;
use serde_json::{Map, Value};

/// One way to authenticate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecurityScheme {
    /// A key in a header, query or cookie.
    ApiKey {
        /// Free text for people; may be empty.
        description: String,
        /// `query`, `header` or `cookie`.
        location: String,
        /// Of the header, member of the query, or cookie.
        name: String,
    },
    /// The header `Authorization`.
    Http {
        /// Free text for people; may be empty.
        description: String,
        /// The scheme, such as `Bearer`.
        scheme: String,
        /// What the token is.
        bearer_format: String,
    },
    /// OAuth 2.0.
    OAuth2 {
        /// Free text for people; may be empty.
        description: String,
        /// How tokens are obtained.
        flow: OAuthFlow,
        /// Where the issuer describes itself.
        metadata_url: String,
    },
    /// OpenID Connect.
    OpenIdConnect {
        /// Free text for people; may be empty.
        description: String,
        /// Where the issuer describes itself.
        url: String,
    },
    /// Certificates of clients.
    MutualTls {
        /// Free text for people; may be empty.
        description: String,
    },
}

/// How a token is obtained. The flows that the protocol deprecates are not among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OAuthFlow {
    /// By a code that a browser brings.
    AuthorizationCode {
        /// Where users are asked.
        authorization_url: String,
        /// Where tokens are given.
        token_url: String,
        /// Where they are renewed.
        refresh_url: String,
        /// What they may allow, with a description.
        scopes: Vec<(String, String)>,
        /// Whether PKCE is required.
        pkce_required: bool,
    },
    /// By the credentials of the client itself.
    ClientCredentials {
        /// Where tokens are given.
        token_url: String,
        /// Where they are renewed.
        refresh_url: String,
        /// What they may allow, with a description.
        scopes: Vec<(String, String)>,
    },
    /// By a code that is entered on another device.
    DeviceCode {
        /// Where codes are given.
        device_authorization_url: String,
        /// Where tokens are given.
        token_url: String,
        /// Where they are renewed.
        refresh_url: String,
        /// What they may allow, with a description.
        scopes: Vec<(String, String)>,
    },
}

const API_KEY: &str = "apiKeySecurityScheme";
const HTTP: &str = "httpAuthSecurityScheme";
const OAUTH2: &str = "oauth2SecurityScheme";
const OPEN_ID_CONNECT: &str = "openIdConnectSecurityScheme";
const MUTUAL_TLS: &str = "mtlsSecurityScheme";

/// The object below one of the wrapping names.
struct Below<T>(T);

macro_rules! below {
    ($name:ident, |$from:ident| $read:expr) => {
        struct $name(SecurityScheme);
        impl Wire for $name {
            fn read($from: &mut Object<'_>) -> Option<Self> {
                let description = $from.text("description").unwrap_or_default();
                let scheme: Option<SecurityScheme> = $read(description);
                scheme.map(Self)
            }
            fn write(&self) -> Map<String, Value> {
                self.0.inner()
            }
        }
    };
}

below!(ApiKey, |from| |description| {
    let location = from.required_text("location");
    let name = from.required_text("name");
    Some(SecurityScheme::ApiKey {
        description,
        location: location?,
        name: name?,
    })
});
below!(Http, |from| |description| {
    let scheme = from.required_text("scheme");
    let bearer_format = from.text("bearerFormat").unwrap_or_default();
    Some(SecurityScheme::Http {
        description,
        scheme: scheme?,
        bearer_format,
    })
});
below!(OAuth2, |from| |description| {
    let flow = from.required::<Below<OAuthFlow>>("flows");
    let metadata_url = from.text("oauth2MetadataUrl").unwrap_or_default();
    Some(SecurityScheme::OAuth2 {
        description,
        flow: flow?.0,
        metadata_url,
    })
});
below!(OpenIdConnect, |from| |description| {
    let url = from.required_text("openIdConnectUrl");
    Some(SecurityScheme::OpenIdConnect {
        description,
        url: url?,
    })
});
below!(MutualTls, |_from| |description| Some(
    SecurityScheme::MutualTls { description }
));

impl SecurityScheme {
    fn inner(&self) -> Map<String, Value> {
        let members = Members::new();
        match self {
            Self::ApiKey {
                description,
                location,
                name,
            } => members
                .text("description", Some(description))
                .with("location", &**location)
                .with("name", &**name),
            Self::Http {
                description,
                scheme,
                bearer_format,
            } => members
                .text("description", Some(description))
                .with("scheme", &**scheme)
                .text("bearerFormat", Some(bearer_format)),
            Self::OAuth2 {
                description,
                flow,
                metadata_url,
            } => members
                .text("description", Some(description))
                .with("flows", flow.written())
                .text("oauth2MetadataUrl", Some(metadata_url)),
            Self::OpenIdConnect { description, url } => members
                .text("description", Some(description))
                .with("openIdConnectUrl", &**url),
            Self::MutualTls { description } => members.text("description", Some(description)),
        }
        .done()
    }
}

impl Wire for SecurityScheme {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let mut given: Vec<Self> = [
            from.one::<ApiKey>(API_KEY).map(|it| it.0),
            from.one::<Http>(HTTP).map(|it| it.0),
            from.one::<OAuth2>(OAUTH2).map(|it| it.0),
            from.one::<OpenIdConnect>(OPEN_ID_CONNECT).map(|it| it.0),
            from.one::<MutualTls>(MUTUAL_TLS).map(|it| it.0),
        ]
        .into_iter()
        .flatten()
        .collect();
        match (given.pop(), given.is_empty()) {
            (Some(only), true) => Some(only),
            (Some(_), false) | (None, _) => {
                from.fault("", "exactly one kind of security scheme is required");
                None
            }
        }
    }

    fn write(&self) -> Map<String, Value> {
        let name = match self {
            Self::ApiKey { .. } => API_KEY,
            Self::Http { .. } => HTTP,
            Self::OAuth2 { .. } => OAUTH2,
            Self::OpenIdConnect { .. } => OPEN_ID_CONNECT,
            Self::MutualTls { .. } => MUTUAL_TLS,
        };
        Members::new().with(name, self.inner()).done()
    }
}

/// A text by its name.
fn scopes_of(from: &mut Object<'_>) -> Vec<(String, String)> {
    let map = from.map("scopes").unwrap_or_default();
    let mut scopes = Vec::new();
    for (name, value) in map {
        match value {
            Value::String(text) => scopes.push((name, text)),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => {
                from.fault("scopes", "a string is required for each scope");
            }
        }
    }
    scopes
}

fn scopes_json(scopes: &[(String, String)]) -> Value {
    let members = scopes.iter();
    let members = members.map(|(name, text)| (name.clone(), Value::from(&**text)));
    Value::Object(members.collect())
}

impl OAuthFlow {
    fn written(&self) -> Value {
        Value::Object(Below(self.clone()).write())
    }
}

/// The flow, of which the wrapping names say the kind.
struct Flow(OAuthFlow);

impl Wire for Below<OAuthFlow> {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        struct Code(OAuthFlow);
        struct Client(OAuthFlow);
        struct Device(OAuthFlow);
        impl Wire for Code {
            fn read(from: &mut Object<'_>) -> Option<Self> {
                let authorization_url = from.required_text("authorizationUrl");
                let token_url = from.required_text("tokenUrl");
                Some(Self(OAuthFlow::AuthorizationCode {
                    refresh_url: from.text("refreshUrl").unwrap_or_default(),
                    scopes: scopes_of(from),
                    pkce_required: from.flag("pkceRequired").unwrap_or(false),
                    authorization_url: authorization_url?,
                    token_url: token_url?,
                }))
            }
            fn write(&self) -> Map<String, Value> {
                Flow(self.0.clone()).members()
            }
        }
        impl Wire for Client {
            fn read(from: &mut Object<'_>) -> Option<Self> {
                let token_url = from.required_text("tokenUrl");
                Some(Self(OAuthFlow::ClientCredentials {
                    refresh_url: from.text("refreshUrl").unwrap_or_default(),
                    scopes: scopes_of(from),
                    token_url: token_url?,
                }))
            }
            fn write(&self) -> Map<String, Value> {
                Flow(self.0.clone()).members()
            }
        }
        impl Wire for Device {
            fn read(from: &mut Object<'_>) -> Option<Self> {
                let device_authorization_url = from.required_text("deviceAuthorizationUrl");
                let token_url = from.required_text("tokenUrl");
                Some(Self(OAuthFlow::DeviceCode {
                    refresh_url: from.text("refreshUrl").unwrap_or_default(),
                    scopes: scopes_of(from),
                    device_authorization_url: device_authorization_url?,
                    token_url: token_url?,
                }))
            }
            fn write(&self) -> Map<String, Value> {
                Flow(self.0.clone()).members()
            }
        }
        let mut given: Vec<OAuthFlow> = [
            from.one::<Code>("authorizationCode").map(|it| it.0),
            from.one::<Client>("clientCredentials").map(|it| it.0),
            from.one::<Device>("deviceCode").map(|it| it.0),
        ]
        .into_iter()
        .flatten()
        .collect();
        match (given.pop(), given.is_empty()) {
            (Some(only), true) => Some(Self(only)),
            (Some(_), false) | (None, _) => {
                from.fault(
                    "",
                    "exactly one of `authorizationCode`, `clientCredentials` and `deviceCode` is required",
                );
                None
            }
        }
    }

    fn write(&self) -> Map<String, Value> {
        let name = match &self.0 {
            OAuthFlow::AuthorizationCode { .. } => "authorizationCode",
            OAuthFlow::ClientCredentials { .. } => "clientCredentials",
            OAuthFlow::DeviceCode { .. } => "deviceCode",
        };
        Members::new()
            .with(name, Flow(self.0.clone()).members())
            .done()
    }
}

impl Flow {
    fn members(&self) -> Map<String, Value> {
        let members = Members::new();
        match &self.0 {
            OAuthFlow::AuthorizationCode {
                authorization_url,
                token_url,
                refresh_url,
                scopes,
                pkce_required,
            } => members
                .with("authorizationUrl", &**authorization_url)
                .with("tokenUrl", &**token_url)
                .text("refreshUrl", Some(refresh_url))
                .with("scopes", scopes_json(scopes))
                .flag("pkceRequired", *pkce_required),
            OAuthFlow::ClientCredentials {
                token_url,
                refresh_url,
                scopes,
            } => members
                .with("tokenUrl", &**token_url)
                .text("refreshUrl", Some(refresh_url))
                .with("scopes", scopes_json(scopes)),
            OAuthFlow::DeviceCode {
                device_authorization_url,
                token_url,
                refresh_url,
                scopes,
            } => members
                .with("deviceAuthorizationUrl", &**device_authorization_url)
                .with("tokenUrl", &**token_url)
                .text("refreshUrl", Some(refresh_url))
                .with("scopes", scopes_json(scopes)),
        }
        .done()
    }
}

/// Schemes that do together, with the scopes that each must allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityRequirement {
    /// Names of schemes, and scopes.
    pub schemes: Vec<(String, Vec<String>)>,
}

/// A list below the name `list`.
struct StringList(Vec<String>);

impl Wire for StringList {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        Some(Self(from.texts("list")))
    }

    fn write(&self) -> Map<String, Value> {
        Members::new().with("list", self.0.clone()).done()
    }
}

impl Wire for SecurityRequirement {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let schemes = from.by_name::<StringList>("schemes").into_iter();
        Some(Self {
            schemes: schemes.map(|(name, list)| (name, list.0)).collect(),
        })
    }

    fn write(&self) -> Map<String, Value> {
        let schemes = self.schemes.iter();
        let schemes =
            schemes.map(|(name, list)| (name.clone(), StringList(list.clone()).to_json()));
        Members::new()
            .with("schemes", schemes.collect::<Map<_, _>>())
            .done()
    }
}
