//! Many subscribers on one thread of their own, so that what they cost is not taken from whoever
//! publishes.

use super::frames::Frames;
use super::tally::{Figures, Tally};
use crate::moment::now_us;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;

/// Read at once; shared by all connections of the thread.
const READ_BYTES: usize = 128 * 1024;
/// Connections that are being made at once.
const CONNECTING_MAX: usize = 64;
/// What the system may keep for a reader that never reads: little, so that the server notices soon.
const STALLED_BUFFER_BYTES: u32 = 4096;
/// From a connection to the head of its answer.
const OPEN_PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at whether all has arrived.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Whether subscribers read what they get.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Reading,
    Stalled,
}

enum Order {
    Connect {
        address: String,
        request: String,
        count: usize,
        kind: Kind,
        done: oneshot::Sender<Result<(), String>>,
    },
    Deliveries(oneshot::Sender<u64>),
    Figures(oneshot::Sender<Figures>),
}

/// The thread; dropped, all its connections are closed.
pub(crate) struct Subscribers {
    orders: mpsc::UnboundedSender<Order>,
}

impl Subscribers {
    pub(crate) fn start() -> Result<Self, String> {
        let (orders, inbox) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| e.to_string())?;
        std::thread::Builder::new()
            .name("subscribers".to_owned())
            .spawn(move || runtime.block_on(LocalSet::new().run_until(obey(inbox))))
            .map_err(|e| e.to_string())?;
        Ok(Self { orders })
    }

    /// Makes so many connections; all of them are open when it returns.
    pub(crate) async fn connect(
        &self,
        address: &str,
        request: &str,
        count: usize,
        kind: Kind,
    ) -> Result<(), String> {
        self.ask(|done| Order::Connect {
            address: address.to_owned(),
            request: request.to_owned(),
            count,
            kind,
            done,
        })
        .await?
    }

    /// The counts; those of delays begin anew.
    pub(crate) async fn figures(&self) -> Result<Figures, String> {
        self.ask(Order::Figures).await
    }

    /// Waits until so many deliveries have come in all, or for so long.
    pub(crate) async fn wait_for(&self, deliveries: u64, patience: Duration) -> Result<(), String> {
        let began = Instant::now();
        while self.ask(Order::Deliveries).await? < deliveries && began.elapsed() < patience {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    async fn ask<T>(&self, order: impl FnOnce(oneshot::Sender<T>) -> Order) -> Result<T, String> {
        let (sender, answer) = oneshot::channel();
        let gone = "the subscribers have died";
        self.orders.send(order(sender)).map_err(|_| gone)?;
        answer.await.map_err(|_| gone.to_owned())
    }
}

/// What the connections of the thread share.
struct Shared {
    tally: RefCell<Tally>,
    buffer: RefCell<Vec<u8>>,
}

async fn obey(mut inbox: mpsc::UnboundedReceiver<Order>) {
    let shared = Rc::new(Shared {
        tally: RefCell::new(Tally::new()),
        buffer: RefCell::new(vec![0; READ_BYTES]),
    });
    // Whoever asked may have gone, which is no concern of the subscribers.
    while let Some(order) = inbox.recv().await {
        match order {
            Order::Connect {
                address,
                request,
                count,
                kind,
                done,
            } => {
                let _ = done.send(connect(&shared, &address, &request, count, kind).await);
            }
            Order::Deliveries(answer) => {
                let _ = answer.send(shared.tally.borrow().deliveries());
            }
            Order::Figures(answer) => {
                let _ = answer.send(shared.tally.borrow_mut().figures());
            }
        }
    }
}

async fn connect(
    shared: &Rc<Shared>,
    address: &str,
    request: &str,
    count: usize,
    kind: Kind,
) -> Result<(), String> {
    let request: Rc<str> = request.into();
    let mut opening = tokio::task::JoinSet::new();
    for k in 0..count {
        if k >= CONNECTING_MAX
            && let Some(opened) = opening.join_next().await
        {
            opened.map_err(|e| e.to_string())??;
        }
        let (shared, request, address) = (shared.clone(), request.clone(), address.to_owned());
        opening.spawn_local(async move {
            let open = open(shared, &address, &request, kind);
            let waited = tokio::time::timeout(OPEN_PATIENCE, open).await;
            waited.map_err(|_| "a stream does not open in time".to_owned())?
        });
    }
    while let Some(opened) = opening.join_next().await {
        opened.map_err(|e| e.to_string())??;
    }
    Ok(())
}

/// Opens one stream and leaves its reading to a task of its own.
async fn open(shared: Rc<Shared>, address: &str, request: &str, kind: Kind) -> Result<(), String> {
    let address = address.parse().map_err(|e| format!("{address}: {e}"))?;
    let socket = TcpSocket::new_v4().map_err(|e| e.to_string())?;
    if kind == Kind::Stalled {
        let small = socket.set_recv_buffer_size(STALLED_BUFFER_BYTES);
        small.map_err(|e| e.to_string())?;
    }
    let mut stream = socket.connect(address).await.map_err(|e| e.to_string())?;
    let sent = stream.write_all(request.as_bytes()).await;
    sent.map_err(|e| e.to_string())?;
    if kind == Kind::Stalled {
        tokio::task::spawn_local(async move {
            let _held = stream;
            std::future::pending::<()>().await;
        });
        return Ok(());
    }
    let (mut frames, mut seen) = (Frames::default(), 0);
    while !frames.is_open() {
        read(&shared, &stream, &mut frames, &mut seen).await?;
    }
    tokio::task::spawn_local(async move {
        while read(&shared, &stream, &mut frames, &mut seen).await.is_ok() {}
        shared.tally.borrow_mut().ended();
    });
    Ok(())
}

async fn read(
    shared: &Shared,
    stream: &TcpStream,
    frames: &mut Frames,
    seen: &mut usize,
) -> Result<(), String> {
    stream.readable().await.map_err(|e| e.to_string())?;
    let mut buffer = shared.buffer.borrow_mut();
    let len = match stream.try_read(&mut buffer) {
        Ok(0) => return Err("the server closed a stream".to_owned()),
        Ok(len) => len,
        Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
        Err(e) => return Err(e.to_string()),
    };
    let mut tally = shared.tally.borrow_mut();
    tally.bytes(len);
    let now = now_us();
    frames.read(&buffer[..len], |id, data| {
        *seen = tally.take(*seen, now, id, data);
    })
}
