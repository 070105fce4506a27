//! PMI-1: what the launchers of MPICH (hydra) and many others say to the
//! processes that they start. A line of `NAME=VALUE` words in each direction, on a socket that is inherited; a store
//! of names and values, and a barrier after which every process sees what all have put.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use crate::foreign::Store;
use crate::pmi2;
use parnass_base::bytes;

/// Longer answers come from something else.
const LINE_BYTES_MAXIMUM: usize = 64 << 10;
/// Room for values, where the launcher does not say it.
const VALUE_BYTES: usize = 1024;
/// Digits of a value at most: Slurm takes no line of more than 1,024 bytes.
const DIGITS_MAXIMUM: usize = 720;

/// A PMI launcher, of either version.
pub trait Launcher: Store {
    /// Which ranks share a host, see [`nodes_of_mapping`].
    fn mapping(&mut self) -> io::Result<String>;
}

/// Which version is asked for first; a server that does not have it is asked for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    One,
    Two,
}

/// Greets the server for `rank` of `size`; `job` is what it has called the job in the environment.
///
/// # Errors
/// It does not answer as either version says.
pub fn connect(
    socket: OwnedFd,
    first: Version,
    rank: u32,
    size: u32,
    job: &str,
) -> io::Result<Box<dyn Launcher>> {
    let mut line = Line::new(socket);
    let other = if first == Version::One { Version::Two } else { Version::One };
    for version in [first, other] {
        match version {
            Version::One if agree(&mut line)? => return Ok(Box::new(Client::new(line)?)),
            Version::Two if pmi2::agree(&mut line)? => {
                return Ok(Box::new(pmi2::Client::new(line, rank, size, job)?));
            }
            Version::One | Version::Two => (),
        }
    }
    Err(io::Error::other("it has neither version 1 nor version 2 of PMI"))
}

/// Asks a server for version 1; whether it agrees.
fn agree(line: &mut Line) -> io::Result<bool> {
    let answer = line.ask("cmd=init pmi_version=1 pmi_subversion=1")?;
    if field(&answer, "cmd") != Some("response_to_init") {
        return Err(malformed(&answer));
    }
    // Some say the version that they have instead of refusing.
    let other = field(&answer, "pmi_version").is_some_and(|version| version != "1");
    Ok(field(&answer, "rc").is_none_or(|code| code == "0") && !other)
}

/// A connection over which lines go.
#[derive(Debug)]
pub struct Line {
    socket: File,
    arrived: Vec<u8>,
}

impl Line {
    pub fn new(socket: OwnedFd) -> Line {
        Line { socket: socket.into(), arrived: Vec::new() }
    }

    /// Sends a line and gives the one that comes back.
    pub fn ask(&mut self, line: &str) -> io::Result<String> {
        self.socket.write_all(format!("{line}\n").as_bytes())?;
        self.line()
    }

