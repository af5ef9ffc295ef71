//! nginx with its module nchan, the neighbour that fan-out is compared with: as many workers as the
//! machine has cores, a configuration and a folder of its own.

use crate::client::Client;
use crate::process;
use crate::server::free_port;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where Debian's package `libnginx-mod-nchan` puts it.
const MODULE: &str = "/usr/lib/nginx/modules/ngx_nchan_module.so";
const WORKERS: usize = 2;
const START_PATIENCE: Duration = Duration::from_secs(10);

/// A running nginx.
pub(crate) struct Nginx {
    child: Child,
    workers: Vec<u32>,
    folder: PathBuf,
    pub(crate) address: String,
}

impl Nginx {
    /// Whether it can be started here.
    pub(crate) fn is_installed() -> bool {
        Path::new(MODULE).exists()
    }

    pub(crate) async fn start(folder: PathBuf) -> Result<Self, String> {
        let address = format!("127.0.0.1:{}", free_port()?);
        let failed = |e: std::io::Error| format!("nginx: {e}");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let folder = folder.canonicalize().map_err(failed)?;
        let file = folder.join("nginx.conf");
        std::fs::write(&file, configuration(&folder, &address)).map_err(failed)?;
        let child = Command::new("nginx")
            .arg("-c")
            .arg(&file)
            .arg("-p")
            .arg(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let mut nginx = Self {
            child,
            workers: Vec::new(),
            folder,
            address,
        };
        let began = Instant::now();
        while began.elapsed() < START_PATIENCE {
            nginx.workers = process::children(nginx.child.id())?;
            if nginx.workers.len() >= WORKERS && Client::connect(&nginx.address).await.is_ok() {
                return Ok(nginx);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Err("nginx did not start in time".to_owned())
    }

    /// Resident memory of all workers, shared memory counted once.
    pub(crate) fn memory_kib(&self) -> Result<f64, String> {
        self.workers
            .iter()
            .copied()
            .map(process::shared_memory_kib)
            .sum()
    }

    pub(crate) fn cpu_seconds(&self) -> Result<f64, String> {
        self.workers.iter().copied().map(process::cpu_seconds).sum()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It ends its workers itself; killed, it would leave them behind.
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Publishers post to `/`, subscribers read `/events`: all one channel.
fn configuration(folder: &Path, address: &str) -> String {
    let folder = folder.display();
    format!(
        "daemon off;
worker_processes {WORKERS};
worker_rlimit_nofile 20000;
load_module {MODULE};
pid {folder}/pid;
error_log {folder}/error.log warn;
events {{ worker_connections 18000; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    keepalive_requests 1000000;
    nchan_max_reserved_memory 256M;
    server {{
        listen {address} backlog=4096;
        location = / {{
            nchan_publisher;
            nchan_channel_id bench;
            nchan_message_buffer_length 10000;
            nchan_message_timeout 5m;
        }}
        location = /events {{
            nchan_subscriber eventsource;
            nchan_channel_id bench;
            nchan_subscriber_first_message newest;
            nchan_eventsource_ping_interval 15;
        }}
    }}
}}
"
    )
}
