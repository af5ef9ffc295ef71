//! Which server a command talks to: an option wins over the context that is named for the call, that over variables,
//! and those over the context in use.

use super::variables::{SERVER_VARIABLES, set};
use super::{Access, CliError, Named, http_api};

impl Access {
    /// The address of the server: of `option`, else of the named context, else of a variable, else of the context in
    /// use.
    ///
    /// # Errors
    /// There is no such context, or a variable holds no address.
    pub fn url(&self, option: Option<&str>) -> Result<Option<String>, CliError> {
        Ok(self.server(option)?.map(|(url, _)| url))
    }

    /// Whether a context is named for this call.
    #[must_use]
    pub const fn names_context(&self) -> bool {
        self.context.is_some()
    }

    /// The same as [`Self::url`], but for the context in use.
    ///
    /// # Errors
    /// As [`Self::url`].
    pub fn url_of_this_call(&self, option: Option<&str>) -> Result<Option<String>, CliError> {
        Ok(self.server_of_this_call(option)?.map(|(url, _)| url))
    }

    pub(super) fn server(&self, option: Option<&str>) -> Result<Option<(String, Named)>, CliError> {
        if let Some(named) = self.server_of_this_call(option)? {
            return Ok(Some(named));
        }
        let in_use = self.chosen()?;
        Ok(in_use.map(|(name, context)| (context.server, Named::Context(name))))
    }

    fn server_of_this_call(
        &self,
        option: Option<&str>,
    ) -> Result<Option<(String, Named)>, CliError> {
        if let Some(url) = option {
            return Ok(Some((url.to_owned(), Named::Given)));
        }
        if self.context.is_some() {
            let named = self.chosen()?;
            return Ok(named.map(|(name, context)| (context.server, Named::Context(name))));
        }
        Ok(url_of_variables()?.map(|url| (url, Named::Given)))
    }
}

/// The address in the variables.
fn url_of_variables() -> Result<Option<String>, CliError> {
    let set = |name| Some((name, set(name)?));
    let Some((name, variable)) = SERVER_VARIABLES.into_iter().find_map(set) else {
        return Ok(None);
    };
    let wrong = |why| CliError::Usage(format!("{name}: {why}"));
    let url = http_api::server_url(&variable.to_string_lossy());
    url.map(Some).map_err(wrong)
}

/// What a context holds, or a variable: that of the context wins if it `is_named` for this call.
pub(super) fn first<T>(is_named: bool, of_context: Option<T>, of_variable: Option<T>) -> Option<T> {
    match is_named {
        true => of_context.or(of_variable),
        false => of_variable.or(of_context),
    }
}
