//! A browser that reads a stream from a page of another origin, and the server of that page.

use crate::clients::others;
use crate::clients::reader::{Notes, Reader};
use axum::Router;
use axum::extract::State;
use axum::response::Html;
use axum::routing::{get, post};
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// Serves the page, and takes what the page has seen.
pub(crate) struct PageServer {
    /// `http://HOST:PORT`
    pub(crate) origin: String,
    notes: Notes,
    serving: JoinHandle<()>,
}

impl PageServer {
    pub(crate) async fn start() -> Self {
        let notes = Notes::default();
        let router = Router::new()
            .route("/", get(async || Html(include_str!("stream.html"))))
            .route("/calls", get(async || Html(include_str!("calls.html"))))
            .route("/seen", post(seen))
            .with_state(notes.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            origin,
            notes,
            serving,
        }
    }

    /// A browser on the page, which reads the stream at `url`, with a token if one is given.
    pub(crate) fn browse(&self, url: &str, names: &[&str], token: Option<&str>) -> Browser {
        let mut page = url::Url::parse(&self.origin).unwrap();
        let names = names.join(",");
        page.query_pairs_mut()
            .extend_pairs([("url", url), ("names", &names)])
            .extend_pairs(token.map(|token| ("token", token)));
        let name = match token {
            None => "EventSource of Chromium",
            Some(_) => "fetch of Chromium",
        };
        self.open(name, &page)
    }

    /// A browser on a page that makes these calls on the socket at `url`.
    pub(crate) fn call(&self, url: &str, calls: &[String]) -> Browser {
        let mut page = url::Url::parse(&self.origin).unwrap();
        page.set_path("/calls");
        page.query_pairs_mut()
            .append_pair("url", url)
            .extend_pairs(calls.iter().map(|call| ("call", call)));
        self.open("WebSocket of Chromium", &page)
    }

    fn open(&self, name: &'static str, page: &url::Url) -> Browser {
        let profile = tempfile::tempdir().unwrap();
        let mut command = others::chromium(profile.path(), page.as_str());
        command.stdout(std::process::Stdio::null());
        command.stderr(std::process::Stdio::null());
        let reader = Reader::start(name, command, self.notes.clone());
        Browser { reader, profile }
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A browser at work: it ends before its profile goes.
pub(crate) struct Browser {
    pub(crate) reader: Reader,
    #[allow(dead_code, reason = "held until the browser has ended")]
    profile: TempDir,
}

async fn seen(State(notes): State<Notes>, line: String) {
    notes.take(&line);
}