    /// Sends bytes that are no line.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes)
    }

    /// The next `length` bytes.
    pub fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let early = self.arrived.len().min(length);
        let mut bytes: Vec<u8> = self.arrived.drain(..early).collect();
        bytes.resize(length, 0);
        self.socket.read_exact(&mut bytes[early..])?;
        Ok(bytes)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut bytes = [0; 4096];
        loop {
            if let Some(end) = self.arrived.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.arrived.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if self.arrived.len() > LINE_BYTES_MAXIMUM {
                return Err(malformed("a line without an end"));
            }
            match self.socket.read(&mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.arrived.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The connection to a PMI-1 server.
#[derive(Debug)]
pub struct Client {
    line: Line,
    store: String,
    value_bytes: usize,
}

impl Client {
    /// Goes on with a server that has agreed to version 1.
    fn new(line: Line) -> io::Result<Client> {
        let mut client = Client { line, store: String::new(), value_bytes: VALUE_BYTES };
        let maxes = client.ask("cmd=get_maxes", "maxes")?;
        if let Some(bytes) = field(&maxes, "vallen_max").and_then(|text| text.parse::<usize>().ok()) {
            client.value_bytes = bytes.clamp(64, 1 << 20);
        }
        let name = client.ask("cmd=get_my_kvsname", "my_kvsname")?;
        client.store = field(&name, "kvsname").ok_or_else(|| malformed(&name))?.to_owned();
        Ok(client)
    }

    fn put_text(&mut self, name: &str, value: &str) -> io::Result<()> {
        let line = format!("cmd=put kvsname={} key={name} value={value}", self.store);
        self.ask(&line, "put_result").map(drop)
    }

    /// Gets a value as it stands in the store.
    fn get_text(&mut self, name: &str) -> io::Result<String> {
        let line = format!("cmd=get kvsname={} key={name}", self.store);
        let answer = self.ask(&line, "get_result")?;
        Ok(field(&answer, "value").ok_or_else(|| malformed(&answer))?.to_owned())
    }

    /// Sends a line and gives the answer, which must be of `kind` and say no error.
    fn ask(&mut self, line: &str, kind: &str) -> io::Result<String> {
        let answer = self.line.ask(line)?;
        if field(&answer, "cmd") != Some(kind) {
            return Err(malformed(&answer));
        }
        match field(&answer, "rc") {
            None | Some("0") => Ok(answer),
            Some(_) => Err(io::Error::other(format!("the launcher refused '{line}': '{answer}'"))),
        }
    }
}

impl Launcher for Client {
    fn mapping(&mut self) -> io::Result<String> {
        self.get_text("PMI_process_mapping")
    }
}

/// Puts bytes as hexadecimal digits into values of at most so many digits, two for each byte, and their number under the name itself.
pub(crate) fn put_pieces(
    name: &str,
    bytes: &[u8],
    digits: usize,
    mut put: impl FnMut(&str, &str) -> io::Result<()>,
) -> io::Result<()> {
    let pieces: Vec<&[u8]> = bytes.chunks(digits / 2).collect();
    put(name, &format!("n{}", pieces.len()))?;
    for (index, piece) in pieces.into_iter().enumerate() {
        put(&format!("{name}-{index}"), &bytes::digits(piece))?;
    }
    Ok(())
}

/// What [`put_pieces`] has put.
pub(crate) fn get_pieces(name: &str, mut get: impl FnMut(&str) -> io::Result<String>) -> io::Result<Vec<u8>> {
    let count = get(name)?;
    let count: usize =
        count.strip_prefix('n').and_then(|count| count.parse().ok()).ok_or_else(|| malformed(&count))?;
    let mut bytes = Vec::new();
    for index in 0..count {
        let text = get(&format!("{name}-{index}"))?;
        bytes.extend(bytes::of_digits(&text).ok_or_else(|| malformed(&text))?);
    }
    Ok(bytes)
}

impl Store for Client {
    fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        // The server counts a closing zero.
        let digits = (self.value_bytes - 2).min(DIGITS_MAXIMUM);
        put_pieces(name, bytes, digits, |name, text| self.put_text(name, text))
    }

    /// Names are of the whole job here: each says itself whose it is.
    fn get(&mut self, _rank: u32, name: &str) -> io::Result<Vec<u8>> {
        get_pieces(name, |name| self.get_text(name))
    }

    fn barrier(&mut self) -> io::Result<()> {
        self.ask("cmd=barrier_in", "barrier_out").map(drop)
    }

    fn finalize(&mut self) -> io::Result<()> {
        self.ask("cmd=finalize", "finalize_ack").map(drop)
    }

    fn abort(&mut self, code: i32, message: &str) {
        if !message.is_empty() {
            eprintln!("parnass: {message}"); // The launcher takes no text.
        }
        // Nobody answers, and where nobody listens there is nothing more to do.
        let _ = self.line.socket.write_all(format!("cmd=abort exitcode={code}\n").as_bytes());
    }

    fn app_number(&mut self) -> i32 {
        let answer = self.ask("cmd=get_appnum", "appnum");
        answer.ok().and_then(|line| field(&line, "appnum")?.parse().ok()).unwrap_or(-1)
    }
}

/// The value of a word `NAME=VALUE`.
pub fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_ascii_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

pub fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the launcher said '{what}'"))
}

