//! A name server on loopback that says what it is told to, by name and by how often it was asked.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
/// Bytes of a question over UDP.
const QUESTION_BYTES_MAX: usize = 512;
/// Names that a chain of CNAMEs is followed for.
const CHAIN_MAX: usize = 8;

/// The answer for a name.
#[derive(Debug, Clone)]
pub enum Reply {
    /// These addresses, each for questions of its kind.
    Addresses(Vec<IpAddr>),
    /// Another name, with what that one is said to be.
    Cname(String),
    /// No such name.
    NxDomain,
    /// The server cannot say.
    ServFail,
    /// No answer ever.
    Silence,
    /// The name exists and has no addresses.
    Empty,
}

impl Reply {
    /// From texts.
    pub fn addresses(addresses: &[&str]) -> Self {
        Self::Addresses(addresses.iter().map(|a| a.parse().unwrap()).collect())
    }
}

/// A name server. Ends with the value.
pub struct Dns {
    address: SocketAddr,
    names: Arc<Mutex<HashMap<String, Vec<Reply>>>>,
    asked: Arc<Mutex<HashMap<(String, u16), usize>>>,
    answering: JoinHandle<()>,
}

impl Dns {
    /// One that knows no name yet, on a free port.
    pub async fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let (names, asked) = (Arc::default(), Arc::default());
        let answering = tokio::spawn(answer(socket, Arc::clone(&names), Arc::clone(&asked)));
        Self {
            address,
            names,
            asked,
            answering,
        }
    }

    /// Where it is asked.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What is said of a name: the nth reply to the nth question of a kind, the last one for ever.
    /// Nothing may be remembered (TTL 0).
    pub fn says(&self, name: &str, replies: impl IntoIterator<Item = Reply>) {
        let replies = replies.into_iter().collect();
        self.names.lock().unwrap().insert(name.to_owned(), replies);
    }

    /// How often a name's IPv4 addresses were asked for.
    pub fn asked(&self, name: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.get(&(name.to_owned(), A)).copied().unwrap_or(0)
    }
}

impl Drop for Dns {
    fn drop(&mut self) {
        self.answering.abort();
    }
}

type Names = Arc<Mutex<HashMap<String, Vec<Reply>>>>;
type Asked = Arc<Mutex<HashMap<(String, u16), usize>>>;

async fn answer(socket: UdpSocket, names: Names, asked: Asked) {
    let mut buffer = [0; QUESTION_BYTES_MAX];
    while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
        let Some(question) = Question::read(&buffer[..len]) else {
            continue;
        };
        let nth = {
            let mut asked = asked.lock().unwrap();
            let count = asked.entry((question.name.clone(), question.kind));
            let count = count.or_insert(0);
            *count += 1;
            *count - 1
        };
        let answer = question.answer(&names.lock().unwrap(), nth);
        if let Some(answer) = answer {
            _ = socket.send_to(&answer, from).await;
        }
    }
}

struct Question {
    id: [u8; 2],
    name: String,
    kind: u16,
    /// As it was asked.
    bytes: Vec<u8>,
}

impl Question {
    fn read(message: &[u8]) -> Option<Self> {
        const HEADER_BYTES: usize = 12;
        let mut at = HEADER_BYTES;
        let mut labels = Vec::new();
        loop {
            let len = usize::from(*message.get(at)?);
            at += 1;
            if len == 0 {
                break;
            }
            let label = message.get(at..at + len)?;
            labels.push(String::from_utf8_lossy(label).to_lowercase());
            at += len;
        }
        let kind = u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]);
        Some(Self {
            id: [message[0], message[1]],
            name: labels.join("."),
            kind,
            bytes: message.get(HEADER_BYTES..at + 4)?.to_vec(),
        })
    }

    /// The message, unless nothing is said.
    fn answer(&self, names: &HashMap<String, Vec<Reply>>, nth: usize) -> Option<Vec<u8>> {
        const NO_ERROR: u8 = 0;
        const SERV_FAIL: u8 = 2;
        const NX_DOMAIN: u8 = 3;
        let (mut code, mut records) = (NO_ERROR, Vec::new());
        let mut name = self.name.clone();
        for _ in 0..CHAIN_MAX {
            let replies = names.get(&name);
            let reply = replies.and_then(|all| all.get(nth).or(all.last()));
            match reply {
                Some(Reply::Addresses(addresses)) => {
                    records.extend(addresses.iter().filter_map(|a| self.record(&name, *a)));
                }
                Some(Reply::Cname(other)) => {
                    records.push(record(&name, CNAME, &encoded(other)));
                    name.clone_from(other);
                    continue;
                }
                Some(Reply::ServFail) => code = SERV_FAIL,
                Some(Reply::Silence) => return None,
                Some(Reply::Empty) => {}
                Some(Reply::NxDomain) | None => code = NX_DOMAIN,
            }
            break;
        }
        let count = u16::try_from(records.len()).unwrap().to_be_bytes();
        // An answer, recursion asked for and there; one question, these answers.
        let flags = [0x81, 0x80 | code];
        let header = [&self.id[..], &flags, &[0, 1], &count, &[0, 0, 0, 0]].concat();
        Some([header, self.bytes.clone(), records.concat()].concat())
    }

    fn record(&self, name: &str, address: IpAddr) -> Option<Vec<u8>> {
        match (self.kind, address) {
            (A, IpAddr::V4(address)) => Some(record(name, A, &address.octets())),
            (AAAA, IpAddr::V6(address)) => Some(record(name, AAAA, &address.octets())),
            _ => None,
        }
    }
}

fn record(name: &str, kind: u16, data: &[u8]) -> Vec<u8> {
    let len = u16::try_from(data.len()).unwrap().to_be_bytes();
    let class_and_ttl = [0, 1, 0, 0, 0, 0];
    [
        &encoded(name)[..],
        &kind.to_be_bytes(),
        &class_and_ttl,
        &len,
        data,
    ]
    .concat()
}

fn encoded(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.bytes());
    }
    bytes.push(0);
    bytes
}
