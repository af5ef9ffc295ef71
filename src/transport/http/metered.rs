//! The socket of one connection: counts what is read and written, and limits what a client may send and not read.
//!
//! Owns: the [`Overhead`] of HTTP/2 frames and of WebSockets, and the rule that a connection is not read while its
//! client does not take what was written to it. May not touch: what requests and messages mean.

use super::frames::{FrameReader, PREFACE, enhance_your_calm};
use super::tls::Socket;
use crate::transport::overhead::{Exhausted, Overhead};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The amounts of one connection, shared with those who serve it.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    /// Bytes written.
    pub(super) written_bytes: AtomicU64,
    pub(super) overhead: Arc<Overhead>,
}

/// A socket whose traffic is counted and limited.
pub(super) struct MeteredSocket {
    socket: Socket,
    traffic: Arc<Traffic>,
    incoming: Incoming,
    outgoing: FrameReader,
    /// The highest stream that the client has opened.
    last_stream: u32,
    /// The last write found no room.
    is_write_pending: bool,
    /// The last flush did not end.
    is_flush_pending: bool,
    /// Bytes were written since the last read: the peer takes what it is sent, however slowly.
    has_written: bool,
    /// The reader that waits until writes go on.
    reader: Option<Waker>,
}

/// The protocol that the client speaks, by the bytes so far.
enum Incoming {
    /// So many bytes of [`PREFACE`] have come.
    Preface(usize),
    Http2(FrameReader),
    /// HTTP/1, or a WebSocket.
    Other,
}

impl MeteredSocket {
    pub(super) fn new(socket: Socket, traffic: Arc<Traffic>) -> Self {
        Self {
            socket,
            traffic,
            incoming: Incoming::Preface(0),
            outgoing: FrameReader::default(),
            last_stream: 0,
            is_write_pending: false,
            is_flush_pending: false,
            has_written: false,
            reader: None,
        }
    }

    /// Charges bytes that were read.
    fn charge(&mut self, mut bytes: &[u8]) -> Result<(), Exhausted> {
        let overhead = &self.traffic.overhead;
        if overhead.counts_bytes() {
            return overhead.spend(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        }
        if let Incoming::Preface(count) = self.incoming {
            let expected = &PREFACE[count..];
            let common = expected.len().min(bytes.len());
            self.incoming = if expected[..common] != bytes[..common] {
                Incoming::Other
            } else if common < expected.len() {
                Incoming::Preface(count + common)
            } else {
                Incoming::Http2(FrameReader::default())
            };
            bytes = &bytes[common..];
        }
        if let Incoming::Http2(frames) = &mut self.incoming {
            let (mut cost, mut last) = (0_u32, self.last_stream);
            frames.scan(bytes, |frame| {
                cost = cost.saturating_add(frame.cost());
                last = last.max(frame.stream);
            });
            self.last_stream = last;
            if cost > 0 {
                return overhead.spend(cost);
            }
        }
        Ok(())
    }

    /// Ends a connection whose overhead is exhausted. HTTP/2 has a code for it; a WebSocket is closed by the code that
    /// serves it, and nothing more is read meanwhile.
    fn refuse(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.traffic.overhead.counts_bytes() {
            return Poll::Pending;
        }
        if self.outgoing.is_between_frames() {
            let frame = enhance_your_calm(self.last_stream);
            // If there is no room for it, the client is not reading and does not see why the connection ends.
            let _ = Pin::new(&mut self.socket).poll_write(cx, &frame);
            let _ = Pin::new(&mut self.socket).poll_flush(cx);
        }
        tracing::debug!("a connection is closed: it sent too many frames without requests");
        let reason = "too many frames without requests";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::QuotaExceeded, reason)))
    }

    fn note_write(&mut self, written: &Poll<io::Result<usize>>, pieces: &[io::IoSlice<'_>]) {
        self.is_write_pending = written.is_pending();
        self.has_written |= matches!(written, Poll::Ready(Ok(count)) if *count > 0);
        self.wake_reader();
        let Poll::Ready(Ok(count)) = written else {
            return;
        };
        let bytes = u64::try_from(*count).expect("a length fits");
        self.traffic
            .written_bytes
            .fetch_add(bytes, Ordering::Relaxed);
        if matches!(self.incoming, Incoming::Http2(_)) {
            let (mut left, mut earned) = (*count, 0_u32);
            for piece in pieces {
                let taken = left.min(piece.len());
                left -= taken;
                self.outgoing.scan(&piece[..taken], |frame| {
                    earned = earned.saturating_add(frame.earns());
                });
            }
            if earned > 0 {
                self.traffic.overhead.earn(earned);
            }
        }
    }

    fn wake_reader(&mut self) {
        let is_idle = !self.is_write_pending && !self.is_flush_pending;
        if (is_idle || self.has_written)
            && let Some(reader) = self.reader.take()
        {
            reader.wake();
        }
    }
}

impl AsyncRead for MeteredSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        if me.traffic.overhead.is_exhausted() {
            return me.refuse(cx);
        }
        if (me.is_write_pending || me.is_flush_pending) && !me.has_written {
            // The peer takes nothing, so answers to what is read, such as pongs, would pile up in memory. While a long
            // answer is on its way to a slow peer, its pongs and renewals are read.
            me.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut me.socket).poll_read(cx, buffer);
        if let Poll::Ready(Ok(())) = &read
            && me.charge(&buffer.filled()[before..]).is_err()
        {
            buffer.set_filled(before);
            return me.refuse(cx);
        }
        if read.is_ready() {
            me.has_written = false;
        }
        read
    }
}

impl AsyncWrite for MeteredSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        let written = Pin::new(&mut me.socket).poll_write(cx, bytes);
        me.note_write(&written, &[io::IoSlice::new(bytes)]);
        written
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        let written = Pin::new(&mut me.socket).poll_write_vectored(cx, pieces);
        me.note_write(&written, pieces);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        let flushed = Pin::new(&mut me.socket).poll_flush(cx);
        me.is_flush_pending = flushed.is_pending();
        me.wake_reader();
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}