/// The node of each of `size` ranks from a process mapping, as `(vector,(0,2,4))`: blocks of first node, number of
/// nodes, and ranks on each, again from the first block when they are used up. Nodes are numbered as they appear.
pub fn nodes_of_mapping(text: &str, size: u32) -> Option<Vec<u32>> {
    let blocks = text.trim().strip_prefix("(vector,")?.strip_suffix(')')?;
    let numbers: Vec<u32> = blocks
        .split(['(', ')', ','])
        .filter(|piece| !piece.trim().is_empty())
        .map(|piece| piece.trim().parse().ok())
        .collect::<Option<_>>()?;
    if numbers.is_empty() || !numbers.len().is_multiple_of(3) {
        return None;
    }
    let mut found: BTreeMap<u32, u32> = BTreeMap::new();
    let mut nodes = Vec::with_capacity(size as usize);
    while nodes.len() < size as usize {
        let before = nodes.len();
        for block in numbers.chunks_exact(3) {
            for node in block[0]..block[0].checked_add(block[1])? {
                if block[2] == 0 {
                    break;
                }
                let next = found.len() as u32;
                let index = *found.entry(node).or_insert(next);
                for _ in 0..block[2] {
                    if nodes.len() == size as usize {
                        return Some(nodes);
                    }
                    nodes.push(index);
                }
                if nodes.len() == size as usize {
                    return Some(nodes);
                }
            }
        }
        if nodes.len() == before {
            return None; // Blocks of nothing.
        }
    }
    Some(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn mappings_are_read() {
        assert_eq!(nodes_of_mapping("(vector,(0,2,2))", 4), Some(vec![0, 0, 1, 1]));
        assert_eq!(nodes_of_mapping("(vector,(0,2,1))", 5), Some(vec![0, 1, 0, 1, 0]));
        assert_eq!(nodes_of_mapping("(vector,(0,1,3),(1,1,1))", 4), Some(vec![0, 0, 0, 1]));
        assert_eq!(nodes_of_mapping("(vector,(5,1,1),(2,1,1))", 2), Some(vec![0, 1]));
        for text in [
            "",
            "(vector,)",
            "(vector,(0,1))",
            "(vector,(0,0,0))",
            "(matrix,(0,1,1))",
            "(vector,(0,x,1))",
            "(vector,(0,4294967295,0))",
        ] {
            assert_eq!(nodes_of_mapping(text, 3), None, "{text}");
        }
    }

    #[test]
    fn answers_are_taken_apart_and_refusals_told() {
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(
            b"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\ncmd=maxes kvsname_max=256 vallen_max=64 rc=0\n\
              cmd=my_kvsname kvsname=kvs_1\ncmd=put_result rc=0\ncmd=put_result rc=0\ncmd=put_result rc=0 msg=success\n\
              cmd=get_result rc=0 value=n1\ncmd=get_result rc=0 msg=success value=0aff\ncmd=get_result rc=-1 msg=no\n",
        )
        .unwrap();
        let mut client = connect(OwnedFd::from(near), Version::One, 0, 1, "j").unwrap();
        client.put("key", &[7; 40]).unwrap(); // Two pieces, as a value has 64 bytes here.
        assert_eq!(client.get(0, "key").unwrap(), [10, 255]);
        assert!(client.get(0, "other").unwrap_err().to_string().contains("refused"));
        drop(far);
        assert!(client.barrier().is_err());
    }

    #[test]
    fn the_version_that_the_server_has_is_spoken() {
        for (first, refusal) in [
            (Version::One, "rc=-1 pmi_version=1"),
            (Version::One, "rc=0 pmi_version=2"),
            (Version::Two, "rc=-1"),
        ] {
            let (near, mut far) = UnixStream::pair().unwrap();
            let server = std::thread::spawn(move || {
                let mut lines = Vec::new();
                let mut hear = |far: &mut UnixStream| {
                    let mut bytes = [0; 200];
                    let count = far.read(&mut bytes).unwrap();
                    lines.push(String::from_utf8_lossy(&bytes[..count]).into_owned());
                };
                hear(&mut far);
                far.write_all(format!("cmd=response_to_init {refusal}\n").as_bytes()).unwrap();
                hear(&mut far);
                far.write_all(b"cmd=response_to_init rc=-1\n").unwrap();
                lines
            });
            let refused = connect(near.into(), first, 0, 1, "j").unwrap_err().to_string();
            assert!(refused.contains("neither version"), "{refused}");
            let asked = server.join().unwrap();
            let versions =
                if first == Version::One { ["version=1", "version=2"] } else { ["version=2", "version=1"] };
            assert!(asked.iter().zip(versions).all(|(line, version)| line.contains(version)), "{asked:?}");
        }
    }

    proptest! {
        #[test]
        fn any_mapping_is_read_or_refused(text in "[(),0-9vectr ]{0,40}", size in 1u32..50) {
            let _ = nodes_of_mapping(&text, size);
            if let Some(nodes) = nodes_of_mapping(&format!("(vector,{text})"), size) {
                prop_assert_eq!(nodes.len(), size as usize);
            }
        }

        #[test]
        fn any_answer_is_taken_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let (near, mut far) = UnixStream::pair().unwrap();
            far.write_all(&bytes).unwrap();
            drop(far);
            prop_assert!(connect(OwnedFd::from(near), Version::One, 0, 1, "j").is_err());
        }
    }
}
